"""Tables that are asked for together, by one thread, within seconds."""

import threading

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.upkeep.companion_tables import CompanionTables
from tests.unit.cache.fake_loader import StoppedClock


def key(name: str) -> TableCacheKey:
    return TableCacheKey("lakelet", "shop", name)


def ask(tables: CompanionTables, clock: StoppedClock, names: str, *, pause: float = 60.0) -> None:
    """One statement that names these tables, and a pause."""
    for name in names:
        tables.record(key(name))
    clock.seconds += pause


def test_a_table_has_companions_once_they_followed_often_enough() -> None:
    clock = StoppedClock()
    tables = CompanionTables(clock)
    for _ in range(2):
        ask(tables, clock, "ab")
    assert tables.of(key("a")) == []
    ask(tables, clock, "ab")
    assert tables.of(key("a")) == [key("b")]
    assert tables.of(key("b")) == []
    for _ in range(4):
        ask(tables, clock, "a")
    assert tables.of(key("a")) == []


def test_tables_long_after_one_another_are_no_companions() -> None:
    clock = StoppedClock()
    tables = CompanionTables(clock)
    for _ in range(10):
        ask(tables, clock, "a", pause=6.0)
        ask(tables, clock, "b", pause=60.0)
    assert tables.of(key("a")) == []
    for _ in range(20):
        ask(tables, clock, "a", pause=4.0)
        ask(tables, clock, "b", pause=60.0)
    assert tables.of(key("a")) == [key("b")]


def test_threads_do_not_mix() -> None:
    clock = StoppedClock()
    tables = CompanionTables(clock)
    for _ in range(5):
        tables.record(key("a"))
        other = threading.Thread(target=tables.record, args=(key("b"),))
        other.start()
        other.join()
        clock.seconds += 60
    assert tables.of(key("a")) == []


def test_what_is_counted_is_bounded() -> None:
    clock = StoppedClock()
    tables = CompanionTables(clock)
    for number in range(5000):
        tables.record(key("a"))
        tables.record(key(f"t{number}"))
    pairs = tables.pairs()
    assert len(pairs) <= 2000
    assert all(len(by) <= 8 for _, _, by in pairs)


def test_counts_of_an_earlier_process_are_taken_over() -> None:
    tables = CompanionTables(StoppedClock())
    tables.add(key("a"), 10, {key("b"): 9, key("c"): 2})
    assert tables.of(key("a")) == [key("b")]
