"""Writers in processes of their own that all upsert the same keys; each acknowledges which commit wrote what.

A row says who wrote it and in which round, so that for every version one can tell which commit a row came from. Which commits
there were, and in what order, the snapshots tell.
"""

import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pyarrow as pa

from tests.integration.writing_processes import START_SECONDS, Address, meet_at, opened_together

KEYS = 12
PARTITIONS = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Upserted:
    """One acknowledged commit: the rows it put in, and the keys it took out."""

    snapshot: int
    worker: int
    round: int
    rows: tuple[tuple[int, str], ...]
    deleted: tuple[tuple[int, str], ...] = ()


def partition_of(key: int, moved: int, *, across: bool) -> str:
    """Where a key belongs: always in the same partition, or in any."""
    return PARTITIONS[(key + (moved if across else 0)) % len(PARTITIONS)]


def upsert(address: Address, worker: int, commits: int, *, across: bool) -> list[Upserted]:
    """Upserts random keys; every third round deletes some, in the same commit or by key."""
    table = opened_together(address)
    chance = random.Random(worker)
    done: list[Upserted] = []
    for number in range(commits):
        keys = chance.sample(range(KEYS), chance.randint(2, KEYS))
        rows = [(key, partition_of(key, chance.randrange(3), across=across)) for key in keys]
        gone = rows[: len(rows) // 2] if number % 3 == 2 else []
        if number % 6 == 5:
            names = ["id"] if across else ["id", "p"]
            made = table.delete(_rows(gone, worker, number).select(names))
            if made is not None:
                done.append(Upserted(made.id, worker, number, (), tuple(gone)))
            continue
        kinds = ["-D" if row in gone else "+I" for row in rows]
        made = table.write(_rows(rows, worker, number), kinds=kinds)
        assert made is not None
        done.append(Upserted(made.id, worker, number, tuple(row for row in rows if row not in gone), tuple(gone)))
    return done


def race_for_keys(address: Address, writers: int, commits: int, *, across: bool) -> list[Upserted]:
    """Runs the writers, one process each, and returns all commits in the order of their snapshots."""
    context = get_context("spawn")
    barrier = context.Barrier(writers, timeout=START_SECONDS)
    with ProcessPoolExecutor(writers, mp_context=context, initializer=meet_at, initargs=(barrier,)) as pool:
        running = [pool.submit(_run, address, worker, commits, across) for worker in range(writers)]
        done = [one for each in running for one in each.result()]
    return sorted(done, key=lambda one: one.snapshot)


def _run(address: Address, worker: int, commits: int, across: bool) -> list[Upserted]:
    return upsert(address, worker, commits, across=across)


def _rows(rows: Sequence[tuple[int, str]], worker: int, number: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "p": pa.array([row[1] for row in rows], pa.string()),
            "worker": pa.array([worker] * len(rows), pa.int64()),
            "round": pa.array([number] * len(rows), pa.int64()),
        }
    )
