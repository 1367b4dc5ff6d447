"""Rows served by key: `table.lookup()` beside LevelDB (plyvel), which is as small a store of keys as there is, and `table.get`.

Keys of 16 bytes, values of 100; everything is warm. LevelDB gives bytes, Lakelet a row as a dict of a dict with the key.
"""

from __future__ import annotations

import importlib.util

from benchmarks.benchmark import Result, Scale, beside, faster, under
from benchmarks.rounds import Contender, best_of, run_task

ROWS = 1_000_000
_TASKS = (
    "lookup_get",
    "lookup_absent",
    "lookup_bytes",
    "lookup_bytes_absent",
    "lookup_many",
    "lookup_scan",
    "strict_get",
    "strict_get_groups",
    "strict_many",
)
_PEERS = ("plyvel_get", "plyvel_absent", "plyvel_many")


def measure_lookup(scale: Scale) -> list[Result]:
    """`table.lookup()`: single keys, absent keys, a thousand at once and a scan, against LevelDB and `table.get`."""
    has_peer = importlib.util.find_spec("plyvel") is not None
    names = (*_TASKS, *(_PEERS if has_peer else ()))
    found = best_of(
        scale.rounds, *(Contender(name, lambda number, task=name: _run(scale, task, number)) for name in names)
    )
    get, strict, groups = found["lookup_get"], found["strict_get"], found["strict_get_groups"]
    scanned = found["lookup_scan"]
    rate = scanned["rows"] / scanned["seconds"]
    results = [
        under("get of a handle", get, _micros(get), 50, f"{_micros(get):.0f} µs", "µs"),
        under("strict get of a table", strict, _micros(strict), 150, f"{_micros(strict):.0f} µs", "µs"),
        under("strict get without lookup files", groups, _micros(groups), 500, f"{_micros(groups):.0f} µs", "µs"),
        beside("get of a thousand keys by a handle, by the table", found["lookup_many"], found["strict_many"]),
        Result("rows of all keys by a handle", scanned, {}, rate, f"{rate:,.0f} rows/s", "", None),
    ]
    if has_peer:
        results += [
            faster("single keys, LevelDB", get, found["plyvel_get"], 0.5),
            faster("bytes of single keys, LevelDB", found["lookup_bytes"], found["plyvel_get"], 1.0),
            faster("absent keys, LevelDB", found["lookup_absent"], found["plyvel_absent"], 1.0),
            faster("bytes of absent keys, LevelDB", found["lookup_bytes_absent"], found["plyvel_absent"], 1.0),
            faster("a thousand keys at once, LevelDB one by one", found["lookup_many"], found["plyvel_many"], 1.5),
        ]
    return results


def _micros(found: dict[str, float]) -> float:
    return found["seconds"] / found["keys"] * 1e6


def _run(scale: Scale, task: str, number: int) -> dict[str, float]:
    folder = scale.folder / f"{task}-{number}"
    folder.mkdir()
    return run_task("keyed/lookup_tasks.py", task, {"folder": str(folder), "rows": scale.of(ROWS)})
