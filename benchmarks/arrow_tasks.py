"""Bare Parquet files: what pyarrow takes for the same rows without a table around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from contender import serve, timed
from rows import table


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


if __name__ == "__main__":
    serve(write, read)
