"""Rows served by key: `table.lookup()` beside LevelDB (plyvel), RocksDB (rocksdict) and LMDB, as far as they are installed, and
`table.get` and a row writer's reads.

Keys of 16 bytes, values of 100; everything is warm. The others give bytes, Lakelet bytes, or a row as a dict of a dict with the
key. LMDB reads mapped pages within one transaction, without a cache of its own.
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
    "writer_get",
    "writer_absent",
    "writer_recent",
    "writer_many",
)
_PEERS = {
    "plyvel": ("plyvel_get", "plyvel_absent", "plyvel_many"),
    "rocksdict": ("rocksdb_get", "rocksdb_absent"),
    "lmdb": ("lmdb_get", "lmdb_absent"),
}


def measure_lookup(scale: Scale) -> list[Result]:
    """`table.lookup()`: single keys, absent keys, a thousand at once, a scan; LevelDB, RocksDB, LMDB, `table.get`."""
    peers = [name for name in _PEERS if importlib.util.find_spec(name) is not None]
    names = (*_TASKS, *(task for peer in peers for task in _PEERS[peer]))
    found = best_of(
        scale.rounds, *(Contender(name, lambda number, task=name: _run(scale, task, number)) for name in names)
    )
    get, strict, groups = found["lookup_get"], found["strict_get"], found["strict_get_groups"]
    scanned, absent = found["lookup_scan"], found["writer_absent"]
    rate = scanned["rows"] / scanned["seconds"]
    results = [
        under("get of a handle", get, _micros(get), 50, f"{_micros(get):.0f} µs", "µs"),
        under("strict get of a table", strict, _micros(strict), 150, f"{_micros(strict):.0f} µs", "µs"),
        under("strict get without lookup files", groups, _micros(groups), 500, f"{_micros(groups):.0f} µs", "µs"),
        under(
            "get of a row writer",
            found["writer_get"],
            _micros(found["writer_get"]),
            150,
            _shown(found["writer_get"]),
            "µs",
        ),
        under("absent key of a row writer", absent, _micros(absent), 150, _shown(absent), "µs"),
        beside("get of a thousand keys by a handle, by the table", found["lookup_many"], found["strict_many"]),
        Result("rows of all keys by a handle", scanned, {}, rate, f"{rate:,.0f} rows/s", "", None),
    ]
    if "plyvel" in peers:
        results += [
            faster("single keys, LevelDB", get, found["plyvel_get"], 0.5),
            faster("bytes of single keys, LevelDB", found["lookup_bytes"], found["plyvel_get"], 1.0),
            faster("absent keys, LevelDB", found["lookup_absent"], found["plyvel_absent"], 1.0),
            faster("bytes of absent keys, LevelDB", found["lookup_bytes_absent"], found["plyvel_absent"], 1.0),
            faster("a thousand keys at once, LevelDB one by one", found["lookup_many"], found["plyvel_many"], 1.5),
            faster("single keys of a writer's memory, LevelDB", found["writer_recent"], found["plyvel_get"], 0.5),
            faster("a thousand keys at once by a writer, LevelDB", found["writer_many"], found["plyvel_many"], 1.5),
        ]
    for peer, shown, task in (("rocksdict", "RocksDB", "rocksdb"), ("lmdb", "LMDB", "lmdb")):
        if peer in peers:
            results += [
                faster(f"bytes of single keys, {shown}", found["lookup_bytes"], found[f"{task}_get"], None),
                faster(f"bytes of absent keys, {shown}", found["lookup_bytes_absent"], found[f"{task}_absent"], None),
            ]
    return results


def _micros(found: dict[str, float]) -> float:
    return found["seconds"] / found["keys"] * 1e6


def _shown(found: dict[str, float]) -> str:
    return f"{_micros(found):.0f} µs"


def _run(scale: Scale, task: str, number: int) -> dict[str, float]:
    folder = scale.folder / f"{task}-{number}"
    folder.mkdir()
    return run_task("keyed/lookup_tasks.py", task, {"folder": str(folder), "rows": scale.of(ROWS)})
