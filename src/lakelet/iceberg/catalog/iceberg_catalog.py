"""One Iceberg catalog: list, create, rename and drop namespaces and tables, through pyiceberg's catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType, infer_catalog_type
from pyiceberg.exceptions import NoSuchTableError, ValidationError
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from lakelet.cache.trace import CacheTrace
from lakelet.errors import CommitUnknownError, CorruptionError, InvalidError
from lakelet.events import StateUnknown, TableDropped, TableFormat, TableName, TableRenamed, publish
from lakelet.iceberg.catalog.library_errors import first_line, lakelet_errors
from lakelet.iceberg.commit.outcomes import Outcome, outcome_of
from lakelet.iceberg.library_internals import import_catalog
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.table_pointer import newest_location
from lakelet.iceberg.metadata.uncached import UNCACHED
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.trust.rest_catalog import CheckedRestCatalog
from lakelet.iceberg.trust.table_classes import guard

# Properties that pyiceberg takes as nested mappings, and Lakelet as dotted names: auth.basic.username.
_MAPPINGS = {"auth": "'auth.type' and 'auth.basic.username'", "ssl": "'ssl.cabundle'"}
_HEADER = "header."
_CLASS = "py-catalog-impl"
# Without an address there is nobody to ask.
_NEED_ADDRESS = (CatalogType.REST, CatalogType.HIVE, CatalogType.SQL)


class IcebergCatalog:
    """A catalog by its name and pyiceberg's properties for it, all of them. It is opened lazily."""

    def __init__(self, name: str, properties: Mapping[str, str], source: IcebergMetadataSource = UNCACHED) -> None:
        self.name = name
        self.properties = dict(properties)
        self.source = source

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
        _check_properties(self.name, self.properties)
        with lakelet_errors(f"catalog {self.name}"):
            library = self._made()
        guard(library)
        return library

    def _made(self) -> Catalog:
        """pyiceberg's catalog of the type that the properties name. pyiceberg's own factory would add the configuration of
        that name, which the properties of a file would override."""
        properties = _nested(self.properties)
        named = self.properties.get(_CLASS)
        if named is not None:
            if "type" in self.properties:
                raise InvalidError(f"catalog {self.name}: expected 'type' or '{_CLASS}', found both")
            found = import_catalog(self.name, named, properties)
            if found is None:
                raise InvalidError(f"catalog {self.name}: '{_CLASS}' = {named!r} cannot be imported")
            return found
        told = self.properties.get("type", "").lower()
        if not self.properties.get("uri") and (not told or CatalogType(told) in _NEED_ADDRESS):
            raise InvalidError(f"catalog {self.name}: expected the property 'uri', its address")
        kind = CatalogType(told) if told else infer_catalog_type(self.name, properties)
        if kind is None or kind is CatalogType.REST:
            return CheckedRestCatalog(self.name, **properties)
        return AVAILABLE_CATALOGS[kind](self.name, properties)

    def check(self) -> None:
        """Opens the catalog and sends it a request; a LakeletError where it cannot be used."""
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
        """Creates a database."""
        with lakelet_errors(f"database {self.name}.{name}"):
            if if_not_exists:
                self.library.create_namespace_if_not_exists(name)
            else:
                self.library.create_namespace(name)

    def drop_namespace(self, name: str) -> None:
        """Removes an empty database."""
        with lakelet_errors(f"database {self.name}.{name}"):
            self._carried_out(
                "the database was removed",
                lambda: self.library.drop_namespace(name),
                lambda: not self.library.namespace_exists(name),
            )

    def tables(self, namespace: str) -> list[str]:
        """The names of a database's tables."""
        with lakelet_errors(f"database {self.name}.{namespace}"):
            return sorted(parts[-1] for parts in self.library.list_tables(namespace))

    def table(
        self, name: str, *, for_queries: bool = False, cache: bool = True, trace: CacheTrace | None = None
    ) -> IcebergTable:
        """The table `database.table`; NotFoundError where there is none. For queries it may be as old as the lake's metadata
        cache is allowed to be; without `cache` everything is read from the catalog and the store. `trace`
        takes notes of what came from where."""
        parts = name.split(".")
        if len(parts) < 2 or not all(parts):
            raise InvalidError(f"table name {name!r}: expected database.table")
        own = self.source if cache else self.source.from_store()
        own = own if trace is None else own.traced(trace)
        return IcebergTable(self.name, self._load(name, own.for_queries() if for_queries else own), own)

    def table_exists(self, name: str) -> bool:
        """Whether there is a table of that name."""
        with lakelet_errors(f"table {self.name}.{name}"):
            library = self.library
            if newest_location(library, name) is not None:
                return True
            try:
                library.load_table(name)
            except NoSuchTableError:
                return False
            except (ValueError, ValidationError, FileNotFoundError):
                # The catalog knows it, and says no more of its metadata than that it cannot be read.
                return True
            return True

    def _load(self, name: str, source: IcebergMetadataSource) -> Table:
        with lakelet_errors(f"table {self.name}.{name}"):
            library = self.library
            try:
                return source.table(library, name)
            except (ValueError, ValidationError) as error:
                said = "; ".join(line.strip() for line in str(error).splitlines()[:3])
                raise CorruptionError(f"table {self.name}.{name}: its metadata cannot be understood: {said}") from error

    def drop_table(self, name: str, *, purge: bool = False) -> bool:
        """Drops a table from the catalog, with `purge` its files too, where the catalog does that; returns whether it did."""
        what, library = "the table was dropped", self.library
        with lakelet_errors(f"table {self.name}.{name}"):
            if purge:
                with suppress(NotImplementedError):
                    self._changed(name, what, lambda: library.purge_table(name), lambda: not self.table_exists(name))
                    publish(TableDropped(self.table_name(name), MAIN_BRANCH))
                    return True
            self._changed(name, what, lambda: library.drop_table(name), lambda: not self.table_exists(name))
            publish(TableDropped(self.table_name(name), MAIN_BRANCH))
            return False

    def rename_table(self, name: str, new_name: str) -> None:
        """Renames a table."""
        with lakelet_errors(f"table {self.name}.{name}"):
            self._changed(
                name,
                f"the table was renamed to {new_name}",
                lambda: self.library.rename_table(name, new_name),
                lambda: self.table_exists(new_name) and not self.table_exists(name),
            )
        publish(TableRenamed(self.table_name(name), MAIN_BRANCH, self.table_name(new_name)))

    def table_name(self, name: str) -> TableName:
        """A table as events name it, of which no more than the name is known."""
        return TableName(TableFormat.ICEBERG, name, None, catalog=self.name)

    def _changed(self, name: str, what: str, request: Callable[[], object], is_done: Callable[[], bool]) -> None:
        """Sends a request about a table, and notifies listeners where its outcome is unknown."""
        try:
            self._carried_out(what, request, is_done)
        except CommitUnknownError:
            publish(StateUnknown(self.table_name(name), MAIN_BRANCH, what))
            raise

    def _carried_out(self, what: str, request: Callable[[], object], is_done: Callable[[], bool]) -> None:
        """Sends a request. Where its response is lost, checks whether it was applied; CommitUnknownError where it was not yet:
        the catalog may still apply it."""
        try:
            request()
        except Exception as error:
            if outcome_of(error, self.library) is not Outcome.UNKNOWN:
                raise
            try:
                if is_done():
                    return
                seen = "it was not when the catalog was asked again"
            except Exception as silence:
                seen = f"it does not answer now either: {first_line(silence)}"
            raise CommitUnknownError(
                f"catalog {self.name} did not say whether {what} ({first_line(error)}), and {seen}; look before you repeat it"
            ) from error


def _check_properties(name: str, properties: Mapping[str, str]) -> None:
    """InvalidError for values that a driver would refuse with a message that shows them, for they may be secrets."""
    uri = properties.get("uri", "")
    if properties.get("type", "").lower() == "rest" and uri and not uri.lower().startswith(("http://", "https://")):
        raise InvalidError(
            f"catalog {name}: 'uri' of a REST catalog is an address that begins with http:// or https://"
        )
    for key, value in properties.items():
        if key != "token" and not key.startswith(_HEADER):
            continue
        if not value.isprintable() or not value.isascii() or value != value.strip():
            raise InvalidError(
                f"catalog {name}: {key!r} has a line break, a blank at an end or a sign that is not ASCII, which no header "
                "of HTTP takes"
            )
    plain = next((key for key in _MAPPINGS if key in properties), None)
    if plain is not None:
        raise InvalidError(f"catalog {name}: {plain!r} has members, such as {_MAPPINGS[plain]}")


def _nested(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties with `auth.basic.username` and the like as mappings."""
    found: dict[str, Any] = {}
    for key, value in properties.items():
        head, *inner = key.split(".")
        if head not in _MAPPINGS or not inner:
            found[key] = value
            continue
        at = found.setdefault(head, {})
        for one in inner[:-1]:
            at = at.setdefault(one, {})
            if not isinstance(at, dict):
                raise InvalidError(f"property {key!r} is below {one!r}, which has a value of its own")
        at[inner[-1]] = value
    return found
