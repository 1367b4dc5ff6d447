"""Which logs below a folder have rows."""

from pathlib import Path

import lakelet
from lakelet.realtime.wal.leftover_logs import leftover_logs


def test_logs_with_rows_are_found_until_they_are_committed(tmp_path: Path) -> None:
    lake, logs = lakelet.connect(tmp_path / "lake"), tmp_path / "wal"
    assert leftover_logs(logs) == []
    lake.create_database("shop")
    tables = [lake.create_table(f"shop.t{number}", [("id", "INT")]) for number in range(2)]
    writers = [table.writer(wal_folder=logs) for table in tables]
    (logs / "NODE").write_text("{}")
    assert leftover_logs(logs) == []
    writers[1].put({"id": 1})
    (found,) = leftover_logs(logs)
    assert found.endswith("/wal-1.log")
    assert Path(found).parent.parent == logs
    for writer in writers:
        writer.close()
    assert leftover_logs(logs) == []
    (Path(found).parent / "wal-9.log").write_bytes(b"none")
    assert leftover_logs(logs) == [str(Path(found).parent / "wal-9.log")]
