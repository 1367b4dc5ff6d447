"""Consumers: what they need next, and that expiry leaves it."""

from collections.abc import Callable

import pytest

from lakelet.commit.versions.consumers import min_next_snapshot
from lakelet.errors import CorruptionError, InvalidError, LakeletError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.versioned_table import SetClock, expire, numbers, table_on


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    return table_on(store, SetClock(), 5)


def test_set_get_list_reset_delete(store: MemoryStore, table: Table) -> None:
    assert min_next_snapshot(table.home) is None
    table.consumers.set("b", 4)
    table.consumers.set("a", 2)
    assert store.get("d.db/t/consumer/consumer-a") == b'{\n  "nextSnapshot": 2\n}'
    assert (table.consumers.get("b"), min_next_snapshot(table.home)) == (4, 2)
    assert [(consumer.id, consumer.next_snapshot) for consumer in table.consumers.list()] == [("a", 2), ("b", 4)]
    table.consumers.reset("a", 9)
    assert min_next_snapshot(table.home) == 4
    table.consumers.delete("b")
    table.consumers.delete("b", if_exists=True)
    assert [consumer.id for consumer in table.consumers.list()] == ["a"]


def test_expiry_leaves_what_a_consumer_needs(table: Table) -> None:
    table.consumers.set("reader", 3)
    expire(table)
    assert numbers(table) == [3, 4, 5]
    table.consumers.delete("reader")
    expire(table)
    assert numbers(table) == [5]


def test_consumers_that_nobody_renews_expire(store: MemoryStore, table: Table) -> None:
    table.consumers.set("a", 2)
    info = store.head("d.db/t/consumer/consumer-a")
    assert info is not None
    clock = table.home.clock
    assert isinstance(clock, SetClock)
    clock.now = info.modified_ms + 60_000
    assert table.consumers.expire() == []
    assert table.consumers.expire("2 min") == []
    assert table.consumers.expire("1 min") == ["a"]
    table.set_options({"consumer.expiration-time": "1 min"})
    table.consumers.set("b", 2)
    clock.now += 3_600_000
    assert table.consumers.expire() == ["b"]
    assert table.consumers.list() == []


BAD: dict[str, tuple[Callable[[Table], object], type[LakeletError], str]] = {
    "get none": (lambda t: t.consumers.get("none"), NotFoundError, "consumer 'none' is not in .*: none"),
    "reset none": (lambda t: t.consumers.reset("none", 1), NotFoundError, "consumer 'none'"),
    "delete none": (lambda t: t.consumers.delete("none"), NotFoundError, "consumer 'none'"),
    "blank": (lambda t: t.consumers.set(" ", 1), InvalidError, "consumer id ' '"),
    "slash": (lambda t: t.consumers.set("a/b", 1), InvalidError, "consumer id 'a/b'"),
    "zero": (lambda t: t.consumers.set("a", 0), InvalidError, "next snapshot 0"),
    "text": (lambda t: t.consumers.set("a", "1"), InvalidError, "next snapshot '1'"),  # type: ignore[arg-type]
    "age": (lambda t: t.consumers.expire("long"), InvalidError, "older_than 'long'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(store: MemoryStore, table: Table, name: str) -> None:
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call(table)
    assert not list(store.list("d.db/t/consumer"))


def test_a_damaged_file_is_named(store: MemoryStore, table: Table) -> None:
    store.put("d.db/t/consumer/consumer-x", b"{}")
    with pytest.raises(CorruptionError, match="consumer-x: not a consumer file"):
        table.consumers.list()
