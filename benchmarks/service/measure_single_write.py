"""Single durable writes over HTTP: processor time of the server for each, beside a plain FastAPI handler with the same log, and
beside the same server that writes nothing."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from benchmarks.benchmark import Result, Scale, at_most, faster, under
from benchmarks.rounds import Contender, Measured, best_of
from benchmarks.service.load import closed_loop, open_loop
from benchmarks.service.rows import make_table, single_requests
from benchmarks.service.server_process import ServerProcess

WRITES = 20_000
WARM_UP = 500
CONNECTIONS = 64
ANCESTOR_PER_SECOND = 2_600
P99_MS = 20


def measure_single_write(scale: Scale) -> list[Result]:
    """POST /v1/data of 64 connections, processor time of the server for a durable record: FastAPI, parsing alone, half load."""
    made = scale.folder / "made"
    make_table(made)
    kinds = ["lakelet", "parse_only"] + (["fastapi"] if importlib.util.find_spec("fastapi") else [])
    found = best_of(
        scale.rounds,
        *(Contender(kind, lambda number, kind=kind: _closed(scale, made, kind, number)) for kind in kinds),
    )
    ours = found["lakelet"]
    late = best_of(scale.rounds, Contender("half", lambda number: _half_load(scale, made, number, ours["per_second"])))
    half = late["half"]
    results = [
        at_most("durable write, the same server without a log", ours, found["parse_only"], 1.8),
        under(
            f"p99 of a write at half load, {half['per_second']:.0f} a second",
            half,
            half["p99_seconds"] * 1000,
            P99_MS,
            f"{half['p99_seconds'] * 1000:.1f} ms (median {half['median_seconds'] * 1000:.1f} ms)",
            "ms",
        ),
        faster(
            "durable writes a second, the seed's ancestor by its own figures (2,600)",
            {"seconds": 1 / ours["per_second"]},
            {"seconds": 1 / ANCESTOR_PER_SECOND},
            3.0,
        ),
    ]
    if "fastapi" in found:
        results.insert(0, faster("durable write, a FastAPI handler with the same log", ours, found["fastapi"], 3.0))
    return results


def _closed(scale: Scale, made: Path, kind: str, number: int) -> Measured:
    """The processor time of one write, of as many as 64 connections send."""
    folder = _copy(scale, made, f"{kind}-{number}")
    count = scale.of(WRITES)
    with ServerProcess(kind, folder) as server:
        closed_loop(server.port, single_requests(1, WARM_UP), CONNECTIONS)
        requests = single_requests(WARM_UP + 1, count)
        before = server.processor_seconds(), server.clock()
        closed_loop(server.port, requests, CONNECTIONS)
        after = server.processor_seconds(), server.clock()
    shutil.rmtree(folder)
    return {"seconds": (after[0] - before[0]) / count, "per_second": count / (after[1] - before[1])}


def _half_load(scale: Scale, made: Path, number: int, most_per_second: float) -> Measured:
    """How long writes take at half of what the server takes at most."""
    folder = _copy(scale, made, f"half-{number}")
    rate = most_per_second / 2
    with ServerProcess("lakelet", folder) as server:
        closed_loop(server.port, single_requests(1, WARM_UP), CONNECTIONS)
        taken = sorted(open_loop(server.port, single_requests(WARM_UP + 1, scale.of(WRITES)), 4 * CONNECTIONS, rate))
    shutil.rmtree(folder)
    p99 = taken[len(taken) * 99 // 100]
    return {"seconds": p99, "p99_seconds": p99, "median_seconds": taken[len(taken) // 2], "per_second": rate}


def _copy(scale: Scale, made: Path, name: str) -> Path:
    folder = scale.folder / name
    shutil.copytree(made, folder)
    return folder
