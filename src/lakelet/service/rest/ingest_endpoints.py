"""POST /v1/data and /v1/data/batch as plain ASGI, in front of the router: the paths that every row takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.service.access.caller import WRITE, Caller
from lakelet.service.ingest.arrow_records import decode_arrow
from lakelet.service.ingest.record import check_id
from lakelet.service.ingest.request_keys import request_key
from lakelet.service.rest.bodies import RecordBody, WriteBody
from lakelet.service.rest.request_body import AUDITED_TABLE, Receive, Scope, decode_json, header, read_body
from lakelet.service.service import Service
from lakelet.service.timestamps import parse_timestamp
from lakelet.service.values import BatchRequest, JsonLines, Record, RequestKey, WriteRequest, WriteResult

_WRITE = msgspec.json.Decoder(WriteBody)
_RECORDS = msgspec.json.Decoder(list[RecordBody])
_ANY_LIST = msgspec.json.Decoder(list[Any])
_JSON, _NDJSON, _ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
_TRUE, _FALSE = ("true", "1"), ("false", "0", "")


async def write_one(service: Service, scope: Scope, receive: Receive, caller: Caller) -> bytes:
    """Write the record of a request; the body of the answer."""
    content = await read_body(scope, receive, service.settings.most_body_bytes)
    body = decode_json(content, _WRITE)
    scope[AUDITED_TABLE] = body.table
    record = Record(check_id(body.id), parse_timestamp(body.timestamp), body.payload)
    key = _key(scope, b"record", content)
    return encoded_result(await service.write(WriteRequest(body.table, record, key), caller))


async def write_batch(service: Service, scope: Scope, receive: Receive, caller: Caller) -> bytes:
    """Write the records of a request; the body of the answer."""
    query = _query(scope)
    table, partial = query.get("table", ""), _flag(query, "partial")
    if not table:
        raise InvalidError("table: missing; name it by ?table=")
    scope[AUDITED_TABLE] = table
    caller.check(WRITE, table)
    await service.know(table)
    service.tables.open(table)
    body = await read_body(scope, receive, service.settings.most_body_bytes)
    kind = (header(scope, b"content-type") or _JSON).split(";", 1)[0].strip().lower()
    records = _records(kind, body, partial=partial)
    key = _key(scope, b"partial" if partial else b"whole", kind.encode(), body)
    return encoded_result(await service.write_batch(BatchRequest(table, records, partial, key), caller))


def encoded_result(result: WriteResult) -> bytes:
    """The answer to a write."""
    if result.written == 1 and not result.rest_values and not result.refused and not result.repeated:
        return b'{"success":true,"message":"1 record written","written":1}'
    answer: dict[str, object] = {"success": True, "message": result.message, "written": result.written}
    if result.rest_values:
        answer["rest_values"] = result.rest_values
    if result.refused:
        answer["refused"] = [{"place": one.place, "reason": one.reason} for one in result.refused]
    if result.repeated:
        answer["repeated"] = True
    return msgspec.json.encode(answer)


def _key(scope: Scope, *parts: bytes) -> RequestKey | None:
    """The idempotency key of a request, None where it has none."""
    found = header(scope, b"idempotency-key")
    if found is None:
        return None
    return request_key(found, *parts, is_first=header(scope, b"idempotency-first") == "true")


def _records(kind: str, body: bytes, *, partial: bool) -> Sequence[Any] | pa.Table | JsonLines:
    if kind == _ARROW:
        return decode_arrow(body)
    if kind in (_NDJSON, "application/jsonl"):
        return JsonLines(body)
    if kind != _JSON:
        raise InvalidError(f"content-type: expected {_JSON}, {_NDJSON} or {_ARROW}, found {kind!r}")
    if partial:
        return decode_json(body, _ANY_LIST)
    found = decode_json(body, _RECORDS)
    return [_valid(place, one) for place, one in enumerate(found)]


def _valid(place: int, body: RecordBody) -> Record:
    try:
        return Record(check_id(body.id), parse_timestamp(body.timestamp), body.payload)
    except InvalidError as error:
        raise InvalidError(f"record {place}: {error}; none of the batch was written") from None


def _query(scope: Scope) -> dict[str, str]:
    text = bytes(scope.get("query_string", b"")).decode("latin-1")
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}


def _flag(query: dict[str, str], name: str) -> bool:
    text = query.get(name, "false").lower()
    if text not in (*_TRUE, *_FALSE):
        raise InvalidError(f"{name}: expected true or false, found {text!r}")
    return text in _TRUE
