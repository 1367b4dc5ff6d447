"""Check values against their column's type beyond the Arrow type: NOT NULL, lengths, digits, and the range of times.

The last step before rows are written, on columns that are in the table's types. Every error names the column, with its path
inside of nested types, and the first row.

A time is one of a day, 00:00:00 to 23:59:59.999. A date or timestamp is of the years 1 to 9999: what DuckDB calls infinity,
and what lies beyond those years, is a value that Python, and SQL's own texts, cannot show again.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import precision_step
from lakelet.model.types import (
    BINARIES,
    MAX_LENGTH,
    STRINGS,
    TIMESTAMPS,
    Array,
    Atomic,
    DataType,
    Kind,
    Map,
    Multiset,
    Row,
)

_TYPES = pa.types
_TIMES = (Kind.DATE, Kind.TIME, *TIMESTAMPS)
# The most digits of a decimal. 128 bits hold some numbers of 39, which DuckDB's HUGEINT arrives with.
_MOST_DIGITS = 38
# The first day of the year 1 and the last of 9999, from 1970-01-01 on.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_SHOWN_CHARACTERS = 100
# What to do where only one of data and column knows a time zone.
NEEDS_ZONE = (
    "; a moment needs a time zone: give the values theirs (tzinfo=timezone.utc in Python, assume_timezone in Arrow)"
)
HAS_ZONE = "; the column has no time zone: remove that of the values, or make the column WITH LOCAL TIME ZONE"


def check_values(array: pa.Array, data_type: DataType, where: str, first_row: int = 0) -> None:
    """Refuse NULL in NOT NULL columns and fields, text or bytes longer than the type allows, times and decimals with more
    digits, and times and dates outside the supported range."""
    _check_inside(array, data_type, where, lambda row: first_row + row)


def _check_inside(array: pa.Array, data_type: DataType, where: str, row_of: Callable[[int], int]) -> None:
    """Like `check_values`; `row_of` gives the row of the table that a value belongs to."""
    if not data_type.nullable and array.null_count:
        row = row_of(array.is_null().index(True).as_py())
        raise InvalidError(f"column {where!r} is NOT NULL, but row {row} has NULL")
    match data_type:
        case Atomic(kind, precision) if kind in (*STRINGS, *BINARIES) and precision < MAX_LENGTH:
            lengths = pc.utf8_length(array) if kind in STRINGS else pc.binary_length(array)
            longest = pc.max(lengths).as_py()
            if longest is not None and longest > precision:
                index = pc.greater(lengths, precision).index(True).as_py()
                raise InvalidError(
                    f"column {where!r} is {data_type}, but row {row_of(index)} has a value of length {lengths[index].as_py()}"
                )
        case Atomic(kind) if kind in _TIMES:
            _check_times(array, data_type, where, row_of)
        case Atomic(Kind.DECIMAL, precision) if precision == _MOST_DIGITS:
            _check_reach(array, data_type, where, row_of)
        case Row(fields) if _needs_check(data_type):
            # Values below a NULL struct are ignored.
            present, inner_row = _present(array, row_of)
            for index, field in enumerate(fields):
                _check_inside(present.field(index), field.type, f"{where}.{field.name}", inner_row)
        case Array(element) if _needs_check(data_type):
            present, inner_row = _present(array, row_of)
            _check_inside(present.flatten(), element, f"{where}.element", _owner(present.offsets, inner_row))
        case Multiset(element) if _needs_check(data_type):
            _check_inside(array, Map(element, Atomic(Kind.INT, nullable=False), data_type.nullable), where, row_of)
        case Map(key, value) if _needs_check(data_type):
            present, inner_row = _present(array, row_of)
            # Copied, for keys and items of a sliced map are those of the whole.
            present = pa.concat_arrays([present])
            owner = _owner(present.offsets, inner_row)
            _check_inside(present.keys, key, f"{where}.key", owner)
            _check_inside(present.items, value, f"{where}.value", owner)
        case _:
            return


def _check_reach(array: pa.Array, data_type: DataType, where: str, row_of: Callable[[int], int]) -> None:
    index = first_unshowable(array)
    if index is not None:
        raise InvalidError(
            f"column {where!r} is {data_type}, of {reach_text(array.type)}, "
            f"but row {row_of(index)} has {shown_value(array[index])}"
        )


def _check_times(array: pa.Array, data_type: DataType, where: str, row_of: Callable[[int], int]) -> None:
    _check_reach(array, data_type, where, row_of)
    step = precision_step(data_type)
    surplus = np.flatnonzero(_units(array).fill_null(0).to_numpy() % step) if step > 1 else np.empty(0)
    if surplus.size:
        index = int(surplus[0])
        raise InvalidError(
            f"column {where!r} is {data_type}, but row {row_of(index)} has {array[index].as_py()!s}, with more digits"
        )


def first_unshowable(array: pa.Array) -> int | None:
    """The position of the first time, date or decimal outside the supported range."""
    if _TYPES.is_decimal(array.type):
        return _first_longer(array)
    least, greatest = _reach(array.type)
    units = _units(array)
    low, high = pc.min_max(units).values()
    if not low.is_valid or (low.as_py() >= least and high.as_py() <= greatest):
        return None
    outside = pc.or_(pc.less(units, least), pc.greater(units, greatest))
    return int(outside.index(True).as_py())


def _first_longer(array: pa.Array) -> int | None:
    """The position of the first decimal with more digits than its type has."""
    # Written out, for a minus in front of a Decimal rounds it to the digits of the context.
    least, greatest = (Decimal((sign, (9,) * array.type.precision, -array.type.scale)) for sign in (1, 0))
    low, high = (value.as_py() for value in pc.min_max(array).values())
    if low is None or (least <= low and high <= greatest):
        return None
    values = (value.as_py() for value in array)
    return next(place for place, value in enumerate(values) if value is not None and not least <= value <= greatest)


def reach_text(arrow: pa.DataType) -> str:
    """The supported range of times, dates and decimals of a type, as text."""
    if _TYPES.is_decimal(arrow):
        return f"at most {arrow.precision} digits"
    if _TYPES.is_time(arrow):
        return "00:00:00 up to 24:00:00"
    is_nanos = _TYPES.is_timestamp(arrow) and arrow.unit == "ns"
    return "the years 1677 to 2262" if is_nanos else "the years 1 to 9999"


def _units(array: pa.Array) -> pa.Array:
    return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())


def _reach(arrow: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of a time or date in its own units."""
    if _TYPES.is_time(arrow):
        return 0, _DAY[arrow.unit] - 1
    if _TYPES.is_date32(arrow):
        return _FIRST_DAY, _LAST_DAY
    if arrow.unit == "ns":
        # All that 64 bits hold but for the least, which libraries use as NaT.
        return -(2**63) + 1, 2**63 - 1
    return _FIRST_DAY * _DAY[arrow.unit], (_LAST_DAY + 1) * _DAY[arrow.unit] - 1


def shown_value(value: pa.Scalar) -> str:
    """A value for a message, cut where it would fill it; also one that Python has no value for."""
    if _TYPES.is_time(value.type) and value.is_valid and not 0 <= value.value < _DAY[value.type.unit]:
        # Python's value would be that of another day's clock: 24:00:00 as midnight.
        return _shown_clock(value)
    try:
        text = repr(value.as_py())
    except (OverflowError, ValueError):
        text = _shown_number(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _shown_clock(value: pa.Scalar) -> str:
    """A time outside the day as hours, minutes and seconds, with a sign and as many hours as there are."""
    seconds, fraction = divmod(abs(value.value), _DAY[value.type.unit] // 86_400)
    clock = f"{'-' if value.value < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    digits = len(str(_DAY[value.type.unit] // 86_400)) - 1
    return f"{clock}.{fraction:0{digits}}" if fraction else clock


def _shown_number(value: pa.Scalar) -> str:
    if not (_TYPES.is_temporal(value.type)):
        return f"a value of {value.type}"
    number = value.value
    bits = value.type.bit_width
    if number in (2 ** (bits - 1) - 1, -(2 ** (bits - 1)) + 1):
        return "infinity" if number > 0 else "-infinity"
    unit = "days since 1970-01-01" if _TYPES.is_date32(value.type) else value.type.unit
    return f"{number} {unit}"


def _present(array: pa.Array, row_of: Callable[[int], int]) -> tuple[pa.Array, Callable[[int], int]]:
    """The values that are not NULL, and which row each belongs to."""
    if not array.null_count:
        return array, row_of
    return array.drop_null(), lambda index: row_of(pc.indices_nonzero(array.is_valid())[index].as_py())


def _owner(offsets: pa.Array, row_of: Callable[[int], int]) -> Callable[[int], int]:
    """The row of each list element, by the offsets of the lists."""
    starts = offsets.to_numpy() - offsets[0].as_py()
    return lambda index: row_of(int(np.searchsorted(starts, index, side="right")) - 1)


def _needs_check(data_type: DataType) -> bool:
    """Whether anything inside a type restricts its values."""
    match data_type:
        case Array(element) | Multiset(element):
            inner: tuple[DataType, ...] = (element,)
        case Map(key, value):
            inner = (key, value)
        case Row(fields):
            inner = tuple(field.type for field in fields)
        case Atomic(kind, precision):
            is_widest = kind is Kind.DECIMAL and precision == _MOST_DIGITS
            return (kind in (*STRINGS, *BINARIES) and precision < MAX_LENGTH) or kind in _TIMES or is_widest
    return any(not child.nullable or _needs_check(child) for child in inner)
