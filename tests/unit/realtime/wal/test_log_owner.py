"""Rows that are left in logs go to the table that they were put into, and never to a copy of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import ConflictError
from lakelet.format.wal.wal_log import WalHeader
from lakelet.format.wal.wal_record import PUT
from lakelet.realtime.row_encoder import RowEncoder
from lakelet.realtime.wal.log_owner import set_owner
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.table import Table


def opened(warehouse: Path) -> Table:
    return lakelet.connect(warehouse).table("d.t")


def ids(warehouse: Path) -> list[int]:
    return sorted(row["id"] for row in opened(warehouse).scan().to_arrow().to_pylist())


@pytest.fixture
def left(tmp_path: Path) -> Callable[[], Path]:
    """Makes a table whose writer died with one row in its log."""

    def make() -> Path:
        lake = lakelet.connect(tmp_path / "w")
        lake.create_database("d")
        table = lake.create_table("d.t", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": "1"})
        with table.writer(wal_folder=tmp_path / "wal") as writer:
            path = writer.status().wal_folder
        folder = WalFolder(path, Path(path).name)
        set_owner(table.home, folder)
        log = folder.create(WalHeader(folder.identity, 0, 99, "writer-x"))
        encoder = RowEncoder(table.home, table.schema, 1 << 20)
        (rows,) = encoder.batches([{"id": 7}])
        log.append(encoder.encode(rows, PUT).records)
        log.sync()
        log.close()
        folder.close()
        return tmp_path / "w"

    return make


def test_a_copy_does_not_take_the_rows_of_the_first(left: Callable[[], Path], tmp_path: Path) -> None:
    warehouse = left()
    shutil.copytree(warehouse, tmp_path / "copy")
    with pytest.raises(ConflictError, match="is a copy"):
        opened(tmp_path / "copy").writer(wal_folder=tmp_path / "wal")
    with opened(tmp_path / "copy").writer(wal_folder=tmp_path / "own") as writer:
        writer.put({"id": 8})
    with opened(warehouse).writer(wal_folder=tmp_path / "wal"):
        pass
    assert (ids(warehouse), ids(tmp_path / "copy")) == ([7], [8])


def test_a_table_that_was_moved_and_one_behind_a_link_have_their_rows(left: Callable[[], Path], tmp_path: Path) -> None:
    moved = left().rename(tmp_path / "moved")
    (tmp_path / "link").symlink_to(moved)
    with opened(tmp_path / "link").writer(wal_folder=tmp_path / "wal"):
        pass
    assert ids(moved) == [7]
    with opened(moved).writer(wal_folder=tmp_path / "wal") as writer:
        writer.put({"id": 9})
    assert ids(moved) == [7, 9]


def test_logs_without_rows_are_taken_over(tmp_path: Path, left: Callable[[], Path]) -> None:
    warehouse = left()
    with opened(warehouse).writer(wal_folder=tmp_path / "wal"):
        pass
    shutil.copytree(warehouse, tmp_path / "copy")
    with opened(tmp_path / "copy").writer(wal_folder=tmp_path / "wal") as writer:
        writer.put({"id": 8})
    assert (ids(warehouse), ids(tmp_path / "copy")) == ([7], [7, 8])
