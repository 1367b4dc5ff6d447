"""One event of each kind and envelope, and the rows that it means."""

from __future__ import annotations

import json
from typing import Any

DECIMAL = "org.apache.kafka.connect.data.Decimal"
FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "int64", "optional": False},
    {
        "field": "price",
        "type": "bytes",
        "name": DECIMAL,
        "optional": True,
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    {"field": "any_number", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "optional": True},
    {"field": "born", "type": "int32", "name": "io.debezium.time.Date", "optional": True},
    {"field": "at_ms", "type": "int64", "name": "io.debezium.time.Timestamp", "optional": True},
    {"field": "at_us", "type": "int64", "name": "io.debezium.time.MicroTimestamp", "optional": True},
    {"field": "instant", "type": "string", "name": "io.debezium.time.ZonedTimestamp", "optional": True},
    {"field": "clock", "type": "int64", "name": "io.debezium.time.MicroTime", "optional": True},
]
# 12.34 is 1234, 0x04D2, "BNI="; -0.01 is -1, 0xFF, "/w==".
AFTER: dict[str, Any] = {
    "id": 7,
    "price": "BNI=",
    "any_number": {"scale": 3, "value": "AQ=="},
    "born": 19723,
    "at_ms": 1704067200123,
    "at_us": 1704067200123456,
    "instant": "2024-01-01T00:00:00.123456Z",
    "clock": 3600000000,
}
SOURCE = {
    "version": "3.0",
    "connector": "postgresql",
    "db": "shop",
    "schema": "public",
    "table": "item",
    "ts_ms": 1704067200000,
    "lsn": 24023128,
}


def debezium(
    op: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    *,
    fields: list[dict[str, Any]] | None = None,
    **source: Any,
) -> dict[str, Any]:
    """An event; with a schema where `fields` are given."""
    payload = {"before": before, "after": after, "source": {**SOURCE, **source}, "op": op, "ts_ms": 1704067200999}
    if fields is None:
        return payload
    sides = [{"field": side, "type": "struct", "optional": True, "fields": fields} for side in ("before", "after")]
    return {"schema": {"type": "struct", "fields": sides}, "payload": payload}


def canal(kind: str, rows: list[dict[str, Any]] | None, **more: Any) -> dict[str, Any]:
    """An event of Canal, whose values are all text."""
    types = {"id": "bigint", "price": "decimal(10,2)", "note": "varchar(50)"}
    event = {
        "id": 3,
        "database": "shop",
        "table": "item",
        "pkNames": ["id"],
        "isDdl": False,
        "type": kind,
        "es": 1704067200000,
        "ts": 1704067200321,
        "mysqlType": types,
        "data": rows,
        "old": None,
    }
    return {**event, **more}


def maxwell(kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An event of Maxwell."""
    event = {"database": "shop", "table": "item", "type": kind, "ts": 1704067200, "xid": 23396, "commit": True}
    return {**event, "data": data, **more}


def text(event: object) -> str:
    """The event as a connector writes it."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)
