"""Measure expiry of snapshots and removal of orphan files on a table with many files."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from benchmarks.benchmark import Result, Scale, beside, under
from benchmarks.rounds import Contender, Measured, best_of, run_task
from benchmarks.table_copies import linked

FILES = 50_000
PARTS = 500
COMMITS = 1_000
REPLACED = 50
STRAYS = 1_000
EXPIRY_SECONDS = 10
ORPHANS_SECONDS = 10
REPEATS = 2
ROUNDS = 3
"""A copy of the table for each takes longer than what is measured."""


def _make(scale: Scale, strays: int) -> tuple[str, Measured]:
    folder = str(scale.folder / "table")
    # A partition has as many files at any share, so that commits replace as many.
    parts = scale.of(PARTS)
    shape = {"files": parts * (FILES // PARTS), "parts": parts, "commits": scale.of(COMMITS), "replaced": REPLACED}
    return folder, run_task("retention/retention_tasks.py", "make", {"folder": folder, **shape, "strays": strays})


def measure_expiry(scale: Scale) -> list[Result]:
    """1,000 snapshots of a table of 50,000 files, each of which replaced 50: all but the last expire, 50,000 files go."""
    folder, made = _make(scale, 0)

    def copied(task: str, more: dict[str, Any], number: int) -> Measured:
        copy = str(linked(folder, scale.folder / f"copy-{number}"))
        measured = run_task("retention/retention_tasks.py", task, {"folder": copy, **more})
        shutil.rmtree(copy)
        return measured

    removed = copied("expire", {}, 0)["removed"]
    found = best_of(
        scale.rounds,
        Contender("expire", partial(copied, "expire", {}), rounds=ROUNDS),
        Contender("unlink", partial(copied, "unlink", {"count": removed}), rounds=ROUNDS),
    )
    ours, bare = found["expire"], found["unlink"]
    assert ours["snapshots"] == scale.of(COMMITS)
    assert ours["removed"] == bare["removed"] > scale.of(COMMITS) * REPLACED
    seconds = ours["seconds"]
    text = (
        f"{seconds:.2f} s (processor {ours['user_seconds']:.2f} s), {removed / seconds:,.0f} files a second, "
        f"{ours['peak_bytes'] / (1 << 20):.0f} MiB at most"
    )
    name = f"expiry of {ours['snapshots']:,} snapshots of {made['files'] - scale.of(COMMITS) * REPLACED:,} files"
    return [
        under(f"{name}, {removed:,} files removed", ours, seconds, EXPIRY_SECONDS, text, "s"),
        beside(f"{name}, bare removal of as many files", ours, bare),
    ]


def measure_orphans(scale: Scale) -> list[Result]:
    """A dry run over 100,000 files, nearly all of which some of 1,000 snapshots names."""
    strays = scale.of(STRAYS)
    folder, made = _make(scale, strays)
    found = best_of(
        scale.rounds,
        Contender(
            "orphans",
            lambda _: run_task("retention/retention_tasks.py", "orphans", {"folder": folder, "repeats": REPEATS}),
        ),
        Contender(
            "walk", lambda _: run_task("retention/retention_tasks.py", "walk", {"folder": folder, "repeats": REPEATS})
        ),
    )
    ours, bare = found["orphans"], found["walk"]
    assert ours["orphans"] == strays
    assert bare["files"] > made["files"]
    text = f"{ours['seconds']:.2f} s (processor {ours['user_seconds']:.2f} s, the first time {ours['first_seconds']:.2f} s)"
    name = f"orphans among {made['files'] + strays:,} data files, {made['snapshots']:,} snapshots"
    return [
        under(name, ours, ours["seconds"], ORPHANS_SECONDS, text, "s"),
        beside(f"{name}, a bare walk with the size and time of each file", ours, bare),
    ]
