"""The data files of a snapshot as columns, over all its manifests, for plans that look at all of them at once.

    path      partition   rows   sequence number   manifest
    a.parq    0           100    7                 0            partitions: 0 = (spec 0, ("2026-01-01",))
    b.parq    1           100    7                 0                        1 = (spec 0, ("2026-01-02",))
    c.parq    1           250    8                 1

A condition on partitions is evaluated once for every partition, one on statistics in arrays that are decoded once per column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.types import IcebergType

from lakelet.iceberg.metadata import manifests as fields
from lakelet.iceberg.metadata.manifests import STATISTICS, Entries
from lakelet.iceberg.scan.column_statistics import ColumnStatistics, StatisticPairs, column_statistics

Partition = tuple[int, tuple[Any, ...]]
Codes = NDArray[np.int64]
_OBJECT_BYTES = 4000
_PARTITION_BYTES = 400
_DATA = 0
_KEYS = pa.int32()


@dataclass(frozen=True, slots=True)
class LiveEntries:
    """Data files in the order of their manifests. `partitions` are distinct (spec id, values), as they are stored."""

    paths: pa.Array
    formats: pa.Array
    rows: Codes
    sizes: Codes
    contents: Codes
    sequence_numbers: Codes
    manifests: Codes
    manifest_paths: tuple[str, ...]
    partitions: tuple[Partition, ...]
    partition_codes: Codes
    pairs: Mapping[int, StatisticPairs]
    # Statistics by column, decoded when they are first asked for, and what plans compute of all partitions.
    columns: dict[tuple[int, str], ColumnStatistics] = field(default_factory=dict, compare=False, repr=False)
    computed: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """The size in memory, with the statistics of some columns decoded."""
        arrays = [self.rows, self.sizes, self.contents, self.sequence_numbers, self.manifests, self.partition_codes]
        plain = sum(int(one.nbytes) for one in arrays) + int(self.paths.nbytes) + int(self.formats.nbytes)
        inside = sum(
            int(one.fields.nbytes) + int(one.files.nbytes) + int(one.values.nbytes) for one in self.pairs.values()
        )
        return _OBJECT_BYTES + plain + 2 * inside + _PARTITION_BYTES * len(self.partitions)

    @property
    def partition_specs(self) -> Codes:
        """The spec of each partition."""
        found: Codes = self.once("specs", lambda: np.array([spec_id for spec_id, _ in self.partitions], np.int64))
        return found

    def once(self, name: object, compute: Callable[[], Any]) -> Any:
        """What is computed of all partitions, the first time that it is asked for."""
        found = self.computed.get(name)
        if found is None:
            found = self.computed[name] = compute()
        return found

    def partition_manifests(self) -> list[str]:
        """For each partition a manifest that has a file of it, for errors."""
        first = np.zeros(len(self.partitions), np.int64)
        first[self.partition_codes[::-1]] = self.manifests[::-1]
        return [self.manifest_paths[place] for place in first.tolist()]

    def statistics(self, field_id: int, kind: IcebergType) -> ColumnStatistics:
        """The statistics of a column that has this type now."""
        key = (field_id, str(kind))
        found = self.columns.get(key)
        if found is None:
            pairs = [self.pairs[one] for one in STATISTICS]
            found = self.columns[key] = column_statistics(pairs, field_id, kind)
        return found

    @staticmethod
    def of(parts: Sequence[Entries], *, statistics: bool) -> LiveEntries:
        """The entries of manifests together, with their statistics if they have been read."""
        counts = [len(one) for one in parts]
        total = sum(counts)
        partitions, codes = _partitions(parts, counts)
        return LiveEntries(
            _column(parts, counts, fields.PATH, pa.string()),
            _column(parts, counts, fields.FORMAT, pa.string(), "PARQUET"),
            _numbers(parts, counts, fields.ROWS),
            _numbers(parts, counts, fields.SIZE),
            _numbers(parts, counts, fields.CONTENT),
            np.concatenate([one.sequence_numbers for one in parts]) if parts else np.empty(0, np.int64),
            np.repeat(np.arange(len(parts)), counts),
            tuple(one.path for one in parts),
            partitions,
            codes,
            {one: StatisticPairs.of(_statistic(parts, counts, one), total) for one in STATISTICS} if statistics else {},
        )


def _column(
    parts: Sequence[Entries], counts: Sequence[int], number: int, kind: pa.DataType, default: Any = None
) -> pa.Array:
    pieces = []
    for one, count in zip(parts, counts, strict=True):
        column = one.columns.get(number)
        if column is None:
            column = pa.nulls(count, kind) if default is None else pa.repeat(pa.scalar(default, kind), count)
        pieces.append(column if column.type == kind else column.cast(kind))
    return pa.concat_arrays(pieces) if pieces else pa.array([], kind)


def _numbers(parts: Sequence[Entries], counts: Sequence[int], number: int) -> Codes:
    # A manifest of version 1 has no contents: all its files are data.
    found: Codes = _column(parts, counts, number, pa.int64(), _DATA).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _statistic(parts: Sequence[Entries], counts: Sequence[int], number: int) -> pa.Array | None:
    """The lists of (field id, value) of a statistic; None where no manifest has it."""
    kinds = {one.columns[number].type for one in parts if number in one.columns}
    if not kinds:
        return None
    if len(kinds) == 1:
        (kind,) = kinds
        pieces = [one.columns.get(number) for one in parts]
    else:
        # Writers differ in the names of members, and in what may be NULL.
        values = pa.binary() if number in (fields.LOWER, fields.UPPER) else pa.int64()
        kind = pa.list_(pa.struct([pa.field("key", _KEYS), pa.field("value", values)]))
        pieces = [_rebuilt(one.columns[number], values, kind) if number in one.columns else None for one in parts]
    return pa.concat_arrays(
        [pa.nulls(count, kind) if one is None else one for one, count in zip(pieces, counts, strict=True)]
    )


def _rebuilt(column: pa.Array, values: pa.DataType, kind: pa.DataType) -> pa.Array:
    pairs = StatisticPairs.of(column, len(column))
    starts = np.searchsorted(pairs.files, np.arange(len(column) + 1)).astype(np.int32)
    items = pa.StructArray.from_arrays(
        [pa.array(pairs.fields, _KEYS), pairs.values.cast(values)], fields=list(kind.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(starts), items, type=kind)


def _partitions(parts: Sequence[Entries], counts: Sequence[int]) -> tuple[tuple[Partition, ...], Codes]:
    """The distinct partitions, and the number of that of every file."""
    starts = np.cumsum([0, *counts])
    groups: dict[tuple[int, pa.DataType | None], list[int]] = {}
    for place, one in enumerate(parts):
        column = one.columns.get(fields.PARTITION)
        kind = None if column is None or not column.type.num_fields else column.type
        groups.setdefault((one.spec_id, kind), []).append(place)
    partitions: list[Partition] = []
    codes = np.zeros(int(starts[-1]), np.int64)
    for (spec_id, kind), places in groups.items():
        files = np.concatenate([np.arange(starts[place], starts[place + 1]) for place in places])
        if kind is None:
            codes[files] = len(partitions)
            partitions.append((spec_id, ()))
            continue
        values = pa.concat_arrays([parts[place].columns[fields.PARTITION] for place in places])
        first, inverse = _distinct([values.field(number) for number in range(kind.num_fields)], len(values))
        chosen = values.take(pa.array(first))
        stored = [chosen.field(number).to_pylist() for number in range(kind.num_fields)]
        codes[files] = inverse + len(partitions)
        partitions += [(spec_id, one) for one in zip(*stored, strict=True)]
    return tuple(partitions), codes


def _distinct(columns: Sequence[pa.Array], count: int) -> tuple[Codes, Codes]:
    """The first row of each distinct combination of values, and for every row the number of its combination."""
    inverse = np.zeros(count, np.int64)
    first = np.zeros(min(count, 1), np.int64)
    for column in columns:
        encoded = _bits(column).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        _, first, inverse = np.unique(
            inverse * (len(encoded.dictionary) + 1) + codes, return_index=True, return_inverse=True
        )
    return first, inverse


def _bits(column: pa.Array) -> pa.Array:
    """Floats by their bits: NaN is one value, and the two zeros are two."""
    if not pa.types.is_floating(column.type):
        return column
    absent = column.is_null().to_numpy(zero_copy_only=False)
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return pa.array(values.view(np.int64), mask=absent)
