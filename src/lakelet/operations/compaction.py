"""Compaction of one table or many, merging of manifests, and rescaling of buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakelet.catalog.lake import Lake
from lakelet.compact.progress import CompactionProgress, Progress
from lakelet.errors import InvalidError
from lakelet.operations.table_choice import TableChoice, chosen_tables
from lakelet.table import Table
from lakelet.table.time_arguments import Length

PartitionSpec = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Compact:
    """A compaction: all files of the partitions where it is `full`, otherwise those that are due by the table's options.

    `partitions` or `where` narrow it down, as does `idle_for`; `options` override those of the table for this call. With an
    `order_strategy` all rows are rewritten in the order of the columns `order_by`.
    """

    full: bool = False
    partitions: tuple[PartitionSpec, ...] | None = None
    where: str | None = None
    idle_for: Length | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    order_strategy: str | None = None
    order_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compacted:
    """The snapshot of a compaction, None where nothing was due, the rows and bytes read and written, and what the changelog took:
    keys whose old rows were looked up, those that had one, rows that it tells of."""

    snapshot_id: int | None
    rows_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    looked_up: int = 0
    found: int = 0
    changelog_rows: int = 0


@dataclass(frozen=True, slots=True)
class CompactMany:
    """A compaction of several tables, one after the other."""

    choice: TableChoice = field(default_factory=TableChoice)
    compact: Compact = field(default_factory=Compact)


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """One of several tables, and the snapshot of its compaction where something was due."""

    database: str
    table: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class Rescale:
    """Another number of buckets, of one partition or all; None is the number that the table's options name."""

    buckets: int | None = None
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class Rescaled:
    """The number of buckets and the snapshot that set it, None where it was set before."""

    buckets: int
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Number and size of the data files of a table's newest version."""

    count: int
    bytes: int


def compact(table: Table, request: Compact, progress: Progress | None = None) -> Compacted:
    """Compacts a table; `progress` is called as files are rewritten."""
    if request.partitions is not None and request.where is not None:
        raise InvalidError("compact takes partitions or where, and not both")
    seen = CompactionProgress(0, 0, 0, 0, 0, 0)

    def watch(state: CompactionProgress) -> None:
        nonlocal seen
        seen = state
        if progress is not None:
            progress(state)

    snapshot = table.compact(
        request.full,
        partition=request.partitions,
        where=request.where,
        idle_for=request.idle_for,
        options=request.options,
        progress=watch,
        order_strategy=request.order_strategy,
        order_by=request.order_by,
    )
    if snapshot is None:
        return Compacted(None)
    return Compacted(
        snapshot.id, seen.rows, seen.bytes, seen.written_bytes, seen.looked_up, seen.found, seen.changelog_rows
    )


def compact_many(
    lake: Lake, request: CompactMany, done: Callable[[CompactedTable], None] | None = None
) -> tuple[CompactedTable, ...]:
    """Compacts the chosen tables one by one; `done` is called after each."""
    found = []
    for database, table in chosen_tables(lake, request.choice):
        made = compact(table, request.compact)
        found.append(CompactedTable(database, table.name.split(".", 1)[1], made.snapshot_id))
        if done is not None:
            done(found[-1])
    return tuple(found)


def compact_manifests(table: Table) -> int | None:
    """Merges the manifests of a table; the snapshot's id, or None where there was nothing to gain."""
    snapshot = table.compact_manifests()
    return None if snapshot is None else snapshot.id


def rescale(table: Table, request: Rescale) -> Rescaled:
    """Rescale a table to another number of buckets."""
    buckets = request.buckets
    if buckets is None:
        stored = table.options.get("bucket", "-1")
        if not stored.isdigit():
            raise InvalidError(f"{table.name} has no number of buckets (bucket = {stored}): say bucket_num")
        buckets = int(stored)
    snapshot = table.rescale(buckets, request.partition)
    return Rescaled(buckets, None if snapshot is None else snapshot.id)


def file_totals(table: Table) -> FileTotals:
    """Counts the data files of a table's newest version."""
    files = table.files()
    return FileTotals(len(files), sum(file.size for _, file in files))
