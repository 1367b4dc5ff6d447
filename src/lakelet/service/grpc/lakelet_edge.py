"""`lakelet.v1.LakeletService`: batches, streams of batches, Arrow results, the records of an id, and changes of tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import msgspec

from lakelet.errors import InvalidError, LakeletError
from lakelet.protos.message_types import message_class
from lakelet.service.access.caller import WRITE
from lakelet.service.grpc.olap_edge import message_key, record_of_message
from lakelet.service.grpc.rpc_calls import Call
from lakelet.service.grpc.struct_values import params_of
from lakelet.service.ingest.arrow_records import decode_arrow
from lakelet.service.running_queries import RunningQueries
from lakelet.service.service import Service
from lakelet.service.values import (
    AlterTableRequest,
    BatchRequest,
    JsonLines,
    Record,
    RefusedRecord,
    RequestKey,
    RowRequest,
    WriteResult,
)

_PARAMS = msgspec.json.Decoder(dict[str, Any] | list[Any] | None)
_ALTERED = ("buffer_size", "flush_interval_seconds", "retention_days", "backup_enabled", "status")


class LakeletEdge:
    """The methods of the service, by the names of their RPCs."""

    open_methods: frozenset[str] = frozenset()

    def __init__(self, service: Service, queries: RunningQueries) -> None:
        self._service = service
        self._queries = queries

    async def write_batch(self, message: Any, call: Call) -> Any:
        """Write a batch; its key is in the message or in the metadata."""
        return _answer(await self._write(message, call, call.idempotency_key))

    async def write_stream(self, messages: AsyncIterator[Any], call: Call) -> Any:
        """Write a batch for each message; places of refused records are counted over all of them."""
        if call.idempotency_key is not None:
            raise InvalidError(
                "idempotency-key: a stream has a key in each of its messages, expected none in the metadata"
            )
        written = rest = given = 0
        refused: list[RefusedRecord] = []
        async for message in messages:
            try:
                done = await self._write(message, call, None)
            except LakeletError as error:
                # The client has to know what it need not send again.
                error.trailing = (("lakelet-written", str(written)),)  # type: ignore[attr-defined]
                raise
            refused += [replace(one, place=given + one.place) for one in done.refused]
            written, rest = written + done.written, rest + done.rest_values
            given += done.written + len(done.refused)
        return _answer(WriteResult(written, rest, tuple(refused)))

    async def query_arrow(self, message: Any, call: Call) -> AsyncIterator[Any]:
        """Answer a SELECT as an Arrow IPC stream; a caller that goes away ends the query."""
        from lakelet.service.query.query_engine import QueryRequest  # noqa: PLC0415 - DuckDB is loaded by the first query.

        request = QueryRequest(
            message.sql,
            params=_params(message),
            time_zone=message.time_zone or None,
            timeout_seconds=message.timeout_seconds or None,
            engine=message.engine or None,
        )
        made = message_class("lakelet.v1.QueryArrowResponse")
        async with aclosing(self._queries.arrow(request, call.caller, call.request_id)) as parts:
            async for part in parts:
                yield made(arrow=part)
        call.warn(request.warnings)

    async def cancel_query(self, message: Any, call: Call) -> Any:
        """Interrupt a query of the caller; one with all rights may interrupt those of others."""
        await self._queries.cancel(call.caller, message.request_id)
        return message_class("lakelet.v1.CancelQueryResponse")()

    async def get_rows(self, message: Any, call: Call) -> Any:
        """The records of an id."""
        found = await self._service.get_rows(RowRequest(message.table, message.id), call.caller)
        text = msgspec.json.encode(found).decode()
        return message_class("lakelet.v1.GetRowsResponse")(records_json=text)

    async def delete_rows(self, message: Any, call: Call) -> Any:
        """Delete the records of an id."""
        deleted = await self._service.delete_rows(RowRequest(message.table, message.id), call.caller)
        return message_class("lakelet.v1.DeleteRowsResponse")(deleted=deleted)

    async def alter_table(self, message: Any, call: Call) -> Any:
        """Change the configuration or status of a table."""
        given = {name: getattr(message, name) for name in _ALTERED if message.HasField(name)}
        properties: dict[str, str | None] = {**message.properties, **dict.fromkeys(message.reset_properties)}
        request = AlterTableRequest(message.table_name, properties=properties, **given)
        info = await self._service.alter_table(request, call.caller)
        return message_class("lakelet.v1.AlterTableResponse")(message=f"table {info.name!r} altered")

    async def _write(self, message: Any, call: Call, given_key: str | None) -> WriteResult:
        call.caller.check(WRITE, message.table)
        key = _key(message, given_key)
        if sum(map(bool, (message.records, message.arrow, message.ndjson))) > 1:
            raise InvalidError("expected records, Arrow or lines of JSON, found several of them")
        rows: Any = [_record_or_error(one) for one in message.records]
        if message.ndjson:
            rows = JsonLines(message.ndjson)
        elif message.arrow:
            # Asked first, as over HTTP: an unknown table is told before its records are.
            await self._service.know(message.table)
            self._service.tables.open(message.table)
            rows = decode_arrow(message.arrow)
        return await self._service.write_batch(BatchRequest(message.table, rows, message.partial, key), call.caller)


def _params(message: Any) -> Any:
    if not message.params_json:
        return params_of(message.params)
    if message.HasField("params"):
        raise InvalidError("expected params or params_json, found both")
    try:
        return _PARAMS.decode(message.params_json)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidError(f"params_json: {error}") from None


def _key(message: Any, given: str | None) -> RequestKey | None:
    """The key of a batch: two requests are the same if their messages are, whichever way the key came."""
    own = message.idempotency_key or None
    if own is None:
        return message_key(message, given)
    if given is not None and given != own:
        raise InvalidError(f"idempotency_key: {own!r} in the message, {given!r} in the metadata: expected one of them")
    bare = type(message)()
    bare.CopyFrom(message)
    bare.ClearField("idempotency_key")
    return message_key(bare, own)


def _record_or_error(message: Any) -> Record | InvalidError:
    """The record of a message, or what is wrong with it."""
    try:
        return record_of_message(message)
    except InvalidError as error:
        return error


def _answer(done: WriteResult) -> Any:
    refused_class = message_class("lakelet.v1.RefusedRecord")
    return message_class("lakelet.v1.WriteBatchResponse")(
        written=done.written,
        rest_values=done.rest_values,
        refused=[refused_class(place=one.place, reason=one.reason) for one in done.refused],
        repeated_request=done.repeated,
        message=done.message,
    )
