"""The folder of a persisted cache: replaced files, damage, limits, and whose folder it is."""

import logging
import os
from pathlib import Path

import pytest

from lakelet.cache.upkeep.persisted_file import Piece
from lakelet.cache.upkeep.persisted_folder import PersistedFolder
from lakelet.ids import RandomIds

PIECES = [Piece("kind", ("name",), b"data")]


def opened(path: Path, warehouse: str = "/lake") -> PersistedFolder:
    return PersistedFolder(str(path), warehouse, RandomIds())


def files(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob("*") if one.is_file())


def test_tables_and_warehouses_have_files_of_their_own(tmp_path: Path) -> None:
    folder, other = opened(tmp_path), opened(tmp_path, "/other")
    assert folder.read_table("t") is None
    assert folder.write_table("t", PIECES)
    assert folder.read_table("t") == opened(tmp_path).read_table("t") == PIECES
    assert folder.read_table("T") is None
    assert other.read_table("t") is None
    assert folder.write_history(PIECES)
    assert folder.read_history() == PIECES
    folder.remove_table("t")
    assert folder.read_table("t") is None
    assert folder.read_history() == PIECES


def test_nothing_is_made_before_something_is_written(tmp_path: Path) -> None:
    folder = opened(tmp_path / "cache")
    assert folder.read_table("t") is None
    folder.limit(0)
    assert not (tmp_path / "cache").exists()


def test_a_damaged_file_is_discarded_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = opened(tmp_path)
    folder.write_table("t", PIECES)
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with caplog.at_level(logging.WARNING):
        assert folder.read_table("t") is None
    assert "discarded" in caplog.text
    assert files(tmp_path) == []
    assert folder.write_table("t", PIECES)
    assert folder.read_table("t") == PIECES


def test_a_file_under_another_name_is_not_taken(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.write_table("t", PIECES)
    (path,) = files(tmp_path)
    folder.write_table("u", PIECES)
    (other,) = set(files(tmp_path)) - {path}
    os.replace(path, other)
    assert folder.read_table("u") is None


def test_the_files_written_longest_ago_leave_first(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    for number in range(5):
        folder.write_table(f"t{number}", [Piece("kind", (), b"x" * 1000)])
        newest = max(files(tmp_path), key=lambda one: one.stat().st_mtime_ns)
        os.utime(newest, ns=(number * 10**9, number * 10**9))
    folder.write_history(PIECES)
    folder.limit(2500)
    assert [folder.read_table(f"t{number}") is not None for number in range(5)] == [False, False, False, True, True]
    folder.limit(0)
    assert folder.read_history() == PIECES


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened(tmp_path).write_table("t", PIECES)
    (made,) = (one for one in tmp_path.iterdir() if one.is_dir())
    assert made.stat().st_mode & 0o777 == 0o700
    assert files(tmp_path)[0].stat().st_mode & 0o777 == 0o600
    made.chmod(0o770)
    with caplog.at_level(logging.WARNING):
        assert opened(tmp_path).read_table("t") is None
        assert not opened(tmp_path).write_table("t", PIECES)
    assert "other users" in caplog.text


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    opened(tmp_path / "a").write_table("t", PIECES)
    (made,) = (tmp_path / "a").iterdir()
    elsewhere = tmp_path / "elsewhere"
    made.rename(elsewhere)
    made.symlink_to(elsewhere)
    assert opened(tmp_path / "a").read_table("t") is None


def test_a_folder_that_cannot_be_made_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("x")
    with caplog.at_level(logging.WARNING):
        assert not opened(tmp_path / "file" / "cache").write_table("t", PIECES)
    assert "not persisted" in caplog.text
