"""Threads that write, expire, tag, branch, roll back and read one table at once: no tag and no reader fails.

Every snapshot N of the line holds the rows 1 to N, so that any version can be told right from wrong by its rows alone.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.errors import AlreadyExistsError, LakeletError, NotFoundError
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from tests.unit.versioned_table import HOUR_MS, SetClock, expire, ids, put, table_on

VERSIONS = 30
LEAST_TURNS = 3


class Actors:
    """Runs functions in threads, some times each and until the writer is done; the first error of any is the test's."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.errors: list[BaseException] = []

    def run(self, writer: Callable[[], None], *others: Callable[[random.Random], None]) -> None:
        threads = [threading.Thread(target=self._repeat, args=(other, seed)) for seed, other in enumerate(others)]
        for thread in threads:
            thread.start()
        try:
            writer()
        finally:
            self.done.set()
            for thread in threads:
                thread.join()
        assert not self.errors, self.errors

    def _repeat(self, action: Callable[[random.Random], None], seed: int) -> None:
        chance, turns = random.Random(seed), 0
        while not self.errors and (turns < LEAST_TURNS or not self.done.is_set()):
            try:
                action(chance)
                turns += 1
            except BaseException as error:
                self.errors.append(error)


def seen_from_later(table: Table) -> Table:
    """The same table, an hour on: what is committed now is old enough to expire."""
    home = table.home
    return Table(table.name, TableHome(home.store, home.paths, SetClock(4_000_000_000_000)))


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path, durable=False)


def test_tags_and_branches_beside_expiry(store: ObjectStore) -> None:
    table = table_on(store, SetClock(), 1)
    later = seen_from_later(table)
    actors = Actors()
    made: list[str] = []

    def write() -> None:
        for number in range(2, VERSIONS + 1):
            # Every file is replaced, so that expiry has something to remove.
            rows = [{"id": id_, "p": "x"} for id_ in range(1, number + 1)]
            table.write(rows, mode="overwrite")

    def read(name: str, version: int) -> None:
        assert ids(table, tag=name) == list(range(1, version + 1))

    def tag(chance: random.Random) -> None:
        numbers = [snapshot.id for snapshot in _snapshots(table)]
        if not numbers:
            return
        version, name = chance.choice(numbers), f"t{chance.randrange(5)}-{threading.get_ident()}"
        try:
            table.tags.create(name, version)
        except NotFoundError:
            return
        made.append(name)
        read(name, version)
        table.tags.rename(name, f"{name}-renamed")
        read(f"{name}-renamed", version)
        other = table.tags.replace(f"{name}-renamed").snapshot_id
        read(f"{name}-renamed", other)
        table.tags.delete(f"{name}-renamed")

    def branch(chance: random.Random) -> None:
        numbers = [snapshot.id for snapshot in _snapshots(table)]
        if not numbers:
            return
        version = chance.choice(numbers)
        try:
            table.branches.create("dev", version=version)
        except NotFoundError:
            return
        dev = table.on_branch("dev")
        assert ids(dev) == list(range(1, version + 1))
        put(dev, 1000)
        expire(seen_from_later(dev))
        assert ids(dev) == [*range(1, version + 1), 1000]
        table.branches.delete("dev")

    actors.run(write, tag, tag, branch, lambda _: _expire(later))
    assert made
    assert ids(table) == list(range(1, VERSIONS + 1))
    assert [one.name for one in table.tags.list()] == []


def test_commits_beside_rollbacks(store: ObjectStore) -> None:
    """Whatever is rolled back, the line holds together: each version has the rows of the one before and its own."""
    table = table_on(store, SetClock(), 3)
    other = Table(table.name, TableHome(store, table.home.paths))
    actors = Actors()

    def write() -> None:
        for number in range(10, 10 + VERSIONS // 2):
            put(table, number)

    def roll_back(chance: random.Random) -> None:
        numbers = [snapshot.id for snapshot in _snapshots(other)]
        if len(numbers) > 1:
            other.rollback(max(numbers[0], numbers[-1] - chance.randrange(3)))

    actors.run(write, roll_back)
    numbers = [snapshot.id for snapshot in table.snapshots()]
    assert numbers == list(range(1, numbers[-1] + 1))
    before: list[int] = []
    for number in numbers:
        rows = ids(table, version=number)
        assert len(rows) == number
        assert set(before) <= set(rows)
        before = rows
    # The last write was never rolled back, or nothing after it was.
    put(table, 999)
    assert 999 in ids(table)
    assert table.tags.list() == []


def test_writers_on_branches_that_are_fast_forwarded(store: ObjectStore) -> None:
    table = table_on(store, SetClock(), 2)
    table.tags.create("two", 2)
    actors = Actors()
    forwarded: list[int] = []

    def write() -> None:
        for number in range(100, 100 + VERSIONS // 2):
            put(table, number)

    def forward(chance: random.Random) -> None:
        name = f"b{chance.randrange(10**9)}"
        tags = table.tags.list()
        table.branches.create(name, tag=chance.choice(tags).name)
        branch = table.on_branch(name)
        for _ in range(chance.randrange(1, 4)):
            put(branch, chance.randrange(1000, 10**6))
        rows = ids(branch)
        last = table.branches.fast_forward(name).id
        # What was committed on top of the branch's line meanwhile may stand there too.
        assert set(rows) <= set(ids(table, version=last))
        forwarded.append(last)
        try:
            table.tags.create(f"after-{name}")
        except AlreadyExistsError:
            return
        table.branches.delete(name)

    actors.run(write, forward)
    assert forwarded
    numbers = [snapshot.id for snapshot in table.snapshots()]
    assert numbers == list(range(1, numbers[-1] + 1))
    for number in numbers:
        assert len(ids(table, version=number)) == number


def _snapshots(table: Table) -> list:  # type: ignore[type-arg]
    """The snapshots that do not vanish while they are read."""
    try:
        return table.snapshots()
    except NotFoundError:
        return []


def _expire(table: Table) -> None:
    clock = table.home.clock
    assert isinstance(clock, SetClock)
    clock.now += HOUR_MS
    try:
        table.expire_snapshots(retain_last=2, retain_max=2)
    except LakeletError as error:
        raise AssertionError(f"expiry failed: {error}") from error
