"""Rows of events in the types of a table's columns, by the compiled loop over their JSON.

What the loop does not know how to spell (`cell_plan` is None), and rows that it is not sure of, are left to
`value_expression`, whose values these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.model.types import INTEGERS, MAX_LENGTH, STRINGS, Atomic, DataType, Kind
from lakelet.spark.cdc.scan import cell_kernel as kernel
from lakelet.spark.cdc.scan.event_scan import Bytes, Flags, Kernel, Numbers, bytes_of
from lakelet.spark.cdc.scan.span_copy import BASE64, JSON, PLAIN, copied, flat
from lakelet.spark.cdc.value.wire_field import Codec, WireField, implied_codec

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_INNER = (
    kernel.same,
    kernel.column_of,
    kernel.whole,
    kernel.decimal,
    kernel.floating,
    kernel.sextet,
    kernel.base64_size,
    kernel.packed,
    kernel.two,
    kernel.day,
    kernel.clock,
    kernel.moment,
    kernel.may_hold_place,
    kernel.text_end,
    kernel.cell,
    kernel.read_row,
)
_read = Kernel(
    kernel.read_cells,
    f"void({_BYTES}, int64[::1], int64[::1], {_BYTES}, int64[::1], int64[:, ::1], uint8[:, ::1], int64[:, ::1], "
    "int64[:, ::1], boolean[::1])",
    _INNER,
)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY_MICROS = 86_400_000_000
_DAY_MILLIS = 86_400_000
_INT64_DIGITS = 18
_FIRST, _LAST = _FIRST_DAY * _DAY_MICROS, (_LAST_DAY + 1) * _DAY_MICROS - 1
_SIZES = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_SPELT_AS_TEXT = (
    *(Codec.TEXT, Codec.INTEGER, Codec.FLOATING, Codec.BOOLEAN, Codec.DECIMAL_TEXT, Codec.DATE_TEXT),
    *(Codec.LOCAL_TEXT, Codec.ZONED_TEXT, Codec.TIME_TEXT, Codec.BASE64, Codec.LATIN1),
)
_CLOCKS = {Codec.TIME_MILLIS: 1, Codec.TIME_MICROS: 1_000, Codec.TIME_NANOS: 1_000_000}
_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.int32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMP_LTZ: pa.timestamp("us", "UTC"),
    Kind.DOUBLE: pa.float64(),
}


@dataclass(frozen=True, slots=True)
class CellPlan:
    """How the loop reads a column: its code and limits, and what its number is multiplied or divided by."""

    name: str
    target: Atomic
    code: int
    least: int = 0
    most: int = 0
    multiple: int = 1
    factor: int = 1
    divisor: int = 1
    holders: bool = False


def cell_plan(field: WireField, target: DataType, style: str) -> CellPlan | None:
    """The plan of a column; None where it is left to expressions."""
    if not isinstance(target, Atomic):
        return None
    codec = field.codec if field.type is not None else implied_codec(target, style)
    scale = field.scale if field.type is not None else target.scale
    name, holders = field.name, style.startswith("debezium")
    if target.kind in STRINGS:
        if codec not in _SPELT_AS_TEXT:
            return None
        most = target.precision if target.precision < MAX_LENGTH else 2**40
        return CellPlan(name, target, kernel.TEXT, most=most, holders=holders)
    if codec is Codec.INTEGER and target.kind in INTEGERS:
        top = 1 << (_SIZES[target.kind] - 1)
        return CellPlan(name, target, kernel.INTEGER, -top, top - 1)
    if codec in (Codec.BOOLEAN, Codec.INTEGER) and target.kind is Kind.BOOLEAN:
        return CellPlan(name, target, kernel.BOOLEAN)
    if codec in (Codec.FLOATING, Codec.DECIMAL_TEXT) and target.kind is Kind.DOUBLE:
        return CellPlan(name, target, kernel.FLOATING)
    if codec is Codec.BASE64 and target.kind in (Kind.VARBINARY, Kind.BINARY):
        most = target.precision if target.precision < MAX_LENGTH else 2**40
        return CellPlan(name, target, kernel.BASE64, most=most, holders=holders)
    if target.kind is Kind.DECIMAL:
        if codec in (Codec.DECIMAL_TEXT, Codec.INTEGER):
            return CellPlan(name, target, kernel.DECIMAL, target.scale, target.precision)
        if codec is Codec.DECIMAL_BYTES and scale == target.scale:
            least, most = -(2**63), 2**63 - 1
            if target.precision <= _INT64_DIGITS:
                most = 10**target.precision - 1
                least = -most
            return CellPlan(name, target, kernel.PACKED, least, most)
        return None
    return _time_plan(name, target, codec)


def _time_plan(name: str, target: Atomic, codec: Codec) -> CellPlan | None:
    if target.kind is Kind.DATE:
        if codec is Codec.DAYS:
            return CellPlan(name, target, kernel.INTEGER, _FIRST_DAY, _LAST_DAY)
        return CellPlan(name, target, kernel.DAY, _FIRST_DAY, _LAST_DAY) if codec is Codec.DATE_TEXT else None
    if target.kind is Kind.TIME:
        if codec in _CLOCKS:
            per = _CLOCKS[codec]
            return CellPlan(name, target, kernel.INTEGER, 0, _DAY_MILLIS * per - 1, per, divisor=per)
        return CellPlan(name, target, kernel.CLOCK) if codec is Codec.TIME_TEXT else None
    if target.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ):
        return None
    step = 10 ** (6 - min(target.precision, 6))
    if codec is Codec.EPOCH_MILLIS:
        return CellPlan(name, target, kernel.INTEGER, -(-_FIRST // 1000), _LAST // 1000, max(1, step // 1000), 1000)
    if codec is Codec.EPOCH_MICROS:
        return CellPlan(name, target, kernel.INTEGER, _FIRST, _LAST, step)
    digits = min(max(target.precision, 1), 6)
    if codec is Codec.LOCAL_TEXT and target.kind is Kind.TIMESTAMP:
        return CellPlan(name, target, kernel.LOCAL, multiple=digits)
    if codec is Codec.ZONED_TEXT and target.kind is Kind.TIMESTAMP_LTZ:
        return CellPlan(name, target, kernel.ZONED, multiple=digits)
    return None


@dataclass(frozen=True, slots=True)
class RowReader:
    """The columns of rows, and what must not be NULL there: `keys` never, `filled` but in deletes, `ordered` but in inserts.
    A row whose key differs from that of its old row is unsure as well: it is two rows."""

    plans: tuple[CellPlan, ...]
    keys: tuple[int, ...]
    filled: tuple[int, ...]
    ordered: tuple[int, ...]

    def read(self, image: pa.Array, old: pa.Array, operation: pa.Array) -> pa.StructArray:
        """The columns v0, v1 … of rows, and whether a row is unsure."""
        unsure = np.asarray(image.is_null())
        columns = _columns(image, self.plans, unsure)
        if self.keys and old.null_count < len(old):
            before = _columns(old, [self.plans[key] for key in self.keys], unsure)
            for key, prior in zip(self.keys, before, strict=True):
                unsure |= _true(pc.not_equal(prior, columns[key]))
        is_delete, is_insert = (_true(pc.equal(operation, letter)) for letter in "di")
        for chosen, allowed in ((self.keys, None), (self.filled, is_delete), (self.ordered, is_insert)):
            for place in chosen:
                missing = np.asarray(columns[place].is_null())
                unsure |= missing if allowed is None else missing & ~allowed
        names = [*(f"v{place}" for place in range(len(columns))), "unsure"]
        return pa.StructArray.from_arrays([*columns, pa.array(unsure)], names)


def _true(found: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(found, False))


def _columns(rows: pa.Array, plans: Sequence[CellPlan], unsure: Flags) -> list[pa.Array]:
    count = len(rows)
    data, offsets = bytes_of(rows)
    begins, ends = offsets[:-1].copy(), offsets[1:].copy()
    ends[np.asarray(rows.is_null())] = begins[np.asarray(rows.is_null())]
    texts = [one.name.encode() for one in plans]
    names = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    name_offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    table = np.array([(one.code, one.least, one.most, one.multiple, one.holders) for one in plans], np.int64)
    states = np.zeros((len(plans), count), np.uint8)
    low, high = np.zeros((len(plans), count), np.int64), np.zeros((len(plans), count), np.int64)
    _read(data, begins, ends, names, name_offsets, table, states, low, high, unsure)
    return [_column(data, plan, states[place], low[place], high[place], unsure) for place, plan in enumerate(plans)]


def _column(data: Bytes, plan: CellPlan, states: Numbers, low: Numbers, high: Numbers, unsure: Flags) -> pa.Array:
    valid = (states != kernel.NONE) & ~unsure
    if plan.code == kernel.TEXT:
        mode = JSON if (states == kernel.ESCAPED).any() else PLAIN
        return copied(data, low, high, valid, mode, pa.string())
    if plan.code == kernel.BASE64:
        return copied(data, low, high, valid, BASE64, pa.binary())
    if plan.code == kernel.FLOATING:
        return copied(data, low, high, valid, PLAIN, pa.string()).cast(pa.float64())
    if plan.target.kind is Kind.DECIMAL:
        return _decimals(low, high, valid, plan.target)
    kind = _ARROW[plan.target.kind]
    if kind == pa.bool_():
        return pa.array(low.astype(np.bool_), mask=~valid)
    if plan.factor != 1:
        low = low * plan.factor
    if plan.divisor != 1:
        low = low // plan.divisor
    return flat(low.astype(f"int{kind.bit_width}"), valid, kind)


def _decimals(low: Numbers, high: Numbers, valid: Flags, target: Atomic) -> pa.Array:
    words = np.stack([low, low >> 63], axis=1)
    for row in np.flatnonzero(high):
        value = (int(high[row]) * 10**18 + int(low[row])) & (1 << 128) - 1
        words[row] = np.frombuffer(value.to_bytes(16, "little"), np.int64)
    return flat(words, valid, pa.decimal128(target.precision, target.scale))
