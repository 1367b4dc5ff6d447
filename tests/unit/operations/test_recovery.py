"""Recovery as an operation: requests in, what became of every log out."""

from pathlib import Path

import pytest

from lakelet.errors import ConflictError
from lakelet.operations.recovery import RecoverRows, recover_rows
from tests.unit.realtime.written_table import WrittenTable, kill


def test_logs_are_reported_and_committed(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    writer = written.writer()
    writer.put({"id": 1, "v": "a", "x": 0.5})
    request = RecoverRows(str(written.logs))
    with pytest.raises(ConflictError, match="in use"):
        recover_rows(written.table, request)
    kill(writer)
    (reported,) = recover_rows(written.table, RecoverRows(str(written.logs), dry_run=True))
    assert (reported.outcome, reported.records, reported.snapshot_id) == ("to commit", 1, None)
    assert written.rows() == []
    (committed,) = recover_rows(written.table, request)
    assert (committed.outcome, committed.snapshot_id) == ("committed", 1)
    assert written.rows() == [(1, "a", 0.5)]
    assert written.log_names() == ["LOCK", "RESERVE", "TABLE", "wal-2.log"]
