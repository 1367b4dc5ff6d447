"""The keys of tables, and their repair, on a real Redis and a small lake."""

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis as redis_library
import redis.asyncio as redis_async

import lakelet
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.embedded.file_index import EmbeddedFileIndex
from lakelet.cluster.file_index import FileIndex
from lakelet.cluster.redis.connection import connect_redis
from lakelet.cluster.redis.index_feed import IndexFeed
from lakelet.cluster.redis.leases import RedisLeases
from lakelet.cluster.redis.repair import RepairReport, repair_keys
from lakelet.cluster.redis.table_index import RedisTableIndex
from lakelet.cluster.table_record import served_name, table_record
from lakelet.table import Table
from tests.services.redis import RedisService

_PREFIXES = itertools.count()
_COLUMNS = [("id", "STRING NOT NULL"), ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("dt", "DATE")]
_SERVED = {"service.status": "active", "service.created-at": "2026-01-01T00:00:00Z", "service.buffer-size": "10"}


@pytest.fixture
def keys() -> ClusterKeys:
    return ClusterKeys(f"tables-{next(_PREFIXES)}:")


@pytest.fixture
def server(redis_service: RedisService) -> Iterator[redis_library.Redis]:
    with redis_library.Redis(port=redis_service.port, decode_responses=True) as client:
        yield client


def events(tmp_path: Path, **options: str) -> Table:
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("default")
    layout = {"bucket": "2", "bucket-key": "id", **_SERVED, **options}
    return lake.create_table("default.events", _COLUMNS, partitioned_by=["dt"], options=layout)


def rows(*values: tuple[str, int]) -> pa.Table:
    days = [datetime(2026, 1, day, tzinfo=UTC) for _, day in values]
    return pa.table(
        {
            "id": [id for id, _ in values],
            "timestamp": pa.array(days, pa.timestamp("us", "UTC")),
            "dt": pa.array([date(2026, 1, day) for _, day in values], pa.date32()),
        }
    )


def stored(server: redis_library.Redis, keys: ClusterKeys) -> dict[str, Any]:
    """All keys of tables with their values, but leases."""
    read = {"hash": server.hgetall, "set": server.smembers, "string": server.get}
    names = [name for name in server.scan_iter(f"{keys.prefix}*") if ":lease:" not in name]
    return {name: read[server.type(name)](name) for name in names}


class Redis:
    """An index on a client of one event loop."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys, holder: str = "n1") -> None:
        self.client, self.keys = client, keys
        self.index = RedisTableIndex(client, keys, RedisLeases(client, keys, holder))

    async def repair(self, *tables: Table, dry_run: bool = False) -> RepairReport:
        named = [(served_name(table) or "", table) for table in tables]
        return await repair_keys(self.client, self.keys, self.index, named, dry_run=dry_run)


def test_commits_compaction_and_a_rebuild_leave_the_same_keys(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis, tmp_path: Path
) -> None:
    table = events(tmp_path)

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            redis = Redis(client, keys)
            for number in range(3):
                table.write(rows(("a", 1), ("b", 2), (f"c{number}", 3)))
                assert await redis.index.update(table, "events")
            table.write(rows(("late", 3)))
            table.compact(full=True)
            assert await redis.index.update(table, "events")
            found = stored(server, keys)
            assert (await redis.repair(table)).differences == ()
            index = {key for key in found if ":index:table:events:bucket:" in key}
            assert found[keys.index_keys("events")] == index
            assert {path for key in index for path in found[key]} == {path for path, _ in table.files()}
            assert any(key.endswith(":2026-01-01") for key in index)
            assert found[keys.tables] == {"events"}
            assert found[keys.table_config("events")] == {"status": "active", "buffer_size": "10"}
            assert found[keys.created_at("events")] == "2026-01-01T00:00:00Z"
            assert found[keys.table_stats("events")]["record_count"] == "10"
            assert found[keys.last_write("events")].endswith("Z")
            assert await redis.index.replace(table_record(table, "events", keys))
            assert stored(server, keys) == found
            assert await redis.index.update(table, "events")
            assert stored(server, keys) == found
            table.set_options({"service.buffer-size": "20"})
            assert await redis.index.update(table, "events")
            assert server.hget(keys.table_config("events"), "buffer_size") == "20"
            assert (await redis.repair(table)).differences == ()
            bucket = sorted(index)[0].split(":")
            assert await redis.index.bucket_files("events", int(bucket[-2]), bucket[-1]) == found[sorted(index)[0]]
            assert await redis.index.remove("events")
            assert stored(server, keys) == {}

    asyncio.run(run())


def test_ids_are_keys_where_they_are_partitions(redis_service: RedisService, keys: ClusterKeys, tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("default")
    table = lake.create_table("default.e", _COLUMNS, partitioned_by=["id", "dt"], options={**_SERVED, "bucket": "-1"})
    table.write(rows(("a:b%", 1), ("ü", 2)))

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            index = Redis(client, keys).index
            assert await index.update(table, "e")
            assert len(await index.id_files("e", "a:b%", "2026-01-01")) == 1
            assert len(await index.id_files("e", "ü", "2026-01-02")) == 1
            assert await index.id_files("e", "ü", "2026-01-01") == frozenset()

    asyncio.run(run())


def test_snapshots_that_expired_or_were_rolled_back_are_caught_up(
    redis_service: RedisService, keys: ClusterKeys, tmp_path: Path
) -> None:
    table = events(tmp_path)

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            redis = Redis(client, keys)
            table.write(rows(("a", 1)))
            await redis.index.update(table, "events")
            table.write(rows(("b", 2)))
            table.write(rows(("c", 3)))
            await redis.index.update(table, "events")
            table.rollback(to=1)
            table.write(rows(("d", 4)))
            table.write(rows(("e", 5)))
            table.write(rows(("f", 5)))
            await redis.index.update(table, "events")
            assert (await redis.repair(table)).differences == ()
            table.write(rows(("g", 6)))
            table.compact(full=True)
            table.expire_snapshots(retain_last=1)
            await redis.index.update(table, "events")
            assert (await redis.repair(table)).differences == ()

    asyncio.run(run())


def test_repair_reports_and_heals_everything(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis, tmp_path: Path
) -> None:
    table = events(tmp_path)
    table.write(rows(("a", 1), ("b", 2)))

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            redis = Redis(client, keys)
            assert (await redis.repair(table)).tables == 1
            right = stored(server, keys)
            some = min(key for key in right if ":bucket:" in key)
            server.sadd(some, "ghost.parquet")
            server.delete(keys.created_at("events"), keys.table_stats("events"))
            server.set(keys.table_config("events"), "another type")
            server.sadd(keys.tables, "gone")
            server.sadd(keys.bucket_files("gone", 0, "2020-01-01"), "x")
            server.set(keys.last_write("gone"), "x")
            broken = stored(server, keys)
            looked = await redis.repair(table, dry_run=True)
            assert stored(server, keys) == broken
            told = {one.key: one.problem for one in looked.differences}
            assert told == {
                some: "is outdated",
                keys.created_at("events"): "is missing",
                keys.table_stats("events"): "is missing",
                keys.table_config("events"): "has another type",
                keys.tables: "lists gone, which is not served",
                keys.bucket_files("gone", 0, "2020-01-01"): "belongs to no file or table",
                keys.last_write("gone"): "belongs to no file or table",
            }
            assert {one.key for one in (await redis.repair(table)).differences} <= set(told)
            assert stored(server, keys) == right
            server.flushall()
            await redis.repair(table)
            assert stored(server, keys) == right
            assert (await redis.repair()).differences != ()
            assert stored(server, keys) == {}

    asyncio.run(run())


def test_a_node_that_lost_the_lease_changes_nothing(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis, tmp_path: Path
) -> None:
    table = events(tmp_path)
    table.write(rows(("a", 1)))

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            one, other = Redis(client, keys, "one"), Redis(client, keys, "other")
            lease = await RedisLeases(client, keys, "other").acquire("index:events", 60)
            assert lease is not None
            assert not await one.index.update(table, "events")
            assert not await one.index.replace(table_record(table, "events", keys))
            assert not await one.index.remove("events")
            report = await one.repair(table)
            assert report.skipped == ("events",)
            assert stored(server, keys) == {}
            assert await other.index.update(table, "events")
            assert stored(server, keys) != {}

    asyncio.run(run())


def test_the_embedded_index_answers_the_same(redis_service: RedisService, keys: ClusterKeys, tmp_path: Path) -> None:
    table = events(tmp_path)
    table.write(rows(("a", 1), ("b", 1), ("c", 2)))

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            remote: FileIndex = Redis(client, keys).index
            embedded: FileIndex = EmbeddedFileIndex(lambda _: table)
            await Redis(client, keys).index.update(table, "events")
            seen = 0
            for bucket, day in itertools.product((0, 1, 2), ("2026-01-01", "2026-01-02", "2026-01-03")):
                found = await remote.bucket_files("events", bucket, day)
                assert found == await embedded.bucket_files("events", bucket, day)
                seen += len(found)
            assert seen == len(table.files())
            assert await embedded.id_files("events", "a", "2026-01-01") == frozenset()

    asyncio.run(run())


def test_commits_of_any_thread_reach_the_index(
    redis_service: RedisService, keys: ClusterKeys, server: redis_library.Redis, tmp_path: Path
) -> None:
    table = events(tmp_path)
    lake = lakelet.connect(str(tmp_path / "warehouse"))

    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            redis = Redis(client, keys)
            feed = IndexFeed(redis.index, lake.table, lake.location, seconds=0.05, check_seconds=0.05)
            await feed.start(("default.events",))
            blocker = RedisLeases(client, keys, "another")
            lease = await blocker.acquire("index:events", 60)
            assert lease is not None
            for number in range(3):
                await asyncio.to_thread(table.write, rows((f"a{number}", number + 1)))
            await blocker.release(lease)
            while (await redis.repair(table, dry_run=True)).differences:
                await asyncio.sleep(0.01)
            # Keys that are lost come back without a commit.
            server.flushall()
            while (await redis.repair(table, dry_run=True)).differences:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(table.compact, True)
            await feed.stop()
            assert (await redis.repair(table, dry_run=True)).differences == ()
            await feed.start()
            await asyncio.to_thread(table.reset_options, ["service.status"])
            await feed.stop()
            assert stored(server, keys) == {}
            # Tables that are not served have no keys.
            await feed.start()
            await asyncio.to_thread(table.write, rows(("x", 9)))
            await feed.stop()
            assert stored(server, keys) == {}

    asyncio.run(run())
