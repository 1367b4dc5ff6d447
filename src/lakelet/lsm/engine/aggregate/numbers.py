"""Sums and products of a column's values, in the arithmetic of its type.

TINYINT … BIGINT     wrap around, as in Java
FLOAT, DOUBLE        one operation after the other, rounded to the type after each
DECIMAL(p <= 18)     a sum that has more digits is an error: Java keeps a number there that its type cannot hold
DECIMAL(p > 18)      a sum that has more digits is NULL, as in Java
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.fold_loops import (
    DIVIDED_BY_ZERO,
    OVERFLOWED,
    float_loop,
    integer_loop,
    wide_sum_loop,
)
from lakelet.lsm.engine.aggregate.row_actions import Actions
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.model.types import FLOATS, Atomic, Kind

_LONG_DIGITS = 18


def computed(function: int, groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """The sum or product of each key."""
    assert isinstance(rule.type, Atomic)
    column = groups.column(rule.column)
    valid = groups.valid(rule.column).view(np.uint8)
    if rule.type.kind in FLOATS:
        return _floats(function, groups, column, valid, actions)
    if rule.type.kind is not Kind.DECIMAL:
        return _integers(function, groups, rule, column, valid, actions)
    words = _words(column)
    if rule.type.precision > _LONG_DIGITS:
        return _wide_sums(groups, column.type, words, valid, actions)
    totals, present = _integer_totals(function, 64, groups, rule, words[:, 0].view(np.int64), valid, actions)
    most = 10**rule.type.precision - 1
    outside = present & ((totals > most) | (totals < -most))
    if outside.any():
        raise _outside(rule)
    wide = np.empty((len(totals), 2), np.int64)
    wide[:, 0], wide[:, 1] = totals, totals >> 63
    return _decimals(wide, present, column.type)


def _integers(
    function: int,
    groups: KeyGroups,
    rule: ColumnRule,
    column: pa.Array,
    valid: NDArray[np.uint8],
    actions: Actions,
) -> pa.Array:
    bits = column.type.bit_width
    own = np.dtype(f"i{bits // 8}")
    values = _buffer(column, own).astype(np.int64)
    totals, present = _integer_totals(function, bits, groups, rule, values, valid, actions, overflows=True)
    return pa.array(totals.astype(own), column.type, mask=_absent(present))


def _integer_totals(
    function: int,
    bits: int,
    groups: KeyGroups,
    rule: ColumnRule,
    values: NDArray[np.int64],
    valid: NDArray[np.uint8],
    actions: Actions,
    *,
    overflows: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    totals = np.empty(len(groups), np.int64)
    present = np.empty(len(groups), np.uint8)
    errors = np.zeros(2, np.uint8)
    loop = integer_loop.for_bytes_or_interpreted(len(actions))
    values = np.ascontiguousarray(values)
    loop(function, bits, groups.starts, groups.ends, actions, valid, values, totals, present, errors)
    if errors[DIVIDED_BY_ZERO]:
        raise InvalidError(f"column {rule.column!r}: a product cannot take 0 back, for that divides by it")
    if errors[OVERFLOWED] and not overflows:
        raise _outside(rule)
    return totals, present.view(np.bool_)


def _floats(function: int, groups: KeyGroups, column: pa.Array, valid: NDArray[np.uint8], actions: Actions) -> pa.Array:
    is_single = pa.types.is_float32(column.type)
    own = np.dtype(np.float32 if is_single else np.float64)
    values = np.ascontiguousarray(_buffer(column, own).astype(np.float64))
    totals = np.empty(len(groups), np.float64)
    present = np.empty(len(groups), np.uint8)
    with np.errstate(all="ignore"):
        loop = float_loop.for_bytes_or_interpreted(len(actions))
        loop(function, is_single, groups.starts, groups.ends, actions, valid, values, totals, present)
        return pa.array(totals.astype(own), column.type, mask=_absent(present.view(np.bool_)), from_pandas=False)


def _wide_sums(
    groups: KeyGroups, data_type: pa.DataType, words: NDArray[np.uint64], valid: NDArray[np.uint8], actions: Actions
) -> pa.Array:
    most = 10**data_type.precision - 1
    totals = np.empty((len(groups), 2), np.uint64)
    present = np.empty(len(groups), np.uint8)
    low, high = np.uint64(most & (2**64 - 1)), np.int64(most >> 64)
    loop = wide_sum_loop.for_bytes_or_interpreted(len(actions))
    loop(low, high, groups.starts, groups.ends, actions, valid, words, totals, present)
    return _decimals(totals.view(np.int64), present.view(np.bool_), data_type)


def _outside(rule: ColumnRule) -> InvalidError:
    return InvalidError(
        f"column {rule.column!r}: a {rule.function} has more digits than {rule.type} holds; "
        "give the column a wider DECIMAL with ALTER TABLE"
    )


def _words(column: pa.Array) -> NDArray[np.uint64]:
    """The 128 bits of decimals, the low word first."""
    words: NDArray[np.uint64] = np.frombuffer(column.buffers()[1] or b"", np.uint64).reshape(-1, 2)
    return words[column.offset : column.offset + len(column)]


def _decimals(words: NDArray[np.int64], present: NDArray[np.bool_], data_type: pa.DataType) -> pa.Array:
    valid = pa.array(present).buffers()[1]
    return pa.Array.from_buffers(data_type, len(words), [valid, pa.py_buffer(np.ascontiguousarray(words))])


def _buffer(column: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values of a fixed-width column as they lie in memory, undefined ones below NULLs included."""
    return np.frombuffer(column.buffers()[1] or b"", dtype)[column.offset : column.offset + len(column)]


def _absent(present: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if present.all() else ~present
