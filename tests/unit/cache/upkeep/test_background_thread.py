"""The thread of the background refresh: it runs, stops, and ends with its owner."""

import gc
import os
import threading

from lakelet.cache.settings import CacheSettings
from lakelet.cache.upkeep.background_thread import BackgroundThread
from lakelet.options.staleness import MANUAL
from tests.unit.cache.fake_loader import TABLE, FakeTable, fake_cache

WAIT = 300.0


class Owner:
    def __init__(self) -> None:
        self.ran = threading.Event()


def test_it_runs_until_it_is_stopped_whatever_fails() -> None:
    owner, times = Owner(), []

    def run(one: Owner) -> None:
        times.append(1)
        if len(times) > 2:
            one.ran.set()
        raise OSError("the store is gone")

    thread = BackgroundThread(owner, run, 0.001)
    assert owner.ran.wait(WAIT)
    thread.stop()
    thread.join(WAIT)
    assert not thread.is_alive


def test_it_ends_with_its_owner() -> None:
    owner = Owner()
    thread = BackgroundThread(owner, lambda _: None, 3600.0)
    assert thread.is_alive
    del owner
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive


def test_a_cache_refreshes_its_tables_and_the_interval_can_be_changed() -> None:
    cache, loader = fake_cache(CacheSettings.of({"cache.staleness": str(MANUAL)}))
    cache.get_table_metadata(TABLE)
    assert cache._refresher is None
    loader.tables[TABLE] = FakeTable(101)
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 100
    seen = threading.Event()
    before = cache.refresh_tables

    def refreshed(matches: object) -> int:
        found = before(matches)
        seen.set()
        return found

    cache.refresh_tables = refreshed
    cache.configure(cache.settings.changed("cache.refresh-interval", "1 ms"))
    assert seen.wait(WAIT)
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 101
    thread = cache._refresher
    assert thread is not None
    cache.configure(cache.settings.changed("cache.refresh-interval", "0 s"))
    thread.join(WAIT)
    assert not thread.is_alive
    assert cache._refresher is None


def test_a_forked_process_has_no_thread() -> None:
    cache, _ = fake_cache(CacheSettings.of({"cache.refresh-interval": "1 h"}))
    assert cache._refresher is not None
    child = os.fork()
    if child == 0:
        os._exit(0 if cache._refresher is None and threading.active_count() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    cache.close()


def test_any_interval_can_be_given() -> None:
    cache, _ = fake_cache(CacheSettings.of({"cache.refresh-interval": "900000 d"}))
    assert cache._refresher is not None
    assert cache._refresher.is_alive
    cache.close()
    assert not cache._refresher.is_alive
