"""Resolve a name of three parts in a query: a table, one of its branches, or one of its metadata tables, at some version.

ice.shop.orders                                  the newest version of main
ice.shop.orders$branch_dev                       of a branch
ice.shop.orders FOR VERSION AS OF 38764…         a snapshot; as a text it is a branch or tag
ice.shop.orders FOR TIMESTAMP AS OF '…'          the newest at that time, on main or on the named branch
ice.shop.orders$files                            a metadata table, of a version too
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.cache.trace import CacheTrace
from lakelet.errors import InvalidError
from lakelet.iceberg.scan import IcebergScan, comparable_fields, scan_of, version_key
from lakelet.iceberg.scan.system_tables import system_table
from lakelet.iceberg.scan.versions import version_of
from lakelet.iceberg.table import IcebergTable
from lakelet.model.types import Field
from lakelet.predicate.tree import Predicate
from lakelet.sql.context import Context
from lakelet.sql.iceberg.names import iceberg_name, open_iceberg
from lakelet.sql.iceberg.table_view import IcebergView, iceberg_view
from lakelet.sql.query.conditions import pruning_predicate
from lakelet.sql.query.relation import Deferred
from lakelet.sql.query.time_travel import Travel
from lakelet.table.time_arguments import milliseconds


@dataclass(frozen=True, slots=True)
class IcebergVersion(Deferred):
    """A version of a table in a query, planned lazily."""

    table: IcebergTable
    snapshot_id: int | None = None
    ref: str | None = None
    timestamp_ms: int | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns on which conditions can be pushed down: not those that differ only in case, some of which DuckDB
        distinguishes, while conditions do not."""
        found = comparable_fields(
            self.table, snapshot_id=self.snapshot_id, ref=self.ref, timestamp_ms=self.timestamp_ms
        )
        count = Counter(name.lower() for name in self.columns)
        return tuple(one for one in found if count[one.name.lower()] == 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all its columns."""
        _, schema = version_of(self.table, snapshot_id=self.snapshot_id, ref=self.ref, timestamp_ms=self.timestamp_ms)
        return tuple(one.name for one in schema.fields)

    def check(self) -> None:
        """NotFoundError where there is no such version."""
        version_of(self.table, snapshot_id=self.snapshot_id, ref=self.ref, timestamp_ms=self.timestamp_ms)

    @property
    def key(self) -> tuple[object, ...]:
        """The cache key of the version."""
        return version_key(self.table, snapshot_id=self.snapshot_id, ref=self.ref, timestamp_ms=self.timestamp_ms)

    def view(self, context: Context, texts: Sequence[str]) -> IcebergView:
        """The view of the version pruned by the conditions, one of which every needed row satisfies."""
        kept, name = self.table.source.kept(), ("view", self.key, tuple(texts))
        found: IcebergView | None = None if kept is None else kept.get(name)
        if found is None:
            found = iceberg_view(self.scan(pruning_predicate(texts, self.fields)))
            # Credentials for another store may expire.
            if kept is not None and found.is_local:
                kept.put(name, found, found.nbytes)
        return found

    def scan(self, where: Predicate | None) -> IcebergScan:
        """The scan of the files that may have rows matching a condition."""
        return scan_of(
            self.table, snapshot_id=self.snapshot_id, ref=self.ref, timestamp_ms=self.timestamp_ms, where=where
        )


def iceberg_relation(
    context: Context, parts: Sequence[str], travel: Travel | None = None, trace: CacheTrace | None = None
) -> IcebergVersion | pa.Table:
    """The relation of a name, at the requested version; `trace` takes notes of what comes from the metadata cache."""
    name = iceberg_name(context, parts)
    table = open_iceberg(context, name, for_queries=True, trace=trace)
    version = _version(table, name.branch, travel)
    if name.system is None:
        # A missing version is reported now, while the position in the query is known.
        version.check()
        return version
    return system_table(
        table,
        name.system,
        snapshot_id=version.snapshot_id,
        ref=version.ref,
        timestamp_ms=version.timestamp_ms,
    )


def _version(table: IcebergTable, branch: str | None, travel: Travel | None) -> IcebergVersion:
    if travel is None:
        return IcebergVersion(table, ref=branch)
    if travel.timestamp is not None:
        return IcebergVersion(table, ref=branch, timestamp_ms=milliseconds(travel.timestamp))
    if isinstance(travel.version, int):
        return IcebergVersion(table, snapshot_id=travel.version)
    if branch is not None:
        raise InvalidError(
            f"{table.full_name}$branch_{branch}: expected a snapshot id as its version, found {travel.version!r}"
        )
    if travel.version is not None and travel.version.isdecimal() and travel.version not in table.metadata.refs:
        # A number in quotes is a snapshot id, as in Spark.
        return IcebergVersion(table, snapshot_id=int(travel.version))
    return IcebergVersion(table, ref=travel.version)
