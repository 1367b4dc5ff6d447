"""Puts of several rows after a crash inside of their write: all of them or none; and logs from before there were groups."""

from pathlib import Path

import pytest

from lakelet.errors import TooLargeError
from lakelet.format.wal.wal_log import MAGIC, read_wal
from lakelet.format.wal.wal_record import GROUP
from tests.unit.realtime.written_table import WrittenTable, kill


def row(number: int) -> dict[str, object]:
    return {"id": number, "v": f"v{number}", "x": None}


@pytest.fixture
def written(tmp_path: Path) -> WrittenTable:
    return WrittenTable(tmp_path)


@pytest.mark.parametrize("count", [3, 40], ids=["few", "many"])
@pytest.mark.parametrize("records_behind", [1, 2, 3])
@pytest.mark.parametrize("method", ["put_many", "put_together"])
def test_a_put_that_was_killed_inside_of_its_write_leaves_nothing(
    written: WrittenTable, method: str, records_behind: int, count: int
) -> None:
    writer = written.writer()
    writer.put(row(1))
    before = writer._log._log.size
    getattr(writer, method)([row(number) for number in range(2, 2 + count)])
    kill(writer)
    (log,) = written.log_folder().glob("wal-*.log")
    whole = log.read_bytes()
    # A cut behind a whole record of the group: those before it are intact.
    ends = (read_wal(whole, path=str(log)).scanned[:, 4] + 4).tolist()
    cut = ends[-1 - records_behind]
    log.write_bytes(whole[:cut])
    with written.writer() as opened:
        (found,) = opened.recovered
        assert (found.records, found.torn_bytes) == (1, cut - before)
    assert written.rows() == [(1, "v1", None)]


def test_a_single_put_has_no_mark(written: WrittenTable) -> None:
    writer = written.writer()
    writer.put(row(1))
    writer.put_together([row(2)])
    writer.put_together([row(3), row(4)])
    kill(writer)
    (log,) = written.log_folder().glob("wal-*.log")
    found = read_wal(log.read_bytes(), path=str(log))
    assert found.scanned[:, 0].tolist().count(GROUP) == 1
    assert len(found.records) == 4


def test_a_log_of_the_version_before_is_replayed(written: WrittenTable) -> None:
    writer = written.writer()
    for number in (1, 2, 3):
        writer.put(row(number))
    kill(writer)
    (log,) = written.log_folder().glob("wal-*.log")
    data = log.read_bytes()
    log.write_bytes(MAGIC + b"\x00\x00\x00\x01" + data[8:])
    with written.writer() as opened:
        assert [one.outcome for one in opened.recovered] == ["committed"]
    assert [one[0] for one in written.rows()] == [1, 2, 3]


@pytest.mark.parametrize("count", [3, 40], ids=["few", "many"])
def test_rows_that_are_put_together_fit_a_memtable(written: WrittenTable, count: int) -> None:
    with written.writer({"memtable.size": "2 kb"}) as writer:
        with pytest.raises(TooLargeError, match="more than a memtable holds"):
            writer.put_together([{"id": number, "v": "x" * 1000, "x": None} for number in range(count)])
        writer.put_together([{"id": 1, "v": "x" * 1000, "x": None}])
    assert [one[0] for one in written.rows()] == [1]
