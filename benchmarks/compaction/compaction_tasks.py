"""Compaction tasks: Lakelet's compaction, bare reads and writes to compare with, and statistics from snapshots."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq

import lakelet
from benchmarks.contender import repeated, serve, timed
from benchmarks.keyed.keyed_rows import KEYS, SCHEMA, load_ids, rows_of, update_ids
from lakelet.commit.metadata.manifests import read_entries, read_manifest_list
from lakelet.compact.progress import CompactionProgress
from lakelet.model.manifest import EntryKind
from lakelet.model.snapshot import CommitKind
from lakelet.table import Table

TABLE = "bench.keyed"


# ---------------------------------------------------------------- one compaction


def compact(folders: list[str], threads: int | None) -> dict[str, Any]:
    """A full compaction of copies of one table, from opening it."""
    taken = repeated(
        lambda number: _open(folders[number]).compact(full=True, threads=threads) is not None, len(folders) - 1
    )
    target = _open(folders[-1])
    files = [file for _, file in target.files()]
    assert len({file.level for file in files}) == 1
    return {**taken, "rows": sum(file.row_count for file in files), "bytes": sum(file.size for file in files)}


def compact_once(folder: str) -> dict[str, Any]:
    """A full compaction in a process that does nothing else, with the number of input and output rows."""
    seen: list[CompactionProgress] = []
    target = _open(folder)
    with timed() as timer:
        made = target.compact(full=True, progress=seen.append)
    assert made is not None
    rows = sum(file.row_count for _, file in target.files())
    return {**timer.taken, "input_rows": seen[-1].rows_done, "rows": rows, "files": len(target.files())}


def make_waiting(folder: str, rows: int, upserts: int, upsert_rows: int, options: dict[str, str]) -> dict[str, Any]:
    """A bucket that is compacted in full, and upserts of known keys that wait on level 0."""
    target = _create(folder, {"bucket": "1", "write-only": "true", **options}, keyed=True)
    with timed() as timer:
        target.write(rows_of(load_ids(rows), 0))
        target.compact(full=True)
        for version in range(1, upserts + 1):
            target.write(rows_of(update_ids(rows, upsert_rows, version), version))
    return timer.taken


def compact_waiting(folders: list[str], full: bool) -> dict[str, Any]:
    """A compaction of copies of one table, with the number of rows of its changelog."""
    seen: list[CompactionProgress] = []
    taken = repeated(lambda number: _open(folders[number]).compact(full, progress=seen.append), len(folders) - 1)
    return {**taken, "changelog_rows": seen[-1].changelog_rows}


def rewrite_all(paths: list[str], folder: str, repeats: int) -> dict[str, Any]:
    """All rows of the files read by `pyarrow.dataset` and written to one file, zstd at level 1, as they are."""
    Path(folder).mkdir(parents=True)
    target = Path(folder, "rewritten.parquet")
    counts: list[int] = []

    def read_and_write(_: int) -> None:
        data = ds.dataset(paths, format="parquet").to_table()
        pq.write_table(data, target, compression="zstd", compression_level=1)
        counts.append(data.num_rows)

    return {**repeated(read_and_write, repeats), "rows": counts[-1]}


def read_all_write_some(paths: list[str], rows: int, folder: str, repeats: int) -> dict[str, Any]:
    """The same, but only some of the rows are written: as many as remain after the merge."""
    Path(folder).mkdir(parents=True)
    target = Path(folder, "some.parquet")

    def read_and_write(_: int) -> None:
        data = ds.dataset(paths, format="parquet").to_table()
        pq.write_table(data.slice(0, rows), target, compression="zstd", compression_level=1)

    return repeated(read_and_write, repeats)


# ---------------------------------------------------------------- many small commits


def upsert_often(folder: str, rows: int, count: int, commits: int, write_only: bool) -> dict[str, Any]:
    """A load, and then many small upserts of known keys into one bucket."""
    target = _create(folder, {"bucket": "1", "write-only": str(write_only).lower()}, keyed=True)
    target.write(rows_of(load_ids(rows), 0))
    return _write_often(target, rows, count, commits)


def append_often(folder: str, rows: int, count: int, commits: int, write_only: bool) -> dict[str, Any]:
    """The same into an append table, whose rows accumulate."""
    target = _create(folder, {"write-only": str(write_only).lower()}, keyed=False)
    target.write(rows_of(load_ids(rows), 0))
    return _write_often(target, rows, count, commits)


def _write_often(target: Table, rows: int, count: int, commits: int) -> dict[str, Any]:
    batches = [rows_of(update_ids(rows, count, version), version) for version in range(1, 33)]
    target.write(batches[0])
    times: list[float] = []
    with timed() as timer:
        for number in range(commits):
            begin = time.perf_counter()
            target.write(batches[number % len(batches)])
            times.append(time.perf_counter() - begin)
    return {
        **timer.taken,
        "median_seconds": median(times),
        "worst_seconds": max(times),
        "files": len(target.files()),
        "snapshots": len(target.snapshots()),
    }


def finish(folder: str) -> dict[str, Any]:
    """A full compaction of such a table."""
    target = _open(folder)
    with timed() as timer:
        target.compact(full=True)
    return {**timer.taken, "files": len(target.files())}


def load_once(folder: str, source: str) -> dict[str, Any]:
    """The rows of such a table in a new one of the same kind, by one commit, compacted."""
    rows = _open(source).scan().to_arrow()
    keyed = bool(_open(source).schema.primary_keys)
    target = _create(folder, {"bucket": "1"} if keyed else {}, keyed=keyed)
    with timed() as timer:
        target.write(rows)
    target.compact(full=True)
    return {**timer.taken, "files": len(target.files())}


def written(folder: str, versions: int) -> dict[str, Any]:
    """Bytes written by commits and by compaction, from a table's snapshots, and the version of the last few with most files."""
    target = _open(folder)
    flushed = compacted = compactions = 0
    for snapshot in target.snapshots():
        manifests = read_manifest_list(target.home, snapshot.delta_manifest_list)
        entries = read_entries(target.home, manifests, columns=["_KIND", "_FILE_NAME", "_FILE_SIZE"])
        rows = entries.select(["_KIND", "_FILE_NAME", "_FILE_SIZE"]).to_pylist()
        gone = {row["_FILE_NAME"] for row in rows if row["_KIND"] == EntryKind.DELETE}
        # A file that moves to another level is named twice and not written again.
        size = sum(row["_FILE_SIZE"] for row in rows if row["_FILE_NAME"] not in gone)
        if snapshot.commit_kind is CommitKind.COMPACT:
            compacted, compactions = compacted + size, compactions + 1
        else:
            flushed += size
    latest = target.latest_snapshot()
    assert latest is not None
    counts = {id_: len(target.files(version=id_)) for id_ in range(max(1, latest.id - versions), latest.id + 1)}
    return {
        "seconds": 0.0,
        "flushed_bytes": flushed,
        "compacted_bytes": compacted,
        "compactions": compactions,
        "worst_version": max(counts, key=lambda id_: counts[id_]),
        "worst_files": max(counts.values()),
        "live_bytes": sum(file.size for _, file in target.files()),
    }


def read(folder: str, version: int | None, repeats: int) -> dict[str, Any]:
    """All rows of the table, or of a version of it, from opening it."""
    counts: list[int] = []
    taken = repeated(lambda _: counts.append(_open(folder).scan(version=version).to_arrow().num_rows), repeats)
    return {**taken, "rows": counts[-1]}


def _create(folder: str, options: dict[str, str], *, keyed: bool) -> Table:
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    return lake.create_table(TABLE, SCHEMA, primary_key=KEYS["BIGINT"] if keyed else (), options=options)


def _open(folder: str) -> Table:
    return lakelet.connect(folder).table(TABLE)


if __name__ == "__main__":
    serve(
        compact,
        compact_once,
        make_waiting,
        compact_waiting,
        rewrite_all,
        read_all_write_some,
        upsert_often,
        append_often,
        finish,
        load_once,
        written,
        read,
    )
