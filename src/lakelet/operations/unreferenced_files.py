"""Remove orphan files, and drop files from tables that are named but missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lakelet.commit.retention.orphans import OrphanReport
from lakelet.table import Table
from lakelet.table.time_arguments import Age

DEFAULT_AGE = "1 d"


@dataclass(frozen=True, slots=True)
class RemoveOrphanFiles:
    """Files to remove: those last changed before `older_than`, for younger ones may be about to be committed."""

    older_than: Age = DEFAULT_AGE
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class TableOrphans:
    """The orphan files of one table."""

    table: str
    report: OrphanReport


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A data file that a table names and the store lacks, and the snapshot that removes it from the table."""

    table: str
    path: str
    snapshot_id: int | None


def remove_orphan_files(
    tables: Iterable[Table], request: RemoveOrphanFiles, done: Callable[[TableOrphans], None] | None = None
) -> tuple[TableOrphans, ...]:
    """Removes the orphan files of tables one by one; `done` is called after each."""
    found = []
    for table in tables:
        report = table.remove_orphan_files(request.older_than, dry_run=request.dry_run)
        found.append(TableOrphans(table.name, report))
        if done is not None:
            done(found[-1])
    return tuple(found)


def remove_missing_files(tables: Iterable[Table], *, dry_run: bool = False) -> tuple[MissingFile, ...]:
    """Remove the data files that are missing in the store from tables; their rows are lost."""
    found: list[MissingFile] = []
    for table in tables:
        missing = table.remove_unexisting_files(dry_run=dry_run)
        number = None if missing.snapshot is None else missing.snapshot.id
        found += [MissingFile(table.name, path, number) for path in missing.paths]
    return tuple(found)
