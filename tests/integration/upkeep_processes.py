"""Processes that write, compact, read and expire one table at once, each for a given time.

Every writer has keys of its own, and puts all of them in with the number of its round, or takes half of them out. So of every
writer a reader sees whole rounds, one after the other, and in the end the last one.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pyarrow as pa

from lakelet import Table
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import ConflictError, LakeletError
from tests.integration.writing_processes import START_SECONDS, Address, meet_at, opened_together

KEYS = 20
# One round in this many deletes keys.
DELETES_EVERY = 4
LEAST_TIMES = 3
# Of the time of a run, so that the last part of it expires something.
RETENTION_SHARE = 5 / 6


@dataclass(frozen=True, slots=True)
class Done:
    """What one process did: its last round, and how often it did something."""

    role: str
    worker: int
    last: int
    times: int


def rows_of(worker: int, turn: int) -> list[tuple[int, int]]:
    """What is there of a writer after a round: (id, round)."""
    keys = range(worker * KEYS, worker * KEYS + KEYS)
    if turn == 0:
        return []
    return [(key, turn) for key in keys if turn % DELETES_EVERY or key % 2]


def run_together(address: Address, writers: int, seconds: float) -> list[Done]:
    """Runs writers, two compactors, two readers and one that expires."""
    roles = [("write", worker) for worker in range(writers)]
    roles += [("compact", 0), ("compact", 1), ("read", 0), ("read", 1), ("expire", 0)]
    context = get_context("spawn")
    barrier = context.Barrier(len(roles), timeout=START_SECONDS)
    with ProcessPoolExecutor(len(roles), mp_context=context, initializer=meet_at, initargs=(barrier,)) as pool:
        running = [pool.submit(_run, address, role, worker, writers, seconds) for role, worker in roles]
        return [one.result() for one in running]


def _run(address: Address, role: str, worker: int, writers: int, seconds: float) -> Done:
    table = opened_together(address)
    until, retention = time.monotonic() + seconds, seconds * RETENTION_SHARE
    chance = random.Random(f"{role} {worker}")
    last = times = 0
    seen = [0] * writers
    # However slow the machine, all do something more than once, and writers enough for a compaction.
    while time.monotonic() < until or times < LEAST_TIMES:
        times += 1
        if role == "write":
            last += 1
            ids = list(range(worker * KEYS, worker * KEYS + KEYS))
            kept = {key for key, _ in rows_of(worker, last)}
            data = pa.table({"id": ids, "worker": [worker] * KEYS, "round": [last] * KEYS})
            table.write(data, kinds=["+I" if key in kept else "-D" for key in ids])
        elif role == "compact":
            try:
                table.compact(full=chance.random() < 0.3)
            except ConflictError:
                # Whoever compacts the same buckets again and again may give up; nothing is lost by it.
                last += 1
        elif role == "expire":
            table.expire_snapshots(retain_last=2, older_than=f"{int(retention)} s")
        else:
            seen = _read(table, seen, retention)
    return Done(role, worker, last, times)


def _read(table: Table, seen: list[int], retention: float) -> list[int]:
    """Looks at one version: whole rounds of every writer, none older than before."""
    before = latest_snapshot(table.home)
    try:
        found = table.scan().to_arrow().to_pylist()
    except LakeletError:
        # A version lives as long as the retention, no longer: one that was old when the read began may be gone at once.
        assert before is not None
        assert table.home.clock.now_ms() - before.time_ms > retention * 1000, "a short read has failed"
        return seen
    now = list(seen)
    for worker in range(len(seen)):
        own = sorted((row["id"], row["round"]) for row in found if row["worker"] == worker)
        now[worker] = max((turn for _, turn in own), default=0)
        assert own == rows_of(worker, now[worker]), f"writer {worker}: {own}"
        assert now[worker] >= seen[worker], f"writer {worker} went back from {seen[worker]} to {now[worker]}"
    return now
