"""The paths of the HTTP edge besides those of ingest: a request of the operation layer from each, and JSON of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.concurrency import iterate_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lakelet.errors import InvalidError
from lakelet.service.access.access import Access
from lakelet.service.access.caller import Caller
from lakelet.service.query.json_text import JsonText
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.rest.bodies import AlterTableBody, BackupBody, ChangedConfigBody, CreateTableBody, QueryBody
from lakelet.service.rest.docs_page import docs_routes
from lakelet.service.rest.metrics import metrics_text
from lakelet.service.rest.openapi import openapi_json
from lakelet.service.rest.request_body import Receive, Scope, Send, decode_json, read_body
from lakelet.service.running_queries import RunningQueries
from lakelet.service.service import Service
from lakelet.service.timestamps import timestamp_text
from lakelet.service.values import (
    AlterTableRequest,
    BackupRequest,
    CreateTableRequest,
    DescribedTable,
    DropTableRequest,
    Health,
    RowRequest,
    TableConfig,
    TableInfo,
    TableStats,
)

Handler = Callable[[Request], Awaitable[Response]]
_CREATE = msgspec.json.Decoder(CreateTableBody)
_ALTER = msgspec.json.Decoder(AlterTableBody)
_BACKUP = msgspec.json.Decoder(BackupBody)
_QUERY = msgspec.json.Decoder(QueryBody)
_ARROW = "application/vnd.apache.arrow.stream"


def routes(service: Service, metrics: RequestMetrics, access: Access, queries: RunningQueries) -> list[Route]:
    """The routes over a service."""
    edge = _Edge(service, metrics, access, queries)
    return [
        Route("/v1/data/{table}", edge.get_rows, methods=["GET"]),
        Route("/v1/data/{table}", edge.delete_rows, methods=["DELETE"]),
        Route("/v1/data/{table}/{id:anything}", edge.get_rows, methods=["GET"]),
        Route("/v1/data/{table}/{id:anything}", edge.delete_rows, methods=["DELETE"]),
        Route("/v1/query", edge.query, methods=["POST"]),
        Route("/v1/query/{request_id}", edge.cancel_query, methods=["DELETE"]),
        Route("/v1/tables", edge.list_tables, methods=["GET"]),
        Route("/v1/tables", edge.create_table, methods=["POST"]),
        Route("/v1/tables/{table_name}", edge.describe_table, methods=["GET"]),
        Route("/v1/tables/{table_name}", edge.alter_table, methods=["PATCH"]),
        Route("/v1/tables/{table_name}", edge.drop_table, methods=["DELETE"]),
        Route("/v1/backup", edge.list_backups, methods=["GET"]),
        Route("/v1/backup/trigger", edge.trigger_backup, methods=["POST"]),
        Route("/v1/backup/recover", edge.recover, methods=["POST"]),
        Route("/v1/backup/{table}/verify", edge.verify_backup, methods=["GET"]),
        Route("/v1/health", edge.health, methods=["GET"]),
        Route("/v1/health/live", edge.live, methods=["GET"]),
        Route("/v1/health/ready", edge.ready, methods=["GET"]),
        Route("/v1/stats", edge.stats, methods=["GET"]),
        Route("/v1/nodes", edge.nodes, methods=["GET"]),
        Route("/metrics", edge.metrics, methods=["GET"]),
        Route("/openapi.json", edge.openapi, methods=["GET"]),
        *docs_routes(),
    ]


class _Edge:
    """The handlers; the caller is in the state of the request."""

    def __init__(self, service: Service, metrics: RequestMetrics, access: Access, queries: RunningQueries) -> None:
        self._service = service
        self._queries = queries
        self._access = access
        self._metrics = metrics

    async def get_rows(self, request: Request) -> Response:
        asked = _row_request(request)
        records = await self._service.get_rows(asked, _caller(request))
        return _json({"records": records, "total": len(records)})

    async def delete_rows(self, request: Request) -> Response:
        asked = _row_request(request)
        if "idempotency-key" in request.headers:
            # Taken and not kept, it would let a client that relies on it delete what others have written since.
            raise InvalidError(
                "Idempotency-Key: expected none, for a deletion has no key; look before you send it again"
            )
        deleted = await self._service.delete_rows(asked, _caller(request))
        return _json(
            {
                "success": True,
                "message": f"{deleted} {'record' if deleted == 1 else 'records'} deleted",
                "deleted": deleted,
            }
        )

    async def query(self, request: Request) -> Response:
        from lakelet.service.query.query_engine import QueryRequest  # noqa: PLC0415 - DuckDB is loaded by the first query.

        body = await self._body(request, _QUERY)
        request.state.audited["sql"] = body.sql
        asked = QueryRequest(
            body.sql,
            params=body.params,
            time_zone=body.time_zone,
            timeout_seconds=body.timeout_seconds,
            engine=body.engine,
        )
        gone = asyncio.ensure_future(_disconnected(request.receive))
        owned = (asked, _caller(request), request.state.request_id, gone)
        if _ARROW not in request.headers.get("accept", ""):
            try:
                return _warned(_json_answer(await self._queries.json_text(*owned), asked.warnings), asked.warnings)
            finally:
                gone.cancel()
        parts = self._queries.arrow(*owned)
        try:
            # The first part, or an error that is answered as one.
            first = await anext(parts)
        except BaseException:
            gone.cancel()
            raise
        return _warned(_StreamedQuery(_with_first(first, parts, gone), media_type=_ARROW), asked.warnings)

    async def cancel_query(self, request: Request) -> Response:
        cancelled = await self._queries.cancel(_caller(request), request.path_params["request_id"])
        message = f"{cancelled} {'query' if cancelled == 1 else 'queries'} cancelled"
        return _json({"success": True, "message": message, "cancelled": cancelled})

    async def list_tables(self, request: Request) -> Response:
        found = await self._service.list_tables(request.query_params.get("pattern", ""), _caller(request))
        return _json({"tables": [_listed(one) for one in found], "total": len(found)})

    async def create_table(self, request: Request) -> Response:
        body = await self._body(request, _CREATE)
        request.state.audited["table"] = body.table_name
        config = None if body.config is None else TableConfig(**msgspec.structs.asdict(body.config))
        asked = CreateTableRequest(body.table_name, config, body.if_not_exists)
        info, is_new = await self._service.create_table(asked, _caller(request))
        message = f"table {info.name!r} created" if is_new else f"table {info.name!r} exists"
        return _json({"success": True, "message": message, "table_info": _info(info)}, 201 if is_new else 200)

    async def describe_table(self, request: Request) -> Response:
        found = await self._service.describe_table(request.path_params["table_name"], _caller(request))
        return _json({"table_info": _info(found.table_info), "stats": _stats(found.stats)})

    async def alter_table(self, request: Request) -> Response:
        body = await self._body(request, _ALTER)
        config = body.config or ChangedConfigBody()
        asked = AlterTableRequest(
            request.path_params["table_name"], status=body.status, **msgspec.structs.asdict(config)
        )
        info = await self._service.alter_table(asked, _caller(request))
        return _json({"success": True, "message": f"table {info.name!r} altered", "table_info": _info(info)})

    async def drop_table(self, request: Request) -> Response:
        asked = DropTableRequest(
            request.path_params["table_name"],
            if_exists=_flag(request, "if_exists"),
            cascade=_flag(request, "cascade"),
        )
        done = await self._service.drop_table(asked, _caller(request))
        return _json({"success": True, "message": done.message, "files_deleted": done.files_deleted})

    async def trigger_backup(self, request: Request) -> Response:
        body = await self._body(request, _BACKUP)
        request.state.audited["table"] = body.table
        done = await self._service.trigger_backup(BackupRequest(body.table, body.id, body.day), _caller(request))
        return _json({"success": True, "message": done.message, "files_backed_up": done.files})

    async def recover(self, request: Request) -> Response:
        body = await self._body(request, _BACKUP)
        request.state.audited["table"] = body.table
        done = await self._service.recover(BackupRequest(body.table, body.id, body.day), _caller(request))
        return _json({"success": True, "message": done.message, "files_recovered": done.files})

    async def list_backups(self, request: Request) -> Response:
        found = await self._service.list_backups(_caller(request))
        return _json({"backups": found, "total": len(found)})

    async def verify_backup(self, request: Request) -> Response:
        found = await self._service.verify_backup(request.path_params["table"], _caller(request))
        problems = [{"path": path, "problem": problem} for path, problem in found.problems]
        return _json({"files": found.files, "bytes": found.bytes, "problems": problems})

    async def health(self, request: Request) -> Response:
        found = await self._service.health()
        return _health(found, request)

    async def live(self, _: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        found = await self._service.health()
        return _health(found, request, 200 if found.is_ready else 503)

    async def stats(self, request: Request) -> Response:
        found = await self._service.stats(request.query_params.get("table", ""), _caller(request))
        return _json(msgspec.to_builtins(found))

    async def nodes(self, request: Request) -> Response:
        found = await self._service.nodes(_caller(request))
        nodes = [
            {
                "id": one.id,
                "address": one.address,
                "status": one.status,
                "last_heartbeat": timestamp_text(one.last_heartbeat_us),
            }
            for one in found
        ]
        return _json({"nodes": nodes, "total": len(nodes)})

    async def metrics(self, _: Request) -> Response:
        text = await metrics_text(self._service, self._metrics, self._access.limits)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, _: Request) -> Response:
        return Response(openapi_json(), media_type="application/json")

    async def _body(self, request: Request, decoder: msgspec.json.Decoder[Any]) -> Any:
        return decode_json(
            await read_body(request.scope, request.receive, self._service.settings.most_body_bytes), decoder
        )


class _JsonOfFile(StreamingResponse):
    """Parts of a large JSON body of known length, whose text is closed in any case."""

    def __init__(self, text: JsonText, before: bytes, behind: bytes) -> None:
        async def body() -> AsyncGenerator[bytes]:
            yield before
            async for part in iterate_in_threadpool(text.parts()):
                yield part
            yield behind

        self._text = text
        length = len(before) + text.bytes + len(behind)
        super().__init__(body(), media_type="application/json", headers={"content-length": str(length)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.stream_response(send)
        finally:
            self._text.close()


def _json_answer(text: JsonText, warnings: list[str]) -> Response:
    """Rows as JSON, with why there may be more."""
    before = b'{"result_json":"'
    behind = b'"' + (b',"warnings":' + msgspec.json.encode(warnings) if warnings else b"") + b"}"
    if text.is_in_file:
        return _JsonOfFile(text, before, behind)
    return Response(b"".join((before, *text.parts(), behind)), media_type="application/json")


class _StreamedQuery(StreamingResponse):
    """A stream whose parts themselves end when the client goes away, and are closed in any case."""

    body_iterator: AsyncGenerator[bytes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.body_iterator):
            await self.stream_response(send)


async def _with_first(first: bytes, parts: AsyncGenerator[bytes], gone: asyncio.Future[None]) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(parts):
            yield first
            async for part in parts:
                yield part
    finally:
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    """Returns when the client is gone; its request has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


def _row_request(request: Request) -> RowRequest:
    """The id is the rest of the path, or `?id=`: clients rewrite paths with the parts . and .. before they send them."""
    found = request.path_params.get("id", request.query_params.get("id"))
    if found is None:
        raise InvalidError("id: missing; it follows the table in the path, or is given by ?id=")
    return RowRequest(request.path_params["table"], found)


class _Anything(Convertor[str]):
    """The rest of a path, slashes and line ends included."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


def _warned(response: Response, warnings: list[str]) -> Response:
    """An answer with a header for each reason why it may lack rows."""
    for text in warnings:
        response.headers.append("Lakelet-Warning", text)
    return response


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "false").lower()
    if text not in ("true", "false", "1", "0", ""):
        raise InvalidError(f"{name}: expected true or false, found {text!r}")
    return text in ("true", "1")


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _health(found: Health, request: Request, status: int = 200) -> Response:
    """The state; what may name tables and paths is for callers that may know."""
    caller: Caller | None = getattr(request.state, "caller", None)
    details = dict(found.details) if caller is not None and caller.is_admin else {}
    return _json({"status": found.status, "details": details}, status)


def _listed(one: DescribedTable) -> dict[str, object]:
    info, stats = one.table_info, one.stats
    return {
        "name": info.name,
        "created_at": info.created_at,
        "last_write": info.last_write,
        "status": info.status,
        "record_count": stats.record_count,
        "file_count": stats.file_count,
        "size_bytes": stats.size_bytes,
    }


def _info(info: TableInfo) -> dict[str, object]:
    config = info.config
    return {
        "name": info.name,
        "config": {
            "buffer_size": config.buffer_size,
            "flush_interval_seconds": config.flush_interval_seconds,
            "retention_days": config.retention_days,
            "backup_enabled": config.backup_enabled,
            "properties": dict(config.properties),
        },
        "created_at": info.created_at,
        "last_write": info.last_write,
        "status": info.status,
    }


def _stats(stats: TableStats) -> dict[str, object]:
    return {
        "record_count": stats.record_count,
        "file_count": stats.file_count,
        "size_bytes": stats.size_bytes,
        "oldest_record": stats.oldest_record,
        "newest_record": stats.newest_record,
        "buffered_records": stats.buffered_records,
        "record_count_is_exact": stats.record_count_is_exact,
    }
