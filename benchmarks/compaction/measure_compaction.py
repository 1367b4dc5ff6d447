"""Measure compaction: speed against a plain read and write of the same files, memory, and the cost of inline
compaction.

A table is made once and copied for every compaction of it, the data files as links.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Result, Scale, at_most, beside, faster, under
from benchmarks.peers.java_peer import java_missing, run_java
from benchmarks.rounds import Contender, Measured, best_of, run_task
from benchmarks.table_copies import linked

ROWS = 1_000_000
UPSERT_ROWS = 200_000
UPSERTS = 5
BUCKETS = (1, 4)
REPEATS = 3
LIMIT = 1.3

MANY_ROWS = 40_000_000
MANY_UPSERT_ROWS = 5_000_000
MANY_UPSERTS = 2
MEMORY_LIMIT_MIB = 1536

COMMITS = 2_000
COMMIT_ROWS = 500
KEYS = 100_000
READS = 20
LAST_VERSIONS = 60
READ_LIMIT = 2.0


# ---------------------------------------------------------------- speed


def measure_compaction(scale: Scale) -> list[Result]:
    """Full compaction of one load and five upserts of a fifth of its rows each."""
    results = []
    for buckets in BUCKETS:
        folder = scale.folder / f"table-{buckets}"
        shape = {"rows": scale.of(ROWS), "upserts": UPSERTS, "upsert_rows": scale.of(UPSERT_ROWS)}
        made = run_task(
            "keyed/keyed_tasks.py", "make", {"folder": str(folder), "key": "BIGINT", "buckets": buckets, **shape}
        )
        results += _compaction_results(scale, buckets, made, _compacted_all_ways(scale, folder, made["paths"]))
        shutil.rmtree(folder)
    return results


def _compacted_all_ways(scale: Scale, table: Path, paths: list[str]) -> dict[str, Measured]:
    def copied(compact: Callable[[list[str]], Measured], _: int) -> Measured:
        copies = [linked(table, scale.folder / f"copy-{number}") for number in range(REPEATS + 1)]
        measured = compact([str(copy) for copy in copies])
        for copy in copies:
            shutil.rmtree(copy)
        return measured

    def ours(threads: int | None, folders: list[str]) -> Measured:
        return run_task("compaction/compaction_tasks.py", "compact", {"folders": folders, "threads": threads})

    def plain(task: str, more: dict[str, Any], _: int) -> Measured:
        folder = scale.folder / task
        arguments = {"paths": paths, "folder": str(folder), "repeats": REPEATS, **more}
        measured = run_task("compaction/compaction_tasks.py", task, arguments)
        shutil.rmtree(folder)
        return measured

    contenders = [
        Contender("plain", partial(plain, "rewrite_all", {})),
        Contender("some", partial(plain, "read_all_write_some", {"rows": scale.of(ROWS)})),
        Contender("lakelet", partial(copied, partial(ours, None))),
    ]
    if java_missing() is None:
        java = partial(copied, lambda folders: run_java("compact", {"folders": folders, "table": "bench.keyed"}))
        contenders.append(Contender("java", java, rounds=2))
    found = best_of(scale.rounds, *contenders)
    assert found["lakelet"]["rows"] == scale.of(ROWS)
    return found


def _compaction_results(scale: Scale, buckets: int, made: Measured, found: dict[str, Measured]) -> list[Result]:
    rows, ours = made["stored_rows"], found["lakelet"]
    assert found["plain"]["rows"] == rows
    name = f"full compaction of {rows:,} rows, {buckets} bucket{'s' if buckets > 1 else ''}"
    speed, processor = rows / ours["seconds"], rows / ours["user_seconds"]
    text = f"{speed / 1e6:.2f} M input rows a second, {processor / 1e6:.2f} M a second of processor"
    results = [
        at_most(f"{name}, read and write of these rows by pyarrow", ours, found["plain"], LIMIT),
        beside(f"{name}, the same, but writing only the rows that are left", ours, found["some"]),
        Result(f"{name}, input rows", ours, {}, speed, text, "", None),
    ]
    if "java" in found:
        results.append(faster(f"{name}, Java Paimon in one warm JVM", ours, found["java"], 1))
    else:
        results.append(Result(f"{name}, Java Paimon", ours, {}, 0.0, f"not measured: {java_missing()}", "", None))
    return results


# ---------------------------------------------------------------- memory


def measure_compaction_memory(scale: Scale) -> list[Result]:
    """Full compaction of one bucket of 50M rows, 40M and two upserts of 5M over all of their keys."""
    rows, upsert_rows = scale.of(MANY_ROWS), scale.of(MANY_UPSERT_ROWS)
    folder = str(scale.folder / "table")
    shape = {"rows": rows, "upserts": MANY_UPSERTS, "upsert_rows": upsert_rows}
    made = run_task("keyed/keyed_tasks.py", "write_stream", {"folder": folder, **shape})
    measured = run_task("compaction/compaction_tasks.py", "compact_once", {"folder": folder})
    assert measured["input_rows"] == made["stored_rows"] == rows + MANY_UPSERTS * upsert_rows
    assert measured["rows"] == rows
    peak, seconds = measured["peak_bytes"] / (1 << 20), measured["seconds"]
    speed = measured["input_rows"] / seconds / 1e6
    processor = f"processor {measured['user_seconds']:.1f} s"
    text = f"{peak:.0f} MiB at most, in {seconds:.1f} s ({processor}, {speed:.2f} M input rows a second)"
    name = f"memory of compacting a bucket of {measured['input_rows']:,} rows"
    return [under(name, measured, peak, MEMORY_LIMIT_MIB, text, "MiB")]


# ---------------------------------------------------------------- inline


def measure_compaction_inline(scale: Scale) -> list[Result]:
    """2,000 small commits, each of which may compact, against a fresh full compaction and against `write-only`."""
    return [*_inline_results(scale, "upsert_often", "upserts"), *_inline_results(scale, "append_often", "appends")]


def _inline_results(scale: Scale, task: str, label: str) -> list[Result]:
    shape = {"rows": scale.of(KEYS), "count": COMMIT_ROWS, "commits": scale.of(COMMITS)}
    inline, bare, fresh, once = (scale.folder / f"{task}-{name}" for name in ("inline", "write-only", "fresh", "once"))
    wrote = run_task("compaction/compaction_tasks.py", task, {"folder": str(inline), "write_only": False, **shape})
    wrote_bare = run_task("compaction/compaction_tasks.py", task, {"folder": str(bare), "write_only": True, **shape})
    told = run_task("compaction/compaction_tasks.py", "written", {"folder": str(inline), "versions": LAST_VERSIONS})
    finished = run_task("compaction/compaction_tasks.py", "finish", {"folder": str(linked(inline, fresh))})
    run_task("compaction/compaction_tasks.py", "load_once", {"folder": str(once), "source": str(fresh)})

    def read(folder: Path, version: int | None, repeats: int, _: int) -> Measured:
        arguments = {"folder": str(folder), "version": version, "repeats": repeats}
        return run_task("compaction/compaction_tasks.py", "read", arguments)

    found = best_of(
        scale.rounds,
        Contender("inline", partial(read, inline, None, READS)),
        Contender("worst", partial(read, inline, told["worst_version"], READS)),
        Contender("fresh", partial(read, fresh, None, READS)),
        Contender("once", partial(read, once, None, READS)),
        Contender("bare", partial(read, bare, None, 1), rounds=1),
    )
    assert found["inline"]["rows"] == found["fresh"]["rows"] == found["bare"]["rows"] == found["once"]["rows"]
    name = f"{shape['commits']:,} {label} of {COMMIT_ROWS} rows"
    flushed, compacted = told["flushed_bytes"], told["compacted_bytes"]
    amplification = (flushed + compacted) / flushed
    text = (
        f"{amplification:.2f} × ({flushed / 1e6:.1f} MB by commits, {compacted / 1e6:.1f} MB by {told['compactions']:,} "
        f"compactions; {told['live_bytes'] / 1e6:.1f} MB live)"
    )
    return [
        at_most(
            f"{name}, read after them ({wrote['files']} files), read of a fresh full compaction ({finished['files']})",
            found["inline"],
            found["fresh"],
            READ_LIMIT,
        ),
        at_most(
            f"{name}, read of the version with most files of the last {LAST_VERSIONS} ({told['worst_files']}), the same",
            found["worst"],
            found["fresh"],
            READ_LIMIT,
        ),
        beside(f"{name}, read after them, read of the same rows by one commit", found["inline"], found["once"]),
        faster(
            f"{name}, read after them, read without any compaction ({wrote_bare['files']:,} files)",
            found["inline"],
            found["bare"],
            None,
        ),
        Result(f"{name}, write amplification", told, {}, amplification, text, "", None),
        _commit_result(name, shape["commits"], wrote, wrote_bare),
    ]


def _commit_result(name: str, commits: int, ours: Measured, bare: Measured) -> Result:
    """Median and mean time of a commit, with compaction and without."""

    def words(one: Measured) -> str:
        mean, user = one["seconds"] / commits * 1000, one["user_seconds"] / commits * 1000
        return f"{mean:.1f} ms (median {one['median_seconds'] * 1000:.1f}, processor {user:.1f})"

    ratio = ours["seconds"] / bare["seconds"]
    text = f"{ratio:.2f} × its time: {words(ours)} against {words(bare)}; the longest {ours['worst_seconds']:.2f} s"
    return Result(f"{name}, time of a commit, write-only", ours, bare, ratio, text, "", None)
