"""The four levels of an Iceberg table, as `lake.cache` has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.cache.level import CacheLevel
from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from lakelet.iceberg.branches import create_branch
from tests.unit.iceberg.metadata.cached_lakes import CATALOG, FULL, NAME, appended, create, foreign, opened, table


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = opened(tmp_path)
    create(made)
    made.sql(f"INSERT INTO {FULL} VALUES (1, 'a', 0.5), (2, 'b', 1.5), (3, 'b', NULL)")
    return made


def test_level_1_says_where_the_table_is_and_what_is_current(lake: Lake) -> None:
    found, loaded = lake.cache.get_table_metadata(FULL), table(lake)
    assert found.metadata_location == loaded.library.metadata_location
    assert found.table_location == loaded.location
    assert (found.table_format, found.format_version, found.is_partitioned) == ("iceberg", 2, True)
    assert found.current_snapshot_id == loaded.snapshot_id()
    assert lake.cache.get_table_metadata(FULL) is found


def test_level_2_counts_files_rows_and_deletes(lake: Lake, tmp_path: Path) -> None:
    first = lake.cache.get_current_snapshot(FULL)
    assert first is not None
    assert (first.total_records, first.total_data_files, first.total_delete_files) == (3, 2, 0)
    assert lake.cache.get_current_snapshot(FULL) is first
    appended(foreign(tmp_path).load_table(NAME), 4)
    second = lake.cache.get_current_snapshot(FULL)
    assert second is not None
    assert (second.total_records, second.total_data_files, second.parent_snapshot_id) == (4, 3, first.snapshot_id)
    assert lake.cache.get_snapshot(FULL, first.snapshot_id) is first
    with pytest.raises(NotFoundError, match=f"table {FULL} has no snapshot 5"):
        lake.cache.get_snapshot(FULL, 5)


def test_level_3_has_the_schemas(lake: Lake, tmp_path: Path) -> None:
    first = lake.cache.get_current_schema(FULL)
    assert [column.name for column in first.columns] == ["id", "dt", "v"]
    assert [column.name for column in first.partition_columns] == ["dt"]
    with foreign(tmp_path).load_table(NAME).update_schema() as update:
        update.delete_column("v")
    assert [column.name for column in lake.cache.get_current_schema(FULL).columns] == ["id", "dt"]
    assert [column.name for column in lake.cache.get_schema(FULL, 0).columns] == ["id", "dt", "v"]
    with pytest.raises(NotFoundError, match=f"table {FULL} has no schema 9; there are 0, 1"):
        lake.cache.get_schema(FULL, 9)


def test_level_4_has_partitions_with_counts_and_bounds(lake: Lake, tmp_path: Path) -> None:
    found = lake.cache.get_partitions(FULL)
    assert found is not None
    assert list(found.partitions) == ["dt=a", "dt=b"]
    one = found.partitions["dt=b"]
    assert (one.partition_spec, one.record_count, one.file_count) == ({"dt": "b"}, 2, 1)
    assert (one.lower_bounds, one.upper_bounds) == ({1: "2", 2: "b", 3: "1.5"}, {1: "3", 2: "b", 3: "1.5"})
    assert lake.cache.get_partitions(FULL) is found
    lake.sql(f"INSERT INTO {FULL} VALUES (9, 'b', NULL), (0, NULL, 0.0)")
    after = lake.cache.get_partitions(FULL)
    assert after is not None
    assert sorted(after.partitions) == ["dt=a", "dt=b", "dt=null"]
    # A file of NULLs alone does not widen bounds.
    assert after.partitions["dt=b"].upper_bounds == {1: "9", 2: "b", 3: "1.5"}
    assert len(after.partitions["dt=b"].manifest_files) == 2
    assert after.partitions["dt=null"].partition_spec == {"dt": None}
    lake.sql(f"DELETE FROM {FULL} WHERE dt = 'a'")
    last = lake.cache.get_partitions(FULL)
    assert last is not None
    assert "dt=a" not in last.partitions


def test_a_branch_has_its_own_snapshot(lake: Lake) -> None:
    loaded = lake.catalogs.open(CATALOG).table(NAME)
    create_branch(loaded, "dev")
    lake.sql(f"INSERT INTO {CATALOG}.shop.orders$branch_dev VALUES (7, 'c', 7.0)")
    main, dev = lake.cache.get_current_snapshot(FULL), lake.cache.get_current_snapshot(f"{FULL}@dev")
    assert main is not None
    assert dev is not None
    assert (main.total_records, dev.total_records) == (3, 4)
    with pytest.raises(NotFoundError, match="has no branch 'other'"):
        lake.cache.get_current_snapshot(f"{FULL}@other")


def test_a_table_without_rows(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE {CATALOG}.shop.empty (id BIGINT)")
    name = f"{CATALOG}.shop.empty"
    assert lake.cache.get_table_metadata(name).current_snapshot_id is None
    assert lake.cache.get_current_snapshot(name) is None
    assert lake.cache.get_partitions(name) is None
    assert not lake.cache.get_table_metadata(name).is_partitioned


def test_a_refresh_says_what_has_changed(lake: Lake, tmp_path: Path) -> None:
    lake.cache.get_complete_metadata(FULL, include_partitions=True)
    appended(foreign(tmp_path).load_table(NAME), 4)
    assert lake.cache.refresh_table(FULL).snapshot_changed
    with foreign(tmp_path).load_table(NAME).update_schema() as update:
        update.rename_column("v", "w")
    found = lake.cache.refresh_table(FULL)
    assert (found.snapshot_changed, found.schema_changed) == (False, True)
    found = lake.cache.refresh_table(FULL)
    assert (found.snapshot_changed, found.schema_changed) == (False, False)
    foreign(tmp_path).drop_table(NAME)
    with pytest.raises(NotFoundError):
        lake.cache.refresh_table(FULL)
    assert not any(lake.cache.is_in_cache(FULL, level) for level in CacheLevel)


def test_an_unknown_catalog_or_table(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="catalog 'icebrg' is not cached"):
        lake.cache.get_table_metadata("icebrg.shop.orders")
    with pytest.raises(NotFoundError, match=r"shop\.order"):
        lake.cache.get_table_metadata(f"{CATALOG}.shop.order")
