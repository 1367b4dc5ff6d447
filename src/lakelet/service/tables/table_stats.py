"""Statistics of a served table from its metadata alone: no data file is opened."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from lakelet.commit.metadata.schemas import read_schema
from lakelet.errors import LakeletError, NotFoundError
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import DELETION_VECTORS_ENABLED, TableOptions
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.tables.table_layout import TIMESTAMP
from lakelet.service.timestamps import moment_us, timestamp_text
from lakelet.service.values import DescribedTable, TableInfo, TableStats
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class StoredStats:
    """Statistics of one snapshot; times in microseconds."""

    snapshot_id: int = 0
    base: str = ""
    records: int = 0
    files: int = 0
    size_bytes: int = 0
    oldest_us: int | None = None
    newest_us: int | None = None
    last_write_ms: int | None = None


class StoredStatsCache:
    """The statistics of the newest snapshot of each table, computed once for each snapshot."""

    def __init__(self) -> None:
        self._known: dict[str, StoredStats] = {}
        self._lock = threading.Lock()

    def stored(self, opened: OpenTable) -> StoredStats:
        """The statistics of the newest snapshot."""
        snapshot = opened.table.latest_snapshot()
        if snapshot is None:
            return StoredStats()
        with self._lock:
            known = self._known.get(opened.name)
        # A rollback reuses ids: the manifest list tells the snapshots apart.
        if known is not None and (known.snapshot_id, known.base) == (snapshot.id, snapshot.delta_manifest_list):
            return known
        made = _stats_of(opened, snapshot)
        with self._lock:
            self._known[opened.name] = made
        return made

    def info(self, opened: OpenTable) -> TableInfo:
        """What the table is."""
        return TableInfo(opened.name, opened.config, opened.created_at, self.last_write(opened), opened.status)

    def described(self, opened: OpenTable) -> DescribedTable:
        """What the table is, with its statistics."""
        return DescribedTable(self.info(opened), self.stats(opened))

    def all_described(self, tables: Iterable[OpenTable]) -> list[DescribedTable]:
        """The same of several, without those that are dropped meanwhile."""
        found: list[DescribedTable] = []
        for opened in tables:
            with suppress(NotFoundError):
                found.append(self.described(opened))
        return found

    def stats(self, opened: OpenTable) -> TableStats:
        """The statistics, with the records that are buffered."""
        buffered = opened.buffered_records
        stored = self.stored(opened)
        return TableStats(
            record_count=stored.records + buffered,
            file_count=stored.files,
            size_bytes=stored.size_bytes,
            oldest_record="" if stored.oldest_us is None else timestamp_text(stored.oldest_us),
            newest_record="" if stored.newest_us is None else timestamp_text(stored.newest_us),
            buffered_records=buffered,
            record_count_is_exact=_counts_rows(opened.schema),
        )

    def last_write(self, opened: OpenTable) -> str:
        """The time of the newest commit in RFC 3339, empty where there is none."""
        stored = self.stored(opened)
        return "" if stored.last_write_ms is None else timestamp_text(stored.last_write_ms * 1000)

    def forget(self, name: str) -> None:
        """Drop what is known of a table."""
        with self._lock:
            self._known.pop(name, None)


def _counts_rows(schema: TableSchema) -> bool:
    """Whether files hold no rows that are replaced or deleted."""
    return not schema.primary_keys and not TableOptions(schema.options).get(DELETION_VECTORS_ENABLED)


def _stats_of(opened: OpenTable, snapshot: Snapshot) -> StoredStats:
    from lakelet.table.read.description import live_data_files  # noqa: PLC0415 - a process that is only started reads no table.

    files = [file for _, file in live_data_files(opened.table.scan(version=snapshot.id))]
    bounds = [bound for file in files for bound in _bounds(opened.table.home, file)]
    return StoredStats(
        snapshot_id=snapshot.id,
        base=snapshot.delta_manifest_list,
        records=snapshot.total_record_count or 0,
        files=len(files),
        size_bytes=sum(file.size for file in files),
        oldest_us=min(bounds, default=None),
        newest_us=max(bounds, default=None),
        last_write_ms=snapshot.time_ms,
    )


def _bounds(home: TableHome, file: DataFile) -> list[int]:
    """The least and greatest timestamp of a file in microseconds; none where they are unknown."""
    schema = read_schema(home, file.schema_id)
    names = file.value_stats_columns if file.value_stats_columns is not None else schema.names
    if TIMESTAMP not in names or any(name not in schema.names for name in names):
        return []
    types = [schema.field(name).type for name in names]
    place = list(names).index(TIMESTAMP)
    found = []
    for row in (file.value_stats.min_values, file.value_stats.max_values):
        try:
            value = decode_row(row, types, where=file.name)[place]
        except LakeletError:
            # A statistic that cannot be decoded is unknown.
            continue
        if isinstance(value, datetime):
            found.append(moment_us(value))
    return found
