"""A table in memory with some history, whose clock a test sets, for tags, branches, rollbacks and consumers."""

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.table import Table

START_MS = 1_800_000_000_000
"""2027-01-15 08:00 UTC."""
HOUR_MS = 3_600_000
COLUMNS = [("id", "BIGINT"), ("p", "STRING")]


class SetClock:
    """A clock that moves a millisecond per look, and wherever a test sets it."""

    def __init__(self, now: int = START_MS) -> None:
        self.now = now

    def now_ms(self) -> int:
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


def table_on(store: ObjectStore, clock: SetClock, versions: int = 0, **options: str) -> Table:
    """Table `d.t`; snapshot N adds row N."""
    lake = Lake(store, clock=clock)
    lake.create_database("d", if_not_exists=True)
    table = lake.create_table("d.t", COLUMNS, options={"write-only": "true"} | options)
    for number in range(1, versions + 1):
        put(table, number)
    return table


def put(table: Table, *ids: int, p: str = "a", watermark: int | None = None) -> None:
    """One commit of rows with these ids."""
    rows = pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array([p] * len(ids), pa.string())})
    table.write(rows, watermark=watermark)


def ids(table: Table, **version: object) -> list[int]:
    """The ids of all rows."""
    return sorted(table.scan(**version).to_arrow().column("id").to_pylist())  # type: ignore[arg-type]


def numbers(table: Table) -> list[int]:
    """The ids of the live snapshots."""
    return [snapshot.id for snapshot in table.snapshots()]


def names(table: Table) -> list[str]:
    """The names of the tags."""
    return [tag.name for tag in table.tags.list()]


def expire(table: Table, keep: int = 1) -> None:
    """Expires all but the newest snapshots, an hour later."""
    clock = table.home.clock
    assert isinstance(clock, SetClock)
    clock.now += HOUR_MS
    table.expire_snapshots(retain_last=keep, retain_max=keep)


def data_files(store: ObjectStore) -> set[str]:
    """All data files, manifests and lists."""
    return {info.path for info in store.list("d.db/t") if "/bucket-" in info.path or "/manifest/" in info.path}


def memory() -> tuple[MemoryStore, SetClock]:
    return MemoryStore(), SetClock()
