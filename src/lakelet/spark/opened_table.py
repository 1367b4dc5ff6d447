"""A table handle for a Spark job: opened once on the driver, sent to executors as a small frozen value.

`options` may hold what `lakelet.connect` takes (such as `s3.endpoint`) and table options that hold for this job alone.
Credentials travel inside pickled values only; no plan and no log shows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.options import (
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    TableOptions,
    check_options,
)
from lakelet.options.connection import CATALOG_PREFIX, CONNECTION_OPTIONS
from lakelet.spark.opened_lake import open_lake
from lakelet.storage.home import TableHome
from lakelet.table import Table
from lakelet.table.read.table_scan import TableScan

_CONNECTION = frozenset(option.name for option in CONNECTION_OPTIONS)
# Prefixes of options that one job may set: file formats, buffers, scans. All others decide where rows go, which rows
# are visible, or what commits do, and are fixed by the table.
_FOR_ONE_JOB = (
    "data-file.prefix",
    "dynamic-bucket.",
    "file-index.",
    "file.",
    "lookup.",
    "metadata.stats",
    "orc.",
    "parquet.",
    "read.",
    "scan.",
    "source.split.",
    "target-file-size",
    "write-buffer",
    "write.batch",
)


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """Where the table is, on which branch, and the options that this job adds to its own. `uuid` distinguishes it from
    another table created under its name meanwhile."""

    name: str
    home: TableHome
    extra: Mapping[str, str]
    uuid: str | None

    @property
    def table(self) -> Table:
        """The table for work on the driver."""
        return Table(self.name, self.home)

    def schema(self) -> TableSchema:
        """The newest schema with the job's options."""
        return self.with_options(latest_schema(self.home))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        *,
        version: int | str | None = None,
        timestamp: datetime | str | int | None = None,
        tag: str | None = None,
    ) -> TableScan:
        """A scan of the version that is named, or that the job's options name, or of the newest."""
        if version is None and timestamp is None and tag is None:
            version, timestamp, tag = self._named_version()
        scan = self.table.scan(columns, where, version=version, timestamp=timestamp, tag=tag)
        if scan.fallback is not None:
            raise InvalidError(
                f"{self.name}: partitions of this table are filled in from another branch ('scan.fallback-branch'), which Spark "
                "does not read here: read it by scan(), or one branch at a time once the option is reset"
            )
        return replace(scan, schema=self.with_options(scan.schema))

    def _named_version(self) -> tuple[int | str | None, str | int | None, str | None]:
        options = TableOptions({key: text for key, text in self.extra.items() if key.startswith("scan.")})
        number, millis = options.get(SCAN_SNAPSHOT_ID), options.get(SCAN_TIMESTAMP_MILLIS)
        version = number if number is not None else options.get(SCAN_VERSION)
        return version, millis if millis is not None else options.get(SCAN_TIMESTAMP), options.get(SCAN_TAG_NAME)

    def with_options(self, schema: TableSchema) -> TableSchema:
        """A schema of the table with the job's options."""
        return replace(schema, options={**schema.options, **self.extra}) if self.extra else schema


def open_table(
    warehouse: str | os.PathLike[str],
    name: str,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
) -> OpenedTable:
    """The table of that name; NotFoundError where it or the branch is not there."""
    given = {str(key): str(value) for key, value in (options or {}).items()}
    connection = {key: value for key, value in given.items() if key in _CONNECTION}
    others = {key: value for key, value in given.items() if key not in _CONNECTION}
    # Catalogs of Iceberg tables are known beside the tables of the lake and concern none of them.
    extra = {key: value for key, value in others.items() if not key.startswith(CATALOG_PREFIX)}
    check_options(extra)
    table = open_lake(warehouse, connection).table(name)
    home = table.home
    # Before anything else is read: what is read later may be another table's, which the commit then finds out.
    uuid = table_uuid(home)
    if branch is not None:
        home = home.on_branch(branch)
        if not schema_ids(home):
            there = ", ".join(table.branch_names()) or "none"
            raise NotFoundError(f"branch {branch!r} is not in {name}; there are {there}")
    if home.store.location.startswith("memory:"):
        raise InvalidError(f"{home.store.location}: Spark's executors cannot reach the memory of this process")
    opened = OpenedTable(name, home, extra, uuid)
    _check_extra(extra, latest_schema(home).options)
    return opened


def _check_extra(extra: Mapping[str, str], stored: Mapping[str, str]) -> None:
    """Refuses options that would make one job route, merge or commit rows differently from all others."""
    for key, text in extra.items():
        if not key.startswith(_FOR_ONE_JOB) and stored.get(key) != text:
            raise InvalidError(
                f"option '{key}' = '{text}' cannot hold for one job: it belongs to the table (set_options)"
            )
