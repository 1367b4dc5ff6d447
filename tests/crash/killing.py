"""Starts writers, kills them with SIGKILL at random moments, starts them again where they stopped, and checks the table."""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lakelet
from lakelet.model.snapshot import CommitKind
from lakelet.storage.disk.local_store import LocalStore
from tests.crash.killed_writer import TABLE
from tests.crash.warehouse import Rows, check

# However slow the machine, this many kills are waited for.
LEAST_KILLS = 3


@dataclass(slots=True)
class KilledWriter:
    """One writer over all its lives; `acknowledged` is the number of identifiers it has heard back about."""

    location: Path
    worker: int
    module: str = "tests.crash.killed_writer"
    acknowledged: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Starts it at the first identifier that was not acknowledged, and waits until it has committed once."""
        command = [
            sys.executable,
            "-m",
            self.module,
            str(self.location),
            str(self.worker),
            str(self.acknowledged),
        ]
        environment = {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout is not None
        self._hear(self.process.stdout.readline())

    def kill(self) -> None:
        """Kills it, and takes in what it had said before."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.process.poll() is None, f"writer {self.worker} ended by itself"
        self.process.send_signal(signal.SIGKILL)
        self._hear(self.process.stdout.read())
        self.process.wait()
        self.process = None

    def rows(self, identifiers: int) -> Rows:
        """The rows after that many identifiers have been committed."""
        overwritten = max((number for number in range(identifiers) if number % 7 == 6), default=0)
        return [(self.worker, number) for number in range(overwritten * 2, identifiers * 2)]

    def _hear(self, said: bytes) -> None:
        # A line that was cut off was not acknowledged.
        complete = said[: said.rfind(b"\n") + 1].split()
        assert [int(number) for number in complete] == list(range(self.acknowledged, self.acknowledged + len(complete)))
        self.acknowledged += len(complete)


def kill_and_check(location: Path, *, writers: int, seconds: float, seed: int) -> int:
    """Kills writers for that long; returns how many lives they had."""
    lake = lakelet.connect(str(location))
    lake.create_database("d")
    lake.create_table(
        TABLE,
        [("worker", "BIGINT"), ("n", "BIGINT")],
        partitioned_by=["worker"],
        options={"manifest.merge-min-count": 5},
    )
    alive = [KilledWriter(location, worker) for worker in range(writers)]
    lives = kill_for(alive, seconds, random.Random(seed), lambda: _check_rows(location, alive, still_running=True))
    _check_rows(location, alive, still_running=False)
    return lives


def kill_for(writers: list[KilledWriter], seconds: float, chance: random.Random, look: Callable[[], object]) -> int:
    """Starts all writers, kills one after the other for that long, looks after each kill, and ends with all of them dead."""
    lives = 0
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [writer.process.kill() for writer in writers if writer.process is not None])
        for writer in writers:
            writer.start()
        until = time.monotonic() + seconds
        while True:
            time.sleep(chance.uniform(0, 0.5))
            writer = chance.choice(writers)
            writer.kill()
            lives += 1
            look()
            if lives >= LEAST_KILLS and time.monotonic() > until:
                break
            writer.start()
        for writer in writers:
            if writer.process is not None:
                writer.kill()
                lives += 1
    return lives


def _check_rows(location: Path, writers: list[KilledWriter], *, still_running: bool) -> None:
    """All that was acknowledged is there; of each dead writer at most the one commit more that it died in."""
    table = lakelet.connect(str(location)).table(TABLE)
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    rows: Rows = sorted(zip(*(column.to_pylist() for column in table.scan().to_arrow().columns), strict=True))
    for writer in writers:
        mine = [row for row in rows if row[0] == writer.worker]
        if writer.process is None:
            assert mine in (writer.rows(writer.acknowledged), writer.rows(writer.acknowledged + 1)), writer
        committed = [
            snapshot.commit_identifier
            for snapshot in snapshots
            if snapshot.commit_user == f"writer-{writer.worker}" and snapshot.commit_kind is not CommitKind.COMPACT
        ]
        assert committed == list(range(len(committed))), (
            f"identifiers of writer {writer.worker} are lost or doubled: {committed}"
        )
    if not still_running:
        assert check(LocalStore(location)) == sorted(rows, key=repr)
