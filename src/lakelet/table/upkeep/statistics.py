"""Table statistics for query planners: computed from its rows in one scan, committed as an ANALYZE snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.statistics import commit_statistics, read_statistics
from lakelet.format.stats.column_statistics import ColumnCollector
from lakelet.model.schema import TableSchema, check_bucket_count
from lakelet.model.snapshot import Snapshot
from lakelet.model.table_statistics import TableStatistics
from lakelet.options import COMMIT_USER_PREFIX, TableOptions, check_stored
from lakelet.storage.home import TableHome
from lakelet.table.read.point_read import chosen_columns
from lakelet.table.read.table_scan import TableScan
from lakelet.table.write.repetition import Repetition


@dataclass(frozen=True, slots=True)
class RowStatistics:
    """Statistics of a table's rows: computed in one scan, committed as an ANALYZE snapshot."""

    home: TableHome

    def analyze(self, columns: Sequence[str] | None = None) -> Snapshot | None:
        """Compute statistics of these columns, or of all, and commit them."""
        with noticing_drop(self.home):
            return self._analyzed(columns)

    def _analyzed(self, columns: Sequence[str] | None) -> Snapshot | None:
        repetition = Repetition(self.home, latest_schema(self.home))
        while True:
            # The snapshot comes first: a schema read after it knows every column of its files.
            snapshot = latest_snapshot(self.home)
            schema = latest_schema(self.home)
            check_stored(schema.options)
            check_bucket_count(schema)
            names = () if columns is not None and not columns else chosen_columns(columns, schema)
            if snapshot is None:
                return None
            try:
                statistics = _gather(self.home, schema, snapshot, names)
                break
            except SnapshotExpiredError as expired:
                repetition.again(expired)
        prefix = TableOptions(schema.options).get(COMMIT_USER_PREFIX)
        user = self.home.ids.uuid()
        return commit_statistics(self.home, schema, statistics, f"{prefix}_{user}" if prefix else user)

    def statistics(self) -> TableStatistics | None:
        """The newest statistics, which name the snapshot they describe."""
        snapshot = latest_snapshot(self.home)
        return None if snapshot is None else read_statistics(self.home, snapshot)


def _gather(home: TableHome, schema: TableSchema, snapshot: Snapshot, names: tuple[str, ...]) -> TableStatistics:
    collector = ColumnCollector([schema.field(name) for name in names])
    if names:
        for batch in TableScan(home, schema, snapshot, names).to_batches():
            collector.update(batch)
        rows = collector.row_count
    else:
        rows = TableScan(home, schema, snapshot, schema.names).count()
    return TableStatistics(
        snapshot.id, schema.id, rows, _merged_bytes(home, schema, snapshot, rows), collector.finish()
    )


def _merged_bytes(home: TableHome, schema: TableSchema, snapshot: Snapshot, rows: int) -> int:
    """Estimate the bytes of the merged rows: their share of those in the files."""
    settings = ManifestSettings.of(TableOptions(schema.options))
    columns = ["_FILE_SIZE", "_ROW_COUNT"]
    entries = live_entries(home, snapshot_manifests(home, snapshot), columns=columns, threads=settings.threads)
    stored = pc.sum(entries.column("_ROW_COUNT")).as_py() or 0
    size = pc.sum(entries.column("_FILE_SIZE")).as_py() or 0
    return size * rows // stored if stored else 0
