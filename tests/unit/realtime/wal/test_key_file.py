"""Names of writes: found again after flushes, crashes and restarts for a day, bounded in number, never without their rows."""

import os
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import CorruptionError, UnavailableError
from lakelet.format.wal.wal_group import WalKey
from lakelet.realtime.open import recover_table
from lakelet.realtime.wal.key_file import VALID_MS, KeyFile
from tests.unit.realtime.written_table import WrittenTable, kill

NOW = 1_700_000_000_000


def row(number: int) -> dict[str, object]:
    return {"id": number, "v": None, "x": None}


@pytest.fixture
def written(tmp_path: Path) -> WrittenTable:
    return WrittenTable(tmp_path)


def key(written: WrittenTable, name: bytes, note: bytes = b"") -> WalKey:
    return WalKey(name, written.table.home.clock.now_ms(), note)


# ---------------------------------------------------------------- the file


def test_names_are_kept_and_found_by_another(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path))
    assert file.find([b"a"], NOW).get(b"a") is None
    assert os.listdir(tmp_path) == []
    file.keep([], NOW)
    assert os.listdir(tmp_path) == []
    given = [WalKey(b"a", NOW, b"first"), WalKey(b"\x00\xff", NOW + 1, b"")]
    file.keep(given, NOW)
    assert [file.find([one.name], NOW).get(one.name) for one in given] == given
    file.close()
    other = KeyFile(str(tmp_path))
    assert [other.find([one.name], NOW).get(one.name) for one in given] == given
    assert other.find([b"A"], NOW).get(b"A") is None
    assert os.stat(tmp_path / "keys.db").st_mode & 0o077 == 0
    other.close()


def test_names_are_valid_for_a_day(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path))
    file.keep([WalKey(b"a", NOW, b""), WalKey(b"b", NOW + 5, b"")], NOW)
    assert file.find([b"a"], NOW + VALID_MS - 1).get(b"a") is not None
    assert file.find([b"a"], NOW + VALID_MS).get(b"a") is None
    file.keep([WalKey(b"c", NOW + VALID_MS, b"")], NOW + VALID_MS)
    # Those that are not valid are gone from the disk, too.
    assert file.find([b"a"], NOW).get(b"a") is None
    assert file.find([b"b"], NOW + VALID_MS).get(b"b") is not None
    file.close()


def test_the_newest_names_are_kept_where_there_are_too_many(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path), most_keys=3)
    for number in range(10):
        file.keep([WalKey(b"%d" % number, NOW + number, b"")], NOW)
    assert [number for number in range(10) if file.find([b"%d" % number], NOW).get(b"%d" % number) is not None] == [
        7,
        8,
        9,
    ]
    file.close()


def test_an_older_write_never_replaces_a_newer_one(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path), most_keys=2)
    file.keep([WalKey(b"a", NOW, b"old"), WalKey(b"b", NOW + 1, b"")], NOW)
    file.keep([WalKey(b"a", NOW + 2, b"new")], NOW)
    file.keep([WalKey(b"a", NOW, b"old")], NOW)
    found = file.find([b"a"], NOW).get(b"a")
    assert found is not None
    assert found.note == b"new"
    # It is one of the newest now.
    file.keep([WalKey(b"c", NOW + 3, b"")], NOW)
    assert [name for name in (b"a", b"b", b"c") if file.find([name], NOW).get(name) is not None] == [b"a", b"c"]
    file.close()


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "keys.db").write_bytes(b"no database " * 100)
    file = KeyFile(str(tmp_path))
    with pytest.raises(CorruptionError, match=r"keys\.db: expected the names of writes"):
        file.find([b"a"], NOW).get(b"a")
    with pytest.raises(CorruptionError):
        file.keep([WalKey(b"a", NOW, b"")], NOW)
    file.close()


# ---------------------------------------------------------------- through a writer


def test_a_name_is_found_in_memory_after_a_flush_and_after_a_restart(written: WrittenTable) -> None:
    with written.writer() as writer:
        given = key(written, b"a", b"note")
        writer.put_together([row(1)], [given])
        assert writer.find_keys([b"a"]).get(b"a") == given
        assert writer.find_keys([b"b"]).get(b"b") is None
        writer.flush()
        assert writer.find_keys([b"a"]).get(b"a") == given
    with written.writer() as writer:
        assert writer.find_keys([b"a"]).get(b"a") == given
    assert written.rows() == [(1, None, None)]


def test_a_name_without_rows_is_kept(written: WrittenTable) -> None:
    writer = written.writer()
    writer.put_together([], [key(written, b"a")])
    kill(writer)
    with written.writer() as writer:
        assert writer.find_keys([b"a"]).get(b"a") is not None
    with written.writer() as writer:
        assert writer.find_keys([b"a"]).get(b"a") is not None


@pytest.mark.parametrize("by", ["writer", "recover"])
def test_a_name_is_there_after_a_crash_if_and_only_if_its_rows_are(written: WrittenTable, by: str) -> None:
    writer = written.writer()
    writer.put_together([row(1), row(2)], [key(written, b"a")])
    size = writer._log._log.size
    writer.put_together([row(3)], [key(written, b"b")])
    kill(writer)
    (log,) = written.log_folder().glob("wal-*.log")
    log.write_bytes(log.read_bytes()[: size + 70])
    if by == "recover":
        recover_table(written.table.home, written.logs)
    with written.writer() as writer:
        assert writer.find_keys([b"a"]).get(b"a") is not None
        assert writer.find_keys([b"b"]).get(b"b") is None
    assert [one[0] for one in written.rows()] == [1, 2]


def test_a_crash_between_the_commit_and_the_deletion_of_the_log_loses_no_name(
    written: WrittenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = written.writer()
    writer.put_together([row(1)], [key(written, b"a")])

    def fails(*_: Any) -> None:
        raise UnavailableError("the disk is full")

    monkeypatch.setattr(KeyFile, "keep", fails)
    with pytest.raises(UnavailableError, match="the disk is full"):
        writer.flush()
    # The rows are committed; the log stays, for the name is nowhere else.
    assert written.rows() == [(1, None, None)]
    assert writer.find_keys([b"a"]).get(b"a") is not None
    kill(writer)
    monkeypatch.undo()
    with written.writer() as writer:
        assert [one.outcome for one in writer.recovered] == ["committed before", "empty"]
        assert writer.find_keys([b"a"]).get(b"a") is not None
    assert len(list(written.table.snapshots())) == 1


def test_a_flush_goes_on_when_names_can_be_kept_again(written: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    kept = KeyFile.keep

    def keep(file: KeyFile, keys: Any, now_ms: int) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise UnavailableError("the disk is full")
        kept(file, keys, now_ms)

    with written.writer() as writer:
        writer.put_together([row(1)], [key(written, b"a")])
        monkeypatch.setattr(KeyFile, "keep", keep)
        with pytest.raises(UnavailableError):
            writer.flush()
        writer.flush()
        assert writer.find_keys([b"a"]).get(b"a") is not None
    assert written.rows() == [(1, None, None)]
    assert len(list(written.table.snapshots())) == 1
