"""Batches over HTTP: processor time of the server for each row of NDJSON and of Arrow, beside orjson with the same log."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from benchmarks.benchmark import Result, Scale, faster
from benchmarks.rounds import Contender, Measured, best_of
from benchmarks.service.load import closed_loop
from benchmarks.service.rows import arrow_requests, line_requests, make_table
from benchmarks.service.server_process import ServerProcess

BATCH = 10_000
BATCHES = 20
CONNECTIONS = 2
# Until compiled loops have paid for being loaded, which a service does once.
WARM_UP = 24
ANCESTOR_PER_SECOND = 3_900


def measure_batches(scale: Scale) -> list[Result]:
    """POST /v1/data/batch, 10,000 rows each: processor time of the server for a durable row, NDJSON, Arrow, orjson."""
    made = scale.folder / "made"
    make_table(made)
    contenders = {"ndjson": "lakelet", "arrow": "lakelet"}
    if importlib.util.find_spec("orjson"):
        contenders["orjson"] = "orjson"
    found = best_of(
        scale.rounds,
        *(
            Contender(name, lambda number, name=name, kind=kind: _measured(scale, made, name, kind, number))
            for name, kind in contenders.items()
        ),
    )
    results = [
        faster("a row of Arrow, a row of NDJSON", found["arrow"], found["ndjson"], 8.0),
        faster(
            "rows a second in batches, the seed's ancestor by its own figures (3,900)",
            {"seconds": found["arrow"]["clock_seconds"]},
            {"seconds": 1 / ANCESTOR_PER_SECOND},
            50.0,
        ),
    ]
    if "orjson" in found:
        results.insert(
            0, faster("a row of NDJSON, orjson → pylist → Arrow → the same log", found["ndjson"], found["orjson"], 3.0)
        )
    return results


def _measured(scale: Scale, made: Path, name: str, kind: str, number: int) -> Measured:
    """The seconds of one row."""
    folder = scale.folder / f"{name}-{number}"
    shutil.copytree(made, folder)
    batches = scale.of(BATCHES)
    requests = arrow_requests if name == "arrow" else line_requests
    with ServerProcess(kind, folder) as server:
        closed_loop(server.port, requests(1, WARM_UP, BATCH), 1)
        sent = requests(1 + WARM_UP * BATCH, batches, BATCH)
        before = server.processor_seconds(), server.clock()
        closed_loop(server.port, sent, CONNECTIONS)
        after = server.processor_seconds(), server.clock()
    shutil.rmtree(folder)
    rows = batches * BATCH
    return {"seconds": (after[0] - before[0]) / rows, "clock_seconds": (after[1] - before[1]) / rows}
