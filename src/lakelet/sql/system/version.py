"""The version of a table that a system table describes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table import Table
from lakelet.table.read.named_version import named_version
from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A resolved version: the home of its files, its schema, and its snapshot, None before the first commit."""

    home: TableHome
    schema: TableSchema
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Version:
    """A requested version: a snapshot id or tag name, the newest up to a time, or a tag; the newest by default."""

    version: int | str | None = None
    timestamp: datetime | str | int | None = None
    tag: str | None = None

    @property
    def is_newest(self) -> bool:
        """Whether no version is requested."""
        return self == Version()

    def of(self, table: Table) -> TableVersion:
        """The version for reading its metadata, also of tables whose rows cannot be read here."""
        schema, snapshot = named_version(table.home, self.version, self.timestamp, self.tag)
        return TableVersion(table.home, schema, snapshot)

    def scan(self, table: Table) -> TableScan:
        """A scan of the rows of the version."""
        return table.scan(version=self.version, timestamp=self.timestamp, tag=self.tag)
