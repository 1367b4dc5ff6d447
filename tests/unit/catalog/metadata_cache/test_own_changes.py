"""Changes of Iceberg tables by this process reach every cache that may have the table, whatever its name there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.cache.bus import InProcessBus
from lakelet.cache.invalidation import Invalidation
from lakelet.cache.level import CacheLevel
from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.events import Committed, TableFormat, TableName, publish
from lakelet.iceberg.metadata import table_pointer
from tests.unit.iceberg.metadata.cached_lakes import CATALOG, FULL, NAME, appended, create, foreign, ids, opened, table


@pytest.fixture
def stale(tmp_path: Path) -> Lake:
    """A lake that shows no newer version until it hears of one."""
    made = opened(tmp_path, {"cache.staleness": "manual"}, listens=True)
    create(made)
    made.sql(f"INSERT INTO {FULL} VALUES (1, 'a', 0.5)")
    return made


def test_a_change_through_another_catalog_is_seen(stale: Lake, tmp_path: Path) -> None:
    assert ids(stale) == [1]
    uri = f"sqlite:///{tmp_path}/iceberg/catalog.db"
    given = {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/iceberg"}
    # The rows of a catalog's database have the catalog's name, and another lake may know it by the same one alone.
    other = opened(tmp_path / "elsewhere", {f"catalog.{CATALOG}.{key}": text for key, text in given.items()})
    other.sql(f"INSERT INTO {FULL} VALUES (2, 'b', 0.5)")
    assert ids(stale) == [1, 2]


@pytest.mark.parametrize("name", [NAME, NAME.upper()])
def test_the_name_is_matched_whatever_its_case_and_catalog(stale: Lake, tmp_path: Path, name: str) -> None:
    assert ids(stale) == [1]
    appended(foreign(tmp_path).load_table(NAME), 2)
    assert ids(stale) == [1]
    publish(Committed(TableName(TableFormat.ICEBERG, "shop.others", None, catalog="x"), "main", 7, "append"))
    assert ids(stale) == [1]
    publish(Committed(TableName(TableFormat.ICEBERG, name, None, catalog="x"), "main", 7, "append"))
    assert ids(stale) == [1, 2]


def test_a_look_that_was_under_way_at_a_change_does_not_count(
    stale: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale.cache.clear()
    load = table_pointer.load_table

    def overtaken(*arguments: Any) -> Any:
        found = load(*arguments)
        monkeypatch.setattr(table_pointer, "load_table", load)
        appended(foreign(tmp_path).load_table(NAME), 2)
        publish(Committed(TableName(TableFormat.ICEBERG, NAME, None, catalog=CATALOG), "main", 7, "append"))
        return found

    monkeypatch.setattr(table_pointer, "load_table", overtaken)
    assert len(table(stale).metadata.snapshots) == 1
    assert len(table(stale).metadata.snapshots) == 2


def test_a_dropped_table_leaves_the_cache(stale: Lake) -> None:
    ids(stale)
    stale.sql(f"DROP TABLE {FULL}")
    assert not any(stale.cache.is_in_cache(FULL, level) for level in CacheLevel)


class HeardBus(InProcessBus):
    """A bus that notes what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, str]] = []

    def send(self, invalidation: Invalidation, sender: object) -> None:
        self.heard.append((invalidation.kind.value, invalidation.table.table))
        super().send(invalidation, sender)


@pytest.mark.parametrize("staleness", ["manual", "strict"])
def test_caches_of_other_processes_are_told_where_staleness_is_allowed(tmp_path: Path, staleness: str) -> None:
    bus = HeardBus()
    lake = connect(tmp_path / "lake", {"cache.staleness": staleness}, bus=bus)
    lake.create_database("shop")
    made = lake.create_table("shop.orders", [("id", "INT")])
    bus.heard.clear()
    made.write(pa.table({"id": pa.array([1], pa.int32())}))
    made.alter(lambda schema: made.with_options(schema, {"snapshot.num-retained.max": "5"}))
    lake.drop_table("shop.orders")
    told = [("data_change", "orders"), ("alter_schema", "orders")] if staleness == "manual" else []
    assert bus.heard == [*told, ("drop_table", "orders")]
