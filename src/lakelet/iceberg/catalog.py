"""One Iceberg catalog: namespaces, tables, and making, renaming and dropping them. The catalog itself is pyiceberg's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, ValidationError
from pyiceberg.table import Table

from lakelet.errors import CorruptionError, InvalidError
from lakelet.iceberg.library_errors import lakelet_errors
from lakelet.iceberg.table import IcebergTable, newest_version


class IcebergCatalog:
    """A catalog by its name and pyiceberg's properties for it. It is opened when it is first asked."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self.properties = dict(properties)

    def __repr__(self) -> str:
        # Properties may hold secrets.
        return f"IcebergCatalog({self.name!r})"

    @cached_property
    def library(self) -> Catalog:
        """pyiceberg's catalog, for this package."""
        kind = self.properties.get("type")
        known = sorted(one.value for one in AVAILABLE_CATALOGS)
        if kind is not None and kind.lower() not in known:
            raise InvalidError(f"catalog {self.name}: type {kind!r} is unknown; there are {', '.join(known)}")
        with lakelet_errors(f"catalog {self.name}"):
            try:
                return load_catalog(self.name, **self.properties)
            except ValueError as error:
                if "URI missing" in str(error):
                    raise InvalidError(f"catalog {self.name}: expected the property 'uri', its address") from error
                raise

    def check(self) -> None:
        """Opens the catalog and asks it something; an error of ours where it cannot be used."""
        self.namespaces()

    def namespaces(self) -> list[str]:
        """The names of all databases of the first level."""
        with lakelet_errors(f"catalog {self.name}"):
            return sorted(".".join(parts) for parts in self.library.list_namespaces())

    def namespace_exists(self, name: str) -> bool:
        """Whether there is a database of that name, which may be of several levels."""
        with lakelet_errors(f"database {self.name}.{name}"):
            return self.library.namespace_exists(name)

    def create_namespace(self, name: str, *, if_not_exists: bool = False) -> None:
        """Makes a database."""
        with lakelet_errors(f"database {self.name}.{name}"):
            if if_not_exists:
                self.library.create_namespace_if_not_exists(name)
            else:
                self.library.create_namespace(name)

    def drop_namespace(self, name: str) -> None:
        """Removes an empty database."""
        with lakelet_errors(f"database {self.name}.{name}"):
            self.library.drop_namespace(name)

    def tables(self, namespace: str) -> list[str]:
        """The names of a database's tables."""
        with lakelet_errors(f"database {self.name}.{namespace}"):
            return sorted(parts[-1] for parts in self.library.list_tables(namespace))

    def table(self, name: str) -> IcebergTable:
        """The table `database.table`; NotFoundError where there is none."""
        parts = name.split(".")
        if len(parts) < 2 or not all(parts):
            raise InvalidError(f"table name {name!r}: expected database.table")
        return IcebergTable(self.name, self._load(name))

    def table_exists(self, name: str) -> bool:
        """Whether there is a table of that name."""
        with lakelet_errors(f"table {self.name}.{name}"):
            library = self.library
            try:
                library.load_table(name)
            except NoSuchTableError:
                return False
            except (ValueError, ValidationError, FileNotFoundError):
                # The catalog knows it, and says no more of its metadata than that it cannot be read.
                return True
            return True

    def _load(self, name: str) -> Table:
        with lakelet_errors(f"table {self.name}.{name}"):
            library = self.library
            try:
                return newest_version(library, name)
            except (ValueError, ValidationError) as error:
                said = "; ".join(line.strip() for line in str(error).splitlines()[:3])
                raise CorruptionError(f"table {self.name}.{name}: its metadata cannot be understood: {said}") from error

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Takes a table out of the catalog; its files go with `purge`."""
        with lakelet_errors(f"table {self.name}.{name}"):
            if purge:
                self.library.purge_table(name)
            else:
                self.library.drop_table(name)

    def rename_table(self, name: str, new_name: str) -> None:
        """Gives a table another name."""
        with lakelet_errors(f"table {self.name}.{name}"):
            self.library.rename_table(name, new_name)
