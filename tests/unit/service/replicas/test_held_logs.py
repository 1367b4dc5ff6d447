"""The copies that a node holds: in order, only from the process that began them, and nothing outside of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.clock import SystemClock
from lakelet.errors import ConflictError, InvalidError, NotFoundError, UnavailableError
from lakelet.realtime.wal.wal_folder import lock_folder
from lakelet.service.replicas.held_logs import HeldLogs


@pytest.fixture
def held(tmp_path: Path) -> HeldLogs:
    made = HeldLogs(str(tmp_path), SystemClock())
    made.open("n1", "1-a", "table", "d.t")
    return made


def test_bytes_are_written_behind_those_that_are_there(held: HeldLogs) -> None:
    held.append("n1", "1-a", 3, 0, b"abc", durable=True)
    held.append("n1", "1-a", 3, 3, b"d", durable=False)
    for offset in (0, 3, 9):
        with pytest.raises(ConflictError, match="has 4 bytes"):
            held.append("n1", "1-a", 3, offset, b"x", durable=True)
    with pytest.raises(ConflictError, match="has 0 bytes"):
        held.append("n1", "1-a", 4, 1, b"x", durable=True)
    ((copy, _),) = held.all()
    assert Path(copy.path, "wal-3.log").read_bytes() == b"abcd"
    assert (held.logs, held.bytes_written) == (1, 4)
    held.drop_logs("n1", "1-a", 3, [])
    assert held.logs == 0
    held.drop("n1", "1-a")
    assert held.all() == []


def test_nothing_is_taken_for_a_copy_of_an_earlier_process_or_one_that_is_adopted(
    tmp_path: Path, held: HeldLogs
) -> None:
    held.append("n1", "1-a", 1, 0, b"abc", durable=True)
    later = HeldLogs(str(tmp_path), SystemClock())
    with pytest.raises(NotFoundError):
        later.append("n1", "1-a", 1, 3, b"d", durable=True)
    ((copy, silent),) = later.all()
    assert silent is None
    held.close_copy(copy)
    with pytest.raises(NotFoundError):
        held.append("n1", "1-a", 1, 3, b"d", durable=True)


def test_nobody_else_reads_a_copy_that_is_being_written(held: HeldLogs) -> None:
    ((copy, _),) = held.all()
    with pytest.raises(ConflictError, match="in use"):
        lock_folder(copy.path)


def test_a_node_that_leaves_takes_nothing(held: HeldLogs) -> None:
    held.refusal = "the node leaves"
    with pytest.raises(UnavailableError, match="leaves"):
        held.append("n1", "1-a", 1, 0, b"abc", durable=True)
    with pytest.raises(UnavailableError, match="leaves"):
        held.open("n1", "2-a", "table", "d.t")
    held.drop("n1", "1-a")


@pytest.mark.parametrize("name", ["..", "", "a/b", ".hidden", "x" * 65])
def test_names_of_folders_are_checked(held: HeldLogs, name: str) -> None:
    with pytest.raises(InvalidError):
        held.open(name, "1-a", "table", "d.t")
    with pytest.raises(InvalidError):
        held.open("n1", name, "table", "d.t")


def test_a_copy_whose_creation_was_interrupted_is_deleted(tmp_path: Path, held: HeldLogs) -> None:
    (tmp_path / "replicas" / "n2" / "1-b" / "table").mkdir(parents=True)
    (tmp_path / "replicas" / "n2" / "1-c").mkdir()
    (tmp_path / "replicas" / "n2" / "1-c" / "COPY").write_text("{")
    assert [copy.token for copy, _ in held.all()] == ["1-a"]
    assert list((tmp_path / "replicas" / "n2").iterdir()) == []
