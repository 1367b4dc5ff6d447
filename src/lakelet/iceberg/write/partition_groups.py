"""Group the rows of a batch by partition: transforms over whole columns, then codes, then one stable sort.

    columns ─ transforms ─ a code for each distinct value of each ─ one code for each combination ─ number of the partition

Python sees each partition of a batch once, never a row. Partitions are distinguished by the representation of their values:
NULL is not the text 'null', every NaN is one, and -0.0 is not 0.0, as in Iceberg's own writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import VoidTransform

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms import PartitionTransform, transform_of

_TYPES = pa.types
_SPARSE = 1 << 16
_SHORT = 1 << 16


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A field of a spec, or of a sort order: the position of its source column, and its transform. Only a void field
    may have no source any more."""

    place: tuple[int, ...]
    transform: PartitionTransform | None

    def apply(self, batch: pa.RecordBatch | pa.Table) -> pa.Array:
        """The transformed column."""
        if self.transform is None:
            return pa.nulls(batch.num_rows)
        array = batch.column(self.place[0])
        for position in self.place[1:]:
            # Members of a NULL struct are NULL.
            array = pc.struct_field(array, [position])
        return self.transform.apply(array)


def partition_columns(spec: PartitionSpec, schema: Schema) -> tuple[PartitionColumn, ...]:
    """The fields of a spec; InvalidError for one that rows cannot be written by."""
    found = []
    for field in spec.fields:
        if isinstance(field.transform, VoidTransform):
            found.append(PartitionColumn((), None))
            continue
        place = place_of(schema, field.source_id)
        if place is None:
            raise InvalidError(f"partition field {field.name!r}: its column {field.source_id} is not in the table")
        found.append(PartitionColumn(place, transform_of(field, schema.find_type(field.source_id))))
    return tuple(found)


def place_of(schema: Schema, field_id: int) -> tuple[int, ...] | None:
    """The position of a column or of a struct's member at every level; None where there is no such field."""

    def search(fields: Sequence[Any]) -> tuple[int, ...] | None:
        for position, field in enumerate(fields):
            if field.field_id == field_id:
                return (position,)
            if field.field_type.is_struct and (below := search(field.field_type.fields)) is not None:
                return (position, *below)
        return None

    return search(schema.fields)


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows to be sorted by partition: those of `partitions[i]` are then from `starts[i]` up to `starts[i + 1]`."""

    batch: pa.RecordBatch
    order: NDArray[np.int64] | None
    partitions: NDArray[np.int64]
    starts: NDArray[np.int64]

    def rows(self) -> pa.RecordBatch:
        """The sorted rows; most of the work, which any thread may do."""
        return self.batch if self.order is None else self.batch.take(pa.array(self.order))


class PartitionGroups:
    """The partitions that a writer has seen, numbered; `values[n]` are those of number n in the form of manifests."""

    def __init__(self, columns: Sequence[PartitionColumn]) -> None:
        self._columns = tuple(columns)
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.values: list[tuple[Any, ...]] = []

    def group(self, batch: pa.RecordBatch) -> GroupedRows:
        """Groups the rows of a batch by partition, keeping their order."""
        if not self._columns:
            self._number((), ())
            return GroupedRows(batch, None, np.zeros(1, np.int64), np.array([0, batch.num_rows]))
        numbers = self._numbers_of(batch)
        order, ordered = None, numbers
        if not np.all(numbers[1:] >= numbers[:-1]):
            # Narrow integers are radix-sorted.
            short = numbers.astype(np.uint16) if len(self.values) <= _SHORT else numbers
            order = np.argsort(short, kind="stable")
            ordered = numbers[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        return GroupedRows(batch, order, ordered[begins], np.append(begins, batch.num_rows))

    def _numbers_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The partition of every row."""
        codes = np.zeros(batch.num_rows, np.int64)
        keys: list[tuple[Any, ...]] = [()]
        values: list[tuple[Any, ...]] = [()]
        for column in self._columns:
            found = _Coded.of(column, batch)
            present, codes = _present(codes * found.size + found.codes, len(keys) * found.size)
            above, own = (part.tolist() for part in np.divmod(present, found.size))
            keys = [(*keys[first], found.keys[last]) for first, last in zip(above, own, strict=True)]
            values = [(*values[first], found.values[last]) for first, last in zip(above, own, strict=True)]
        numbers = [self._number(key, value) for key, value in zip(keys, values, strict=True)]
        return np.array(numbers, np.int64)[codes]

    def _number(self, key: tuple[Any, ...], values: tuple[Any, ...]) -> int:
        number = self._numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append(values)
        return number


@dataclass(frozen=True, slots=True)
class _Coded:
    """A dictionary-coded transformed column; `keys[c]` is a hashable key of code c, `values[c]` its value."""

    codes: NDArray[np.int64]
    keys: list[Any]
    values: list[Any]

    @property
    def size(self) -> int:
        return len(self.keys)

    @staticmethod
    def of(column: PartitionColumn, batch: pa.RecordBatch) -> _Coded:
        array = column.apply(batch)
        if column.transform is None or _TYPES.is_null(array.type):
            return _Coded(np.zeros(len(array), np.int64), [None], [None])
        plain = _bits(array) if _TYPES.is_floating(array.type) else array
        encoded = plain.dictionary_encode(null_encoding="encode")
        keys = column.transform.get_partition_values(encoded.dictionary)
        values = keys
        if plain is not array:
            kind = np.float32 if plain.type == pa.int32() else np.float64
            values = [
                None if key is None else float(np.array(key, plain.type.to_pandas_dtype()).view(kind)) for key in keys
            ]
        return _Coded(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), keys, values)


def _bits(array: pa.Array) -> pa.Array:
    """Floating-point numbers as integers, every NaN as the same."""
    single = array.type == pa.float32()
    whole, kind = (np.int32, np.float32) if single else (np.int64, np.float64)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    values = np.array(array.fill_null(0).to_numpy(zero_copy_only=False), kind)
    values[np.isnan(values)] = np.nan
    return pa.array(values.view(whole), pa.int32() if single else pa.int64(), mask=mask)


def _present(codes: NDArray[np.int64], sizes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The codes that occur, ascending, and the index of each row's code among them."""
    if sizes > 4 * len(codes) + _SPARSE:
        found, places = np.unique(codes, return_inverse=True)
        return found, places.astype(np.int64)
    occurs = np.zeros(sizes, bool)
    occurs[codes] = True
    found = np.flatnonzero(occurs)
    places = np.cumsum(occurs)[codes] - 1
    return found, places
