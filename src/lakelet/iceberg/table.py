"""An Iceberg table in the version that was loaded. Changes go through `transaction` and `schema/alteration`."""

from __future__ import annotations

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.refs import SnapshotRefType

from lakelet.errors import ConflictError
from lakelet.events import TableFormat, TableName
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.uncached import UNCACHED


class IcebergTable:
    """A table of a catalog, in the version that was loaded."""

    def __init__(self, catalog: str, library: Table, source: IcebergMetadataSource = UNCACHED) -> None:
        self.catalog = catalog
        self.library = library
        # The source of all other metadata, and of newer versions.
        self.source = source.of_table(catalog, library.name())

    def __repr__(self) -> str:
        return f"IcebergTable({self.full_name!r})"

    @property
    def name(self) -> str:
        """database.table."""
        return ".".join(self.library.name())

    @property
    def full_name(self) -> str:
        """catalog.database.table."""
        return f"{self.catalog}.{self.name}"

    @property
    def table_name(self) -> TableName:
        """The table as events name it."""
        return TableName(TableFormat.ICEBERG, self.name, self.location, catalog=self.catalog)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata, for this package."""
        return self.library.metadata

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of the current schema."""
        return tuple(field.name for field in self.metadata.schema().fields)

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.properties)

    @property
    def location(self) -> str:
        """The folder of its files."""
        return self.metadata.location

    @property
    def format_version(self) -> int:
        """The version of Iceberg's format that it has."""
        return int(self.metadata.format_version)

    @property
    def spec_id(self) -> int:
        """The partition spec that rows are written by."""
        return self.metadata.default_spec_id

    def snapshot_id(self, branch: str | None = None) -> int | None:
        """The newest snapshot of a branch, None where it has none."""
        if branch is None:
            return self.metadata.current_snapshot_id
        found = self.metadata.refs.get(branch)
        return None if found is None else found.snapshot_id

    def branch_names(self) -> list[str]:
        """Its branches; main is one as soon as it has a snapshot."""
        return self._refs(SnapshotRefType.BRANCH)

    def tag_names(self) -> list[str]:
        """Its tags."""
        return self._refs(SnapshotRefType.TAG)

    def row_count(self) -> int | None:
        """The row count in the summary of main's newest snapshot; None where it has none."""
        snapshot = self.metadata.current_snapshot()
        if snapshot is None:
            return 0
        text = None if snapshot.summary is None else snapshot.summary.additional_properties.get("total-records")
        return int(text) if text is not None and text.isdigit() else None

    def _refs(self, kind: SnapshotRefType) -> list[str]:
        return sorted(name for name, ref in self.metadata.refs.items() if ref.snapshot_ref_type == kind)

    def version_json(self) -> str:
        """This version of the table, for a process that has a catalog of its own."""
        return self.metadata.model_dump_json()

    def at_version(self, text: str) -> IcebergTable:
        """The table in the version of another process, given as its `version_json`."""
        own = self.library
        metadata = TableMetadataUtil.parse_raw(text)
        then = Table(own.name(), metadata, own.metadata_location, own.io, own.catalog, own.config)
        return IcebergTable(self.catalog, then, self.source)

    def reloaded(self) -> IcebergTable:
        """The current version of the table; ConflictError where another table has its name by now."""
        with lakelet_errors(f"table {self.full_name}"):
            now = self.source.table(self.library.catalog, self.library.name())
        if now.metadata.table_uuid != self.metadata.table_uuid:
            raise ConflictError(f"table {self.full_name} was dropped and made anew meanwhile")
        return IcebergTable(self.catalog, now, self.source)
