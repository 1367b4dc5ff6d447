"""pyarrow's side: bare Parquet files of the same rows, without a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.append.rows import table
from benchmarks.contender import repeated, serve, timed
from benchmarks.keyed.keyed_rows import KEYS, load_ids, rows_of


def write(rows: int, folder: str) -> dict[str, Any]:
    """One Parquet file, zstd at level 1, as `write_table` makes it."""
    data = table(rows)
    path = Path(folder, "bare.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    with timed() as timer:
        pq.write_table(data, path, compression="zstd", compression_level=1)
    return {**timer.taken, "bytes": path.stat().st_size}


def read(paths: list[str]) -> dict[str, Any]:
    """All rows of the files."""
    with timed() as timer:
        data = ds.dataset(paths, format="parquet").to_table()
    return {**timer.taken, "rows": data.num_rows}


def read_again(paths: list[str], columns: list[str] | None, repeats: int) -> dict[str, Any]:
    """The rows of the files, or some columns of them, again and again in one process."""
    counts: list[int] = []
    taken = repeated(lambda _: counts.append(ds.dataset(paths, format="parquet").to_table(columns).num_rows), repeats)
    return {**taken, "rows": counts[-1]}


def sort_and_write(rows: int, key: str, folder: str, repeats: int) -> dict[str, Any]:
    """The rows sorted by a key and written to one file, zstd at level 1."""
    data = rows_of(load_ids(rows), 0)
    order = [(name, "ascending") for name in KEYS[key]]
    Path(folder).mkdir(parents=True)

    def write_sorted(number: int) -> None:
        path = Path(folder, f"sorted-{number}.parquet")
        pq.write_table(data.sort_by(order), path, compression="zstd", compression_level=1)

    return repeated(write_sorted, repeats)


if __name__ == "__main__":
    serve(write, read, read_again, sort_and_write)
