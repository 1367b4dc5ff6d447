"""Events of table changes, one class each.

An event says which table it is about, on which branch, and what the change made. It is published after the change is committed
and covers no changes of other processes. An interrupted change is published as `StateUnknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from lakelet.model.snapshot import Snapshot


class TableFormat(Enum):
    """Whose metadata a table has."""

    NATIVE = "native"
    ICEBERG = "iceberg"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table: its name `database.table`, where that name holds, which is the warehouse of a native table and the catalog of an
    Iceberg table, and its folder. Where an Iceberg table is only renamed or dropped nobody asks for its folder."""

    format: TableFormat
    identifier: str
    location: str | None
    warehouse: str | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class TableEvent:
    """A change of a table, or of one of its branches."""

    table: TableName
    branch: str


# ---------------------------------------------------------------- the table itself


@dataclass(frozen=True, slots=True)
class TableCreated(TableEvent):
    """A table was created."""


@dataclass(frozen=True, slots=True)
class TableReplaced(TableEvent):
    """A table was replaced: by another table, or with other columns and rows."""


@dataclass(frozen=True, slots=True)
class TableDropped(TableEvent):
    """A table was dropped."""


@dataclass(frozen=True, slots=True)
class TableRenamed(TableEvent):
    """A table is now `new`; a native one has another location too."""

    new: TableName


@dataclass(frozen=True, slots=True)
class SchemaChanged(TableEvent):
    """A schema version was added that changes columns, and possibly options as well."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class OptionsChanged(TableEvent):
    """Options (of an Iceberg table its properties) were changed, and no column. An Iceberg table's schema stays the same one."""

    schema_id: int


# ---------------------------------------------------------------- snapshots


@dataclass(frozen=True, slots=True)
class Committed(TableEvent):
    """A snapshot was added. That of a native table comes whole; `operation` is its commit kind, or Iceberg's operation."""

    snapshot_id: int
    operation: str
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class RolledBack(TableEvent):
    """The table was rolled back to an older snapshot. Of a native table the later ones are deleted with their tags, and their ids
    are reused."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class FastForwarded(TableEvent):
    """The branch took over the snapshots of another, of a native table with its schemas and tags."""

    source: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SnapshotsExpired(TableEvent):
    """Snapshots have expired, oldest first."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionsExpired(TableEvent):
    """Partitions have expired, by commits that were published before; each by the text of its columns."""

    partitions: tuple[Mapping[str, str | None], ...]
    snapshot_id: int | None


# ---------------------------------------------------------------- tags and branches


@dataclass(frozen=True, slots=True)
class TagCreated(TableEvent):
    """A tag was created."""

    tag: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class TagReplaced(TableEvent):
    """A tag refers to another snapshot, or has another retention time."""

    tag: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class TagRenamed(TableEvent):
    """A tag was renamed."""

    tag: str
    new_tag: str


@dataclass(frozen=True, slots=True)
class TagDeleted(TableEvent):
    """A tag was deleted."""

    tag: str


@dataclass(frozen=True, slots=True)
class BranchCreated(TableEvent):
    """The branch of the event was created, empty where it has no snapshot."""

    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class BranchRenamed(TableEvent):
    """The branch of the event was renamed."""

    new_branch: str


@dataclass(frozen=True, slots=True)
class BranchDeleted(TableEvent):
    """The branch of the event was deleted."""


# ---------------------------------------------------------------- unknown outcomes


@dataclass(frozen=True, slots=True)
class StateUnknown(TableEvent):
    """The outcome of a change is unknown: it was interrupted, or the store or catalog did not answer. The table may be in its old
    state, in the new one, or in between; whoever caches anything of the table must revalidate it."""

    operation: str
