"""Tasks of expiry and orphan removal over many files, and bare file system operations on as many.

The table's metadata is real, made by Lakelet's own commits. Its data files hold a few bytes: nobody opens them.

    first commit      `files` files in `parts` partitions
    each of the rest  replaces `replaced` files of one partition, as a compaction does
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lakelet
from benchmarks.contender import repeated, serve, timed
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_APPEND, DataFile, Stats
from lakelet.table import Table

TABLE = "bench.many"
SCHEMA = pa.schema([("part", pa.int32()), ("id", pa.int64()), ("price", pa.float64())])
ROWS_PER_FILE = 1_000
SOME_BYTES = b"PAR1" * 16


def make(folder: str, files: int, parts: int, commits: int, replaced: int, strays: int) -> dict[str, Any]:
    """The table, and a number of orphan files in its folders."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    # Expiry keeps snapshots that are younger than the timeout of a commit.
    options = {"write-only": "true", "commit.timeout": "100 ms"}
    target = lake.create_table(TABLE, SCHEMA, partitioned_by=["part"], options=options)
    partitions = encode_rows([pa.array(np.arange(parts, dtype=np.int32))], target.schema.partition_types).to_pylist()
    folders = PartitionFolders(target.home.paths, target.schema)
    places = [Path(folder, folders.bucket_folder(partition, 0)) for partition in partitions]
    each = files // parts
    made = _Files(target, parts)
    live = [made.some(number, each) for number in range(parts)]
    last = _commit(target, [CommitMessage(p, 0, -1, tuple(own)) for p, own in zip(partitions, live, strict=True)])
    for number in range(commits):
        part = number % parts
        gone, kept, come = live[part][:replaced], live[part][replaced:], made.some(part, replaced)
        message = CommitMessage(partitions[part], 0, -1, tuple(come), tuple(gone), base_snapshot=last)
        last = _commit(target, [message])
        live[part] = [*kept, *come]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    for number, names in enumerate(made.names):
        for name in (*names, *(f"data-stray-{at}-0.parquet" for at in range(number, strays, parts))):
            (places[number] / name).write_bytes(SOME_BYTES)
    return {"seconds": 0.0, "files": sum(map(len, made.names)), "snapshots": last}


class _Files:
    """Files of partitions as manifests describe them, and the names of all that there have been."""

    def __init__(self, target: Table, parts: int) -> None:
        self._types = [field.type for field in target.schema.fields]
        self.names: list[list[str]] = [[] for _ in range(parts)]
        self._first = 0

    def some(self, part: int, count: int) -> list[DataFile]:
        """New files of a partition, `count` of them."""
        ids = self._first + np.arange(count) * ROWS_PER_FILE
        self._first += count * ROWS_PER_FILE
        parts, prices = np.full(count, part, np.int32), np.full(count, 0.5)
        lows = encode_rows([pa.array(parts), pa.array(ids), pa.array(prices)], self._types)
        highs = encode_rows([pa.array(parts), pa.array(ids + ROWS_PER_FILE - 1), pa.array(prices)], self._types)
        made = [
            _file(f"data-{first:032x}-0.parquet", Stats(low, high, (0, 0, 0)))
            for first, low, high in zip(ids.tolist(), lows.to_pylist(), highs.to_pylist(), strict=True)
        ]
        self.names[part] += [file.name for file in made]
        return made


def _file(name: str, stats: Stats) -> DataFile:
    return DataFile(
        name=name,
        size=len(SOME_BYTES),
        row_count=ROWS_PER_FILE,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=NO_STATS,
        value_stats=stats,
        min_sequence=0,
        max_sequence=ROWS_PER_FILE - 1,
        schema_id=0,
        level=0,
        creation_ms=int(time.time() * 1000),
        delete_row_count=0,
        source=FILE_SOURCE_APPEND,
    )


def _commit(target: Table, messages: list[CommitMessage]) -> int:
    made = target.new_commit().commit(messages)
    assert made is not None
    return made.id


def expire(folder: str) -> dict[str, Any]:
    """Expiry of all snapshots but the last, from opening the table, in a process that has done nothing before."""
    with timed() as timer:
        done = lakelet.connect(folder).table(TABLE).expire_snapshots(retain_last=1)
    return {**timer.taken, "snapshots": len(done.ids), "removed": done.files + len(done.ids)}


def unlink(folder: str, count: int) -> dict[str, Any]:
    """The removal of as many files, one after the other, in the order of their paths."""
    paths = sorted(str(path) for path in Path(folder).rglob("*.parquet"))
    paths += sorted(str(path) for path in Path(folder).rglob("manifest-*"))
    chosen = paths[:count]
    with timed() as timer:
        for path in chosen:
            os.unlink(path)
    return {**timer.taken, "removed": len(chosen)}


def orphans(folder: str, repeats: int) -> dict[str, Any]:
    """A dry run of orphan removal, from opening the table."""
    counts: list[int] = []

    def look(_: int) -> None:
        counts.append(lakelet.connect(folder).table(TABLE).remove_orphan_files("1 ms", dry_run=True).count)

    return {**repeated(look, repeats), "orphans": counts[-1]}


def walk(folder: str, repeats: int) -> dict[str, Any]:
    """All files below a folder with their sizes and times."""
    counts: list[int] = []

    def look(_: int) -> None:
        found = []
        waiting = [folder]
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir():
                        waiting.append(entry.path)
                    else:
                        status = entry.stat()
                        found.append((entry.path, status.st_size, status.st_mtime_ns))
        counts.append(len(found))

    return {**repeated(look, repeats), "files": counts[-1]}


if __name__ == "__main__":
    serve(make, expire, unlink, orphans, walk)
