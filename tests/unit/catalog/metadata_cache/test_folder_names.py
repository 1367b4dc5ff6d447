"""A change of this process is seen by its next query in every mode, whatever name the warehouse or the table was opened by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakelet
from lakelet.cache.keys import TableCacheKey
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.folder_names import tables_in

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "BIGINT")]
Change = Callable[[Lake], object]


@pytest.fixture(params=["manual", "bounded(600000)"])
def options(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"cache.staleness": request.param}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A folder with two more names, and a database with another one in it."""
    folder = tmp_path / "real"
    lake = lakelet.connect(folder)
    lake.create_database("shop")
    make(lake, "shop.orders", 1)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "again").symlink_to(tmp_path / "link")
    (folder / "other.db").symlink_to("shop.db")
    return folder


def make(lake: Lake, name: str, number: int) -> None:
    lake.create_table(name, COLUMNS, primary_key=["id"], options={"bucket": "1"})
    write(lake, number, name)


def write(lake: Lake, number: int, name: str = "shop.orders") -> None:
    lake.table(name).write([{"id": number, "v": number}])


def ids(lake: Lake, name: str = "shop.orders") -> list[int]:
    return sorted(lake.table(name).scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(("mine", "theirs"), [("link", "real"), ("real", "link"), ("link", "again")])
def test_a_commit_through_another_name_of_the_warehouse_is_seen(
    warehouse: Path, options: dict[str, str], mine: str, theirs: str
) -> None:
    reader, writer = lakelet.connect(warehouse.parent / mine, options), lakelet.connect(warehouse.parent / theirs)
    assert ids(reader) == [1]
    write(writer, 2)
    assert ids(reader) == [1, 2]
    assert reader.table("shop.orders").get({"id": 2}) == {"id": 2, "v": 2}


def test_a_commit_through_another_name_of_the_database_is_seen(warehouse: Path, options: dict[str, str]) -> None:
    lake = lakelet.connect(warehouse, options)
    assert ids(lake) == ids(lake, "other.orders") == [1]
    write(lake, 2, "other.orders")
    assert ids(lake) == ids(lake, "other.orders") == [1, 2]


def _recreate(lake: Lake) -> None:
    lake.drop_table("shop.orders")
    make(lake, "shop.orders", 2)


def _rename_another(lake: Lake) -> None:
    make(lake, "shop.next", 2)
    lake.rename_table("shop.orders", "shop.old")
    lake.rename_table("shop.next", "shop.orders")


def _alter(lake: Lake) -> None:
    lake.table("shop.orders").add_column("note", "STRING")


def _branch(lake: Lake) -> None:
    lake.table("shop.orders").branches.create("dev", version=1)
    lake.table("shop.orders").on_branch("dev").write([{"id": 2, "v": 2}])
    lake.table("shop.orders").branches.fast_forward("dev")


@pytest.mark.parametrize("change", [_recreate, _rename_another, _alter, _branch])
def test_every_other_change_through_another_name_is_seen(
    warehouse: Path, options: dict[str, str], change: Change
) -> None:
    reader = lakelet.connect(warehouse.parent / "link", options)
    assert ids(reader) == [1]
    change(lakelet.connect(warehouse))
    fresh = lakelet.connect(warehouse).table("shop.orders")
    assert reader.table("shop.orders").scan().to_arrow() == fresh.scan().to_arrow()


def test_only_the_folder_itself_and_folders_that_are_gone_match(warehouse: Path) -> None:
    orders, gone = TableCacheKey("lakelet", "shop", "orders"), TableCacheKey("lakelet", "shop", "gone")
    make(lakelet.connect(warehouse), "shop.items", 1)
    cached = [orders, orders.on_branch("dev"), TableCacheKey("lakelet", "other", "orders"), gone]
    others = [TableCacheKey("lakelet", "shop", "items"), TableCacheKey("iceberg", "shop", "orders")]
    folder = str(warehouse.parent / "link" / "shop.db" / "orders")
    assert tables_in([folder, None], [*cached, *others], str(warehouse)) == cached
