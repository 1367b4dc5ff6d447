"""How far the changelog that compaction makes is behind the rows that were committed.

Rows below the level that changelogs tell of (`lsm/changelog_producer`) wait for a compaction: those who follow the table do not
know them yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.lsm.changelog_producer import reported_level
from lakelet.options import TableOptions
from lakelet.table.read.description import live_data_files
from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class ChangelogLag:
    """The files and rows that no changelog has told of, and when the oldest of them was made; None where there is none."""

    files: int
    rows: int
    oldest_ms: int | None


def changelog_lag(scan: TableScan) -> ChangelogLag | None:
    """The lag at the version of a scan; None for a table whose compaction makes no changelog."""
    least = reported_level(TableOptions(scan.schema.options)) if scan.schema.primary_keys else 0
    if not least:
        return None
    waiting = [file for _, file in live_data_files(scan) if file.level < least]
    made = [file.creation_ms for file in waiting if file.creation_ms is not None]
    return ChangelogLag(len(waiting), sum(file.row_count for file in waiting), min(made, default=None))
