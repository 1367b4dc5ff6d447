"""The folder of logs: one writer, private files, names that are theirs."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.errors import ConflictError, CorruptionError, InvalidError, NotFoundError, UnavailableError
from lakelet.format.wal.wal_log import WalHeader
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.wal_folder import WalFolder, log_numbers
from tests.unit.realtime.small_disk import SmallDisk

SECOND = """
import sys
from lakelet.errors import ConflictError
from lakelet.realtime.wal.wal_folder import WalFolder
try:
    WalFolder(sys.argv[1], "t")
except ConflictError as error:
    print(error)
"""


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    folder = WalFolder(str(tmp_path / "a" / "b"), "t")
    ran = subprocess.run([sys.executable, "-c", SECOND, folder.path], capture_output=True, text=True, check=True)
    assert f"in use by another writer of this table (process {os.getpid()})" in ran.stdout
    with pytest.raises(ConflictError):
        WalFolder(folder.path, "t")
    folder.close()
    WalFolder(folder.path, "t").close()


def test_the_next_log_is_made_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "logs"
    folder = WalFolder(str(path), "t")
    log = folder.create(WalHeader("t", 0, 1, "u"))
    disk = SmallDisk(path, 100_000, monkeypatch)
    with pytest.raises(UnavailableError, match="No space left"):
        log.append(bytes(200_000))
    log.append(bytes(disk.size - disk.used))
    assert disk.used == disk.size
    folder.create(WalHeader("t", 0, 2, "u")).close()
    # What the first one gave up is gone, until a log is deleted.
    filled = disk.size - disk.used
    log.append(bytes(filled))
    with pytest.raises(UnavailableError, match="No space left"):
        folder.create(WalHeader("t", 0, 3, "u"))
    log.close()
    folder.remove(1)
    assert (path / "RESERVE").stat().st_size > 0
    folder.close()
    assert log_numbers(str(path)) == [2]


def test_logs_are_private_and_found_by_number(tmp_path: Path) -> None:
    folder = WalFolder(str(tmp_path / "logs"), "t")
    for number in (2, 10):
        folder.create(WalHeader("t", 0, number, "u")).close()
    (tmp_path / "logs" / "wal-x.log").write_text("")
    assert folder.numbers() == [2, 10]
    assert folder.header(10) == WalHeader("t", 0, 10, "u")
    modes = {name: stat.S_IMODE((tmp_path / "logs" / name).stat().st_mode) for name in ("LOCK", "wal-2.log")}
    assert modes == {"LOCK": 0o600, "wal-2.log": 0o600}
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700
    folder.remove(2)
    folder.remove(2)
    assert folder.numbers() == [10]
    assert log_numbers(str(tmp_path / "none")) == []


def test_a_file_where_logs_are_looked_for_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert log_numbers(str(tmp_path / "absent" / "t")) == []
    with pytest.raises(NotFoundError, match="file/t does not exist: expected a folder, found a file"):
        log_numbers(str(tmp_path / "file" / "t"))


def test_a_log_under_another_number_is_told(tmp_path: Path) -> None:
    folder = WalFolder(str(tmp_path), "t")
    folder.create(WalHeader("t", 0, 1, "u")).close()
    (tmp_path / "wal-1.log").rename(tmp_path / "wal-2.log")
    with pytest.raises(CorruptionError, match="number 1, expected 2"):
        folder.read(2)


def test_logs_that_were_never_finished_are_removed(tmp_path: Path) -> None:
    (tmp_path / "wal-3.tmp").write_bytes(b"LW")
    (tmp_path / "other.tmp").write_bytes(b"")
    WalFolder(str(tmp_path), "t").close()
    assert sorted(os.listdir(tmp_path)) == ["LOCK", "RESERVE", "other.tmp"]


def test_logs_are_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert wal_path(None, "u+dev/x") == "/state/lakelet/wal/u+dev%2Fx"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/me")
    assert wal_path(None, "u") == "/me/.local/state/lakelet/wal/u"
    assert wal_path("~/logs", "u") == "/me/logs/u"
    for stranger in ("..", ".", "../../x", "/etc"):
        assert os.path.dirname(wal_path("/logs", stranger)) == "/logs"
        assert os.path.normpath(wal_path("/logs", stranger)) == wal_path("/logs", stranger)
    for wrong in ("", 7, "s3://bucket/logs", b"logs"):
        with pytest.raises(InvalidError, match="wal_folder"):
            wal_path(wrong, "u")
