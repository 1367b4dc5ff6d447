"""Manifests of a primary-key table without data files, for tests of planning, which reads metadata only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, entries_to_columns
from lakelet.format.rows.binary_row import encode_row
from lakelet.model.data_file import DataFile, DeletionVectorRange, IndexFile, Stats
from lakelet.model.manifest import EntryKind, IndexManifestEntry, ManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import TableOptions
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths

Values = Mapping[str, tuple[Any, Any]]


@dataclass
class KeyedManifests:
    """Files described by their key ranges and value ranges, a commit at a time."""

    schema: TableSchema
    home: TableHome = field(default_factory=lambda: TableHome(MemoryStore(), TablePaths.of("d", "t")))
    versions: dict[int, TableSchema] = field(default_factory=dict)
    manifests: list[ManifestFile] = field(default_factory=list)
    vectors: dict[str, int | None] = field(default_factory=dict)
    snapshots: int = 0

    def __post_init__(self) -> None:
        self.versions[self.schema.id] = self.schema

    def evolve(self, schema: TableSchema) -> None:
        self.schema = replace(schema, id=len(self.versions))
        self.versions[self.schema.id] = self.schema

    def entry(
        self,
        name: str,
        low: Sequence[Any],
        high: Sequence[Any],
        *,
        values: Values | None = None,
        key_stats: Values | None = None,
        partition: Sequence[Any] = (),
        level: int = 0,
        bucket: int = 0,
        buckets: int = 1,
        rows: int = 10,
        deletes: int | None = 0,
        size: int = 100,
        sequence: int = 0,
        kind: EntryKind = EntryKind.ADD,
    ) -> ManifestEntry:
        """A file whose keys lie between `low` and `high`; `values` are the ranges its statistics give of some columns."""
        schema = self.schema
        types = [one.type for one in schema.trimmed_key_fields]
        stats, named = NO_STATS, tuple(values or ())
        if values is not None:
            stats = _stats(values, [schema.field(name).type for name in values])
        file = DataFile(
            name,
            size,
            rows,
            encode_row(list(low), types),
            encode_row(list(high), types),
            NO_STATS if key_stats is None else _stats(key_stats, types),
            stats,
            sequence,
            sequence + rows - 1,
            schema.id,
            level,
            delete_row_count=deletes,
            value_stats_columns=named,
        )
        encoded = encode_row(list(partition), schema.partition_types) if partition else EMPTY_ROW
        return ManifestEntry(kind, encoded, bucket, buckets, file)

    def commit(self, *entries: ManifestEntry) -> Snapshot:
        """A snapshot with these entries added to what there was."""
        settings = ManifestSettings.of(TableOptions({}))
        files = ManifestFiles(self.home, settings, self.schema.partition_types, self.schema.id)
        base, _ = files.write_list(self.manifests)
        new = files.write_entries(entries_to_columns(entries))
        delta, _ = files.write_list(new)
        self.manifests += new
        self.snapshots += 1
        index = None
        if self.vectors:
            places = [DeletionVectorRange(name, 1, 2, count) for name, count in self.vectors.items()]
            file = IndexFile("DELETION_VECTORS", "index-x", 9, len(places), tuple(places))
            index = files.write_index_manifest(
                encode_index_manifest([IndexManifestEntry(EntryKind.ADD, EMPTY_ROW, 0, file)], codec="null")
            )
        return Snapshot(
            self.snapshots, self.schema.id, base, delta, "u", 1, CommitKind.APPEND, 0, None, None, index_manifest=index
        )

    def planner(self) -> Planner:
        return Planner(self.home, self.schema, self.versions.__getitem__, TableOptions(self.schema.options))


def _stats(values: Values, types: Sequence[Any]) -> Stats:
    lows, highs = [low for low, _ in values.values()], [high for _, high in values.values()]
    return Stats(encode_row(lows, types), encode_row(highs, types), (0,) * len(lows))
