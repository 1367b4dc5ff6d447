"""Warm-up of named tables and of the hottest: levels 1 to 3, several at a time, and a failure stops no other."""

import threading
from typing import Any

import pytest

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.warm_up import warm_up, warm_up_hottest
from tests.unit.cache.fake_loader import CATALOG, FakeTable, fake_cache

NAMES = [TableCacheKey(CATALOG, "db", f"t{number}") for number in range(30)]


def test_levels_1_to_3_of_the_hottest_are_loaded() -> None:
    cache, loader = fake_cache()
    loader.tables.update({key: FakeTable() for key in NAMES})
    for number, key in enumerate(NAMES):
        for _ in range(number + 1):
            cache.upkeep.history.record(key)
    done = warm_up_hottest(cache, 5)
    assert done.loaded == tuple(str(key) for key in reversed(NAMES[-5:]))
    assert all(cache.is_in_cache(NAMES[-1], level) for level in list(CacheLevel)[:3])
    assert not cache.is_in_cache(NAMES[-1], CacheLevel.PARTITION)
    assert not cache.is_in_cache(NAMES[-6], CacheLevel.TABLE_METADATA)
    assert warm_up_hottest(cache, 0).loaded == ()


@pytest.mark.parametrize("error", [OSError("no network"), RecursionError(), KeyError("x")], ids=repr)
def test_a_failure_of_any_kind_stops_no_other(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, loader = fake_cache()
    loader.tables.update({key: FakeTable() for key in NAMES[1:]})
    load = loader.schema

    def fail(key: Any) -> Any:
        if key.table == NAMES[3]:
            raise error
        return load(key)

    monkeypatch.setattr(loader, "schema", fail)
    done = warm_up(cache, NAMES)
    assert [name for name, _ in done.failed] == [str(NAMES[0]), str(NAMES[3])]
    assert all(reason for _, reason in done.failed)
    assert len(done.loaded) == len(NAMES) - 2


def test_ten_are_loaded_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, loader = fake_cache()
    loader.tables.update({key: FakeTable() for key in NAMES})
    together = threading.Barrier(10)
    load = loader.snapshot

    def wait(key: Any) -> Any:
        together.wait(300)
        return load(key)

    monkeypatch.setattr(loader, "snapshot", wait)
    assert len(warm_up(cache, NAMES).loaded) == 30
