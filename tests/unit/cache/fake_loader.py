"""A loader of tables that exist only in a test, which notes what it is asked."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.settings import CacheSettings
from lakelet.cache.values import (
    Column,
    PartitionCacheValue,
    PartitionMetadata,
    SchemaCacheValue,
    SnapshotCacheValue,
    TableMetadataCacheValue,
)
from lakelet.errors import NotFoundError
from lakelet.options.staleness import STRICT

CATALOG = "iceberg_catalog"
TABLE = TableCacheKey(CATALOG, "db", "table")


class StoppedClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class FakeTable:
    """What the store has of a table."""

    snapshot_id: int = 100
    schema_id: int = 0
    generation: str = "a"


@dataclass
class FakeLoader:
    """Answers from `tables`; `asked` are the questions in their order."""

    cache: TieredCacheCoordinator
    tables: dict[TableCacheKey, FakeTable] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def table_metadata(
        self, table: TableCacheKey, known: TableMetadataCacheValue | None, *, fresh: bool
    ) -> TableMetadataCacheValue:
        def check(before: TableMetadataCacheValue | None) -> TableMetadataCacheValue:
            self._ask("table")
            if table not in self.tables:
                raise NotFoundError(f"{table} does not exist")
            there = self.tables[table]
            now = TableMetadataCacheValue(
                "hdfs://path/to/table",
                f"hdfs://path/to/table/metadata/v{there.snapshot_id}.json",
                {},
                there.snapshot_id,
                0,
                2,
                "iceberg",
                True,
                there.schema_id,
                f"list-{there.generation}-{there.snapshot_id}",
                f"{there.generation}-{there.schema_id}",
            )
            return before if before == now else now

        found = self.cache.pointers.current(table, "metadata", check, lambda value: value.nbytes, fresh=fresh)
        assert found is not None
        return found

    def last_seen(self, table: TableCacheKey) -> TableMetadataCacheValue | None:
        return self.cache.pointers.known(table, "metadata")

    def delta_manifest_list(self, table: TableCacheKey, snapshot_id: int) -> str:
        self._ask("identity")
        return f"list-{self.tables[table].generation}-{snapshot_id}"

    def snapshot(self, key: SnapshotCacheKey) -> SnapshotCacheValue:
        self._ask(f"snapshot {key.snapshot_id}")
        return SnapshotCacheValue(
            key.snapshot_id,
            self.tables[key.table].schema_id,
            key.snapshot_id - 1,
            0,
            key.delta_manifest_list,
            {},
            "append",
            10,
            1,
            0,
            0,
            0,
            key.delta_manifest_list,
        )

    def schema(self, key: SchemaCacheKey) -> SchemaCacheValue:
        self._ask(f"schema {key.schema_id}")
        column = Column(1, "id", "INT")
        return SchemaCacheValue(key.schema_id, (column,), (), {1: column}, (), {"id": column})

    def partitions(self, table: TableCacheKey, snapshot: SnapshotCacheValue) -> PartitionCacheValue:
        self._ask(f"partitions {snapshot.snapshot_id}")
        one = PartitionMetadata({"dt": "a"}, ("m",), 1, 1, 1, {}, {})
        return PartitionCacheValue(snapshot.snapshot_id, {"dt=a": one}, snapshot.delta_manifest_list)

    def _ask(self, question: str) -> None:
        with self.lock:
            self.asked.append(question)


def fake_cache(
    settings: CacheSettings | None = None, clock: StoppedClock | None = None
) -> tuple[TieredCacheCoordinator, FakeLoader]:
    """A cache of one table, whose clock stands still."""
    chosen = settings or replace(CacheSettings.of({}), staleness=STRICT)
    cache = TieredCacheCoordinator(chosen, clock=clock or StoppedClock(), default_catalog=CATALOG)
    loader = FakeLoader(cache, {TABLE: FakeTable()})
    cache.register(CATALOG, lambda: loader)
    return cache, loader
