"""Random changes by several lakes against readers with caches: none of them ever differs from a reader without one.

The lakes share a store. One listens to changes of its process and is allowed to be stale until then, so that every change has to
be published; the others hear of nothing, as if each was a process of its own, and revalidate at every query, call by call or in
two round trips; one answers from the store and compares its cache with it. All of them change the table, too. After every change
a lake is opened anew that starts with what the one before it has persisted.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.native_codec import NativeCodec
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.commit.metadata.source import UNCACHED, metadata
from lakelet.commit.metadata.version_ids import schema_ids, snapshot_ids
from lakelet.errors import LakeletError
from lakelet.storage.memory import MemoryStore
from lakelet.table.table import Table
from tests.tiers.examples import examples
from tests.unit.versioned_table import HOUR_MS, SetClock

NAME = "shop.orders"
COLUMNS = (("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("v", "BIGINT"))
OTHER_COLUMNS = (("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("w", "STRING"))
Step = tuple[int, str, int]


class Lakes:
    """The lakes that share a store: the first without a cache, the second stale until an event, the others deaf and strict; the
    last one compares its cache with the store."""

    def __init__(self, *, keyed: bool, small: bool) -> None:
        self.store = MemoryStore()
        self.clock = SetClock()
        self.keyed = keyed
        limits = {"cache.max-bytes": "20 kb"} if small else {}
        self.all = [
            Lake(self.store, clock=self.clock),
            self._cached({**limits, "cache.staleness": "manual"}, listens=True),
            self._cached(limits, parallel=False),
            self._cached(limits, parallel=True),
            self._cached({**limits, "tiered_cache_compatibility_mode": "true"}),
        ]
        # What the restarted lakes leave to one another.
        self.persisted = tempfile.TemporaryDirectory()
        self.all[0].create_database("shop")
        self.create(COLUMNS)

    def create(self, columns: Any, lake: int = 0) -> None:
        self.all[lake].create_table(
            NAME,
            list(columns),
            primary_key=["id", "dt"] if self.keyed else (),
            partitioned_by=["dt"],
            options={"bucket": "1"} if self.keyed else {},
        )

    def restarted(self) -> Lake:
        """The lake of a process that finds what an earlier one has persisted, and may be stale once it has looked."""
        options = {"cache.persist-folder": self.persisted.name, "cache.staleness": "manual"}
        source = cached_metadata(self.store, CacheSettings.of(options), listens=False)
        # Stores in memory are not persisted otherwise, since they end with their process.
        source.cache.upkeep.register_codec("lakelet", NativeCodec(weakref.ref(source.cache)))
        source.cache.upkeep.persist_in("a store in memory")
        return Lake(self.store, clock=self.clock, metadata=source, cache=source.cache)

    def _cached(self, options: dict[str, str], *, listens: bool = False, parallel: bool = False) -> Lake:
        source = cached_metadata(self.store, CacheSettings.of(options), listens=listens, parallel=parallel)
        return Lake(self.store, clock=self.clock, metadata=source, cache=source.cache)


def rows(table: Table, number: int) -> pa.Table:
    ids = [number % 5, number % 7 + 5]
    values: dict[str, list[Any]] = {"id": ids, "dt": [f"d{number % 3}", f"d{number % 2}"]}
    for field in table.schema.fields[2:]:
        values[field.name] = [number, number + 1] if "INT" in str(field.type) else [str(number), None]
    return pa.table(values)


def write(lakes: Lakes, table: Table, number: int) -> None:
    table.write(rows(table, number))


def overwrite(lakes: Lakes, table: Table, number: int) -> None:
    table.write(rows(table, number), mode="overwrite_partitions")


def add_column(lakes: Lakes, table: Table, number: int) -> None:
    table.add_column(f"c{number}", "STRING")


def set_option(lakes: Lakes, table: Table, number: int) -> None:
    table.set_options({"source.split.target-size": f"{number + 1} mb"})


def roll_back(lakes: Lakes, table: Table, number: int) -> None:
    ids = snapshot_ids(table.home.uncached())
    if ids:
        table.rollback(to=ids[number % len(ids)])


def roll_back_and_commit_again(lakes: Lakes, table: Table, number: int) -> None:
    ids = snapshot_ids(table.home.uncached())
    if len(ids) > 1:
        table.rollback(to=ids[-2])
        table.write(rows(table, number + 3))


def roll_back_to_tag(lakes: Lakes, table: Table, number: int) -> None:
    table.rollback(to=f"t{number % 2}")


def tag(lakes: Lakes, table: Table, number: int) -> None:
    name = f"t{number % 2}"
    if any(found.name == name for found in table.tags.list()):
        table.tags.delete(name)
    table.tags.create(name)


def branch(lakes: Lakes, table: Table, number: int) -> None:
    ids = snapshot_ids(table.home.uncached())
    if "dev" in table.branches.list():
        table.branches.delete("dev")
    elif ids:
        table.branches.create("dev", version=ids[number % len(ids)])


def write_branch(lakes: Lakes, table: Table, number: int) -> None:
    other = table.on_branch("dev")
    if number % 3 == 0:
        other.add_column(f"b{number}", "BIGINT")
    other.write(rows(other, number + 1))


def fast_forward(lakes: Lakes, table: Table, number: int) -> None:
    table.branches.fast_forward("dev")


def expire(lakes: Lakes, table: Table, number: int) -> None:
    lakes.clock.now += 48 * HOUR_MS
    table.expire_snapshots(retain_last=number % 2 + 1)


def compact(lakes: Lakes, table: Table, number: int) -> None:
    table.compact(full=number % 2 == 0)


def recreate(lakes: Lakes, table: Table, number: int) -> None:
    lakes.all[number % 4].drop_table(NAME)
    lakes.create(OTHER_COLUMNS if number % 2 else COLUMNS, number % 3)


CHANGES: dict[str, Callable[[Lakes, Table, int], None]] = {
    change.__name__: change
    for change in (
        write,
        overwrite,
        add_column,
        set_option,
        roll_back,
        roll_back_and_commit_again,
        roll_back_to_tag,
        tag,
        branch,
        write_branch,
        fast_forward,
        expire,
        compact,
        recreate,
    )
}
STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["write", "write", *CHANGES]), st.integers(0, 9)), max_size=9
)


def check_pointers(table: Table) -> None:
    """What the source says of the newest versions, for commits and for queries, and of every schema version."""
    home = table.home
    for asked in (home, home.for_queries()):
        source = metadata(asked)
        assert source.latest_snapshot(asked) == UNCACHED.latest_snapshot(home)
        assert source.latest_schema(asked) == UNCACHED.latest_schema(home)
        assert source.newest(asked) == UNCACHED.newest(home)
        for number in schema_ids(home):
            assert source.schema(asked, number) == UNCACHED.schema(home, number)
        assert source.tags(asked) == UNCACHED.tags(home)


def check_plans(table: Table) -> None:
    """The plans of the newest version with and without a condition, each planned twice, and of all other versions."""
    for where in (None, "dt = 'd1'", "dt = 'd0' AND id > 3"):
        expected = table.scan(where=where, cache=False).plan()
        for _ in range(2):
            assert table.scan(where=where).plan() == expected
    assert table.scan(where="id > 3").count() == table.scan(where="id > 3", cache=False).count()
    for number in snapshot_ids(table.home)[-3:]:
        assert table.scan(version=number).plan() == table.scan(version=number, cache=False).plan()
    for found in table.tags.list():
        assert table.scan(tag=found.name).plan() == table.scan(tag=found.name, cache=False).plan()


def check_values(table: Table) -> None:
    """Rows of a scan and rows by key."""
    expected = table.scan(cache=False).to_arrow()
    order = [(name, "ascending") for name in ("id", "dt")]
    assert table.scan().to_arrow().sort_by(order) == expected.sort_by(order)
    if table.schema.primary_keys:
        there = {(row["id"], row["dt"]): row for row in expected.to_pylist()}
        for key in [(1, "d1"), *list(there)[:2]]:
            assert table.get({"id": key[0], "dt": key[1]}) == there.get(key)


def check(lakes: Lakes) -> None:
    for lake in lakes.all[1:]:
        table = lake.table(NAME)
        for one in (table, table.on_branch("dev")) if "dev" in table.branches.list() else (table,):
            check_pointers(one)
            check_plans(one)
            check_values(one)
    lake = lakes.restarted()
    table = lake.table(NAME)
    for one in (table, table.on_branch("dev")) if "dev" in table.branches.list() else (table,):
        check_pointers(one)
        check_values(one)
    lake.cache.close()
    metrics = lakes.all[-1].cache.get_all_metrics()
    assert metrics.comparisons > 0
    assert metrics.differences == 0


@pytest.mark.sampled
@pytest.mark.parametrize("small", [False, True], ids=["roomy", "small"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
@given(steps=STEPS)
@example(steps=[(0, "write", 1), (2, "write", 2), (0, "roll_back_and_commit_again", 3), (3, "write", 1)])
@example(steps=[(0, "write", 1), (0, "branch", 0), (2, "write_branch", 3), (0, "write", 2), (3, "fast_forward", 0)])
@example(
    steps=[
        (0, "write", 1),
        (0, "tag", 0),
        (0, "write", 2),
        (0, "write", 3),
        (0, "expire", 0),
        (0, "roll_back_to_tag", 0),
    ]
)
@example(steps=[(0, "write", 1), (0, "recreate", 1), (2, "write", 1), (0, "recreate", 2), (3, "add_column", 1)])
@settings(max_examples=examples(30))
def test_no_reader_with_a_cache_ever_differs(keyed: bool, small: bool, steps: list[Step]) -> None:
    lakes = Lakes(keyed=keyed, small=small)
    check(lakes)
    for actor, change, number in steps:
        lakes.clock.now += HOUR_MS
        # A table may refuse a change in its present state, and half of it may have been made.
        with suppress(LakeletError):
            CHANGES[change](lakes, lakes.all[actor].table(NAME), number)
        check(lakes)
