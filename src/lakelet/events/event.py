"""The changes of tables that are published, one class each.

An event says which table it is about, on which branch, and what the change made. It is published after the change is committed
and says nothing of changes that other processes make. An interrupted change is told as a state that nobody knows.
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
    """A table was made."""


@dataclass(frozen=True, slots=True)
class TableReplaced(TableEvent):
    """Another table, or the same one with other columns and rows, has the name now."""


@dataclass(frozen=True, slots=True)
class TableDropped(TableEvent):
    """A table is no more."""


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
    """An older snapshot is the newest now. Of a native table the later ones are gone with their tags, and their ids are used
    again."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class FastForwarded(TableEvent):
    """The branch took over the snapshots of another, of a native table with its schemas and tags."""

    source: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SnapshotsExpired(TableEvent):
    """Snapshots are gone, oldest first."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionsExpired(TableEvent):
    """Partitions were dropped for their age, by commits that were published before; each by the text of its columns."""

    partitions: tuple[Mapping[str, str | None], ...]
    snapshot_id: int | None


# ---------------------------------------------------------------- tags and branches


@dataclass(frozen=True, slots=True)
class TagCreated(TableEvent):
    """A tag was made."""

    tag: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class TagReplaced(TableEvent):
    """A tag names another snapshot, or keeps it for another time."""

    tag: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class TagRenamed(TableEvent):
    """A tag has another name."""

    tag: str
    new_tag: str


@dataclass(frozen=True, slots=True)
class TagDeleted(TableEvent):
    """A tag is gone."""

    tag: str


@dataclass(frozen=True, slots=True)
class BranchCreated(TableEvent):
    """The branch of the event was made, empty where it has no snapshot."""

    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class BranchRenamed(TableEvent):
    """The branch of the event has another name now."""

    new_branch: str


@dataclass(frozen=True, slots=True)
class BranchDeleted(TableEvent):
    """The branch of the event is gone."""


# ---------------------------------------------------------------- what nobody knows


@dataclass(frozen=True, slots=True)
class StateUnknown(TableEvent):
    """A change was stopped, or the store or catalog did not say whether it was carried out: the table may be what it was, what it
    was to become, or in between. Whoever remembers anything of the table looks again."""

    operation: str
