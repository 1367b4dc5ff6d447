"""A log on disk that fails: what was acknowledged stays, what was not leaves nothing in the middle."""

import errno
import os
from pathlib import Path

import pytest

from lakelet.errors import UnavailableError
from lakelet.format.wal.wal_log import WalHeader, read_wal
from lakelet.format.wal.wal_record import PUT, encode_record, python_records
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.realtime.wal.wal_folder import WalFolder
from tests.unit.realtime.written_table import WrittenTable

RECORDS = [encode_record(PUT, bytes((number,)), b"row" * 9) for number in range(4)]


@pytest.fixture
def log(tmp_path: Path) -> WalFile:
    return WalFolder(str(tmp_path / "logs"), "t").create(WalHeader("t", 0, 1, "u"))


def keys(log: WalFile) -> list[bytes]:
    found = read_wal(Path(log.path).read_bytes(), path=log.path)
    return list(python_records(found.data, found.records)[0])


def full_after(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let the disk take that many bytes and no more."""
    write, left = os.pwrite, [count]

    def pwrite(descriptor: int, data: bytes, at: int) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = data[: left[0]]
        left[0] -= len(part)
        return write(descriptor, part, at)

    patch.setattr(os, "pwrite", pwrite)


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_full_disk_is_told_and_later_rows_follow_the_earlier(
    log: WalFile, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log.append(RECORDS[0])
    with monkeypatch.context() as patch:
        if not is_cut:
            patch.setattr(os, "ftruncate", fails)
        # A whole record is behind the place where the next one goes.
        full_after(patch, 2 * len(RECORDS[1]) + 5)
        with pytest.raises(UnavailableError, match="No space left"):
            log.append(RECORDS[1] + RECORDS[2] + RECORDS[2])
    # Others on the disk have the room at once; where that fails the next append cuts it off.
    assert (len(Path(log.path).read_bytes()) == log.size) is is_cut
    log.append(RECORDS[3])
    assert keys(log) == [b"\x00", b"\x03"]


def test_a_write_in_pieces_is_whole(log: WalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: write(descriptor, data[:3], at))
    log.append(b"".join(RECORDS))
    assert keys(log) == [bytes((number,)) for number in range(4)]


def test_after_a_failed_sync_the_log_takes_nothing(log: WalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log.append(RECORDS[0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(UnavailableError, match="Input/output"):
            log.sync()
    for call in (log.sync, lambda: log.append(RECORDS[1])):
        with pytest.raises(UnavailableError, match="takes no further rows"):
            call()


def test_a_sync_without_new_rows_costs_nothing(log: WalFile) -> None:
    before = log.syncs
    log.append(RECORDS[0])
    for _ in range(3):
        log.sync()
    assert log.syncs == before + 1


def test_a_put_on_a_full_disk_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path)
    with written.writer() as writer:
        writer.put({"id": 1, "v": "a", "x": None})
        with monkeypatch.context() as patch:
            full_after(patch, 10)
            with pytest.raises(UnavailableError, match="No space left"):
                writer.put({"id": 2, "v": "b", "x": None})
        assert writer.get({"id": 2}) is None
        writer.put({"id": 3, "v": "c", "x": None})
    assert [row[0] for row in written.rows()] == [1, 3]


def test_a_flush_opens_another_log_after_a_failed_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path)

    def fails(self: WalFile) -> None:
        self.broken = True
        raise UnavailableError("Input/output error")

    with written.writer() as writer:
        writer.put({"id": 1, "v": "a", "x": None})
        with monkeypatch.context() as patch:
            patch.setattr(WalFile, "sync", fails)
            with pytest.raises(UnavailableError):
                writer.put({"id": 2, "v": "b", "x": None})
        with pytest.raises(UnavailableError, match="takes no further rows"):
            writer.put({"id": 3, "v": "c", "x": None})
        assert writer.get({"id": 1}) is not None
        writer.flush()
        writer.put({"id": 4, "v": "d", "x": None})
    assert [row[0] for row in written.rows()] == [1, 4]
