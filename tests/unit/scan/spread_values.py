"""A table whose files have the same least and greatest values, so that only indexes say what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import lakelet
from lakelet import Table

INDEXES = {
    "file-index.bloom-filter.columns": "s",
    "file-index.bloom-filter.s.items": "50",
    "file-index.bitmap.columns": "b",
    "file-index.range-bitmap.columns": "n",
}


def spread(folder: Path, **arguments: Any) -> Table:
    """Three files with the same least and greatest values but one; the data of the first and the last is gone."""
    lake = lakelet.connect(str(folder))
    lake.create_database("d")
    columns = [("id", "BIGINT"), ("s", "STRING"), ("b", "INT"), ("n", "INT")]
    options = {**INDEXES, "write-only": "true", **arguments.pop("options", {})}
    table = lake.create_table("d.t", columns, options=options, **arguments)
    for file in range(3):
        table.write([{"id": i, "s": f"s{i}", "b": i, "n": i} for i in (-100, *range(file, 60, 3), 100)])
    for path in folder.glob("d.db/t/bucket-0/*.parquet"):
        if 16 not in pq.read_table(path, columns=["n"]).column("n").to_pylist():
            path.unlink()
    return table
