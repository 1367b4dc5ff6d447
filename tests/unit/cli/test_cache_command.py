"""`lakelet cache stats|warm|clear`."""

from pathlib import Path

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


def test_the_hottest_tables_are_loaded_from_a_persisted_history(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"cache.persist-folder": str(tmp_path / "cache")}
    monkeypatch.setenv("LAKELET_WAREHOUSE", str(tmp_path / "lake"))
    lake = connect(tmp_path / "lake", options)
    lake.create_database("shop")
    for name in ("shop.orders", "shop.items"):
        lake.create_table(name, [("id", "BIGINT")]).scan().to_arrow()
    lake.table("shop.orders").scan().to_arrow()
    lake.cache.persist()
    given = [text for key, value in options.items() for text in ("--option", f"{key}={value}")]
    assert run("cache", "warm", "--hottest", "1", "--json", *given).objects[0]["tables"] == 1
    assert run("cache", "warm", "--hottest", "9", "--json").objects[0]["tables"] == 0
    assert run("cache", "warm", "--hottest", "1", "shop.orders").code != 0


def test_alerts_are_shown(run: Run, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "alert" not in run("cache", "stats").out
    monkeypatch.setattr("lakelet.cache.upkeep.alerts.LEAST_REQUESTS", 1)
    shown = run("cache", "stats").out
    assert "cache_hit_ratio_level2" in shown
    assert "iceberg_snapshot_cache_expire_seconds" in shown


@pytest.mark.usefixtures("lake")
def test_differences_of_compatibility_mode_are_shown(run: Run) -> None:
    shown = run("cache", "stats", "--json", "--option", "tiered_cache_compatibility_mode=true").objects
    assert shown[1]["comparisons"] > 0
    assert shown[1]["differences"] == 0
    assert len(run("cache", "stats", "--json").objects) == 1
