"""An Iceberg table as it was when it was loaded. What changes it goes through `transaction` and `altering`."""

from __future__ import annotations

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lakelet.errors import ConflictError
from lakelet.iceberg.library_errors import lakelet_errors


class IcebergTable:
    """A table of a catalog, in the version its metadata had when it was loaded."""

    def __init__(self, catalog: str, library: Table) -> None:
        self.catalog = catalog
        self.library = library

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
    def metadata(self) -> TableMetadata:
        """The metadata, for this package."""
        return self.library.metadata

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of the current schema."""
        return tuple(field.name for field in self.metadata.schema().fields)

    def reloaded(self) -> IcebergTable:
        """The table as it is now; ConflictError where another has taken its name meanwhile."""
        with lakelet_errors(f"table {self.full_name}"):
            now = self.library.catalog.load_table(self.library.name())
        if now.metadata.table_uuid != self.metadata.table_uuid:
            raise ConflictError(f"table {self.full_name} was dropped and made anew meanwhile")
        return IcebergTable(self.catalog, now)
