"""Kills a row writer with SIGKILL at random moments, opens the next one, and checks that acknowledged rows are there."""

import contextlib
import random
import subprocess
import sys
from pathlib import Path

import lakelet
from lakelet.model.snapshot import CommitKind
from tests.crash.killed_row_writer import TABLE, step


def kill_rows_and_check(folder: Path, *, rounds: int, seed: int) -> None:
    """Kills that often. After every kill all acknowledged steps are in the table, each once, and at most one more."""
    location, logs = str(folder / "warehouse"), str(folder / "logs")
    lake = lakelet.connect(location)
    lake.create_database("d")
    columns = [("k", "BIGINT NOT NULL"), ("n", "BIGINT")]
    table = lake.create_table(TABLE, columns, primary_key=["k"], options={"bucket": "2"})
    rng = random.Random(seed)
    first = 0
    for _ in range(rounds):
        acknowledged = _killed_after(location, logs, first, rng.randint(1, 40))
        # The step after the last one that was told may be in the log as well.
        with table.writer(wal_folder=logs) as writer:
            seen = sorted(writer.scan().to_arrow().to_pylist(), key=lambda row: row["k"])
        assert seen in (_expected(acknowledged), _expected(acknowledged + 1))
        assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"]) == seen
        first = acknowledged + 1 if seen == _expected(acknowledged + 1) else acknowledged
    snapshots = table.snapshots()
    identifiers = [one.commit_identifier for one in snapshots if one.commit_kind is CommitKind.APPEND]
    assert identifiers == sorted(set(identifiers))
    assert len({snapshot.commit_user for snapshot in snapshots}) == 1


def _killed_after(location: str, logs: str, first: int, steps: int) -> int:
    """Run the writer, kill it once it has told of some steps; the number of steps that were acknowledged in all."""
    command = [sys.executable, "-m", "tests.crash.killed_row_writer", location, logs, str(first)]
    acknowledged = first
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with contextlib.ExitStack() as stack:
            stack.callback(process.wait)
            stack.callback(process.kill)
            for _ in range(steps):
                line = process.stdout.readline()
                assert line, "the writer ended by itself"
                acknowledged = int(line) + 1
        for line in process.stdout:
            if line.endswith("\n"):
                acknowledged = int(line) + 1
    return acknowledged


def _expected(steps: int) -> list[dict[str, int]]:
    rows: dict[int, int] = {}
    for number in range(steps):
        key, deleted = step(number)
        if deleted:
            rows.pop(key, None)
        else:
            rows[key] = number
    return [{"k": key, "n": number} for key, number in sorted(rows.items())]
