"""What `spark.read.format("lakelet-iceberg")` and `df.write.format("lakelet-iceberg")` are told, as options of Spark's own API.

    catalog                                the name of a catalog: of the lake at `warehouse`, else of pyiceberg's configuration
    catalog.type, catalog.uri …            properties of a catalog instead; `catalog` is its name then
    warehouse                              the folder or bucket of a lake
    table                                  database.table; `load("shop.orders")` and `save("shop.orders")` give it too
    branch
    version, timestamp, tag                which version to read
    columns                                the columns to read, separated by commas
    where                                  SQL over the columns
    partitionOverwriteMode                 static or dynamic: what mode("overwrite") replaces
    commit-id                              a write that is repeated under it is done once
    write.…                                table properties for this write alone

Everything else is an option of the connection to `warehouse` (`s3.endpoint`). Spark does not tell the cases of names apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.catalogs import OWN_CATALOG
from lakelet.iceberg.table import IcebergTable
from lakelet.options import CATALOG_PREFIX
from lakelet.spark.iceberg.catalogs import is_connection, open_catalog
from lakelet.spark.iceberg.table_frame import PlannedRead, planned
from lakelet.spark.source.options import listed_columns

_READ = ("version", "timestamp", "tag", "columns", "where")
_WRITE = ("partitionoverwritemode", "commit-id")
_OWN = frozenset(("catalog", "warehouse", "table", "path", "branch", *_READ, *_WRITE))
_WRITE_PREFIX = "write."


@dataclass(frozen=True, slots=True)
class IcebergSourceOptions:
    """The options of one use of the source, checked; `values` are its own."""

    table: str
    values: Mapping[str, str]
    write: Mapping[str, str]
    # Credentials may be among them.
    properties: Mapping[str, str] = field(repr=False)
    connection: Mapping[str, str] = field(repr=False)

    @staticmethod
    def of(given: Mapping[str, str]) -> IcebergSourceOptions:
        """Reads what Spark hands over; InvalidError for what is missing or unknown."""
        folded = {str(name).lower(): str(value) for name, value in given.items()}
        properties = {
            name.removeprefix(CATALOG_PREFIX): text for name, text in folded.items() if name.startswith(CATALOG_PREFIX)
        }
        values = {name: text for name, text in folded.items() if name in _OWN}
        write = {name: text for name, text in folded.items() if name.startswith(_WRITE_PREFIX)}
        others = {
            name: text
            for name, text in folded.items()
            if name not in values and name not in write and not name.startswith(CATALOG_PREFIX)
        }
        unknown = sorted(name for name in others if not is_connection(name))
        if unknown:
            raise InvalidError(f"the lakelet-iceberg source has no option {unknown[0]!r}")
        if not properties and not values.get("catalog") and not values.get("warehouse"):
            raise InvalidError(
                "the lakelet-iceberg source needs the option 'catalog', or 'catalog.type' and what goes with it, or 'warehouse'; "
                "a table made by CREATE TABLE … USING passes no options: use CREATE TEMPORARY VIEW … USING … OPTIONS (…)"
            )
        named = {folded[name].strip() for name in ("table", "path") if folded.get(name, "").strip()}
        if len(named) != 1:
            found = " and ".join(sorted(named)) or "none"
            raise InvalidError(
                f'the lakelet-iceberg source needs one table, such as load("database.table"), found {found}'
            )
        return IcebergSourceOptions(named.pop(), values, write, properties, others)

    def open(self) -> IcebergTable:
        """The table."""
        name, warehouse = self.values.get("catalog", OWN_CATALOG), self.values.get("warehouse")
        if self.properties and warehouse is None:
            return open_catalog({**self.properties, "name": name}).table(self.table)
        given = {f"{CATALOG_PREFIX}{name}.{key}": text for key, text in self.properties.items()}
        return open_catalog(name, warehouse, {**self.connection, **given}).table(self.table)

    def planned(self) -> PlannedRead:
        """What is read."""
        self._refuse((*_WRITE, *self.write), "writes", "reads")
        text = self.values.get("timestamp")
        return planned(
            self.open(),
            listed_columns(self.values.get("columns")),
            self.values.get("where"),
            self.values.get("version"),
            int(text) if text is not None and text.isdigit() else text,
            self.values.get("tag"),
            self.values.get("branch"),
        )

    def mode(self, *, overwrites: bool) -> str:
        """What a write replaces."""
        self._refuse(_READ, "reads", "writes")
        told = self.values.get("partitionoverwritemode", "static").lower()
        if told not in ("static", "dynamic"):
            raise InvalidError(f"option 'partitionOverwriteMode': expected static or dynamic, found {told!r}")
        if not overwrites:
            return "append"
        return "overwrite_partitions" if told == "dynamic" else "overwrite"

    def _refuse(self, names: tuple[str, ...], theirs: str, ours: str) -> None:
        found = [name for name in names if name in self.values or name in self.write]
        if found:
            raise InvalidError(f"option {found[0]!r} is for {theirs} and means nothing to {ours}")
