"""The registry of system tables of one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.catalog.names import TableName
from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.lexer.errors import nearest
from lakelet.sql.query.relation import Relation
from lakelet.sql.system.change_log import audit_log, binlog
from lakelet.sql.system.files import file_key_ranges, files
from lakelet.sql.system.history import (
    aggregation_fields,
    branches,
    consumers,
    options,
    schemas,
    snapshots,
    statistics,
    tags,
)
from lakelet.sql.system.manifests import manifests, table_indexes
from lakelet.sql.system.partitions import buckets, partitions
from lakelet.sql.system.read_optimized import read_optimized
from lakelet.sql.system.version import Version
from lakelet.table import Table

if TYPE_CHECKING:
    from lakelet.sql.context import Context


@dataclass(frozen=True, slots=True)
class SystemTable:
    """How a system table is read, and whether it supports time travel: some cover all versions at once."""

    read: Callable[[Table, Version], Relation]
    of_a_version: bool = True


SYSTEM_TABLES = {
    "aggregation_fields": SystemTable(aggregation_fields, of_a_version=False),
    "audit_log": SystemTable(audit_log),
    "binlog": SystemTable(binlog),
    "branches": SystemTable(branches, of_a_version=False),
    "buckets": SystemTable(buckets),
    "consumers": SystemTable(consumers, of_a_version=False),
    "file_key_ranges": SystemTable(file_key_ranges),
    "files": SystemTable(files),
    "manifests": SystemTable(manifests),
    "options": SystemTable(options, of_a_version=False),
    "partitions": SystemTable(partitions),
    "read_optimized": SystemTable(read_optimized),
    "ro": SystemTable(read_optimized),
    "schemas": SystemTable(schemas, of_a_version=False),
    "snapshots": SystemTable(snapshots, of_a_version=False),
    "statistics": SystemTable(statistics),
    "table_indexes": SystemTable(table_indexes),
    "tags": SystemTable(tags, of_a_version=False),
}


def system_relation(context: Context, name: TableName, version: Version | None = None) -> Relation:
    """The relation of a system table, of the newest version or of another; NotFoundError names the nearest."""
    context.profile.check_system_table(f"{name.full}${name.system}")
    found = SYSTEM_TABLES.get((name.system or "").lower())
    if found is None:
        raise NotFoundError(
            f"there is no system table ${name.system} of {name.full}{nearest(name.system or '', SYSTEM_TABLES)}"
        )
    wanted = version or Version()
    if not wanted.is_newest and not found.of_a_version:
        raise InvalidError(f"{name.full}${name.system} is not about one version, and cannot be read as of one")
    return found.read(context.names.open(name), wanted)
