"""Rows in and out: the write, the read, and the memory of both at fifty times the size."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from benchmarks.benchmark import Result, Scale, at_most, faster
from benchmarks.rounds import PYPAIMON, Contender, Measured, best_of, run_task

ROWS = 1_000_000
MANY_ROWS = 50_000_000
MEMORY_LIMIT = 1 << 30


def measure_write(scale: Scale) -> list[Result]:
    """1M rows into a new table, with statistics and the commit."""
    rows = scale.of(ROWS)

    def fresh(script: str, name: str, python: Path | None, extra: dict[str, bool], number: int) -> Measured:
        folder = scale.folder / f"{name}-{number}"
        arguments = {"rows": rows, "folder": str(folder), **extra}
        measured = run_task(script, "write", arguments, python) if python else run_task(script, "write", arguments)
        shutil.rmtree(folder)
        return measured

    found = best_of(
        scale.rounds,
        Contender("pyarrow", partial(fresh, "peers/arrow_tasks.py", "pyarrow", None, {})),
        Contender("lakelet", partial(fresh, "append/lakelet_tasks.py", "lakelet", None, {})),
        Contender("native", partial(fresh, "peers/pypaimon_tasks.py", "native", PYPAIMON, {"native": True})),
        Contender("pypaimon", partial(fresh, "peers/pypaimon_tasks.py", "pypaimon", PYPAIMON, {"native": False})),
    )
    ours = found["lakelet"]
    return [
        at_most(f"write of {rows:,} rows, pyarrow.parquet.write_table", ours, found["pyarrow"], 1.2),
        faster(f"write of {rows:,} rows, pypaimon native", ours, found["native"], 1),
        faster(f"write of {rows:,} rows, pypaimon Python", ours, found["pypaimon"], 30),
    ]


def measure_read(scale: Scale) -> list[Result]:
    """All rows of a table of 1M rows into Arrow, from opening it; every contender reads the same files."""
    rows = scale.of(ROWS)
    folder = str(scale.folder / "table")
    written = run_task("append/lakelet_tasks.py", "write", {"rows": rows, "folder": folder})

    def peer(native: bool, _: int) -> Measured:
        return run_task("peers/pypaimon_tasks.py", "read", {"folder": folder, "native": native}, PYPAIMON)

    found = best_of(
        scale.rounds,
        Contender("pyarrow", lambda _: run_task("peers/arrow_tasks.py", "read", {"paths": written["files"]})),
        Contender("lakelet", lambda _: run_task("append/lakelet_tasks.py", "read", {"folder": folder})),
        Contender("native", partial(peer, True)),
        Contender("pypaimon", partial(peer, False)),
    )
    assert all(measured["rows"] == rows for measured in found.values())
    ours = found["lakelet"]
    return [
        at_most(f"read of {rows:,} rows, pyarrow.dataset", ours, found["pyarrow"], 1.05),
        faster(f"read of {rows:,} rows, pypaimon native", ours, found["native"], 1),
        faster(f"read of {rows:,} rows, pypaimon Python", ours, found["pypaimon"], 30),
    ]


def measure_memory(scale: Scale) -> list[Result]:
    """50M rows streamed in and out again: the most memory either process had resident."""
    rows = scale.of(MANY_ROWS)
    folder = str(scale.folder / "table")
    written = run_task("append/lakelet_tasks.py", "write_stream", {"rows": rows, "folder": folder})
    read = run_task("append/lakelet_tasks.py", "read_stream", {"folder": folder})
    assert read["rows"] == rows
    return [
        _memory(f"memory of writing {rows:,} rows", written),
        _memory(f"memory of reading {rows:,} rows", read),
    ]


def _memory(name: str, measured: Measured) -> Result:
    peak = measured["peak_bytes"]
    text = f"{peak / (1 << 20):.0f} MiB at most, in {measured['seconds']:.1f} s"
    return Result(name, measured, {}, peak / MEMORY_LIMIT, text, "< 1 GiB", peak < MEMORY_LIMIT)
