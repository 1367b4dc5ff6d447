"""A range of primary keys: bounds that users name by leading key columns, as bytes in key order.

A bound names the primary key or its first columns, and keys compare like tuples: `start={"day": 3}` of a key (day, id) begins
with the first key of day 3, `end={"day": 5}` ends before the first one of day 5. A prefix names columns that are equal; the last
of them, where it is text or bytes, begins with the value.

The bytes (`lsm/key_bytes`) decide. The condition lets a plan leave out files by the statistics of key columns; it may match
more, never less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.types import BINARIES, FLOATS, STRINGS, Atomic, Field, Kind
from lakelet.predicate.row_mask import after_prefix
from lakelet.predicate.tree import Comparison, Operator, Predicate, conjunction
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.row_input import batches_of

_TEXTS = (*STRINGS, *BINARIES)
# The order of these columns is not that of a comparison: -0.0 is less than 0.0 in a key and equal to it in SQL.
_NOT_COMPARED = (*FLOATS, Kind.BOOLEAN)
_BEHIND = Atomic(Kind.TINYINT)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from `low` on and below `high`, as bytes; a `high` of None is behind all keys."""

    low: bytes
    high: bytes | None
    condition: Predicate | None

    def mask(self, keys: pa.Array) -> pa.Array:
        """Which keys, of `large_binary`, are in the range."""
        inside = pc.greater_equal(keys, pa.scalar(self.low, keys.type))
        return inside if self.high is None else pc.and_(inside, pc.less(keys, pa.scalar(self.high, keys.type)))


def key_range(schema: TableSchema, *, start: object, end: object, prefix: object) -> KeyRange | None:
    """The range between bounds and within a prefix; None without any of them."""
    given = {"start": start, "end": end, "prefix": prefix}
    if all(value is None for value in given.values()):
        return None
    if not schema.primary_keys:
        raise InvalidError("start, end, prefix: the table has no primary key, so that its rows have no order of keys")
    low, high = b"", None
    conditions: list[Predicate] = []
    for what, value in given.items():
        if value is None:
            continue
        fields, row = _leading(schema, value, what)
        encoded = _encoded(schema, fields, row, is_open=what == "prefix")
        if what == "start":
            low = max(low, encoded)
        else:
            bound = encoded if what == "end" else _after(encoded)
            high = bound if high is None else high if bound is None else min(high, bound)
        if what == "prefix":
            low = max(low, encoded)
        conditions += _conditions(fields, row, what)
    return KeyRange(low, high, conjunction(conditions) if conditions else None)


def _leading(schema: TableSchema, value: object, what: str) -> tuple[list[Field], pa.RecordBatch]:
    """The first columns of the key that a bound names, and their values in the table's types."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidError(f"{what}: expected a mapping of key columns to values, found {value!r}")
    names = schema.primary_keys[: len(value)]
    if set(names) != set(value):
        raise InvalidError(
            f"{what}: expected the first columns of the key ({', '.join(schema.primary_keys)}), found "
            f"{', '.join(map(str, value))}"
        )
    fields = [schema.field(name) for name in names]
    rows: list[dict[str, Any]] = [dict(value)]
    (batch,) = batches_of(rows, arrow_schema(fields), fields)
    row = RowCaster(fields).cast(batch)
    for name in names:
        if row.column(name).null_count:
            raise InvalidError(f"{what}: {name!r} is NULL; keys are never NULL")
    return fields, row


def _encoded(schema: TableSchema, fields: list[Field], row: pa.RecordBatch, *, is_open: bool) -> bytes:
    """The bytes that keys with these leading columns begin with; an open one leaves the end of its last text out."""
    columns, types = [row.column(field.name) for field in fields], [field.type for field in fields]
    if len(fields) == len(schema.primary_keys):
        (whole,) = encode_key_bytes(columns, types).to_pylist()
        return bytes(whole)
    # Text that is not the key's last column ends with a mark, which it gets where a column is behind it.
    behind = pa.array([0], pa.int8())
    (longer,) = encode_key_bytes([*columns, behind], [*types, _BEHIND]).to_pylist()
    mark = 2 if is_open and _is_text(fields[-1]) else 0
    return bytes(longer[: -1 - mark])


def _after(encoded: bytes) -> bytes | None:
    """The least bytes that are greater than all that begin with these; None where there are none."""
    rest = encoded.rstrip(b"\xff")
    return rest[:-1] + bytes((rest[-1] + 1,)) if rest else None


def _conditions(fields: list[Field], row: pa.RecordBatch, what: str) -> list[Predicate]:
    """What surely holds for the columns of keys in a range."""
    first = fields[0]
    if what != "prefix":
        operator: Operator = ">=" if what == "start" else "<="
        return [Comparison(first.name, operator, row.column(first.name)[0])] if _is_compared(first) else []
    equal = [field for field in fields if field is not fields[-1] or not _is_text(field)]
    found: list[Predicate] = [
        Comparison(field.name, "=", row.column(field.name)[0]) for field in equal if _is_compared(field)
    ]
    if _is_text(fields[-1]):
        least = row.column(fields[-1].name)[0]
        found.append(Comparison(fields[-1].name, ">=", least))
        beyond = after_prefix(least.as_py()) if isinstance(least.as_py(), str) else None
        if beyond is not None:
            found.append(Comparison(fields[-1].name, "<", pa.scalar(beyond, least.type)))
    return found


def _is_text(field: Field) -> bool:
    return isinstance(field.type, Atomic) and field.type.kind in _TEXTS


def _is_compared(field: Field) -> bool:
    return isinstance(field.type, Atomic) and field.type.kind not in _NOT_COMPARED
