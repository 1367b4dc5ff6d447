"""Plan the compaction of an append table. A pure policy: files in, groups of files to merge out.

    on demand      small files (below 0.7 of the target size), and files of which much is deleted, are packed into groups of about
                   twice the target; a last group of too few files waits
    full           the same, but every group of two files is merged, and every file with deleted rows is rewritten
    after a write  by tiers of rows, for a table that gets many small commits

Rows of a table with buckets have an order, that of their sequence numbers, and only neighbours are merged there. Files
whose numbers overlap, since two writers wrote concurrently, are never separated. Without buckets there is no order, and the
smallest files are merged first.

    tier of n rows    floor(log n), to the base of compaction.min.file-num; here 5

    tiers    3 2 2 1 1 1 1 0 0 0 0 | 0      the fifth file of tier 0 makes one of tier 1,
    tiers    3 2 2 1 1 1 1 | 1              which, being the fifth there, makes one of tier 2 after the next write

Files are merged only if a higher tier comes out, so that a row is rewritten at most once per tier, however many commits there
are. Tiers are by rows and not by bytes, for small files shrink when they are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lakelet.compact.task import CompactionTask
from lakelet.format.data.file_settings import FileSettings
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.split import DeletionVector
from lakelet.options import (
    COMPACTION_DELETE_RATIO_THRESHOLD,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_MIN_FILE_NUM,
    SOURCE_SPLIT_OPEN_FILE_COST,
    TableOptions,
)

Group = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Files that stay together: one, or several whose sequence numbers overlap."""

    files: Group
    size: int
    rows: int
    must: bool


@dataclass(frozen=True, slots=True)
class AppendPolicy:
    """The policy of a table. `newest_schema` is the version that files are rewritten in."""

    target_bytes: int
    open_bytes: int
    min_files: int
    delete_ratio: float
    rewrites_all: bool
    keeps_order: bool
    newest_schema: int

    @classmethod
    def of(cls, schema: TableSchema) -> AppendPolicy:
        """The policy of a table's options."""
        options = TableOptions(schema.options)
        return cls(
            target_bytes=FileSettings.of(schema).target_bytes,
            open_bytes=options.get(SOURCE_SPLIT_OPEN_FILE_COST),
            min_files=max(2, options.get(COMPACTION_MIN_FILE_NUM)),
            delete_ratio=options.get(COMPACTION_DELETE_RATIO_THRESHOLD),
            rewrites_all=options.get(COMPACTION_FORCE_REWRITE_ALL_FILES),
            keeps_order=bucket_mode(schema) is BucketMode.HASH_FIXED,
            newest_schema=schema.id,
        )

    @property
    def small_bytes(self) -> int:
        """Files below this size are small. It is below the target, since a file closed at its target may be smaller."""
        return self.target_bytes // 10 * 7

    def pick(self, files: Sequence[DataFile], deleted: Mapping[str, int | None], *, full: bool) -> list[Group]:
        """The groups of one bucket's files. `deleted` gives the number of deleted rows of a file; None: unknown."""
        found: list[Group] = []
        for stretch in self._stretches(files, deleted, full=full):
            found.extend(self._packed(stretch, full=full))
        return found

    def pick_inline(self, files: Sequence[DataFile], deleted: Mapping[str, int | None]) -> list[Group]:
        """The groups that are worth merging right after a write."""
        pieces = [
            None if any(not self._is_small(file) for file in chain) else self._piece(chain, deleted, must=False)
            for chain in self._chains(files)
        ]
        if not self.keeps_order:
            pieces.sort(key=lambda piece: piece.rows if piece else 0)
        found: list[Group] = []
        for tier in sorted({self._tier(piece.rows) for piece in pieces if piece}):
            left: list[_Piece | None] = []
            for joins, run in groupby(pieces, key=lambda piece: piece is not None and self._tier(piece.rows) <= tier):
                members = list(run)
                group = tuple(file for piece in members if piece for file in piece.files)
                rows = sum(piece.rows for piece in members if piece)
                if joins and len(group) >= self.min_files and rows >= self.min_files ** (tier + 1):
                    found.append(group)
                    left.append(None)
                else:
                    left.extend(members)
            pieces = left
        return found

    def _stretches(
        self, files: Sequence[DataFile], deleted: Mapping[str, int | None], *, full: bool
    ) -> Iterator[list[_Piece]]:
        """Pieces that may be merged, in the order of their rows."""
        chosen = {
            file.name: self._is_small(file) or self._must(file, deleted, full=full)
            for file in files
            if self.can_rewrite(file)
        }

        def piece(chain: Group) -> _Piece:
            return self._piece(
                chain, deleted, must=any(file.name in deleted for file in chain) or (full and self.rewrites_all)
            )

        chains = self._chains(files)
        if self.keeps_order:
            for joins, run in groupby(chains, key=lambda chain: all(chosen.get(file.name, False) for file in chain)):
                if joins:
                    yield [piece(chain) for chain in run]
            return
        pieces = sorted((piece(chain) for chain in chains if chosen.get(chain[0].name)), key=lambda one: one.size)
        # Files with deleted rows do not wait until there are enough others.
        yield [one for one in pieces if one.must or full]
        yield [one for one in pieces if not one.must and not full]

    def _packed(self, stretch: Sequence[_Piece], *, full: bool) -> Iterator[Group]:
        held: list[DataFile] = []
        weight, must = 0, False
        # A run that takes all there is need not make groups smaller only because their files are many.
        opening = 0 if full else self.open_bytes
        for piece in stretch:
            held.extend(piece.files)
            weight += piece.size + opening * len(piece.files)
            must |= piece.must
            if len(held) > 1 and weight >= 2 * self.target_bytes:
                yield tuple(held)
                held, weight, must = [], 0, False
        if must or len(held) >= (2 if full else self.min_files):
            yield tuple(held)

    def _chains(self, files: Sequence[DataFile]) -> list[Group]:
        if not self.keeps_order:
            return [(file,) for file in files]
        chains: list[list[DataFile]] = []
        reach = -1
        for file in sorted(files, key=lambda file: file.min_sequence):
            if chains and file.min_sequence <= reach:
                chains[-1].append(file)
            else:
                chains.append([file])
            reach = max(reach, file.max_sequence)
        return [tuple(chain) for chain in chains]

    def _piece(self, chain: Group, deleted: Mapping[str, int | None], *, must: bool) -> _Piece:
        # A file without live rows counts as one row, so that such files are removed, too.
        rows = sum(max(1, file.row_count - (deleted.get(file.name) or 0)) for file in chain)
        return _Piece(chain, sum(file.size for file in chain), rows, must)

    def _tier(self, rows: int) -> int:
        tier, bound = 0, self.min_files
        while bound <= rows:
            tier, bound = tier + 1, bound * self.min_files
        return tier

    def _is_small(self, file: DataFile) -> bool:
        return file.size < self.small_bytes and self.can_rewrite(file)

    def can_rewrite(self, file: DataFile) -> bool:
        """Whether a file may be replaced by one of this schema."""
        # A newer schema may have columns that a rewrite in this one would lose; the next compaction knows them.
        return file.schema_id <= self.newest_schema and file.external_path is None

    def _must(self, file: DataFile, deleted: Mapping[str, int | None], *, full: bool) -> bool:
        if full and self.rewrites_all:
            return True
        if file.name not in deleted:
            return False
        count = deleted[file.name]
        return full or count is None or count > file.row_count * self.delete_ratio


def append_tasks(
    entries: Iterable[ManifestEntry],
    schema: TableSchema,
    *,
    snapshot_id: int,
    vectors: Mapping[str, DeletionVector],
    full: bool,
) -> list[CompactionTask]:
    """The tasks of these live entries of a snapshot, which include all files of each bucket."""
    policy, deleted = AppendPolicy.of(schema), _deleted(vectors)
    return [
        _task(snapshot_id, first, group, vectors)
        for first, files in _buckets(entries)
        for group in policy.pick(files, deleted, full=full)
    ]


def inline_append_tasks(
    entries: Iterable[ManifestEntry],
    schema: TableSchema,
    *,
    snapshot_id: int,
    vectors: Mapping[str, DeletionVector],
) -> list[CompactionTask]:
    """The tasks of a write's inline compaction, among the live entries of the partitions that it touched."""
    policy, deleted = AppendPolicy.of(schema), _deleted(vectors)
    return [
        _task(snapshot_id, first, group, vectors)
        for first, files in _buckets(entries)
        for group in policy.pick_inline(files, deleted)
    ]


def cluster_tasks(
    entries: Iterable[ManifestEntry],
    schema: TableSchema,
    *,
    snapshot_id: int,
    vectors: Mapping[str, DeletionVector],
) -> list[CompactionTask]:
    """The tasks of a clustering: all files of a partition together, except those that this schema cannot rewrite."""
    policy = AppendPolicy.of(schema)
    groups = [(first, tuple(filter(policy.can_rewrite, files))) for first, files in _buckets(entries)]
    return [_task(snapshot_id, first, files, vectors) for first, files in groups if files]


def _deleted(vectors: Mapping[str, DeletionVector]) -> dict[str, int | None]:
    return {name: vector.place.cardinality for name, vector in vectors.items()}


def _buckets(entries: Iterable[ManifestEntry]) -> Iterator[tuple[ManifestEntry, list[DataFile]]]:
    """The files of each bucket, with an entry that identifies the bucket."""
    buckets: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
    for entry in entries:
        buckets.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry)
    for members in buckets.values():
        yield members[0], [entry.file for entry in members]


def _task(snapshot_id: int, of: ManifestEntry, files: Group, vectors: Mapping[str, DeletionVector]) -> CompactionTask:
    own = {file.name: vectors[file.name] for file in files if file.name in vectors}
    return CompactionTask(snapshot_id, of.partition, of.bucket, of.total_buckets, files, vectors=own)
