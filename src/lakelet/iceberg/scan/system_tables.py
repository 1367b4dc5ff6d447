"""System tables of an Iceberg table: its snapshots, branches and tags, files, manifests and partitions, made by pyiceberg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError, NotFoundError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.versions import version_of
from lakelet.iceberg.table import IcebergTable

# System tables of one snapshot, and of the whole table.
_OF_A_SNAPSHOT = ("files", "data_files", "delete_files", "entries", "partitions")
_OF_THE_TABLE = (
    *("snapshots", "history", "refs", "metadata_log_entries", "manifests"),
    *("all_files", "all_data_files", "all_delete_files", "all_manifests"),
)
SYSTEM_TABLES = tuple(sorted((*_OF_A_SNAPSHOT, *_OF_THE_TABLE)))


def system_table(
    table: IcebergTable,
    name: str,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    timestamp_ms: int | None = None,
) -> pa.Table:
    """A system table of a table, or of one version of it; NotFoundError for an unknown one."""
    if name not in SYSTEM_TABLES:
        raise NotFoundError(
            f"table {table.full_name} has no system table {name!r}; there are {', '.join(SYSTEM_TABLES)}"
        )
    versioned = any(one is not None for one in (snapshot_id, ref, timestamp_ms))
    if versioned and name not in _OF_A_SNAPSHOT:
        raise InvalidError(
            f"{table.full_name}${name} is about the whole table, not about a version; {', '.join(_OF_A_SNAPSHOT)} are"
        )
    made: Callable[..., Any] = getattr(table.library.inspect, name)
    what = f"table {table.full_name}"
    with lakelet_errors(what), reading("its metadata", what):
        try:
            if name not in _OF_A_SNAPSHOT:
                return made()
            snapshot, _ = version_of(table, snapshot_id=snapshot_id, ref=ref, timestamp_ms=timestamp_ms)
            return made(None if snapshot is None else snapshot.snapshot_id)
        except OverflowError as error:
            raise InvalidError(f"{what}: ${name} cannot show partitions beyond the year 9999 or before 1") from error
