"""The query history: 24 hours by the given clock, bounded, mergeable."""

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.upkeep.query_history import QueryHistory, merged
from tests.unit.cache.fake_loader import StoppedClock

HOUR = 3600.0


def key(name: str) -> TableCacheKey:
    return TableCacheKey("lakelet", "shop", name)


def test_the_hottest_come_first_and_ties_go_by_name() -> None:
    history = QueryHistory(StoppedClock())
    for name in "abcbcc":
        history.record(key(name))
    history.record(key("d"))
    assert history.hottest(3) == [(key("c"), 3), (key("b"), 2), (key("a"), 1)]
    assert history.hottest(0) == []
    assert len(history.hottest(100)) == 4


def test_queries_are_forgotten_after_24_hours() -> None:
    clock = StoppedClock()
    history = QueryHistory(clock)
    history.record(key("old"))
    clock.seconds = 10 * HOUR
    history.record(key("new"))
    clock.seconds = 23 * HOUR
    assert set(history.counts()) == {key("old"), key("new")}
    clock.seconds = 25 * HOUR
    assert history.counts() == {key("new"): 1}
    clock.seconds = 40 * HOUR
    assert history.hottest(5) == []


def test_memory_is_bounded_by_the_tables_asked_for_last() -> None:
    history = QueryHistory(StoppedClock(), most_tables=10)
    for number in range(100):
        history.record(key(f"t{number}"))
        history.record(key("always"))
    assert len(history.counts()) == 10
    assert history.counts()[key("always")] == 100
    assert len(history.take()) <= 10


def test_hours_of_one_table_are_bounded() -> None:
    clock = StoppedClock()
    history = QueryHistory(clock)
    for hour in range(1000):
        clock.seconds = hour * HOUR
        history.record(key("t"))
    assert history.counts() == {key("t"): 24}
    assert len(history.take()[key("t")]) <= 49


def test_counts_of_others_are_added_and_taken_once() -> None:
    clock = StoppedClock()
    clock.seconds = 100 * HOUR
    history = QueryHistory(clock)
    history.add({key("a"): {99: 5, 3: 1000}, key("gone"): {1: 7}})
    history.record(key("a"))
    assert history.counts() == {key("a"): 6}
    assert history.take() == {key("a"): {100: 1}}
    assert history.take() == {}
    total = merged([{key("a"): {99: 5, 3: 1}}, {key("a"): {99: 1}, key("b"): {100: 2}}], clock.now_ms())
    assert total == {key("a"): {99: 6}, key("b"): {100: 2}}


def test_a_clock_that_was_set_back_loses_nothing() -> None:
    clock = StoppedClock()
    clock.seconds = 100 * HOUR
    history = QueryHistory(clock)
    history.record(key("t"))
    clock.seconds = 90 * HOUR
    history.record(key("t"))
    assert history.counts() == {key("t"): 2}
