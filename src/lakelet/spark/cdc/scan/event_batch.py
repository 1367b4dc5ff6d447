"""Batches of events as Arrow columns, by the compiled scanner.

Columns behind those of Kafka: `unsure` BOOLEAN, an event that is left to expressions ─ row_index INT ─ operation STRING, NULL:
nothing to do ─ group_hash BIGINT ─ told STRING, on the first event of its group in a batch what the group is: JSON of the
source's names, layout and key ─ image, old BINARY, JSON of the rows ─ op_millis BIGINT ─ position STRING. Meanings are those of
`event_columns`.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.spark.cdc.scan import event_kernel as kernel
from lakelet.spark.cdc.scan.event_scan import EventScan, Flags, Numbers, ScanField, ScanTable, scan_events
from lakelet.spark.cdc.scan.span_copy import PLAIN, copied, padded

_F = ScanField
_SHARED, _ROW, _ROWS, _INSIDE = kernel.SHARED, kernel.ROW, kernel.ROWS, kernel.INSIDE
_LIMIT = 10**19
SCHEMA = pa.schema(
    [
        pa.field("unsure", pa.bool_()),
        pa.field("row_index", pa.int32()),
        pa.field("operation", pa.string()),
        pa.field("group_hash", pa.int64()),
        pa.field("told", pa.string()),
        pa.field("image", pa.binary()),
        pa.field("old", pa.binary()),
        pa.field("op_millis", pa.int64()),
        pa.field("position", pa.string()),
    ]
)
_KEY_TABLE = ScanTable((_F(0, "payload", _ROW), _F(0, "schema", _SHARED)))
_WRAPPERS = (b'{"schema":', b'{"payload":')


@dataclass(slots=True)
class Rows:
    """The rows of a batch, a line for each: the event, which of its rows, and the numbers of image and old row, -1 for none."""

    events: Numbers
    places: Numbers
    images: Numbers
    olds: Numbers


@dataclass(slots=True)
class Read:
    """What an envelope tells about a batch; columns by event. `parts` are the distinct values that make a group."""

    scan: EventScan
    rows: Rows
    operations: list[str | None]
    operation: Numbers
    parts: list[Numbers]
    layout_slot: int
    millis: tuple[Numbers, Flags]
    position: pa.Array


class Envelope(ABC):
    """A kind of envelope: its fields, by name, and what they mean."""

    def __init__(self, operations: dict[str, str], *fields: tuple[str, ScanField]) -> None:
        self.operations = operations
        self.slots = {name: place for place, (name, _) in enumerate(fields)}
        self.table = ScanTable(tuple(one for _, one in fields))

    def kinds(self, scan: EventScan, name: str) -> Any:
        """The kinds of a field's values."""
        return scan.kinds[:, self.slots[name]]

    def whole(self, scan: EventScan, name: str) -> tuple[Numbers, Flags]:
        """The numbers of a field; negative ones, which have no place in an order of texts, are unsure."""
        values, has = scan.whole(self.slots[name])
        scan.unsure[has & (values < 0)] = True
        return values, has

    def shared(self, scan: EventScan, name: str, kind: int = kernel.TEXT) -> Numbers:
        """The distinct values of a field."""
        return scan.distinct(self.slots[name], kind)

    def operation(self, scan: EventScan, name: str) -> tuple[list[str | None], Numbers]:
        """The operations that distinct values mean, and the place of each event's among them."""
        numbers = self.shared(scan, name)
        known: list[str | None] = [None]
        place = {-1: 0}
        for number in np.unique(numbers[numbers >= 0]):
            known.append(self.operations.get(scan.value(number)))
            place[int(number)] = len(known) - 1
        lookup = np.zeros(int(numbers.max(initial=-1)) + 2, np.int64)
        for number, at in place.items():
            lookup[number + 1] = at
        found = lookup[numbers + 1]
        scan.unsure[np.array([one is None for one in known])[found]] = True
        return known, found

    def row_numbers(self, scan: EventScan, name: str) -> Numbers:
        """The row that a field is, by event."""
        found = np.full(len(scan.unsure), -1, np.int64)
        chosen = np.flatnonzero(scan.rows[:, 1] == self.slots[name])
        found[scan.rows[chosen, 0]] = chosen
        return found

    @abstractmethod
    def read(self, scan: EventScan) -> Read:
        """What the fields mean; events that are odd become unsure."""


def _single(count: int, images: Numbers, olds: Numbers) -> Rows:
    return Rows(np.arange(count), np.zeros(count, np.int64), images, olds)


def _first(*found: tuple[Numbers, Flags]) -> tuple[Numbers, Flags]:
    """The first number that is there."""
    values, has = found[0]
    for more, there in found[1:]:
        values, has = np.where(has, values, more), has | there
    return values, has


def _joined(*texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*texts, ":")


class _Debezium(Envelope):
    def read(self, scan: EventScan) -> Read:
        operations, found = self.operation(scan, "op")
        after, before = self.row_numbers(scan, "after"), self.row_numbers(scan, "before")
        letter = np.array([one or "" for one in operations])[found]
        deleted = letter == "d"
        images = np.where(deleted, before, after)
        tables = self.shared(scan, "table")
        scan.unsure[(images < 0) | (tables < 0)] = True
        schema = self.shared(scan, "schema", kernel.OBJECT)
        parts = [self.shared(scan, "db"), self.shared(scan, "namespace"), tables, schema]
        millis = _first(self.whole(scan, "source_ms"), self.whole(scan, "ts_ms"))
        olds = np.where(letter == "u", before, -1)
        rows = _single(len(found), images, olds)
        return Read(scan, rows, operations, found, parts, self.slots["schema"], millis, self._position(scan))

    def _position(self, scan: EventScan) -> pa.Array:
        lsn, has_lsn = self.whole(scan, "lsn")
        files, (pos, has_pos) = self.shared(scan, "file"), self.whole(scan, "pos")
        row, has_row = self.whole(scan, "row")
        self.whole(scan, "event_serial_no")
        has_file = (files >= 0) & ~has_lsn
        # What SQL Server and Oracle tell is left to expressions.
        others = [self.kinds(scan, name) > kernel.NULL for name in ("change_lsn", "scn")]
        scan.unsure[(has_file & ~has_pos) | (~has_lsn & ~has_file & (others[0] | others[1]))] = True
        found = padded(lsn, has_lsn)
        if not has_file.any():
            return found
        names = pa.array([None, *map(_log_file, self._texts(scan, files))], pa.string()).take(pa.array(files + 1))
        row = np.where(has_row, row, 0)
        everywhere = np.ones(len(row), np.bool_)
        return pc.coalesce(found, _joined(names, padded(pos, has_pos), padded(row, everywhere)))

    def _texts(self, scan: EventScan, numbers: Numbers) -> list[str | None]:
        """The texts of distinct values up to the greatest number; those of other fields are None."""
        used = set(np.unique(numbers).tolist())
        return [scan.value(one) if one in used else None for one in range(int(numbers.max(initial=-1)) + 1)]


def _log_file(name: str | None) -> str | None:
    """`event_columns.log_file` of one name."""
    if name is None:
        return None
    number = name.rsplit(".", 1)[-1]
    if not re.fullmatch(r"[0-9]+", number):
        return name
    return name[: len(name) - len(number)] + number.rjust(20, "0")[:20]


class _Canal(Envelope):
    def read(self, scan: EventScan) -> Read:
        operations, found = self.operation(scan, "type")
        tables = self.shared(scan, "table")
        is_ddl = self.kinds(scan, "isDdl")
        scan.unsure[(tables < 0) | ((is_ddl != kernel.FALSE) & (is_ddl > kernel.NULL))] = True
        rows = self._rows(scan, np.array([one or "" for one in operations])[found] == "u")
        es, id = _first(self.whole(scan, "es"), self.whole(scan, "ts")), self.whole(scan, "id")
        nothing = np.full(len(found), -1, np.int64)
        parts = [self.shared(scan, "database"), nothing, tables, self.shared(scan, "mysqlType", kernel.OBJECT)]
        parts.append(self.shared(scan, "pkNames", kernel.LIST))
        position = _joined(padded(*es), padded(*id))
        return Read(scan, rows, operations, found, parts, self.slots["mysqlType"], es, position)

    def _rows(self, scan: EventScan, updates: Flags) -> Rows:
        """A line for each entry of `data`, and one for an event without any, which is unsure."""
        count = len(scan.unsure)
        data, old = (np.flatnonzero(scan.rows[:, 1] == self.slots[name]) for name in ("data", "old"))
        sizes, old_sizes = (np.bincount(scan.rows[one, 0], minlength=count) for one in (data, old))
        scan.unsure[sizes == 0] = True
        lines = np.where(scan.unsure, 1, sizes)
        events = np.repeat(np.arange(count), lines)
        places = np.arange(len(events)) - np.repeat(np.cumsum(lines) - lines, lines)
        sure = ~scan.unsure[events]
        first, old_first = np.cumsum(sizes) - sizes, np.cumsum(old_sizes) - old_sizes
        images, olds = np.full(len(events), -1, np.int64), np.full(len(events), -1, np.int64)
        images[sure] = data[(first[events] + places)[sure]]
        told = sure & updates[events] & (places < old_sizes[events])
        olds[told] = old[(old_first[events] + places)[told]]
        return Rows(events, places, images, olds)


class _Maxwell(Envelope):
    def read(self, scan: EventScan) -> Read:
        operations, found = self.operation(scan, "type")
        images, olds = self.row_numbers(scan, "data"), self.row_numbers(scan, "old")
        tables = self.shared(scan, "table")
        commit = self.kinds(scan, "commit")
        odd = (commit > kernel.NULL) & (commit != kernel.TRUE) & (commit != kernel.FALSE)
        # A place in the binlog is left to expressions.
        scan.unsure[(images < 0) | (tables < 0) | odd | (self.kinds(scan, "position") > kernel.NULL)] = True
        ts, has_ts = self.whole(scan, "ts")
        scan.unsure[ts > _LIMIT // 10_000] = True
        millis = np.where(ts > 10**11, ts, ts * 1000)
        letter = np.array([one or "" for one in operations])[found]
        rows = _single(len(found), images, np.where(letter == "u", olds, -1))
        nothing = np.full(len(found), -1, np.int64)
        parts = [self.shared(scan, "database"), nothing, tables, nothing]
        parts.append(self.shared(scan, "primary_key_columns", kernel.LIST))
        position = self._position(scan, (ts, has_ts))
        return Read(scan, rows, operations, found, parts, -1, (millis, has_ts), position)

    def _position(self, scan: EventScan, ts: tuple[Numbers, Flags]) -> pa.Array:
        xid, (xoffset, has_xoffset) = self.whole(scan, "xid"), self.whole(scan, "xoffset")
        inside = np.where(has_xoffset, xoffset, np.where(self.kinds(scan, "commit") == kernel.TRUE, 2**62, 0))
        everywhere = np.ones(len(inside), np.bool_)
        whole = _joined(padded(*ts), padded(*xid), padded(inside, everywhere))
        return pc.coalesce(whole, pc.binary_join_element_wise(padded(*ts), "", ":"))


ENVELOPES: dict[str, Envelope] = {
    "debezium": _Debezium(
        {"c": "i", "r": "i", "u": "u", "d": "d"},
        ("schema", _F(0, "schema", _SHARED)),
        ("payload", _F(0, "payload", _INSIDE, 1)),
        ("before", _F(1, "before", _ROW)),
        ("after", _F(1, "after", _ROW)),
        ("source", _F(1, "source", _INSIDE, 2)),
        ("db", _F(2, "db", _SHARED)),
        ("namespace", _F(2, "schema", _SHARED)),
        ("table", _F(2, "table", _SHARED)),
        ("source_ms", _F(2, "ts_ms")),
        ("lsn", _F(2, "lsn")),
        ("file", _F(2, "file", _SHARED)),
        *((name, _F(2, name)) for name in ("pos", "row", "change_lsn", "event_serial_no", "scn")),
        ("op", _F(1, "op", _SHARED)),
        ("ts_ms", _F(1, "ts_ms")),
    ),
    "canal": _Canal(
        {"INSERT": "i", "UPDATE": "u", "DELETE": "d"},
        *((name, _F(1, name, _SHARED)) for name in ("database", "table", "pkNames", "type", "mysqlType")),
        *((name, _F(1, name)) for name in ("isDdl", "es", "ts", "id")),
        *((name, _F(1, name, _ROWS)) for name in ("data", "old")),
    ),
    "maxwell": _Maxwell(
        {"insert": "i", "bootstrap-insert": "i", "update": "u", "delete": "d"},
        *((name, _F(1, name, _SHARED)) for name in ("database", "table", "type", "primary_key_columns")),
        *((name, _F(1, name)) for name in ("ts", "xid", "xoffset", "position", "commit")),
        *((name, _F(1, name, _ROW)) for name in ("data", "old")),
    ),
}


def event_batches(batches: Iterable[pa.RecordBatch], format: str, *, whole: bool) -> Iterator[pa.RecordBatch]:
    """Batches of `raw` (BINARY or text), `message_key` and Kafka's columns, with the columns of this module behind them."""
    for batch in batches:
        if batch.num_rows:
            place = batch.schema.get_field_index("raw")
            binary = batch.set_column(place, "raw", batch.column(place).cast(pa.binary()))
            yield _scanned(binary, ENVELOPES[format], whole=whole)


def _scanned(batch: pa.RecordBatch, envelope: Envelope, *, whole: bool) -> pa.RecordBatch:
    raw, key = batch.column("raw"), batch.column("message_key")
    scan = scan_events(raw, envelope.table)
    nulls = np.asarray(raw.is_null())
    # Keys first: those that are odd make their events unsure.
    keys = _key_names(key, scan.unsure) if isinstance(envelope, _Debezium) and key.null_count < len(key) else None
    read = envelope.read(scan)
    rows = read.rows
    scan.unsure[nulls] = False
    sure = ~scan.unsure[rows.events] & ~nulls[rows.events]
    hashes, told = _groups(read, keys, sure)
    sure &= ~scan.unsure[rows.events]
    unsure = scan.unsure[rows.events]
    # Each unsure event is read anew, all rows of it.
    once = ~unsure | (rows.places == 0)
    operation = np.where(sure, read.operation[rows.events], 0)
    at = pa.array(rows.events)
    values, has = read.millis
    columns = [
        pa.array(unsure),
        pa.array(rows.places.astype(np.int32)),
        pa.array(read.operations, pa.string()).take(pa.array(operation)),
        pa.array(hashes),
        told,
        _row_texts(scan, np.where(sure, rows.images, -1)),
        _row_texts(scan, np.where(sure, rows.olds, -1)),
        pa.array(values[rows.events], mask=~(has[rows.events] & sure)),
        pc.if_else(pa.array(sure), read.position.take(at), pa.scalar(None, pa.string())),
    ]
    given = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        taken = column if len(rows.events) == len(raw) else column.take(at)
        if name in ("raw", "message_key") and not whole:
            kept = pa.array(unsure)
            taken = (
                pc.if_else(kept, taken, pa.scalar(None, taken.type))
                if unsure.any()
                else pa.nulls(len(unsure), taken.type)
            )
        given.append(taken)
    made = pa.RecordBatch.from_arrays([*given, *columns], names=[*batch.schema.names, *SCHEMA.names])
    return made if once.all() else made.filter(pa.array(once))


def _row_texts(scan: EventScan, numbers: Numbers) -> pa.Array:
    valid = numbers >= 0
    if not valid.any():
        return pa.nulls(len(numbers), pa.binary())
    spans = scan.rows[np.where(valid, numbers, 0)]
    return copied(scan.data, spans[:, 2], spans[:, 3], valid, PLAIN, pa.binary())


def _key_names(key: pa.Array, unsure: Flags) -> tuple[EventScan, Numbers]:
    """The lists of names in Kafka's keys; an event whose key is no plain object becomes unsure."""
    first = next(one for one in key.to_pylist() if one is not None)
    is_wrapped = first.startswith(_WRAPPERS)
    scan = scan_events(key, _KEY_TABLE, kernel.INSIDE if is_wrapped else kernel.ROW)
    names = np.full(len(key), -1, np.int64)
    chosen = scan.rows[:, 1] == 0
    names[scan.rows[chosen, 0]] = scan.rows[chosen, 4]
    odd = {number for number in set(names[names >= 0].tolist()) if {"schema", "payload"} & set(scan.names(number))}
    wrong = scan.unsure | (np.asarray(key.is_valid()) & (names < 0)) | np.isin(names, list(odd))
    unsure |= wrong
    return scan, names


def _groups(read: Read, keys: tuple[EventScan, Numbers] | None, sure: Flags) -> tuple[Numbers, pa.Array]:
    """The hash of each row's group, and what the group is, on its first row. Groups that are odd make their events unsure."""
    rows, scan = read.rows, read.scan
    lists = np.where(rows.images >= 0, scan.rows[rows.images, 4] if len(scan.rows) else -1, -1)
    parts = [part[rows.events] for part in read.parts]
    if len(parts) == 4:
        parts.append(np.full(len(lists), -1, np.int64) if keys is None else keys[1][rows.events])
    code = np.zeros(len(lists), np.int64)
    for part in (*parts, np.where(parts[3] >= 0, -1, lists)):
        code = code * 1002 + part + 1
    hashes = np.zeros(len(lists), np.int64)
    told: list[str | None] = [None] * len(lists)
    chosen = np.flatnonzero(sure)
    _, firsts, places = np.unique(code[chosen], return_index=True, return_inverse=True)
    found: list[int] = []
    for first in chosen[firsts]:
        text = _told(read, keys, [int(part[first]) for part in parts], int(lists[first]))
        if text is None:
            scan.unsure[rows.events[chosen[places == len(found)]]] = True
        else:
            told[first] = text
        digest = hashlib.blake2b((text or "").encode(), digest_size=8).digest()
        found.append(int.from_bytes(digest, "little", signed=True))
    if found:
        hashes[chosen] = np.array(found, np.int64)[places]
    return hashes, pa.array(told, pa.string())


def _told(read: Read, keys: tuple[EventScan, Numbers] | None, parts: list[int], names: int) -> str | None:
    """What a group is, as JSON; None where its layout or its key is odd."""
    scan = read.scan
    texts = [scan.value(part) if part >= 0 else None for part in parts[:3]]
    layout = scan.json(parts[3]) if parts[3] >= 0 else json.dumps(scan.names(names))
    if layout.startswith('{"schema":'):
        return None
    key: list[Any] | None = None
    if parts[4] >= 0:
        key = scan.value(parts[4]) if keys is None else keys[0].names(parts[4])
        if not all(isinstance(one, str) for one in key):
            return None
    return json.dumps([*texts, layout, None if key is None else json.dumps(key)])
