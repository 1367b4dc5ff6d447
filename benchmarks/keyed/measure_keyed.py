"""Primary-key tables: the merge read, the write, rows by their keys, the memory of one large bucket, the kernel.

The tables of reads are one load and five upserts of a fifth of its rows each. Every process does its work once before
the clock starts: compiled loops are loaded then.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Result, Scale, at_most, faster, under
from benchmarks.keyed.keyed_rows import KEYS
from benchmarks.rounds import PYPAIMON, Contender, Measured, best_of, run_task

ROWS = 1_000_000
UPSERT_ROWS = 200_000
UPSERTS = 5
BUCKETS = (2, 4)
REPEATS = 5

MANY_ROWS = 50_000_000
MANY_UPSERT_ROWS = 2_000_000
MEMORY_LIMIT_MIB = 1536

GETS = 2_000
# So many that lookup files pay, and are made.
GETS_BEFORE = 6_000
MANY_KEYS = 10_000

KERNEL_ROWS = 10_000_000
KERNEL_RUNS = 100

MERGE_LIMITS = {"BIGINT": 1.35, "uuid": 1.6, "(string, int)": 1.85}


@dataclass(frozen=True)
class KeyedLayout:
    """A table to read: the type of its key, its number of buckets, where it lies, and the files it consists of."""

    key: str
    buckets: int
    folder: str
    paths: list[str]

    @property
    def name(self) -> str:
        """How results name it."""
        return f"{self.key}, {self.buckets} buckets"


def make_layout(scale: Scale, key: str, buckets: int) -> KeyedLayout:
    """Makes a table of a load and some upserts."""
    folder = str(scale.folder / f"{key}-{buckets}")
    shape = {"rows": scale.of(ROWS), "upserts": UPSERTS, "upsert_rows": scale.of(UPSERT_ROWS)}
    made = run_task("keyed/keyed_tasks.py", "make", {"folder": folder, "key": key, "buckets": buckets, **shape})
    return KeyedLayout(key, buckets, folder, made["paths"])


# ---------------------------------------------------------------- merge read


def measure_merge_read(scale: Scale) -> list[Result]:
    """All rows of tables whose every row has to be looked for in six runs."""
    results = []
    for key in KEYS:
        for buckets in BUCKETS:
            layout = make_layout(scale, key, buckets)
            results += _merge_results(layout, _read_all_ways(scale, layout))
            shutil.rmtree(layout.folder)
    return results


def _read_all_ways(scale: Scale, layout: KeyedLayout) -> dict[str, Measured]:
    two = {"two": [KEYS[layout.key][0], "price"], "values": ["price", "paid"]}

    def plain(columns: list[str] | None, _: int) -> Measured:
        arguments = {"paths": layout.paths, "columns": columns, "repeats": REPEATS}
        return run_task("peers/arrow_tasks.py", "read_again", arguments)

    def ours(task: str, columns: list[str] | None, extra: dict[str, Any], _: int) -> Measured:
        arguments = {"folder": layout.folder, "columns": columns, "repeats": REPEATS, **extra}
        return run_task("keyed/keyed_tasks.py", task, arguments)

    def pypaimon(native: bool, columns: list[str] | None, repeats: int, _: int) -> Measured:
        arguments = {"folder": layout.folder, "columns": columns, "native": native, "repeats": repeats}
        return run_task("peers/pypaimon_tasks.py", "read_keyed", arguments, PYPAIMON)

    found = best_of(
        scale.rounds,
        Contender("plain", partial(plain, None)),
        Contender("lakelet", partial(ours, "read", None, {"ordered": False})),
        Contender("ordered", partial(ours, "read", None, {"ordered": True})),
        Contender("stream", partial(ours, "read_stream", None, {})),
        Contender("native", partial(pypaimon, True, None, REPEATS)),
        Contender("plain two", partial(plain, two["two"])),
        Contender("lakelet two", partial(ours, "read", two["two"], {"ordered": False})),
        Contender("native two", partial(pypaimon, True, two["two"], REPEATS)),
        Contender("plain values", partial(plain, two["values"])),
        Contender("lakelet values", partial(ours, "read", two["values"], {"ordered": False})),
        # Its Python code is about a hundred times slower: one read, which counts with what it loads.
        Contender("pypaimon", partial(pypaimon, False, None, 0), rounds=1),
    )
    rows = scale.of(ROWS)
    assert all(measured["rows"] == rows for name, measured in found.items() if not name.startswith("plain"))
    return found


def _merge_results(layout: KeyedLayout, found: dict[str, Measured]) -> list[Result]:
    name, ours, plain = f"merge read, {layout.name}", found["lakelet"], found["plain"]
    return [
        at_most(f"{name}, all columns, pyarrow.dataset", ours, plain, MERGE_LIMITS[layout.key]),
        faster(f"{name}, all columns, pypaimon native", ours, found["native"], 2),
        faster(f"{name}, all columns, pypaimon Python", ours, found["pypaimon"], 50),
        at_most(f"{name}, in key order, pyarrow.dataset", found["ordered"], plain, 2.0),
        faster(f"{name}, batch by batch, pyarrow.dataset", found["stream"], plain, None),
        at_most(f"{name}, key and price, pyarrow.dataset", found["lakelet two"], found["plain two"], 2.1),
        faster(f"{name}, key and price, pypaimon native", found["lakelet two"], found["native two"], 2),
        faster(f"{name}, price and paid, pyarrow.dataset", found["lakelet values"], found["plain values"], None),
    ]


# ---------------------------------------------------------------- write


def measure_keyed_write(scale: Scale) -> list[Result]:
    """1M rows in no order into a new table: sort, files, statistics, commit."""
    results = []
    for key in KEYS:
        for buckets in BUCKETS:
            results += _write_results(scale, key, buckets)
    return results


def _write_results(scale: Scale, key: str, buckets: int) -> list[Result]:
    shape = {"rows": scale.of(ROWS), "key": key, "repeats": REPEATS}

    def fresh(script: str, task: str, python: Path | None, extra: dict[str, Any], number: int) -> Measured:
        folder = scale.folder / f"{task}-{number}"
        arguments = {"folder": str(folder), **shape, **extra}
        measured = run_task(script, task, arguments, python) if python else run_task(script, task, arguments)
        shutil.rmtree(folder)
        return measured

    native = {"native": True, "buckets": buckets}
    found = best_of(
        scale.rounds,
        Contender("pyarrow", partial(fresh, "peers/arrow_tasks.py", "sort_and_write", None, {})),
        Contender("lakelet", partial(fresh, "keyed/keyed_tasks.py", "write", None, {"buckets": buckets})),
        Contender("native", partial(fresh, "peers/pypaimon_tasks.py", "write_keyed", PYPAIMON, native)),
    )
    name = f"write of {shape['rows']:,} rows, {key}, {buckets} buckets"
    return [
        at_most(f"{name}, pyarrow sort_by and write_table", found["lakelet"], found["pyarrow"], 1.2),
        faster(f"{name}, pypaimon native", found["lakelet"], found["native"], 1),
    ]


# ---------------------------------------------------------------- rows by key


def measure_get(scale: Scale) -> list[Result]:
    """One row by its key, and many, out of a warm table of six runs."""
    results = []
    for key in KEYS:
        for buckets in BUCKETS:
            layout = make_layout(scale, key, buckets)
            results += _get_results(scale, layout)
            shutil.rmtree(layout.folder)
    return results


def _get_results(scale: Scale, layout: KeyedLayout) -> list[Result]:
    table = {"folder": layout.folder, "key": layout.key, "rows": scale.of(ROWS)}
    count = scale.of(MANY_KEYS)
    one = {**table, "warm_up": GETS_BEFORE, "count": scale.of(GETS)}
    found = best_of(
        scale.rounds,
        Contender("get", lambda _: run_task("keyed/keyed_tasks.py", "get", one)),
        Contender(
            "get_many",
            lambda _: run_task("keyed/keyed_tasks.py", "get_many", {**table, "count": count, "repeats": REPEATS}),
        ),
    )
    got, many = found["get"], found["get_many"]
    assert many["rows"] == count
    middle, tail, first = (got[name] * 1000 for name in ("seconds", "p99_seconds", "first_seconds"))
    used, tail_used = (got[name] * 1000 for name in ("user_seconds", "p99_user_seconds"))
    text = f"{middle:.2f} ms in the middle (processor {used:.2f} ms), {first:.0f} ms the first time"
    taken = many["seconds"] * 1000
    tail_text = f"{tail:.2f} ms (processor {tail_used:.2f} ms)"
    many_text = f"{taken:.1f} ms (processor {many['user_seconds'] * 1000:.1f} ms)"
    return [
        under(f"get, {layout.name}", got, middle, 0.5, text, "ms"),
        under(f"get, {layout.name}, at 99 %", got, tail, 2, tail_text, "ms"),
        under(f"get_many of {count:,} keys, {layout.name}", many, taken, 60, many_text, "ms"),
    ]


# ---------------------------------------------------------------- memory


def measure_keyed_memory(scale: Scale) -> list[Result]:
    """One bucket of 50M rows and five upserts over all of its keys, streamed in and out again."""
    rows, upsert_rows = scale.of(MANY_ROWS), scale.of(MANY_UPSERT_ROWS)
    folder = str(scale.folder / "table")
    shape = {"rows": rows, "upserts": UPSERTS, "upsert_rows": upsert_rows}
    written = run_task("keyed/keyed_tasks.py", "write_stream", {"folder": folder, **shape})
    read = run_task("keyed/keyed_tasks.py", "read_stream", {"folder": folder, "columns": None, "repeats": 0})
    assert read["rows"] == rows
    assert written["stored_rows"] == rows + UPSERTS * upsert_rows
    results = []
    for task, measured in (("writing", written), ("reading", read)):
        peak = measured["peak_bytes"] / (1 << 20)
        text = f"{peak:.0f} MiB at most, in {measured['seconds']:.1f} s"
        name = f"memory of {task} a bucket of {rows:,} rows in {UPSERTS + 1} runs"
        results.append(under(name, measured, peak, MEMORY_LIMIT_MIB, text, "MiB"))
    return results


# ---------------------------------------------------------------- kernel


def measure_winners(scale: Scale) -> list[Result]:
    """The newest row of each key over 100 runs and 10M rows."""
    shape = {"rows": scale.of(KERNEL_ROWS), "runs": KERNEL_RUNS, "repeats": REPEATS}
    found = best_of(
        scale.rounds,
        Contender("kernel", lambda _: run_task("keyed/winners_kernel.py", "kernel", {**shape, "ordered": False})),
        Contender("ordered", lambda _: run_task("keyed/winners_kernel.py", "kernel", {**shape, "ordered": True})),
        Contender("sort", lambda _: run_task("keyed/winners_kernel.py", "stable_sort", shape)),
    )
    assert len({measured["keys"] for measured in found.values()}) == 1
    name = f"winners of {shape['rows']:,} rows in {KERNEL_RUNS} runs"
    return [
        faster(f"{name}, numpy's stable argsort", found["kernel"], found["sort"], 2),
        faster(f"{name}, in key order, numpy's stable argsort", found["ordered"], found["sort"], 2),
    ]
