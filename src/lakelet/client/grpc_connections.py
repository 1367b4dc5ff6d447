"""A channel of gRPC to one service, behind the requests and answers of HTTP: the client above has one set of rules for both.

    POST /v1/data, /v1/data/batch          lakelet.v1 WriteBatch: lines of JSON or Arrow, whose integers are exact
    POST /v1/query                         lakelet.v1 QueryArrow, its messages joined
    GET, DELETE /v1/data/{table}?id=       lakelet.v1 GetRows, DeleteRows
    POST, GET /v1/tables                   olap.v1 CreateTable, ListTables, and what a described table has
    GET, PATCH, DELETE /v1/tables/{name}   olap.v1 DescribeTable with GetStats, lakelet.v1 AlterTable, olap.v1 DropTable
    GET /v1/health                         olap.v1 HealthCheck

A status of gRPC that the service itself has set carries `lakelet-code`, and becomes the problem document that HTTP has for it.
Any other is one of the channel: a failed connection has sent nothing, of whatever else went wrong the service may have seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.client import HTTPMessage
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import grpc

from lakelet.client.bodies import ARROW
from lakelet.client.connections import Address, HttpAnswer, HttpRequest, NotSentError, TlsChoice, UnansweredError
from lakelet.error_codes import ERROR_CODES
from lakelet.errors import InvalidError
from lakelet.protos.message_types import LAKELET, OLAP, message_class

_JSON, _PROBLEM = "application/json", "application/problem+json"
_STATUSES = {codes.code: codes.http_status for codes in ERROR_CODES.values()}
# Words of a call that found no connection, and so was not sent.
_NOT_CONNECTED = ("failed to connect", "dns resolution failed", "name resolution")
# Sizes of messages are limited by the service; large answers are its decision, too.
_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Requests are sent again by the rules of `repeats`, and a service that is back is found within a second.
    ("grpc.enable_retries", 0),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_CONFIG = ("buffer_size", "flush_interval_seconds", "retention_days", "backup_enabled")
_COUNTS = ("record_count", "file_count", "size_bytes")

Answered = Callable[["_Call"], bytes]


class GrpcConnections:
    """Sends requests over one channel, which any number of threads share."""

    def __init__(self, address: Address, *, headers: Mapping[str, str], timeout_seconds: float, tls: TlsChoice) -> None:
        self.address = address
        self._timeout = timeout_seconds
        self._key = headers.get("authorization")
        target = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
        if address.scheme == "grpcs":
            self._channel = grpc.secure_channel(target, _credentials(tls), options=_OPTIONS)
        else:
            self._channel = grpc.insecure_channel(target, options=_OPTIONS)
        self._closed = False

    def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request and read its answer; NotSentError or UnansweredError where there is none."""
        if self._closed:
            raise InvalidError("the client is closed")
        call = _Call(self._channel, request, self._key, request.timeout_seconds or self._timeout)
        answered, is_arrow = _route(request.method, call.path)
        try:
            body = answered(call)
        except grpc.RpcError as error:
            return _failure(error, call.timeout)
        except (TypeError, ValueError) as error:
            raise InvalidError(f"expected what a message of gRPC can hold: {error}") from error
        return HttpAnswer(200, _headers(ARROW if is_arrow else _JSON), body)

    def close(self) -> None:
        """Close the channel."""
        self._closed = True
        self._channel.close()


class _Call:
    """One request of HTTP, parsed, and the RPCs that answer it."""

    def __init__(self, channel: Any, request: HttpRequest, key: str | None, timeout: float) -> None:
        split = urlsplit(request.path)
        self.path = split.path
        self.last = unquote(split.path.rsplit("/", 1)[1])
        self.query = {name: values[-1] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        self.request = request
        self.timeout = timeout
        self._channel = channel
        self._metadata = () if key is None else (("authorization", key),)

    def document(self) -> Any:
        """The JSON of the body."""
        return json.loads(self.request.body or b"{}")

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.query.get(name) == "true"

    def rpc(self, service: str, method: str, message: Any, answer: str, kind: str = "unary_unary") -> Any:
        """The answer of an RPC."""
        call = getattr(self._channel, kind)(
            f"/{service}/{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message_class(f"{service.rpartition('.')[0]}.{answer}").FromString,
        )
        return call(message, timeout=self.timeout, metadata=self._metadata)


def _route(method: str, path: str) -> tuple[Answered, bool]:
    """What answers a request, and whether its answer is Arrow."""
    parts = path.split("/")[2:]
    match (method, parts):
        case ("POST", ["data"]):
            return _write_one, False
        case ("POST", ["data", "batch"]):
            return _write_batch, False
        case ("POST", ["query"]):
            return _query, True
        case ("GET", ["data", _]):
            return _get, False
        case ("DELETE", ["data", _]):
            return _delete, False
        case ("POST", ["tables"]):
            return _create, False
        case ("GET", ["tables"]):
            return _list, False
        case ("GET", ["tables", _]):
            return lambda call: _encoded(_described(call, call.last)), False
        case ("PATCH", ["tables", _]):
            return _alter, False
        case ("DELETE", ["tables", _]):
            return _drop, False
        case ("GET", ["health"]):
            return _health, False
    raise InvalidError(f"{method} {path}: expected an operation that gRPC has")


def _write_one(call: _Call) -> bytes:
    document = call.document()
    table = document.pop("table")
    return _written(call, _batch(table, ndjson=json.dumps(document, ensure_ascii=False).encode()))


def _write_batch(call: _Call) -> bytes:
    kind = "arrow" if call.request.headers.get("content-type") == ARROW else "ndjson"
    return _written(call, _batch(call.query["table"], partial=call.flag("partial"), **{kind: call.request.body or b""}))


def _batch(table: str, **fields: Any) -> Any:
    return message_class("lakelet.v1.WriteBatchRequest")(table=table, **fields)


def _written(call: _Call, message: Any) -> bytes:
    message.idempotency_key = call.request.headers.get("idempotency-key", "")
    done = call.rpc(LAKELET, "WriteBatch", message, "WriteBatchResponse")
    refused = [{"place": one.place, "reason": one.reason} for one in done.refused]
    return _encoded({"written": done.written, "rest_values": done.rest_values, "refused": refused})


def _query(call: _Call) -> bytes:
    asked = call.document()
    params = asked.get("params")
    message = message_class("lakelet.v1.QueryArrowRequest")(
        sql=asked["sql"],
        params_json="" if params is None else json.dumps(params, ensure_ascii=False),
        time_zone=asked.get("time_zone") or "",
        timeout_seconds=asked.get("timeout_seconds") or 0.0,
        engine=asked.get("engine") or "",
    )
    parts = call.rpc(LAKELET, "QueryArrow", message, "QueryArrowResponse", "unary_stream")
    return b"".join(one.arrow for one in parts)


def _get(call: _Call) -> bytes:
    done = call.rpc(LAKELET, "GetRows", _rows(call), "GetRowsResponse")
    return f'{{"records":{done.records_json}}}'.encode()


def _delete(call: _Call) -> bytes:
    return _encoded({"deleted": call.rpc(LAKELET, "DeleteRows", _rows(call), "DeleteRowsResponse").deleted})


def _rows(call: _Call) -> Any:
    return message_class("lakelet.v1.RowsRequest")(table=call.last, id=call.query["id"])


def _create(call: _Call) -> bytes:
    document = call.document()
    name, config = document["table_name"], document.get("config") or {}
    message = _olap("CreateTableRequest", table_name=name, if_not_exists=document["if_not_exists"])
    message.config.properties.update(config.pop("properties", {}))
    for field, value in config.items():
        setattr(message.config, field, value)
    call.rpc(OLAP, "CreateTable", message, "CreateTableResponse")
    return _encoded({"table_info": _described(call, name)["table_info"]})


def _list(call: _Call) -> bytes:
    found = call.rpc(
        OLAP, "ListTables", _olap("ListTablesRequest", pattern=call.query.get("pattern", "")), "ListTablesResponse"
    )
    tables = []
    for one in found.tables:
        described = call.rpc(
            OLAP, "DescribeTable", _olap("DescribeTableRequest", table_name=one.name), "DescribeTableResponse"
        )
        counts = {name: getattr(described.stats, name) for name in _COUNTS}
        info = _info(described.table_info)
        info.pop("config")
        tables.append({**info, **counts})
    return _encoded({"tables": tables})


def _described(call: _Call, name: str) -> dict[str, Any]:
    found = call.rpc(OLAP, "DescribeTable", _olap("DescribeTableRequest", table_name=name), "DescribeTableResponse")
    totals = call.rpc(OLAP, "GetStats", _olap("GetStatsRequest", table=name), "GetStatsResponse")
    stats = {field: getattr(found.stats, field) for field in (*_COUNTS, "oldest_record", "newest_record")}
    return {"table_info": _info(found.table_info), "stats": {**stats, "buffered_records": totals.buffered_records}}


def _alter(call: _Call) -> bytes:
    document = call.document()
    config = document.get("config") or {}
    properties = config.pop("properties", None) or {}
    message = message_class("lakelet.v1.AlterTableRequest")(table_name=call.last, **config)
    if "status" in document:
        message.status = document["status"]
    message.properties.update({name: value for name, value in properties.items() if value is not None})
    message.reset_properties.extend(name for name, value in properties.items() if value is None)
    call.rpc(LAKELET, "AlterTable", message, "AlterTableResponse")
    return _encoded({"table_info": _described(call, call.last)["table_info"]})


def _drop(call: _Call) -> bytes:
    message = _olap(
        "DropTableRequest", table_name=call.last, if_exists=call.flag("if_exists"), cascade=call.flag("cascade")
    )
    return _encoded({"files_deleted": call.rpc(OLAP, "DropTable", message, "DropTableResponse").files_deleted})


def _health(call: _Call) -> bytes:
    found = call.rpc(OLAP, "HealthCheck", _olap("HealthCheckRequest"), "HealthCheckResponse")
    return _encoded({"status": found.status, "details": dict(found.details)})


def _info(found: Any) -> dict[str, Any]:
    config = {name: getattr(found.config, name) for name in _CONFIG}
    own = {name: getattr(found, name) for name in ("name", "created_at", "last_write", "status")}
    return {**own, "config": {**config, "properties": dict(found.config.properties)}}


def _olap(message: str, **fields: Any) -> Any:
    return message_class(f"olap.v1.{message}")(**fields)


def _encoded(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def _failure(error: Any, timeout: float) -> HttpAnswer:
    """The problem document of an error that the service has set; NotSentError or UnansweredError for one of the channel."""
    trailing = {key: value for key, value in error.trailing_metadata() or () if isinstance(value, str)}
    code, detail = trailing.get("lakelet-code"), str(error.details() or error.code().name)
    if code is not None:
        headers = _headers(_PROBLEM)
        if "retry-after" in trailing:
            headers["retry-after"] = trailing["retry-after"]
        document: dict[str, object] = {"code": code, "detail": detail, "request_id": trailing.get("x-request-id")}
        places = {name: trailing[f"lakelet-{name}"] for name in ("line", "column") if f"lakelet-{name}" in trailing}
        document |= {name: int(text) for name, text in places.items() if text.isdecimal()}
        if "lakelet-nothing-done" in trailing:
            document["nothing_done"] = True
        return HttpAnswer(_STATUSES.get(code, 500), headers, _encoded(document))
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        raise UnansweredError(f"no answer within {timeout:g} seconds", timed_out=True) from error
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in detail:
        # A message beyond the largest one: the server has read no more of it than its length.
        return HttpAnswer(413, _headers(_PROBLEM), _encoded({"code": "too-large", "detail": detail}))
    if error.code() is grpc.StatusCode.UNAVAILABLE and any(word in detail.lower() for word in _NOT_CONNECTED):
        raise NotSentError(f"no connection: {detail}") from error
    raise UnansweredError(f"the connection broke: {detail}", timed_out=False) from error


def _headers(media_type: str) -> HTTPMessage:
    made = HTTPMessage()
    made["content-type"] = media_type
    return made


def _credentials(tls: TlsChoice) -> Any:
    # The same errors as over HTTP for files that are none.
    tls.context()
    return grpc.ssl_channel_credentials(*map(_bytes_of, (tls.ca_file, tls.key_file, tls.certificate_file)))


def _bytes_of(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()
