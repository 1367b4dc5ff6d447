"""Parse the options of `spark.read.format("lakelet-iceberg")` and `df.write.format("lakelet-iceberg")`.

    catalog                                the name of a catalog: of the lake at `warehouse`, else of pyiceberg's configuration
    catalog.type, catalog.uri …            properties of a catalog instead; `catalog` is its name then
    warehouse                              the folder or bucket of a lake
    table, branch, version …               as `spark/source/given_options` has them
    streaming-skip-overwrite-snapshots     what a stream passes over, and likewise -delete-
    scan.mode, read.stream.… …             how a stream reads (`table/follow/settings`)
    commit-id                              idempotency key: a write repeated under it is applied once
    write.…                                table properties for this write alone

Everything else is an option of the connection to `warehouse` (`s3.endpoint`).
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
from lakelet.spark.source.given_options import GivenOptions, lower_case
from lakelet.table.follow.settings import StreamSettings, is_stream_option

_WRITE = ("commit-id",)
_WRITE_PREFIX = "write."
_SKIPS = ("streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots")


@dataclass(frozen=True, slots=True)
class IcebergSourceOptions:
    """The options of one use of the source, checked; `given` are its own."""

    table: str
    given: GivenOptions
    write: Mapping[str, str]
    # What a stream out of the table is given.
    stream: Mapping[str, str]
    # Credentials may be among them.
    properties: Mapping[str, str] = field(repr=False)
    connection: Mapping[str, str] = field(repr=False)

    @staticmethod
    def of(given: Mapping[str, str]) -> IcebergSourceOptions:
        """Parses the options that Spark passes; InvalidError for missing or unknown ones."""
        folded = lower_case(given)
        own = GivenOptions.of(given, writes=_WRITE, names=("catalog", *_SKIPS))
        properties = {
            name.removeprefix(CATALOG_PREFIX): text for name, text in folded.items() if name.startswith(CATALOG_PREFIX)
        }
        write = {name: text for name, text in folded.items() if name.startswith(_WRITE_PREFIX)}
        stream = {name: text for name, text in folded.items() if is_stream_option(name)}
        known = {**own.values, **write, **stream}
        others = {
            name: text for name, text in folded.items() if name not in known and not name.startswith(CATALOG_PREFIX)
        }
        unknown = sorted(name for name in others if not is_connection(name))
        if unknown:
            raise InvalidError(f"the lakelet-iceberg source has no option {unknown[0]!r}")
        if not properties and not own.get("catalog") and not own.get("warehouse"):
            raise InvalidError(
                "the lakelet-iceberg source needs the option 'catalog', or 'catalog.type' and what goes with it, or 'warehouse'; "
                "a table made by CREATE TABLE … USING passes no options: use CREATE TEMPORARY VIEW … USING … OPTIONS (…)"
            )
        if len(own.tables) != 1:
            found = " and ".join(own.tables) or "none"
            raise InvalidError(
                f'the lakelet-iceberg source needs one table, such as load("database.table"), found {found}'
            )
        return IcebergSourceOptions(own.tables[0], own, write, stream, properties, others)

    def open(self) -> IcebergTable:
        """The table."""
        name, warehouse = self.given.values.get("catalog", OWN_CATALOG), self.given.get("warehouse")
        if self.properties and warehouse is None:
            return open_catalog({**self.properties, "name": name}).table(self.table)
        given = {f"{CATALOG_PREFIX}{name}.{key}": text for key, text in self.properties.items()}
        return open_catalog(name, warehouse, {**self.connection, **given}).table(self.table)

    def planned(self) -> PlannedRead:
        """The planned read of the version that the options name."""
        given = self.given
        given.refuse_for_reading(tuple(self.write))
        return planned(
            self.open(),
            given.columns,
            given.get("where"),
            given.get("version"),
            given.timestamp,
            given.get("tag"),
            given.get("branch"),
        )

    def stream_settings(self) -> StreamSettings:
        """The settings of a stream; InvalidError for what only streams of native tables can do."""
        settings = StreamSettings.of({}, self.stream, keyed=False)
        wrong = {
            "read.changelog": settings.changelog,
            "consumer-id": settings.consumer is not None,
            "on-expired": settings.restarts_expired,
            "scan.bounded.watermark": settings.bounded_watermark is not None,
            "streaming.read.snapshot.delay": settings.delay_ms > 0,
            "read.stream.minRowsPerTrigger": settings.limits.min_rows is not None,
        }
        found = next((name for name, is_given in wrong.items() if is_given), None)
        if found is not None:
            raise InvalidError(
                f"option {found!r} is for tables of Lakelet's own format and not for streams of Iceberg tables"
            )
        for name in _SKIPS:
            self.flag(name)
        return settings

    def flag(self, name: str) -> bool:
        """An option that is true or false."""
        text = (self.given.get(name) or "false").lower()
        if text not in ("true", "false"):
            raise InvalidError(f"option {name!r}: expected true or false, found {text!r}")
        return text == "true"

    def mode(self, *, overwrites: bool) -> str:
        """The mode of a write: what it replaces."""
        self.given.refuse_for_writing()
        dynamic = self.given.overwrites_dynamically
        if not overwrites:
            return "append"
        return "overwrite_partitions" if dynamic else "overwrite"
