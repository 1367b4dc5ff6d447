"""A table of each layout, operations on it, and a store that lets somebody else act between two of their storage calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.moving_clock import START_MS, MovingClock

T = TypeVar("T")
Rows = dict[int, int]
_MOST = 3
LAYOUTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]] = {
    "append": ((), (), {}),
    "append in buckets": ((), (), {"bucket": "2", "bucket-key": "id"}),
    "keyed": (("id",), (), {"bucket": "2"}),
    "deletion vectors": (("id",), (), {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "dynamic": (("id",), (), {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}),
    "crossing": (("id",), ("p",), {"bucket": "-1"}),
    "postponed": (("id",), (), {"bucket": "-2"}),
}
COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "BIGINT"), ("p", "INT")]


class StoppedStore(DecoratedStore):
    """Runs `meanwhile` before call number `at`, counted from when it is set."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.calls = 0
        self.at: int | None = None
        self.meanwhile: Callable[[], object] | None = None

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        self.calls += 1
        if self.calls == self.at and self.meanwhile is not None:
            self.at = None
            self.meanwhile()
        return action()


@dataclass
class Stage:
    """A table under an operation, and the same table in other hands."""

    table: Table
    other: Table
    store: StoppedStore

    def rows(self) -> Rows:
        found = self.other.scan().to_arrow().to_pylist()
        assert len({row["id"] for row in found}) == len(found)
        return {row["id"]: row["v"] for row in found}

    def replace_and_expire(self) -> None:
        """Every file is another afterwards, with the same rows, and nothing but the newest version is left."""
        if self.other.schema.primary_keys:
            with suppress(InvalidError):
                # While buckets are rescaled the table takes no rows.
                self.other.write(rows((0, 0), (10, 0)))
            self.other.compact(full=True)
        else:
            self.other.write(self.other.scan().to_arrow(), mode="overwrite")
        self.other.expire_snapshots(retain_last=1)


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([one for one, _ in pairs], pa.int64()),
            "v": pa.array([two for _, two in pairs], pa.int64()),
            "p": pa.array([one % 2 for one, _ in pairs], pa.int32()),
        }
    )


@cache
def _filled(layout: str) -> MemoryStore:
    """A table in which files were written, deleted and, where the layout asks for it, compacted."""
    key, partitions, options = LAYOUTS[layout]
    inner = MemoryStore()
    lake = Lake(inner, clock=MovingClock())
    lake.create_database("d")
    table = lake.create_table(
        "d.t",
        COLUMNS,
        primary_key=key,
        partitioned_by=partitions,
        options={"num-sorted-run.compaction-trigger": "20", "compaction.min.file-num": "2"} | options,
    )
    for number in range(4):
        table.write(rows((number, number), (number + 10, number)))
        if layout == "postponed":
            table.compact()
    if key:
        table.delete(pa.table({"id": [3]}))
    else:
        table.delete(where="id = 3")
    if layout == "postponed":
        table.compact()
    return inner


def staged(layout: str) -> Stage:
    inner, clock = MemoryStore(), MovingClock(START_MS + 3_600_000)
    for info in _filled(layout).list(""):
        inner.put(info.path, _filled(layout).get(info.path))
    store = StoppedStore(inner)
    return Stage(Lake(store, clock=clock).table("d.t"), Lake(inner, clock=clock).table("d.t"), store)


START = {0: 0, 1: 1, 2: 2, 10: 0, 11: 1, 12: 2, 13: 3}


def settle(table: Table) -> None:
    """Gives postponed rows their buckets."""
    if table.options.get("bucket") == "-2":
        table.compact()


def delete_(table: Table) -> Rows:
    if table.schema.primary_keys:
        table.delete(pa.table({"id": [1, 11]}))
    else:
        table.delete(where="id IN (1, 11)")
    settle(table)
    return {key: value for key, value in START.items() if key not in (1, 11)}


def delete_where(table: Table) -> Rows:
    table.delete(where="v = 2")
    settle(table)
    return {key: value for key, value in START.items() if value != 2}


def write_(table: Table) -> Rows:
    table.write(rows((5, 5), (20, 5)))
    settle(table)
    return {**START, 5: 5, 20: 5}


def upsert(table: Table) -> Rows:
    if not table.schema.primary_keys:
        return write_(table)
    table.write(rows((1, 50), (20, 5)))
    settle(table)
    return {**START, 1: 50, 20: 5}


def compact_(table: Table) -> Rows:
    table.compact(full=True)
    return START


def rescale_(table: Table) -> Rows:
    if table.options.get("bucket") in ("2", "1") and table.schema.primary_keys:
        table.rescale(3)
    return START


def analyze_(table: Table) -> Rows:
    table.analyze()
    return START


CHANGES = (delete_, delete_where, write_, upsert, compact_, rescale_, analyze_)


def scan_(table: Table) -> object:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def count_(table: Table) -> object:
    return table.scan(where="v >= 0").count()


def get_(table: Table) -> object:
    return table.get_many(pa.table({"id": [0, 11]})).to_pylist() if table.schema.primary_keys else None


def sql(table: Table) -> object:
    lake = Lake(table.home.store, clock=table.home.clock)
    return lake.sql("SELECT count(*), sum(v) FROM d.t").to_arrow().to_pylist()


def changes_(table: Table) -> object:
    latest = table.latest_snapshot()
    assert latest is not None
    return table.changes(latest.id - 1, latest.id).num_rows >= 0


def files_(table: Table) -> object:
    return len(table.files()) > 0


READS = (scan_, count_, get_, sql, changes_, files_)


def calls_of(layout: str, run: Callable[[Table], Any]) -> int:
    """How many storage calls an operation makes."""
    stage = staged(layout)
    stage.store.calls = 0
    run(stage.table)
    return stage.store.calls


def some_of(count: int) -> list[int]:
    """A few of the calls, from the first to the last; the soak takes them all."""
    return sorted({1 + place * (count - 1) // _MOST for place in range(_MOST + 1)})
