"""Planning: from a snapshot and a predicate to the files that must be read.

    manifest lists ─ prune manifests by partition range ─ decode what is left, only the columns needed ─ prune partitions
      ─ take removed files away ─ prune files by their statistics ─ pack files into splits

Every step works on columns. A file is left out only where its partition or its statistics prove that no row of it can match; what
is proved of a file whose schema was different holds only for columns whose type has not changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.commit.manifests import ManifestSettings, live_entries, read_entries, snapshot_manifests
from lakelet.commit.snapshots import snapshot_is_gone
from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.format.binary_row_columns import decode_rows
from lakelet.format.block_directory import BlockPartitions
from lakelet.format.manifest_columns import READ_COLUMNS, STATS_COLUMNS
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.arrow_types import arrow_schema, to_arrow
from lakelet.model.data_file import Stats
from lakelet.model.manifest import EntryKind, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import DeletionVector, Split
from lakelet.model.types import FLOATS, Atomic, DataType, Kind
from lakelet.options import TableOptions
from lakelet.predicate.pruning import ColumnRange, always_match, may_match, partition_range, prune_expression
from lakelet.predicate.tree import Predicate
from lakelet.predicate.tree import columns as predicate_columns
from lakelet.scan.splits import SplitPacker
from lakelet.storage.home import TableHome

Mask = npt.NDArray[np.bool_]
Where: TypeAlias = Predicate | pc.Expression | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan reads, and how much it was spared. `matching_files` hold only matching rows, where that was asked."""

    snapshot_id: int | None
    splits: tuple[Split, ...]
    manifests_total: int = 0
    manifests_read: int = 0
    files_total: int = 0
    matching_files: frozenset[str] = frozenset()

    @property
    def files(self) -> int:
        """How many files are read."""
        return sum(len(split.files) for split in self.splits)

    @property
    def row_count(self) -> int:
        """Rows in the files that are read, deleted ones included."""
        return sum(split.row_count for split in self.splits)


EMPTY_PLAN = Plan(None, ())


@dataclass(frozen=True, slots=True)
class _Selected:
    entries: pa.Table
    manifests_total: int
    manifests_read: int
    files_total: int


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans scans of one table. `schema` is the schema rows are read in; `schema_of` finds the ones files were written under."""

    home: TableHome
    schema: TableSchema
    schema_of: Callable[[int], TableSchema]
    options: TableOptions = field(default_factory=TableOptions)

    def plan(self, snapshot: Snapshot, where: Where = None, *, whole_entries: bool = False) -> Plan:
        """The splits of a snapshot that may hold matching rows.

        Files are described as far as reading needs; with `whole_entries` fully, as a commit that removes them needs.
        """
        with self._noticing_expiry(snapshot):
            selected = self._select(snapshot, where, whole_entries)
            vectors = self.deletion_vectors(snapshot) if selected.entries.num_rows else {}
            splits = self._pack(snapshot.id, selected.entries, vectors)
            plan = Plan(snapshot.id, splits, selected.manifests_total, selected.manifests_read, selected.files_total)
            return (
                replace(plan, matching_files=self._matching_files(selected.entries, where)) if whole_entries else plan
            )

    def count(self, snapshot: Snapshot, where: Where) -> tuple[int, Plan]:
        """How many rows metadata alone proves to match, and the splits whose rows must be looked at."""
        with self._noticing_expiry(snapshot):
            entries = self._select(snapshot, where, whole_entries=False).entries
            vectors = self.deletion_vectors(snapshot) if entries.num_rows else {}
            sure = self._surely_match(entries, where)
            sizes = entries.column("_ROW_COUNT").to_numpy() - self._deleted_counts(entries, vectors, sure)
            rest = entries.filter(pa.array(~sure))
            return int(sizes[sure].sum()), Plan(snapshot.id, self._pack(snapshot.id, rest, vectors))

    def plan_entries(self, snapshot: Snapshot, manifests: Sequence[ManifestFile], kind: EntryKind) -> tuple[Split, ...]:
        """Splits of the files that these manifests add or remove, less the rows deleted in `snapshot`."""
        entries = read_entries(self.home, manifests, columns=READ_COLUMNS)
        chosen = entries.filter(pc.equal(entries.column("_KIND"), int(kind)))
        return self._pack(snapshot.id, chosen, self.deletion_vectors(snapshot))

    def _select(self, snapshot: Snapshot, where: Where, whole_entries: bool) -> _Selected:
        """The live files that may hold matching rows."""
        manifests = snapshot_manifests(self.home, snapshot)
        kept = self._prune_manifests(manifests, where)
        columns = [*READ_COLUMNS, *(STATS_COLUMNS if self._prunes_files(where) else ())]
        entries = live_entries(
            self.home,
            kept,
            columns=None if whole_entries else columns,
            keep=None if where is None else lambda table: table.filter(pa.array(self._partition_keep(table, where))),
            keep_blocks=None if where is None else lambda blocks: self._blocks_keep(blocks, where),
            threads=ManifestSettings.of(self.options).threads,
        )
        total = sum(manifest.added_files - manifest.deleted_files for manifest in manifests)
        return _Selected(self._prune_by_stats(entries, where), len(manifests), len(kept), total)

    @contextmanager
    def _noticing_expiry(self, snapshot: Snapshot) -> Iterator[None]:
        """A file that is missing because the snapshot was expired meanwhile is no corruption."""
        try:
            yield
        except CorruptionError as error:
            if snapshot_is_gone(self.home, snapshot):
                where = self.home.where(self.home.paths.root)
                raise NotFoundError(f"snapshot {snapshot.id} of {where} was expired while it was read") from error
            raise

    def _surely_match(self, entries: pa.Table, where: Where) -> Mask:
        """Which files hold only matching rows, as far as partitions and statistics prove it."""
        if where is None:
            return np.ones(entries.num_rows, bool)
        sure = np.zeros(entries.num_rows, bool)
        if isinstance(where, pc.Expression) or not entries.num_rows:
            return sure
        values = decode_rows(entries.column("_PARTITION"), self.schema.partition_types)
        if not self._prunes_files(where):
            found: Mask = always_match(where, self._partition_ranges(values), entries.num_rows)
            return found
        for rows, schema_id, stats_columns in _stats_groups(entries):
            places = pa.array(rows)
            ranges = self._ranges(
                entries.take(places), self.schema_of(schema_id), stats_columns, set(predicate_columns(where))
            )
            exact = self._partition_ranges([column.take(places) for column in values])
            sure[rows] = always_match(where, {**ranges, **exact}, len(rows))
        return sure

    def _matching_files(self, entries: pa.Table, where: Where) -> frozenset[str]:
        if where is None:
            return frozenset()
        return frozenset(entries.filter(pa.array(self._surely_match(entries, where))).column("_FILE_NAME").to_pylist())

    def _deleted_counts(
        self, entries: pa.Table, vectors: Mapping[str, DeletionVector], sure: Mask
    ) -> npt.NDArray[np.int64]:
        """How many rows deletion vectors take from each file; a file whose number is not recorded is no longer sure."""
        counts = np.zeros(entries.num_rows, np.int64)
        if vectors:
            for place, name in enumerate(entries.column("_FILE_NAME").to_pylist()):
                if name in vectors:
                    cardinality = vectors[name].place.cardinality
                    sure[place] &= cardinality is not None
                    counts[place] = cardinality or 0
        return counts

    def _pack(self, snapshot_id: int, entries: pa.Table, vectors: Mapping[str, DeletionVector]) -> tuple[Split, ...]:
        if entries.num_rows and entries.column("_EXTERNAL_PATH").null_count < entries.num_rows:
            outside = entries.column("_EXTERNAL_PATH").drop_null()[0].as_py()
            raise InvalidError(f"data file {outside} stands outside the table's folder, which is not supported")
        folders = PartitionFolders(self.home.paths, self.schema)
        return SplitPacker(self.options, folders).pack(snapshot_id, entries, vectors)

    def _prunes_files(self, where: Where) -> bool:
        if where is None:
            return False
        if isinstance(where, pc.Expression):
            return True
        return not set(predicate_columns(where)) <= set(self.schema.partition_keys)

    def _match(self, where: Where, ranges: Mapping[str, ColumnRange], count: int) -> Mask:
        if where is None or not count:
            return np.ones(count, bool)
        if isinstance(where, pc.Expression):
            return prune_expression(where, ranges, arrow_schema(self.schema.fields), count)
        return may_match(where, ranges, count)

    def _prune_manifests(self, manifests: Sequence[ManifestFile], where: Where) -> list[ManifestFile]:
        if where is None or not self.schema.partition_keys or not manifests:
            return list(manifests)
        counts = [manifest.added_files + manifest.deleted_files for manifest in manifests]
        mask = self._groups_keep([manifest.partition_stats for manifest in manifests], counts, where)
        return [manifest for manifest, keep in zip(manifests, mask, strict=True) if keep]

    def _blocks_keep(self, blocks: Sequence[BlockPartitions], where: Where) -> list[bool]:
        mask = self._groups_keep([block.partitions for block in blocks], [block.entries for block in blocks], where)
        return [bool(keep) for keep in mask]

    def _groups_keep(self, groups: Sequence[Stats], counts: Sequence[int], where: Where) -> Mask:
        """Which groups of entries may be about matching partitions, by the range of their partitions and their number."""
        types = self.schema.partition_types
        lows = decode_rows(pa.array([stats.min_values for stats in groups], pa.binary()), types)
        highs = decode_rows(pa.array([stats.max_values for stats in groups], pa.binary()), types)
        sizes = pa.array(counts, pa.int64())
        ranges = {}
        for index, name in enumerate(self.schema.partition_keys):
            nulls = pa.array([_count(stats.null_counts, index) for stats in groups], pa.int64())
            high = _unbounded(highs[index]) if _is_float(types[index]) else highs[index]
            ranges[name] = ColumnRange(lows[index], high, nulls, sizes)
        return self._match(where, ranges, len(groups))

    def _partition_keep(self, entries: pa.Table, where: Where) -> Mask:
        """Which entries belong to a partition that may hold matching rows."""
        if where is None or not self.schema.partition_keys or not entries.num_rows:
            return np.ones(entries.num_rows, bool)
        encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
        values = decode_rows(encoded.dictionary, self.schema.partition_types)
        mask = self._match(where, self._partition_ranges(values), len(encoded.dictionary))
        found: Mask = mask[encoded.indices.to_numpy()]
        return found

    def _partition_ranges(self, values: Sequence[pa.Array]) -> dict[str, ColumnRange]:
        """What partition values say of the partition columns."""
        return {name: partition_range(column) for name, column in zip(self.schema.partition_keys, values, strict=True)}

    def _prune_by_stats(self, entries: pa.Table, where: Where) -> pa.Table:
        if not self._prunes_files(where) or not entries.num_rows:
            return entries
        keep = np.ones(entries.num_rows, bool)
        wanted = None if isinstance(where, pc.Expression) or where is None else set(predicate_columns(where))
        for rows, schema_id, stats_columns in _stats_groups(entries):
            part = entries.take(pa.array(rows))
            ranges = self._ranges(part, self.schema_of(schema_id), stats_columns, wanted)
            keep[rows] = self._match(where, ranges, len(rows))
        return entries.filter(pa.array(keep))

    def _ranges(
        self, entries: pa.Table, stored: TableSchema, stats_columns: tuple[str, ...] | None, wanted: set[str] | None
    ) -> dict[str, ColumnRange]:
        """What statistics say of the table's columns, for entries of one schema version and one set of columns."""
        covered = [stored.field(name) for name in stats_columns] if stats_columns is not None else list(stored.fields)
        stats = entries.column("_VALUE_STATS").combine_chunks()
        counts = entries.column("_ROW_COUNT").combine_chunks()
        lows, highs = stats.field("_MIN_VALUES"), stats.field("_MAX_VALUES")
        usable = _has_arity(lows, len(covered)) and _has_arity(highs, len(covered))
        types = [column.type for column in covered]
        low_values, high_values = (decode_rows(lows, types), decode_rows(highs, types)) if usable else ([], [])
        places = {column.id: index for index, column in enumerate(covered)}
        stored_ids = {column.id for column in stored.fields}
        ranges: dict[str, ColumnRange] = {}
        for column in self.schema.fields:
            if wanted is not None and column.name not in wanted:
                continue
            if column.id not in stored_ids:
                # Files older than the column hold NULL in all their rows.
                ranges[column.name] = ColumnRange(None, None, counts, counts)
            elif usable and column.id in places and _same_type(covered[places[column.id]].type, column.type):
                index = places[column.id]
                nulls = _element(stats.field("_NULL_COUNTS"), index)
                # Some writers leave NaN, the greatest value, out of their statistics, so a float's maximum bounds nothing.
                high = _unbounded(high_values[index]) if _is_float(column.type) else high_values[index]
                low = _lower_bound(low_values[index], covered[index].type)
                ranges[column.name] = ColumnRange(low, high, nulls, counts)
        return ranges

    def deletion_vectors(self, snapshot: Snapshot) -> dict[str, DeletionVector]:
        """The deletion vectors of a snapshot, by the name of the data file."""
        found: dict[str, DeletionVector] = {}
        for entry in read_index_entries(self.home, snapshot):
            if entry.file.index_type == DELETION_VECTORS:
                path = self.home.paths.index(entry.file.name)
                for place in entry.file.deletion_vectors or ():
                    found[place.data_file] = DeletionVector(path, place)
        return found


def _same_type(stored: DataType, wanted: DataType) -> bool:
    return bool(to_arrow(stored) == to_arrow(wanted))


def _unbounded(maxima: pa.Array) -> pa.Array:
    """NaN for every known maximum: nothing is greater."""
    return pc.if_else(maxima.is_valid(), pa.scalar(float("nan"), maxima.type), maxima)


def _is_float(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind in FLOATS


def _lower_bound(minima: pa.Array, stored: DataType) -> pa.Array:
    """Minima that bound the values whoever wrote them. Of ORC files Java takes NaN for the minimum of a column that holds
    one, and pads CHAR with spaces, so that a value is less than its minimum; what such a minimum begins with still bounds."""
    if _is_float(stored):
        return pc.if_else(pc.is_nan(minima), pa.scalar(None, minima.type), minima)
    if isinstance(stored, Atomic) and stored.kind is Kind.CHAR:
        # Characters below the space would make a longer value less than a shorter, padded one.
        return pc.utf8_rtrim(pc.replace_substring_regex(minima, r"(?s)[\x00-\x1f].*", ""), " ")
    return minima


def _count(counts: tuple[int | None, ...] | None, index: int) -> int | None:
    return counts[index] if counts is not None and index < len(counts) else None


def _has_arity(rows: pa.Array, arity: int) -> bool:
    """Whether all rows have that many columns; files of other writers may carry empty statistics."""
    prefixes = pc.binary_slice(rows, 0, 4).unique().to_pylist()
    return bool(prefixes == [arity.to_bytes(4, "big")])


def _element(lists: pa.Array, index: int) -> pa.Array:
    """The element at `index` of every list, NULL where a list is NULL or shorter."""
    long_enough = pc.fill_null(pc.greater(pc.list_value_length(lists), index), False)
    if pc.all(long_enough).as_py():
        return pc.list_element(lists, index)
    picked = [value[index] if value is not None and len(value) > index else None for value in lists.to_pylist()]
    return pa.array(picked, pa.int64())


def _stats_groups(entries: pa.Table) -> list[tuple[npt.NDArray[np.int64], int, tuple[str, ...] | None]]:
    """Rows that share a schema version and the columns their statistics speak of."""
    schema_ids = entries.column("_SCHEMA_ID").to_numpy()
    lists = entries.column("_VALUE_STATS_COLS").combine_chunks()
    names = pc.fill_null(pc.binary_join(lists, "\x00"), "\x01").dictionary_encode()
    codes = names.indices.to_numpy().astype(np.int64) + schema_ids * (len(names.dictionary) + 1)
    groups = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        text = names[int(rows[0])].as_py()
        columns = None if text == "\x01" else tuple(text.split("\x00")) if text else ()
        groups.append((rows, int(schema_ids[rows[0]]), columns))
    return groups
