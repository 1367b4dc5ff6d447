"""The tasks of `measure_sst`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lakelet
from benchmarks.contender import repeated, serve, timed

_COLUMNS = [("k", "STRING NOT NULL"), ("v", "STRING"), ("n", "BIGINT")]
_VALUE = "v" * 90
_REPEATS = 3


def scan(folder: str, rows: int, kind: str) -> dict[str, Any]:
    """All rows and columns."""
    table, _ = _table(folder, rows, kind)
    return {**repeated(lambda _: table.scan().to_arrow(), _REPEATS), "rows": rows}


def scan_one_column(folder: str, rows: int, kind: str) -> dict[str, Any]:
    """All rows of one column."""
    table, _ = _table(folder, rows, kind)
    return {**repeated(lambda _: table.scan(columns=["n"]).to_arrow(), _REPEATS), "rows": rows}


def first_get(folder: str, rows: int, kind: str) -> dict[str, Any]:
    """A row by its key, when nothing of its file was read before; what loads code has run on another table."""
    other, _ = _table(str(Path(folder, "other")), 1000, kind)
    other.get({"k": f"{500:016}"})
    table, _ = _table(folder, rows, kind)
    with timed() as timer:
        table.get({"k": f"{rows // 2:016}"})
    return {**timer.taken, "rows": 1}


def written(folder: str, rows: int, kind: str) -> dict[str, Any]:
    """All rows in one commit."""
    _table(str(Path(folder, "other")), 1000, kind)
    return _table(folder, rows, kind)[1]


def _table(folder: str, rows: int, kind: str) -> tuple[lakelet.Table, dict[str, float]]:
    lake = lakelet.connect(str(Path(folder, "lake")))
    lake.create_database("bench")
    options = {"bucket": "1", "file.format": kind, "write-only": "true"}
    table = lake.create_table("bench.rows", _COLUMNS, primary_key=["k"], options=options)
    numbers = np.random.default_rng(5).integers(0, 1_000_000, rows)
    data = pa.table(
        {
            "k": [f"{number:016}" for number in range(rows)],
            "v": [f"{number:010}{_VALUE}" for number in range(rows)],
            "n": numbers,
        }
    )
    with timed() as timer:
        table.write(data)
    return table, timer.taken


if __name__ == "__main__":
    serve(scan, scan_one_column, first_get, written)
