"""Writers in processes of their own, as the concurrency tests start them: each acknowledges what it has committed.

Every function named in `WRITERS` runs in a fresh process with nothing but the address of a table, and returns what
it was told is committed. All processes wait for one another before the first commit, so that they really race.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier

import pyarrow as pa

import lakelet

TABLE = "d.t"
ROWS_PER_COMMIT = 3
START_SECONDS = 500

_barrier: Barrier | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where the table is, for another process."""

    location: str
    options: dict[str, str] = field(default_factory=dict)

    def table(self) -> lakelet.Table:
        """The table."""
        return lakelet.connect(self.location, self.options).table(TABLE)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What one writer knows to be committed: the rows that must be there, and the snapshots it made."""

    worker: int
    rows: tuple[tuple[int, int], ...]
    snapshots: tuple[int, ...]
    columns: tuple[str, ...] = ()
    seconds: tuple[float, ...] = ()


Writer = Callable[[Address, int, int], Acknowledged]


def rows_of(worker: int, numbers: Sequence[int]) -> pa.Table:
    """Rows that name their writer."""
    return pa.table({"worker": pa.array([worker] * len(numbers), pa.int64()), "n": pa.array(numbers, pa.int64())})


def append(address: Address, worker: int, commits: int) -> Acknowledged:
    """Appends, again and again."""
    table = opened_together(address)
    rows: list[tuple[int, int]] = []
    snapshots, seconds = [], []
    for commit in range(commits):
        numbers = range(commit * ROWS_PER_COMMIT, (commit + 1) * ROWS_PER_COMMIT)
        started = time.monotonic()
        made = table.write(rows_of(worker, numbers))
        seconds.append(time.monotonic() - started)
        assert made is not None
        rows += [(worker, number) for number in numbers]
        snapshots.append(made.id)
    return Acknowledged(worker, tuple(rows), tuple(snapshots), seconds=tuple(seconds))


def append_twice(address: Address, worker: int, commits: int) -> Acknowledged:
    """Appends with identifiers, and sends every commit a second time."""
    table = opened_together(address)
    rows: list[tuple[int, int]] = []
    snapshots = []
    for commit in range(commits):
        made = [
            table.write(rows_of(worker, [commit]), commit_user=f"user-{worker}", commit_identifier=commit)
            for _ in range(2)
        ]
        assert made[0] is not None
        assert made[1] is not None
        # One of them may be the compaction that followed the write.
        assert made[0].committed_as()[:2] == made[1].committed_as()[:2]
        rows.append((worker, commit))
        snapshots.append(made[0].id)
    return Acknowledged(worker, tuple(rows), tuple(snapshots))


def overwrite_own_partition(address: Address, worker: int, commits: int) -> Acknowledged:
    """Replaces the rows of its own partition, statically and dynamically in turn."""
    table = opened_together(address)
    snapshots = []
    numbers: list[int] = []
    for commit in range(commits):
        numbers = [commit * 10, commit * 10 + 1]
        if commit % 2:
            made = table.write(rows_of(worker, numbers), mode="overwrite", partition={"worker": worker})
        else:
            made = table.write(rows_of(worker, numbers), mode="overwrite_partitions")
        assert made is not None
        snapshots.append(made.id)
    return Acknowledged(worker, tuple((worker, number) for number in numbers), tuple(snapshots))


def append_and_delete(address: Address, worker: int, commits: int) -> Acknowledged:
    """Appends rows, and deletes the odd ones of them by predicate after every second commit."""
    table = opened_together(address)
    rows: set[int] = set()
    snapshots = []
    for commit in range(commits):
        numbers = range(commit * ROWS_PER_COMMIT, (commit + 1) * ROWS_PER_COMMIT)
        made = [table.write(rows_of(worker, numbers))]
        rows.update(numbers)
        if commit % 2:
            made.append(table.delete(where=f"worker = {worker} AND n % 2 = 1"))
            rows = {number for number in rows if number % 2 == 0}
        snapshots += [snapshot.id for snapshot in made if snapshot is not None]
    return Acknowledged(worker, tuple((worker, number) for number in sorted(rows)), tuple(snapshots))


def add_columns(address: Address, worker: int, commits: int) -> Acknowledged:
    """Adds columns of its own."""
    table = opened_together(address)
    names = [f"c_{worker}_{commit}" for commit in range(commits)]
    for name in names:
        table.add_column(name, "INT")
    return Acknowledged(worker, (), (), columns=tuple(names))


WRITERS = {
    writer.__name__: writer
    for writer in (append, append_twice, overwrite_own_partition, append_and_delete, add_columns)
}


def race(address: Address, writers: Sequence[str], commits: int) -> list[Acknowledged]:
    """Runs the named writers, one process each, and returns what they acknowledged."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(writers), timeout=START_SECONDS)
    with ProcessPoolExecutor(len(writers), mp_context=context, initializer=meet_at, initargs=(barrier,)) as pool:
        running = [pool.submit(_run, name, address, worker, commits) for worker, name in enumerate(writers)]
        return [one.result() for one in running]


def _run(name: str, address: Address, worker: int, commits: int) -> Acknowledged:
    return WRITERS[name](address, worker, commits)


def meet_at(barrier: Barrier) -> None:
    """Makes all writers of this process wait at the barrier before they begin."""
    global _barrier  # noqa: PLW0603
    _barrier = barrier


def opened_together(address: Address) -> lakelet.Table:
    """The table, opened and used once, when all other writers are as far."""
    table = address.table()
    table.scan().count()
    if _barrier is not None:
        _barrier.wait()
    return table
