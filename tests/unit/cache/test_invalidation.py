"""Which levels each kind of change invalidates, to the letter, and which it leaves."""

import pytest

from lakelet.cache.invalidation import InvalidationType, Scope, invalidated_levels, scope_of
from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from tests.unit.cache.fake_loader import CATALOG, TABLE, FakeTable, fake_cache

LEVELS = {
    InvalidationType.DROP_TABLE: (1, 2, 3, 4),
    InvalidationType.ALTER_SCHEMA: (3, 4),
    InvalidationType.DATA_CHANGE: (2, 4),
    InvalidationType.METADATA_REFRESH: (1, 2, 4),
    InvalidationType.PARTITION_REFRESH: (4,),
    InvalidationType.CATALOG_REFRESH: (1, 2, 3, 4),
    InvalidationType.DATABASE_REFRESH: (1, 2, 3, 4),
}
BESIDE = TableCacheKey(CATALOG, "db", "beside")
ELSEWHERE = TableCacheKey(CATALOG, "other", "table")


def test_every_kind_is_listed_here() -> None:
    assert set(LEVELS) == set(InvalidationType)


@pytest.mark.parametrize("kind", InvalidationType)
def test_the_levels_of_each_kind(kind: InvalidationType) -> None:
    assert sorted(level.number for level in invalidated_levels(kind)) == list(LEVELS[kind])


@pytest.mark.parametrize("kind", InvalidationType)
def test_exactly_these_levels_leave_the_cache(kind: InvalidationType) -> None:
    cache, loader = fake_cache()
    loader.tables.update({BESIDE: FakeTable(), ELSEWHERE: FakeTable()})
    for table in (TABLE, BESIDE, ELSEWHERE):
        cache.get_complete_metadata(table, include_partitions=True)
    cache.invalidate(TABLE, kind)
    scope = scope_of(kind)
    for table in (TABLE, BESIDE, ELSEWHERE):
        covered = (
            table == TABLE or scope is Scope.CATALOG or (scope is Scope.DATABASE and table.database == TABLE.database)
        )
        left = [level.number for level in CacheLevel if cache.is_in_cache(table, level)]
        gone = set(LEVELS[kind]) if covered else set()
        assert left == [number for number in (1, 2, 3, 4) if number not in gone], (kind, table)


@pytest.mark.parametrize("kind", InvalidationType)
def test_what_was_invalidated_is_checked_and_loaded_again(kind: InvalidationType) -> None:
    cache, loader = fake_cache()
    cache.get_complete_metadata(TABLE, include_partitions=True)
    loader.tables[TABLE] = FakeTable(101, 1)
    cache.invalidate(TABLE, kind)
    found = cache.get_complete_metadata(TABLE, include_partitions=True)
    assert found.snapshot is not None
    assert found.snapshot.snapshot_id == 101
    assert found.schema is not None
    assert found.schema.schema_id == 1
    assert found.partitions is not None
    assert found.partitions.snapshot_id == 101


def test_a_dropped_table_takes_its_branches_with_it() -> None:
    cache, loader = fake_cache()
    branch = TABLE.on_branch("dev")
    loader.tables[branch] = FakeTable()
    cache.get_complete_metadata(branch)
    cache.invalidate_table(TABLE)
    assert not cache.is_in_cache(branch, CacheLevel.TABLE_METADATA)
