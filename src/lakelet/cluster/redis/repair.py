"""Repair: compare all keys of tables with the tables themselves, report every difference, and rebuild.

The only place that scans the key space, in small steps. Keys of nodes, of the ring and of leases are none of its business: they
heal by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.table_index import RedisTableIndex
from lakelet.cluster.table_record import TableRecord, table_record
from lakelet.table import Table

_STEP = 500
WRONG_TYPE = "has another type"


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that is not what the tables say: missing, outdated or of no table."""

    key: str
    problem: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair found, and whether everything could be rebuilt."""

    tables: int
    differences: tuple[Difference, ...]
    # Tables whose keys another node was writing.
    skipped: tuple[str, ...] = ()


async def repair_keys(
    client: redis_async.Redis,
    keys: ClusterKeys,
    index: RedisTableIndex,
    tables: Sequence[tuple[str, Table]],
    *,
    dry_run: bool = False,
) -> RepairReport:
    """Rebuild the keys of these tables, all that are served, and delete those of others."""
    differences: list[Difference] = []
    skipped: list[str] = []
    expected: set[str] = set()
    for name, table in tables:
        record = await asyncio.to_thread(table_record, table, name, keys)
        expected |= _keys_of(record, keys)
        found = await _differences(client, keys, record)
        differences += found
        wrong = [one.key for one in found if one.problem == WRONG_TYPE]
        if wrong and not dry_run:
            await client.unlink(*wrong)
        if found and not dry_run and not await index.replace(record):
            skipped.append(name)
    served = {name for name, _ in tables}
    for name in sorted(set(map(str, await client.smembers(keys.tables))) - served):
        differences.append(Difference(keys.tables, f"lists {name}, which is not served"))
        if not dry_run and not await index.remove(name):
            skipped.append(name)
    unknown = await _unknown_keys(client, keys, expected)
    differences += [Difference(key, "belongs to no file or table") for key in unknown]
    if not dry_run:
        for start in range(0, len(unknown), _STEP):
            await client.unlink(*unknown[start : start + _STEP])
    return RepairReport(len(tables), tuple(differences), tuple(skipped))


def _keys_of(record: TableRecord, keys: ClusterKeys) -> set[str]:
    name = record.name
    described = {keys.table_config(name), keys.table_stats(name), keys.created_at(name), keys.last_write(name)}
    return described | {keys.index_keys(name)} | {key for key, _ in record.files}


async def _differences(client: redis_async.Redis, keys: ClusterKeys, record: TableRecord) -> list[Difference]:
    name = record.name
    files: dict[str, set[str]] = {}
    for key, path in record.files:
        files.setdefault(key, set()).add(path)
    wanted: list[tuple[str, str, object]] = [
        (keys.table_config(name), "hash", dict(record.config)),
        (keys.table_stats(name), "hash", dict(record.stats)),
        (keys.created_at(name), "string", record.created_at),
        (keys.last_write(name), "string", record.last_write),
        (keys.index_keys(name), "set", set(files)),
        *((key, "set", paths) for key, paths in sorted(files.items())),
    ]
    found: list[Difference] = []
    if not await client.sismember(keys.tables, name):
        found.append(Difference(keys.tables, f"does not list {name}"))
    for start in range(0, len(wanted), _STEP):
        piece = wanted[start : start + _STEP]
        stored = await _stored(client, [(key, kind) for key, kind, _ in piece])
        for (key, _, value), is_value in zip(piece, stored, strict=True):
            if isinstance(is_value, Exception):
                found.append(Difference(key, WRONG_TYPE))
            elif is_value != value:
                found.append(Difference(key, "is outdated" if is_value else "is missing"))
    return found


async def _stored(client: redis_async.Redis, asked: Iterable[tuple[str, str]]) -> list[object]:
    """The values of keys; one of another type than expected is an error value, which equals nothing."""
    async with client.pipeline(transaction=False) as pipeline:
        for key, kind in asked:
            {"hash": pipeline.hgetall, "set": pipeline.smembers, "string": pipeline.get}[kind](key)
        found: list[object] = await pipeline.execute(raise_on_error=False)
    return found


async def _unknown_keys(client: redis_async.Redis, keys: ClusterKeys, expected: set[str]) -> list[str]:
    found: set[str] = set()
    prefix = "".join(f"\\{one}" if one in "*?[]\\" else one for one in keys.prefix)
    for pattern in ("index:table:*", "table:*"):
        async for key in client.scan_iter(match=f"{prefix}{pattern}", count=_STEP):
            if str(key) not in expected:
                found.add(str(key))
    return sorted(found)
