"""`lakelet cache stats|warm|clear`."""

import pytest

from lakelet import Lake, connect
from tests.unit.cli.conftest import Run


@pytest.fixture
def lake(warehouse: str) -> Lake:
    lake = connect(warehouse)
    lake.create_database("shop")
    for name in ("orders", "items"):
        lake.create_table(f"shop.{name}", [("id", "BIGINT")]).write([{"id": 1}])
    return lake


@pytest.mark.usefixtures("lake")
def test_the_levels_are_shown(run: Run) -> None:
    rows = run("cache", "stats", "--json").objects[0]["rows"]
    assert [row["level"] for row in rows] == ["TableMetadata", "Snapshot", "Schema", "Partition"]
    assert all(row["hits"] > 0 and row["bytes"] > 0 for row in rows[:3])
    assert "TableMetadata" in run("cache", "stats", "shop.orders").out


@pytest.mark.usefixtures("lake")
def test_tables_are_loaded_and_dropped(run: Run) -> None:
    assert run("cache", "warm", "shop.orders", "--json").objects[0]["tables"] == 1
    assert run("cache", "warm", "--json").objects[0]["tables"] == 2
    assert run("cache", "clear", "--json").objects[0]["bytes left"] == 0


@pytest.mark.usefixtures("lake")
def test_a_table_that_is_not_there_is_named(run: Run) -> None:
    ran = run("cache", "warm", "shop.gone", "shop.orders")
    assert ran.code != 0
    assert "shop.gone" in ran.err
