"""Plan a scan: from a snapshot and a predicate to the splits that must be read.

    manifest lists ─ prune manifests by partition range ─ decode what is left, only the columns needed ─ prune partitions
      ─ take removed files away ─ prune files by their statistics ─ pack files into splits

Every step works on columns. A file is left out only where its partition, its bucket or its statistics prove that no row of it
can match. Files of primary-key tables that hold the same keys are pruned and read together: `tree` does that part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.commit.metadata.manifests import (
    ManifestSettings,
    live_entries,
    read_entries,
    read_manifest,
    snapshot_manifests,
)
from lakelet.errors import InvalidError
from lakelet.format.manifest.manifest_columns import (
    IDENTITY_COLUMNS,
    KEY_COLUMNS,
    KEY_STATS_COLUMN,
    READ_COLUMNS,
    STATS_COLUMNS,
)
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_bounds, decode_rows
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.bucket_mode import POSTPONE_BUCKET, BucketMode, bucket_mode
from lakelet.model.data_file import Stats
from lakelet.model.manifest import BlockPartitions, EntryKind, ManifestFile
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import DeletionVector, Split
from lakelet.options import TableOptions
from lakelet.predicate.pruning import ColumnRange, always_match, may_match, partition_range, prune_expression
from lakelet.predicate.tree import Predicate
from lakelet.predicate.tree import columns as predicate_columns
from lakelet.scan.continued_plan import ContinuedPlan
from lakelet.scan.file_indexes import EMBEDDED_COLUMN, FileIndexes
from lakelet.scan.file_ranges import key_ranges, overlaid, stats_groups, upper_bound, value_ranges
from lakelet.scan.kept_entries import KeptEntries, PlanName, appended_entries, kept_entries
from lakelet.scan.key_plan import Lookup, lookups
from lakelet.scan.key_pruning import in_buckets, key_part, speaks_of_values
from lakelet.scan.live_files import LIVE_FILES, LiveFiles
from lakelet.scan.splits import SplitPacker, in_written_order
from lakelet.scan.tree import Tree, visible
from lakelet.storage.home import TableHome

Where: TypeAlias = Predicate | pc.Expression | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The splits a scan reads, with pruning counts. `matching_files` hold only matching rows, where that was requested."""

    snapshot_id: int | None
    splits: tuple[Split, ...]
    manifests_total: int = 0
    manifests_read: int = 0
    files_total: int = 0
    matching_files: frozenset[str] = frozenset()

    @property
    def files(self) -> int:
        """The number of files that are read."""
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
    """Plans scans of one table. `schema` is the schema rows are read in; `schema_of` finds the ones files were written under.

    With a `level` only its files are looked at, as if there were no others; with a `least_level` only those from it on.
    """

    home: TableHome
    schema: TableSchema
    schema_of: Callable[[int], TableSchema]
    options: TableOptions = field(default_factory=TableOptions)
    level: int | None = None
    least_level: int = 0

    def plan(self, snapshot: Snapshot, where: Where = None, *, whole_entries: bool = False) -> Plan:
        """The splits of a snapshot that may hold matching rows.

        Files are described as far as reading needs; with `whole_entries` fully, as a commit that removes them needs.
        """
        name = None if whole_entries else self._plan_name(snapshot, where)
        kept = None if name is None else name.find()
        if isinstance(kept, Plan):
            return kept
        manifests = snapshot_manifests(self.home, snapshot)
        continued = None if name is None else self._continued(name, snapshot, manifests, where)
        if continued is not None:
            return continued
        selected = self._select(snapshot, manifests, where, whole_entries)
        vectors = self.deletion_vectors(snapshot) if selected.entries.num_rows else {}
        splits = self._pack(snapshot.id, selected.entries, vectors, where)
        plan = Plan(snapshot.id, splits, selected.manifests_total, selected.manifests_read, selected.files_total)
        if name is not None:
            name.keep(plan, plan.files, manifests, deletes_rows=bool(vectors))
        return replace(plan, matching_files=self._matching_files(selected.entries, where)) if whole_entries else plan

    def count(self, snapshot: Snapshot, where: Where) -> tuple[int, Plan]:
        """The number of rows that metadata alone proves to match, and the splits whose rows must be read."""
        entries = self._select(snapshot, snapshot_manifests(self.home, snapshot), where, whole_entries=False).entries
        vectors = self.deletion_vectors(snapshot) if entries.num_rows else {}
        sure = self._surely_match(entries, where)
        sizes = entries.column("_ROW_COUNT").to_numpy() - self._deleted_counts(entries, vectors, sure)
        if self.schema.primary_keys:
            tree = self._tree(entries, where)
            counted = sure[tree.places] & ~tree.merged
            known = int(sizes[tree.places[counted]].sum())
            return known, Plan(snapshot.id, tree.keep(~counted).pack(snapshot.id, self._packer(), vectors))
        rest = entries.filter(pa.array(~sure))
        return int(sizes[sure].sum()), Plan(snapshot.id, self._pack(snapshot.id, rest, vectors, where))

    def plan_entries(self, snapshot: Snapshot, manifests: Sequence[ManifestFile], kind: EntryKind) -> tuple[Split, ...]:
        """Splits of the files that these manifests add or remove, less the rows deleted in `snapshot`."""
        entries = read_entries(self.home, manifests, columns=READ_COLUMNS)
        chosen = entries.filter(pc.equal(entries.column("_KIND"), int(kind)))
        _refuse_outside(chosen)
        return self._packer().pack(snapshot.id, chosen, self.deletion_vectors(snapshot))

    def plan_keys(self, snapshot: Snapshot, keys: pa.Table) -> tuple[Lookup, ...]:
        """The buckets that can hold these keys: splits of all their live files, each with the positions of the keys in `keys`.

        `keys` has the columns of the primary key in the table's types, without NULL. What a snapshot's manifests say is kept
        in memory until a newer one is requested.
        """
        return lookups(self.visible_files(snapshot), self.schema, keys) if keys.num_rows else ()

    def visible_files(self, snapshot: Snapshot) -> LiveFiles:
        """The files of a snapshot that readers see, by bucket."""
        return LIVE_FILES.at(
            self.home,
            snapshot,
            self.schema.id,
            lambda manifests: LiveFiles(
                snapshot, manifests, self._looked_up, self._packer(), self.deletion_vectors(snapshot)
            ),
        )

    def committed_files(self, snapshot: Snapshot) -> LiveFiles:
        """The files of a snapshot by bucket, also those of level 0 that readers see only after compaction."""
        manifests = snapshot_manifests(self.home, snapshot)
        columns = [*READ_COLUMNS, *KEY_COLUMNS]
        entries = {one.name: read_manifest(self.home, one, columns) for one in manifests}
        return LiveFiles(snapshot, entries, _in_buckets, self._packer(), self.deletion_vectors(snapshot))

    def _looked_up(self, entries: pa.Table) -> pa.Table:
        _refuse_outside(entries)
        return visible(entries, self.options)

    def _continued(
        self, name: PlanName, snapshot: Snapshot, manifests: Sequence[ManifestFile], where: Where
    ) -> Plan | None:
        """The plan of an earlier version with the files that were added since, kept; None where that is not all."""
        earlier = name.earlier(lambda: bool(self.deletion_vectors(snapshot)))
        known = None if earlier is None else self._kept(snapshot, manifests, where)
        if earlier is None or known is None:
            return None
        before, names = earlier
        if not isinstance(before, Plan):
            return None
        columns = self._columns(where)
        added = appended_entries(self.home, names, manifests, [*IDENTITY_COLUMNS, *columns])
        if added is None:
            return None
        vectors = self.deletion_vectors(snapshot)

        def pack(entries: pa.Table) -> tuple[Split, ...]:
            return self._pack(snapshot.id, self._narrowed(entries, where), vectors, where)

        new = self._narrowed(added.filter(pa.array(self._partition_keep(added, where))), where)
        splits = ContinuedPlan(self.schema, snapshot.id, before.splits, new, known.entries).splits(pack)
        read = len(self._prune_manifests(manifests, where))
        plan = Plan(snapshot.id, splits, len(manifests), read, _files_total(manifests))
        name.keep(plan, plan.files, manifests, deletes_rows=bool(vectors))
        return plan

    def _select(
        self, snapshot: Snapshot, manifests: Sequence[ManifestFile], where: Where, whole_entries: bool
    ) -> _Selected:
        """The live files that may hold matching rows."""
        kept = self._prune_manifests(manifests, where)
        columns = self._columns(where)
        known = None if whole_entries else self._kept(snapshot, manifests, where)
        if known is not None:
            entries = self._matching(known, where)
        else:
            entries = live_entries(
                self.home,
                kept,
                columns=None if whole_entries else columns,
                keep=None
                if where is None
                else lambda table: table.filter(pa.array(self._partition_keep(table, where))),
                keep_blocks=None if where is None else lambda blocks: self._blocks_keep(blocks, where),
                threads=ManifestSettings.of(self.options).threads,
            )
        return _Selected(self._narrowed(entries, where), len(manifests), len(kept), _files_total(manifests))

    def _columns(self, where: Where) -> list[str]:
        """The columns of entries that a plan needs."""
        columns = [*READ_COLUMNS, *(STATS_COLUMNS if self._prunes_files(where) else ())]
        if FileIndexes.of(self.home, self.schema, self.options, where) is not None:
            columns.append(EMBEDDED_COLUMN)
        if self.schema.primary_keys:
            columns += [*KEY_COLUMNS, *([KEY_STATS_COLUMN] if self._prunes_files(where) else ())]
        return columns

    def _narrowed(self, entries: pa.Table, where: Where) -> pa.Table:
        """The entries of the levels that are read, less those that their own metadata excludes."""
        if self.level is not None:
            entries = entries.filter(pc.equal(entries.column("_LEVEL"), self.level))
        if self.least_level:
            entries = entries.filter(pc.greater_equal(entries.column("_LEVEL"), self.least_level))
        return self._prune_files(entries, where)

    def _kept(self, snapshot: Snapshot, manifests: Sequence[ManifestFile], where: Where) -> KeptEntries | None:
        """The live entries that are kept; None where none are."""
        return kept_entries(
            self.home,
            snapshot,
            manifests,
            self.schema,
            self._columns(where),
            selective=where is not None,
            threads=ManifestSettings.of(self.options).threads,
        )

    def _matching(self, known: KeptEntries, where: Where) -> pa.Table:
        """The live entries of matching partitions."""
        if where is None:
            return known.entries
        return known.matching(lambda values, count: self._match(where, self._partition_ranges(values), count))

    def _plan_name(self, snapshot: Snapshot, where: Where) -> PlanName | None:
        return PlanName.of(self.home, snapshot, self.schema, self.options, where, (self.level, self.least_level))

    def _prune_files(self, entries: pa.Table, where: Where) -> pa.Table:
        """Drop the files that their own metadata proves to hold no matching row."""
        if self.schema.primary_keys:
            entries = visible(entries, self.options)
        at_home = in_buckets(where, self.schema, entries)
        if at_home is not None:
            entries = entries.filter(pa.array(at_home))
        single = key_part(where, self.schema) if self.schema.primary_keys else where
        if not self._prunes_files(single):
            return entries
        return entries.filter(pa.array(self._may_match(entries, single)))

    def _tree(self, entries: pa.Table, where: Where) -> Tree:
        """The sections of a primary-key table, without those that value statistics prune."""
        _refuse_outside(entries)
        tree = Tree.of(entries, self.schema)
        if not speaks_of_values(where, self.schema):
            return tree
        return tree.pruned(self._may_match(entries, where), table_engine(self.schema).shortcuts)

    def _surely_match(self, entries: pa.Table, where: Where) -> Mask:
        """A mask of the files that provably hold only matching rows, by partitions and statistics."""
        if where is None:
            return np.ones(entries.num_rows, bool)
        sure = np.zeros(entries.num_rows, bool)
        if isinstance(where, pc.Expression) or not entries.num_rows:
            return sure
        if not self._prunes_files(where):
            values = decode_rows(entries.column("_PARTITION"), self.schema.partition_types)
            found: Mask = always_match(where, self._partition_ranges(values), entries.num_rows)
            return found
        for rows, ranges in self._ranges(entries, set(predicate_columns(where))):
            sure[rows] = always_match(where, ranges, len(rows))
        return sure

    def _may_match(self, entries: pa.Table, where: Where) -> Mask:
        """A mask of the files that may hold matching rows, by partitions, statistics and file indexes."""
        keep = np.ones(entries.num_rows, bool)
        wanted = None if isinstance(where, pc.Expression) or where is None else set(predicate_columns(where))
        indexes = FileIndexes.of(self.home, self.schema, self.options, where)
        for rows, ranges in self._ranges(entries, wanted):
            keep[rows] = self._match(where, ranges, len(rows))
            if indexes is not None and keep[rows].any():
                kept = rows[keep[rows]]
                written = self.schema_of(entries.column("_SCHEMA_ID")[int(kept[0])].as_py())
                keep[kept] = indexes.keep(entries, kept.tolist(), written)
        return keep

    def _ranges(
        self, entries: pa.Table, wanted: set[str] | None
    ) -> Iterator[tuple[npt.NDArray[np.int64], dict[str, ColumnRange]]]:
        """The column ranges from metadata, for each group of files with the same schema version and statistics columns."""
        if not entries.num_rows:
            return
        values = decode_rows(entries.column("_PARTITION"), self.schema.partition_types)
        for rows, schema_id, stats_columns in stats_groups(entries):
            places = pa.array(rows)
            part = entries.take(places)
            ranges = value_ranges(part, self.schema, self.schema_of(schema_id), stats_columns, wanted)
            if self.schema.primary_keys:
                ranges = overlaid(key_ranges(part, self.schema), ranges)
            yield rows, {**ranges, **self._partition_ranges([column.take(places) for column in values])}

    def _matching_files(self, entries: pa.Table, where: Where) -> frozenset[str]:
        if where is None or self.schema.primary_keys:
            return frozenset()
        return frozenset(entries.filter(pa.array(self._surely_match(entries, where))).column("_FILE_NAME").to_pylist())

    def _deleted_counts(
        self, entries: pa.Table, vectors: Mapping[str, DeletionVector], sure: Mask
    ) -> npt.NDArray[np.int64]:
        """The number of deleted rows of each file, by its deletion vector; a file without a recorded number becomes unsure."""
        counts = np.zeros(entries.num_rows, np.int64)
        if vectors:
            for place, name in enumerate(entries.column("_FILE_NAME").to_pylist()):
                if name in vectors:
                    cardinality = vectors[name].place.cardinality
                    sure[place] &= cardinality is not None
                    counts[place] = cardinality or 0
        return counts

    def _pack(
        self, snapshot_id: int, entries: pa.Table, vectors: Mapping[str, DeletionVector], where: Where
    ) -> tuple[Split, ...]:
        if self.schema.primary_keys:
            return self._tree(entries, where).pack(snapshot_id, self._packer(), vectors)
        _refuse_outside(entries)
        if bucket_mode(self.schema) is BucketMode.HASH_FIXED:
            entries = in_written_order(entries)
        return self._packer().pack(snapshot_id, entries, vectors)

    def _packer(self) -> SplitPacker:
        return SplitPacker(self.options, PartitionFolders(self.home.paths, self.schema))

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
        """A mask of the groups of entries that may hold matching partitions, by their partition range and entry count."""
        types = self.schema.partition_types
        lows = decode_bounds(pa.array([stats.min_values for stats in groups], pa.binary()), types)
        highs = decode_bounds(pa.array([stats.max_values for stats in groups], pa.binary()), types)
        sizes = pa.array(counts, pa.int64())
        ranges = {}
        for index, name in enumerate(self.schema.partition_keys):
            nulls = pa.array([_count(stats.null_counts, index) for stats in groups], pa.int64())
            ranges[name] = ColumnRange(lows[index], upper_bound(highs[index], types[index]), nulls, sizes)
        return self._match(where, ranges, len(groups))

    def _partition_keep(self, entries: pa.Table, where: Where) -> Mask:
        """A mask of the entries whose partition may hold matching rows."""
        if where is None or not self.schema.partition_keys or not entries.num_rows:
            return np.ones(entries.num_rows, bool)
        encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
        values = decode_rows(encoded.dictionary, self.schema.partition_types)
        mask = self._match(where, self._partition_ranges(values), len(encoded.dictionary))
        found: Mask = mask[encoded.indices.to_numpy()]
        return found

    def _partition_ranges(self, values: Sequence[pa.Array]) -> dict[str, ColumnRange]:
        """The ranges of the partition columns, from partition values."""
        return {name: partition_range(column) for name, column in zip(self.schema.partition_keys, values, strict=True)}

    def deletion_vectors(self, snapshot: Snapshot) -> dict[str, DeletionVector]:
        """The deletion vectors of a snapshot, by the name of the data file."""
        found: dict[str, DeletionVector] = {}
        for entry in read_index_entries(self.home, snapshot):
            if entry.file.index_type == DELETION_VECTORS:
                path = self.home.paths.index(entry.file.name)
                for place in entry.file.deletion_vectors or ():
                    found[place.data_file] = DeletionVector(path, place)
        return found


def _in_buckets(entries: pa.Table) -> pa.Table:
    """Drop the entries of postponed rows, which have no bucket yet."""
    _refuse_outside(entries)
    return entries.filter(pc.not_equal(entries.column("_BUCKET"), POSTPONE_BUCKET))


def _files_total(manifests: Sequence[ManifestFile]) -> int:
    return sum(manifest.added_files - manifest.deleted_files for manifest in manifests)


def _refuse_outside(entries: pa.Table) -> None:
    if entries.num_rows and entries.column("_EXTERNAL_PATH").null_count < entries.num_rows:
        outside = entries.column("_EXTERNAL_PATH").drop_null()[0].as_py()
        raise InvalidError(f"data file {outside} is outside the table's folder, which is not supported")


def _count(counts: tuple[int | None, ...] | None, index: int) -> int | None:
    return counts[index] if counts is not None and index < len(counts) else None
