"""The rows that are sent: ids of 16 digits, timestamps of one day, payloads of a number, a fraction, a text and a truth value."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.service.load import closed_loop, post
from benchmarks.service.server_process import ServerProcess

TABLE = "events"
ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
_MORNING = datetime(2026, 1, 31, 10, tzinfo=UTC)


def record(number: int) -> dict[str, Any]:
    """One record."""
    moment = _MORNING + timedelta(milliseconds=number % 40_000_000)
    return {
        "id": f"{number:016}",
        "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "payload": {
            "age": number % 90,
            "score": number % 1000 + 0.5,
            "name": f"name {number % 10_000}",
            "active": number % 2 == 0,
        },
    }


def single_requests(first: int, count: int) -> list[bytes]:
    """Requests of one record each."""
    return [
        post("/v1/data", json.dumps({"table": TABLE, **record(number)}).encode())
        for number in range(first, first + count)
    ]


def line_requests(first: int, batches: int, rows: int) -> list[bytes]:
    """Requests of NDJSON."""
    return [
        post(
            f"/v1/data/batch?table={TABLE}",
            b"\n".join(json.dumps(record(number)).encode() for number in numbers),
            NDJSON,
        )
        for numbers in _spans(first, batches, rows)
    ]


def arrow_requests(first: int, batches: int, rows: int) -> list[bytes]:
    """Requests of Arrow."""
    requests = []
    for numbers in _spans(first, batches, rows):
        found = pa.Table.from_pylist([record(number) for number in numbers])
        moments = found.column("timestamp").cast(pa.timestamp("us", "UTC"))
        found = found.set_column(1, "timestamp", moments)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found.schema) as writer:
            writer.write_table(found)
        requests.append(post(f"/v1/data/batch?table={TABLE}", sink.getvalue().to_pybytes(), ARROW))
    return requests


def make_table(folder: Path) -> None:
    """A served table with all columns, which is flushed only when it is closed: what is measured is the way to the log."""
    config = {"buffer_size": 100_000_000, "flush_interval_seconds": 86_400}
    with ServerProcess("lakelet", folder) as server:
        created = post("/v1/tables", json.dumps({"table_name": TABLE, "config": config}).encode())
        closed_loop(server.port, [created], 1, status=b"201")
        closed_loop(server.port, single_requests(0, 1), 1)


def _spans(first: int, batches: int, rows: int) -> list[range]:
    return [range(begin, begin + rows) for begin in range(first, first + batches * rows, rows)]
