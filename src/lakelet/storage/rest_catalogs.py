"""The Iceberg REST catalogs that tables may be published in: those that the program gave to `connect()`.

A table's options say in which catalog it is published, and they lie in the warehouse, where anybody may have written them. So
they choose among the program's catalogs, by address, and give neither addresses that the program does not know nor secrets.
`TableHome.rest_catalogs` has the program's; it is left out of pickles, since it holds secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class RestTable:
    """A table in a REST catalog. `folder` has its manifest lists, by which it is known to be this table; `properties` are those
    that it gets there."""

    uri: str
    warehouse: str | None
    database: str
    name: str
    folder: str
    location: str
    properties: Mapping[str, str]

    @property
    def shown(self) -> str:
        """The table and its catalog, for messages."""
        return f"{self.database}.{self.name} in the REST catalog {self.uri}"


IsLive = Callable[[int, Mapping[str, str]], bool]
"""Whether an Iceberg snapshot, by its id and summary, was made of a snapshot that the table has."""


class RestCatalogs(Protocol):
    """The catalogs of one program."""

    def check(self, uri: str, warehouse: str | None) -> None:
        """InvalidError unless the program gave a REST catalog of this address."""

    def bring(self, table: RestTable, metadata: Mapping[str, Any], is_live: IsLive) -> None:
        """Make the table in the catalog what the metadata says; nothing to do where it shows a newer version that `is_live`.

        InvalidError where the program gave no such catalog, or another table has the name.
        """

    def withdraw(self, table: RestTable) -> None:
        """Drop the table from the catalog, not its files; nothing to do where the name is another table's or nobody's."""
