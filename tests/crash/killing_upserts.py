"""Kills writers of a primary-key table that write the same keys, and checks that every commit had its effect in its turn."""

import random
from pathlib import Path

import lakelet
from lakelet.model.snapshot import CommitKind
from lakelet.storage.disk.local_store import LocalStore
from tests.crash.killed_upserter import upserts
from tests.crash.killed_writer import TABLE
from tests.crash.killing import KilledWriter, kill_for
from tests.crash.warehouse import check

MODES = {
    "fixed": {"bucket": "2"},
    "dynamic": {"dynamic-bucket.target-row-num": "2"},
    "spilled": {"bucket": "1", "write-buffer-size": "1 b"},
}
# Of a long history this many of the newest versions are read.
_MOST_READ = 20


def kill_upserts_and_check(location: Path, mode: str, *, writers: int, seconds: float, seed: int) -> int:
    """Kills writers for that long; returns how many lives they had."""
    lake = lakelet.connect(str(location))
    lake.create_database("d")
    lake.create_table(
        TABLE,
        [("k", "BIGINT"), ("worker", "BIGINT"), ("n", "BIGINT")],
        primary_key=["k"],
        options={
            **MODES[mode],
            "commit.max-retries": "1000",
            "commit.min-retry-wait": "1 ms",
            "commit.max-retry-wait": "100 ms",
        },
    )
    alive = [KilledWriter(location, worker, "tests.crash.killed_upserter") for worker in range(writers)]
    lives = kill_for(alive, seconds, random.Random(seed), lambda: _check_rows(location, alive, newest=1))
    rows = _check_rows(location, alive, newest=_MOST_READ)
    assert check(LocalStore(location)) == sorted(rows, key=repr)
    return lives


def _check_rows(location: Path, writers: list[KilledWriter], *, newest: int) -> list[tuple[int, int, int]]:
    """The commits in the order of their snapshots, applied to a dict, give every version; none is lost or doubled."""
    table = lakelet.connect(str(location)).table(TABLE)
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    there: dict[int, tuple[int, int, int]] = {}
    committed: dict[int, list[int]] = {writer.worker: [] for writer in writers}
    for snapshot in snapshots:
        worker, identifier = int(snapshot.commit_user.removeprefix("writer-")), snapshot.commit_identifier
        if snapshot.commit_kind is not CommitKind.COMPACT:
            committed[worker].append(identifier)
            put, taken = upserts(worker, identifier)
            for key in taken:
                there.pop(key, None)
            there.update({key: (key, worker, identifier) for key in put})
        if snapshot.id > len(snapshots) - newest:
            found = table.scan(version=snapshot.id).to_arrow()
            rows = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))
            assert rows == sorted(there.values()), f"version {snapshot.id}"
    for writer in writers:
        identifiers = committed[writer.worker]
        assert identifiers == list(range(len(identifiers))), f"lost or doubled by {writer.worker}: {identifiers}"
        if writer.process is None:
            assert len(identifiers) in (writer.acknowledged, writer.acknowledged + 1), writer
    return list(there.values())
