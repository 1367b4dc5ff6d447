"""Metadata of many versions is read ahead, within a bound."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, Lock

import pytest

from lakelet import Lake
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.table.read.read_ahead import AHEAD, read_ahead


def test_results_come_in_order_and_no_more_than_the_bound_are_ahead() -> None:
    taken: list[int] = []

    def given() -> Iterator[int]:
        for number in range(40):
            taken.append(number)
            yield number

    found = []
    for number in read_ahead(lambda one: one * one, given()):
        found.append(number)
        assert len(taken) <= len(found) + AHEAD
    assert found == [number * number for number in range(40)]


def test_an_error_is_raised_where_its_result_is_asked_for() -> None:
    def read(number: int) -> int:
        if number == 5:
            raise ValueError("five")
        return number

    results = read_ahead(read, range(9))
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(ValueError, match="five"):
        next(results)
    # Whoever stops before it never sees it.
    assert next(iter(read_ahead(read, range(9)))) == 0


@pytest.mark.parametrize("count", [0, 1])
def test_what_is_alone_is_read_by_the_caller(count: int) -> None:
    with pytest.raises(StopIteration) if not count else pytest.raises(ValueError, match="alone"):
        next(read_ahead(_refuse, range(count)))


def _refuse(number: int) -> int:
    raise ValueError("alone")


class MeetingStore(DecoratedStore):
    """Answers the first read of a manifest only when a second one is under way."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.counts = False
        self.most = 0
        self._barrier = Barrier(2)
        self._started = 0
        self._now = 0
        self._lock = Lock()

    def get(self, path: str) -> bytes:
        if not self.counts or "/manifest/" not in path:
            return super().get(path)
        with self._lock:
            self._started += 1
            self._now += 1
            self.most = max(self.most, self._now)
            waits = self._started <= 2
        if waits:
            self._barrier.wait(300)
        with self._lock:
            self._now -= 1
        return super().get(path)


@pytest.mark.parametrize("limit", [{}, {"read.stream.maxRowsPerTrigger": "1000"}])
def test_a_stream_that_is_far_behind_reads_manifests_of_several_commits_at_once(limit: dict[str, str]) -> None:
    store = MeetingStore(MemoryStore())
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table("d.a", [("id", "BIGINT")], options={"write-only": "true"})
    for number in range(16):
        table.write([{"id": number}])
    stream = table.follow(0, options=limit)
    store.counts = True
    batch = stream.poll()
    store.counts = False
    assert batch is not None
    assert batch.snapshot == 16
    assert sorted(batch.to_arrow().column("id").to_pylist()) == list(range(16))
    assert 2 <= store.most <= AHEAD
