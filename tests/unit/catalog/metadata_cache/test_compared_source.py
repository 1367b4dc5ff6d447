"""Compatibility mode: the store's answer, both run, differences counted and logged. Rollout: tables that are not served."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from lakelet.cache.upkeep.rollout import place
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.native_source import SNAPSHOT
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing import CountingStore

NAME = "shop.orders"
KEY = TableCacheKey("lakelet", "shop", "orders")


def opened(store: ObjectStore, **options: str) -> Lake:
    source = cached_metadata(store, CacheSettings.of(options), listens=False)
    return Lake(store, metadata=source, cache=source.cache)


@pytest.fixture
def store() -> MemoryStore:
    found = MemoryStore()
    lake = Lake(found)
    lake.create_database("shop")
    table = lake.create_table(NAME, [("id", "BIGINT NOT NULL"), ("dt", "STRING")], partitioned_by=["dt"])
    for number in range(3):
        table.write([{"id": number, "dt": f"d{number % 2}"}])
    return found


def compared(store: ObjectStore) -> Lake:
    return opened(store, tiered_cache_compatibility_mode="true")


def test_both_are_run_and_agree(store: MemoryStore) -> None:
    lake = compared(store)
    writer = Lake(store)
    for number in range(3):
        for where in (None, "dt = 'd1'"):
            assert lake.table(NAME).scan(where=where).plan() == writer.table(NAME).scan(where=where).plan()
        assert len(lake.sql(f"SELECT * FROM {NAME}").rows()) == 3 + number
        writer.table(NAME).write([{"id": number, "dt": "d1"}])
    metrics = lake.cache.get_all_metrics()
    assert metrics.comparisons > 10
    assert metrics.differences == 0
    assert metrics.counters()["compatibility_differences"] == 0
    assert metrics.level_stats[CacheLevel.TABLE_METADATA].hit_count > 0


def test_a_wrong_pointer_is_told_and_the_store_answers(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = compared(store)
    assert len(lake.table(NAME).scan().to_arrow()) == 3
    known = lake.cache.pointers.known(KEY, SNAPSHOT)
    wrong = replace(known, snapshot=replace(known.snapshot, id=77))
    # A revalidation that finds every pointer right.
    monkeypatch.setattr("lakelet.catalog.metadata_cache.native_source.newest_snapshot", lambda _, known: known)
    lake.cache.pointers.announce(KEY, SNAPSHOT, wrong, 100)
    with caplog.at_level(logging.ERROR):
        assert len(lake.table(NAME).scan().to_arrow()) == 3
    assert lake.cache.get_all_metrics().differences >= 1
    assert "lakelet.shop.orders" in caplog.text


def test_a_wrong_manifest_list_is_told(store: MemoryStore) -> None:
    lake = compared(store)
    lake.table(NAME).scan().plan()
    tier = lake.cache.tiers[CacheLevel.SNAPSHOT]
    for key in tier.live_keys(KEY):
        if getattr(key, "name", ("",))[0] == "manifest list":
            tier.put(key, (), 10)
    expected = Lake(store).table(NAME).scan(where="id >= 0").plan()
    assert lake.table(NAME).scan(where="id >= 0").plan() == expected
    assert lake.cache.get_all_metrics().differences >= 1


def test_a_failure_of_the_cache_is_a_difference(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelet.errors import CorruptionError

    lake = compared(store)
    lake.table(NAME).scan().plan()

    def fail(*_: object) -> None:
        raise CorruptionError("made up")

    monkeypatch.setattr("lakelet.catalog.metadata_cache.native_source.newest_snapshot", fail)
    assert len(lake.table(NAME).scan().to_arrow()) == 3
    assert lake.cache.get_all_metrics().differences >= 1


def test_a_commit_between_the_two_reads_is_no_difference(store: MemoryStore) -> None:
    writer = Lake(store)

    class Busy(CountingStore):
        """Somebody commits whenever the pointer was read."""

        busy = False
        commits = 0

        def get(self, path: str) -> bytes:
            data = super().get(path)
            if self.busy and self.commits < 40 and path.endswith("LATEST"):
                self.busy = False
                self.commits += 1
                writer.table(NAME).write([{"id": 1, "dt": "d1"}])
                self.busy = True
            return data

    busy = Busy(store)
    lake = compared(busy)
    lake.table(NAME).scan().plan()
    busy.busy = True
    for _ in range(5):
        lake.table(NAME).scan().plan()
    assert busy.commits > 5
    assert lake.cache.get_all_metrics().differences == 0


def test_it_is_switched_while_the_lake_is_open(store: MemoryStore) -> None:
    lake = opened(store)
    lake.table(NAME).scan().plan()
    assert lake.cache.get_all_metrics().comparisons == 0
    lake.sql('ADMIN SET FRONTEND CONFIG ("tiered_cache_compatibility_mode" = "true")')
    lake.table(NAME).scan().plan()
    found = lake.cache.get_all_metrics().comparisons
    assert found > 0
    lake.sql('ADMIN SET FRONTEND CONFIG ("tiered_cache_compatibility_mode" = "false")')
    lake.table(NAME).scan().plan()
    assert lake.cache.get_all_metrics().comparisons == found


def test_only_tables_within_the_percentage_are_cached(store: MemoryStore) -> None:
    at = place(KEY)
    for percentage, is_cached in ((0, False), (at, False), (at + 1, True), (100, True)):
        counted = CountingStore(store)
        lake = opened(counted, tiered_cache_rollout_percentage=str(percentage))
        lake.table(NAME).scan().plan()
        counted.reset()
        assert len(lake.table(NAME).scan().plan().splits) > 0
        read = [path for _, path in counted.log if "/manifest/" in path]
        assert bool(read) is not is_cached
        assert lake.cache.is_in_cache(NAME, CacheLevel.PARTITION) is is_cached


@pytest.mark.parametrize("text", ["-1", "101", "half", ""])
def test_other_percentages_are_refused(store: MemoryStore, text: str) -> None:
    from lakelet.errors import InvalidError

    lake = opened(store)
    with pytest.raises(InvalidError, match="tiered_cache_rollout_percentage"):
        lake.sql(f"ADMIN SET FRONTEND CONFIG (\"tiered_cache_rollout_percentage\" = '{text}')")
    assert lake.cache.settings.rollout_percentage == 100
