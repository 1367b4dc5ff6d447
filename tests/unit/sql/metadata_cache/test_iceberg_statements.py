"""SHOW PROC, ADMIN SET FRONTEND CONFIG and REFRESH on Iceberg catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.cache.level import CacheLevel
from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from tests.unit.iceberg.metadata.cached_lakes import CATALOG, FULL, create, ids, opened


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = opened(tmp_path)
    create(made)
    made.sql(f"INSERT INTO {FULL} VALUES (1, 'a', 0.5), (2, 'b', 1.5)")
    return made


@pytest.mark.parametrize("statement", [f"TABLE {FULL}", f"DATABASE {CATALOG}.shop", f"CATALOG {CATALOG}"])
def test_a_stale_table_is_as_new_as_the_last_refresh(lake: Lake, tmp_path: Path, statement: str) -> None:
    stale = opened(tmp_path, {"cache.staleness": "manual"})
    assert ids(stale) == [1, 2]
    lake.sql(f"INSERT INTO {FULL} VALUES (3, 'c', 2.5)")
    assert ids(stale) == [1, 2]
    stale.sql(f"REFRESH {statement}")
    assert ids(stale) == [1, 2, 3]


def test_the_report_of_a_table(lake: Lake) -> None:
    ids(lake)
    ids(lake)
    rows = lake.sql(f"SHOW PROC '/tiered_cache_stats/{CATALOG}/shop/orders'").rows()
    assert [row[0] for row in rows] == ["TableMetadata", "Snapshot", "Schema", "Partition"]
    snapshot = lake.cache.get_current_snapshot(FULL)
    assert snapshot is not None
    assert rows[0][-1] == f"current snapshot {snapshot.snapshot_id}, schema 0"
    assert rows[3][-1] == "loaded"
    assert all(row[2] > 0 for row in rows)
    for path in (f"/{CATALOG}", f"/{CATALOG}/shop", ""):
        assert len(lake.sql(f"SHOW PROC '/tiered_cache_stats{path}'").rows()) == 4


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("icebrg", "catalog 'icebrg' is not known.*iceberg"),
        (f"{CATALOG}/shp", f"database 'shp' is not in catalog {CATALOG}.*shop"),
        (f"{CATALOG}/shop/order", "table 'order' is not in shop.*orders"),
    ],
)
def test_an_unknown_path_suggests_the_nearest(lake: Lake, path: str, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        lake.sql(f"SHOW PROC '/tiered_cache_stats/{path}'")


def test_a_table_is_warmed_up_and_invalidated(lake: Lake, tmp_path: Path) -> None:
    other = opened(tmp_path)
    (said,) = other.sql(f'ADMIN SET FRONTEND CONFIG ("warmup_tables" = "{FULL}, {CATALOG}.shop.nothing")').rows()
    assert f"loaded {FULL}" in said[0]
    assert f"{CATALOG}.shop.nothing was not loaded" in said[0]
    levels = [CacheLevel.TABLE_METADATA, CacheLevel.SNAPSHOT, CacheLevel.SCHEMA]
    assert all(other.cache.is_in_cache(FULL, level) for level in levels)
    other.sql(f'ADMIN SET FRONTEND CONFIG ("invalidate_table_cache" = "{FULL}")')
    assert not any(other.cache.is_in_cache(FULL, level) for level in CacheLevel)
    ids(other)
    other.sql(f'ADMIN SET FRONTEND CONFIG ("invalidate_catalog_cache" = "{CATALOG}")')
    assert not any(other.cache.is_in_cache(FULL, level) for level in CacheLevel)
    assert ids(other) == [1, 2]
