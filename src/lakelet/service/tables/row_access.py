"""The records of one id: found and deleted, those that are buffered included."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakelet.errors import UnavailableError
from lakelet.realtime.read.pinned_memtables import with_pinned
from lakelet.service.ingest.record import check_id
from lakelet.service.ingest.table_ingest import TableIngest
from lakelet.service.query.buffered_scan import buffered_scan
from lakelet.service.query.served_table import OtherWriters
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.tables.table_layout import HIDDEN, ID, PAYLOAD, PAYLOAD_REST, TIMESTAMP
from lakelet.service.timestamps import moment_us, timestamp_text


def find_records(opened: OpenTable, key: str, others: OtherWriters | None = None) -> list[dict[str, Any]]:
    """The records of an id, oldest first: id, timestamp, and the payload as it came, without fields that are NULL. Rows that
    `others` have buffered are among them; UnavailableError where one of these does not answer."""
    check_id(key)
    missing: list[str] = []
    pinned = () if others is None else others.pinned(opened, missing)
    if missing:
        raise UnavailableError(missing[0])
    writer = opened.writer
    where = _condition(key)
    scan = opened.table.scan(where=where) if writer is None else buffered_scan(opened.table, writer, where)
    if pinned:
        scan = with_pinned(scan, pinned)
    rows = scan.to_arrow().to_pylist(maps_as_pydicts="lossy")
    moments = {id(row): row.get(TIMESTAMP) for row in rows}
    rows.sort(key=lambda row: (moments[id(row)] is not None, moments[id(row)] or 0))
    return [_record(row) for row in rows]


def delete_records(ingest: TableIngest, key: str) -> int:
    """Delete the records of an id; how many there were. Records that are written meanwhile come before or after it."""
    check_id(key)
    opened = ingest.opened
    with ingest.turn:
        schema = opened.schema
        opened.check_writable(schema)
        writer = opened.open_writer()
        found = writer.scan(where=_condition(key), columns=list(schema.primary_keys) or [ID]).to_arrow().to_pylist()
        if not schema.primary_keys:
            if found:
                # Rows without a key are deleted in the table alone: those in memory are committed first.
                writer.flush()
                opened.table.delete(where=_condition(key))
            return len(found)
        return sum(writer.delete(row, ingest.stamp(schema)) for row in found)


def _condition(key: str) -> str:
    quoted = key.replace("'", "''")
    return f"{ID} = '{quoted}'"


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    payload = {name: _json(value) for name, value in (row.get(PAYLOAD) or {}).items() if value is not None}
    rest = row.get(PAYLOAD_REST)
    if rest:
        payload.update(json.loads(rest))
    others = {
        name: _json(value)
        for name, value in row.items()
        if name not in (ID, TIMESTAMP, PAYLOAD, PAYLOAD_REST, *HIDDEN) and value is not None
    }
    moment = row.get(TIMESTAMP)
    return {
        ID: row[ID],
        TIMESTAMP: None if moment is None else timestamp_text(moment_us(moment)),
        PAYLOAD: {**others, **payload},
    }


def _json(value: Any) -> Any:
    """A value as JSON has it: nested fields that are NULL are left out."""
    match value:
        case dict():
            return {name: _json(inner) for name, inner in value.items() if inner is not None}
        case list():
            return [_json(inner) for inner in value]
        case datetime() if value.tzinfo is None:
            return value.isoformat()
        case datetime():
            return timestamp_text(moment_us(value))
        case date() | Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value
