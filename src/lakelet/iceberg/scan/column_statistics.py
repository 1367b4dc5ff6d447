"""The statistics of one column over many files, as arrays: counts, and bounds decoded to values that compare.

    null counts   [0, 3, -1]        -1 where a file does not say
    lower         [5, ?, 7]         with a mask of those that are known

A bound that cannot be decoded for the column's type is unknown, and so are both bounds of a file if one is NaN. Bounds from
before an int became a long, or a float a double, are decoded as what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.decimal import unscaled_to_decimal

Mask = NDArray[np.bool_]
# The layouts of bounds of a type by their length: the type's own, then what it may have been promoted from.
_FIXED: dict[type[IcebergType], dict[int, str]] = {
    BooleanType: {1: "u1"},
    IntegerType: {4: "<i4"},
    LongType: {8: "<i8", 4: "<i4"},
    DateType: {4: "<i4"},
    TimestampType: {8: "<i8"},
    TimestamptzType: {8: "<i8"},
    FloatType: {4: "<f4"},
    DoubleType: {8: "<f8", 4: "<f4"},
}
_RESULT = {"u": np.bool_, "i": np.int64, "f": np.float64}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A bound of every file. Numbers and decimals are an array, texts and bytes an Arrow array of bytes."""

    values: NDArray[Any] | pa.Array
    known: Mask

    def compared(self, name: str, literal: Any) -> Mask:
        """For which files the bound is known and compares so to a value: less, less_equal, greater or greater_equal."""
        found = np.zeros(len(self.known), bool)
        if isinstance(self.values, pa.Array):
            given = pa.scalar(literal.encode() if isinstance(literal, str) else bytes(literal), pa.binary())
            found = _mask(pc.call_function(name, [self.values, given]))
        elif self.known.any():
            compare = getattr(np, name)
            found[self.known] = compare(self.values[self.known], literal).astype(bool)
        return found & self.known

    def sliced(self, size: int) -> Bounds:
        """The first bytes of texts."""
        assert isinstance(self.values, pa.Array)
        return Bounds(pc.binary_slice(self.values, 0, size), self.known)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of a column, a row a file."""

    value_counts: NDArray[np.int64]
    null_counts: NDArray[np.int64]
    nan_counts: NDArray[np.int64]
    lower: Bounds | None
    upper: Bounds | None

    @property
    def only_nulls(self) -> Mask:
        """Files that have nothing but NULL there."""
        found: Mask = (self.value_counts > 0) & (self.null_counts == self.value_counts)
        return found

    @property
    def only_nans(self) -> Mask:
        """Files that have nothing but NaN there."""
        found: Mask = (self.value_counts > 0) & (self.nan_counts == self.value_counts)
        return found


@dataclass(frozen=True, slots=True)
class StatisticPairs:
    """One statistic of all columns and files: the column and the file of every value."""

    fields: NDArray[np.int32]
    files: NDArray[np.int64]
    values: pa.Array
    count: int

    @staticmethod
    def of(column: pa.Array | None, count: int) -> StatisticPairs:
        """The pairs of a manifest's column, which is a list of (field id, value) for each file."""
        if column is None or not len(column):
            return StatisticPairs(np.empty(0, np.int32), np.empty(0, np.int64), pa.nulls(0), count)
        items = column.flatten()
        lengths = np.diff(column.offsets.to_numpy())
        if column.null_count:
            lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
        fields = items.field(0).to_numpy(zero_copy_only=False)
        return StatisticPairs(fields, np.repeat(np.arange(len(column)), lengths), items.field(1), count)

    def _of_field(self, field_id: int) -> tuple[NDArray[np.int64], pa.Array]:
        there = np.flatnonzero(self.fields == field_id)
        return self.files[there], self.values.take(pa.array(there))

    def counts(self, field_id: int) -> NDArray[np.int64]:
        """The counts of a column, -1 for files that do not say."""
        found = np.full(self.count, -1, np.int64)
        files, values = self._of_field(field_id)
        if len(files):
            found[files] = values.fill_null(-1).to_numpy(zero_copy_only=False)
        return found

    def bounds(self, field_id: int, kind: IcebergType) -> Bounds | None:
        """The bounds of a column; None for types whose bounds are not compared."""
        files, values = self._of_field(field_id)
        if not len(files):
            return Bounds(np.zeros(self.count, np.int64), np.zeros(self.count, bool))
        if type(kind) in _FIXED:
            return _numbers(files, values, _FIXED[type(kind)], self.count)
        if isinstance(kind, DecimalType):
            return _decimals(files, values, kind.scale, self.count)
        if isinstance(kind, (StringType, BinaryType, FixedType)):
            return _texts(files, values, isinstance(kind, StringType), self.count)
        return None


def column_statistics(pairs: Sequence[StatisticPairs], field_id: int, kind: IcebergType) -> ColumnStatistics:
    """The statistics of a column, out of those of values, nulls, NaN, lower and upper bounds."""
    values, nulls, nans, lower, upper = pairs
    low, high = lower.bounds(field_id, kind), upper.bounds(field_id, kind)
    if isinstance(kind, (FloatType, DoubleType)) and low is not None and high is not None:
        wrong = _is_nan(low) | _is_nan(high)
        low, high = Bounds(low.values, low.known & ~wrong), Bounds(high.values, high.known & ~wrong)
    return ColumnStatistics(values.counts(field_id), nulls.counts(field_id), nans.counts(field_id), low, high)


def _is_nan(bounds: Bounds) -> Mask:
    found: Mask = np.isnan(bounds.values.astype(np.float64)) & bounds.known
    return found


def _numbers(files: NDArray[np.int64], values: pa.Array, layouts: dict[int, str], count: int) -> Bounds:
    kind = _RESULT[np.dtype(next(iter(layouts.values()))).kind]
    found: NDArray[Any] = np.zeros(count, kind)
    known = np.zeros(count, bool)
    lengths = pc.fill_null(pc.binary_length(values), -1).to_numpy(zero_copy_only=False)
    for size, layout in layouts.items():
        fits = np.flatnonzero(lengths == size)
        if len(fits):
            stored = values.take(pa.array(fits)).cast(pa.binary(size))
            data = np.frombuffer(stored.buffers()[1], layout, len(fits), stored.offset * size)
            found[files[fits]] = data != 0 if layout == "u1" else data
            known[files[fits]] = True
    return Bounds(found, known)


def _decimals(files: NDArray[np.int64], values: pa.Array, scale: int, count: int) -> Bounds:
    found, known = np.zeros(count, object), np.zeros(count, bool)
    for file, stored in zip(files.tolist(), values.to_pylist(), strict=True):
        if stored:
            found[file] = unscaled_to_decimal(int.from_bytes(stored, "big", signed=True), scale)
            known[file] = True
    return Bounds(found, known)


def _texts(files: NDArray[np.int64], values: pa.Array, is_text: bool, count: int) -> Bounds:
    values = values.cast(pa.binary())
    known = values.is_valid().to_numpy(zero_copy_only=False)
    if is_text:
        try:
            values.cast(pa.string())
        except pa.ArrowInvalid:
            # Bounds that were cut within a character.
            known = known & np.array([_is_text(one) for one in values.to_pylist()], bool)
    places = np.full(count, -1, np.int64)
    places[files] = np.arange(len(files))
    spread = values.take(pa.array(places, mask=places < 0))
    all_known = np.zeros(count, bool)
    all_known[files] = known
    return Bounds(spread, all_known)


def _is_text(stored: bytes | None) -> bool:
    try:
        return stored is not None and stored.decode() is not None
    except UnicodeDecodeError:
        return False


def _mask(found: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return mask
