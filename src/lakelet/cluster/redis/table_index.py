"""The tables' keys in Redis: list, configuration, statistics and the index of files, brought up to a table's newest snapshot.

    update   the deltas of the snapshots since the one that `stats` names, oldest first, then the rest of the record
    replace  all keys of the table anew, where those snapshots are expired, rolled back or unknown
    remove   all keys of a table that is served no longer

All three run under the lease `index:{T}`, and every script compares it before it writes: a node that was asleep changes nothing
that another has written since. Requests are of bounded size, and nothing scans the key space.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.lease import Lease
from lakelet.cluster.redis.leases import FENCED, RedisLeases
from lakelet.cluster.table_record import (
    INDEXED,
    IndexChange,
    Member,
    TableRecord,
    chunks,
    index_change,
    snapshot_mark,
    table_record,
)
from lakelet.errors import ConflictError
from lakelet.table import Table

_LEASE_SECONDS = 30.0
_CHUNK = 500
# More missed snapshots than this are caught up by replacing the keys.
_MOST_DELTAS = 100

# KEYS: the lease, the set of index keys, then the key of each member. ARGV: the lease's value, SADD or SREM, the members.
_CHANGE = (
    FENCED
    + """
for at = 3, #KEYS do
  redis.call(ARGV[2], KEYS[at], ARGV[at])
  if ARGV[2] == 'SADD' or redis.call('EXISTS', KEYS[at]) == 1 then
    redis.call('SADD', KEYS[2], KEYS[at])
  else
    redis.call('SREM', KEYS[2], KEYS[at])
  end
end
return 1
"""
)
# KEYS: the lease, config, stats, created_at, last_write, list. ARGV: the lease's value, name, created_at, last_write, then the
# number of the configuration's parts, these, and those of the statistics.
_DESCRIBE = (
    FENCED
    + """
local last = 5 + tonumber(ARGV[5])
redis.call('DEL', KEYS[2], KEYS[3])
for at = 6, last, 2 do redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1]) end
for at = last + 1, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1]) end
redis.call('SET', KEYS[4], ARGV[3])
redis.call('SET', KEYS[5], ARGV[4])
redis.call('SADD', KEYS[6], ARGV[2])
return 1
"""
)
# KEYS: the lease, the set of index keys, keys to delete. ARGV: the lease's value.
_DELETE = (
    FENCED
    + """
for at = 3, #KEYS do
  redis.call('DEL', KEYS[at])
  redis.call('SREM', KEYS[2], KEYS[at])
end
return 1
"""
)
_MARK = FENCED + "redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])\nreturn 1"
_UNLIST = FENCED + "redis.call('SREM', KEYS[2], ARGV[2])\nreturn 1"


class RedisTableIndex:
    """The keys of tables."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys, leases: RedisLeases) -> None:
        self._client = client
        self._keys = keys
        self._leases = leases
        self._change = client.register_script(_CHANGE)
        self._describe = client.register_script(_DESCRIBE)
        self._delete = client.register_script(_DELETE)
        self._mark = client.register_script(_MARK)
        self._unlist = client.register_script(_UNLIST)

    async def id_files(self, table: str, id: str, day: str) -> frozenset[str]:
        """The files that the index names for an id and a day."""
        return frozenset(map(str, await self._client.smembers(self._keys.id_files(table, id, day))))

    async def bucket_files(self, table: str, bucket: int, day: str) -> frozenset[str]:
        """The files that the index names for a bucket and a day."""
        return frozenset(map(str, await self._client.smembers(self._keys.bucket_files(table, bucket, day))))

    # ------------------------------------------------------------------ changes

    async def update(self, table: Table, name: str) -> bool:
        """Bring the keys of a table to its newest snapshot; False if another node is at it, which may have looked before."""
        lease = await self._leases.acquire(f"index:{name}", _LEASE_SECONDS)
        if lease is None:
            return False
        try:
            indexed = await self._client.hget(self._keys.table_stats(name), INDEXED)
            changes = await asyncio.to_thread(_missed_changes, table, name, self._keys, str(indexed or ""))
            if changes is None:
                await self._replace(lease, await asyncio.to_thread(table_record, table, name, self._keys))
                return True
            for mark, change in changes:
                await self._write_members(lease, name, "SREM", change.removed)
                await self._write_members(lease, name, "SADD", change.added)
                await self._run(self._mark, lease, [self._keys.table_stats(name)], [INDEXED, mark])
            # Statistics are those of the snapshot: where that is the same one, no manifest is read.
            known = None if changes else await self._stats(name)
            record = await asyncio.to_thread(table_record, table, name, self._keys, with_files=False, known_stats=known)
            # A snapshot that was added meanwhile is not indexed yet.
            seen = changes[-1][0] if changes else str(indexed or "")
            await self._write_description(lease, record, seen)
        except ConflictError:
            return False
        finally:
            await self._leases.release(lease)
        return True

    async def replace(self, record: TableRecord) -> bool:
        """Write all keys of a table anew; False if another node is at it."""
        lease = await self._leases.acquire(f"index:{record.name}", _LEASE_SECONDS)
        if lease is None:
            return False
        try:
            await self._replace(lease, record)
        except ConflictError:
            return False
        finally:
            await self._leases.release(lease)
        return True

    async def remove(self, name: str) -> bool:
        """Delete all keys of a table; False if another node is at it."""
        lease = await self._leases.acquire(f"index:{name}", _LEASE_SECONDS)
        if lease is None:
            return False
        try:
            await self._run(self._unlist, lease, [self._keys.tables], [name])
            await self._delete_keys(lease, name, await self._index_keys(name))
            described = (self._keys.table_config, self._keys.table_stats, self._keys.created_at, self._keys.last_write)
            await self._delete_keys(lease, name, [key(name) for key in described])
        except ConflictError:
            return False
        finally:
            await self._leases.release(lease)
        return True

    async def _replace(self, lease: Lease, record: TableRecord) -> None:
        await self._delete_keys(lease, record.name, await self._index_keys(record.name))
        await self._write_members(lease, record.name, "SADD", record.files)
        await self._write_description(lease, record, record.stats[INDEXED])

    async def _stats(self, name: str) -> dict[str, str]:
        found = await self._client.hgetall(self._keys.table_stats(name))
        return {str(field): str(value) for field, value in found.items()}

    async def _index_keys(self, name: str) -> list[str]:
        """The index keys of a table, read in pieces."""
        return sorted({str(key) async for key in self._client.sscan_iter(self._keys.index_keys(name), count=_CHUNK)})

    async def _write_members(self, lease: Lease, name: str, command: str, members: Iterable[Member]) -> None:
        for chunk in chunks(members, _CHUNK):
            keys = [self._keys.index_keys(name), *(key for key, _ in chunk)]
            await self._run(self._change, lease, keys, [command, *(path for _, path in chunk)])
            await self._leases.renew(lease, _LEASE_SECONDS)

    async def _delete_keys(self, lease: Lease, name: str, keys: list[str]) -> None:
        for start in range(0, len(keys), _CHUNK):
            await self._run(self._delete, lease, [self._keys.index_keys(name), *keys[start : start + _CHUNK]], [])

    async def _write_description(self, lease: Lease, record: TableRecord, indexed: str) -> None:
        name = record.name
        keys = [
            self._keys.table_config(name),
            self._keys.table_stats(name),
            self._keys.created_at(name),
            self._keys.last_write(name),
            self._keys.tables,
        ]
        config = [part for pair in sorted(record.config.items()) for part in pair]
        stats = [part for pair in sorted({**record.stats, INDEXED: indexed}.items()) for part in pair]
        args = [name, record.created_at, record.last_write, str(len(config)), *config, *stats]
        await self._run(self._describe, lease, keys, args)

    async def _run(self, script: object, lease: Lease, keys: list[str], args: list[str]) -> None:
        done = await script(keys=[self._keys.lease(lease.name), *keys], args=[lease.value, *args])  # type: ignore[operator]
        if int(done) < 0:
            raise ConflictError(f"lease {lease.name}: another node holds it by now")


def _missed_changes(table: Table, name: str, keys: ClusterKeys, indexed: str) -> list[tuple[str, IndexChange]] | None:
    """The changes of all snapshots after the indexed one; None where only a new record tells."""
    latest = table.latest_snapshot()
    if latest is None or snapshot_mark(latest) == indexed:
        return [] if latest is not None else None
    if not indexed:
        return None
    first = int(indexed.split(" ", 1)[0])
    known = {snapshot.id: snapshot for snapshot in table.snapshots() if snapshot.id >= first}
    if first not in known or snapshot_mark(known[first]) != indexed or latest.id - first > _MOST_DELTAS:
        return None
    following = [known.get(number) for number in range(first + 1, latest.id + 1)]
    found = [snapshot for snapshot in following if snapshot is not None]
    if len(found) < len(following):
        return None
    return [(snapshot_mark(snapshot), index_change(table, name, snapshot, keys)) for snapshot in found]
