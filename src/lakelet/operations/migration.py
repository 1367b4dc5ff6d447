"""Migrate folders of Parquet files to tables, and copy tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.catalog.lake import Lake
from lakelet.catalog.migration import PartitionColumn
from lakelet.catalog.migration import migrate as adopt_files
from lakelet.catalog.table_copy import copy_table
from lakelet.errors import InvalidError
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class Migrate:
    """A folder of Parquet files that `target`, a table's full name, adopts."""

    folder: str
    target: str
    partitioned_by: tuple[PartitionColumn, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Migrated:
    """The snapshot of a migration, None where there was no file, and what was adopted."""

    snapshot_id: int | None
    files: int
    rows: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows of a table to copy into `target`, a table's full name, which is created where it is missing."""

    target: str
    where: str | None = None
    columns: tuple[str, ...] | None = None
    version: int | str | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The snapshot of a copy, None where there was no row, and the number of rows."""

    snapshot_id: int | None
    rows: int


def migrate(lake: Lake, request: Migrate) -> Migrated:
    """Adopt the files of a folder without rewriting them."""
    done = adopt_files(
        lake,
        request.target,
        request.folder,
        partitioned_by=list(request.partitioned_by),
        table_options=dict(request.options),
    )
    return Migrated(None if done.snapshot is None else done.snapshot.id, done.files, done.rows)


def copy(lake: Lake, source: Table, request: Copy) -> CopiedRows:
    """Copies rows of a table into another in one commit."""
    if request.target == source.name:
        raise InvalidError(f"{request.target} cannot be copied into itself")
    copied = copy_table(
        lake,
        source,
        request.target,
        where=request.where,
        columns=request.columns,
        version=request.version,
        mode="overwrite" if request.overwrite else "append",
    )
    return CopiedRows(None if copied.snapshot is None else copied.snapshot.id, copied.rows)
