"""`lakelet serve` for ten minutes under rows, batches and queries: its memory stays flat, and every acknowledged row is there."""

import json
import os
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.services.serving import serving

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]

_SECONDS = float(os.environ.get("LAKELET_SERVICE_SOAK_SECONDS", "600"))
_IDS = 20_000
_BATCH = 500
_LINES, _ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
# What allocators keep for themselves may vary by as much; ten minutes of a leak would be more.
_VARIATION, _VARIATION_BYTES = 1.1, 24 << 20


def test_memory_stays_flat_under_load(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        load = _Load(served.address)
        # A table that only grows, and one whose rows are replaced over and over.
        load.create("events", {"buffer_size": 5_000, "flush_interval_seconds": 2})
        keyed = {"primary_key": "id", "buckets": "2"}
        load.create("users", {"buffer_size": 5_000, "flush_interval_seconds": 2, "properties": keyed})
        load.start()
        sizes = []
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and not load.failed:
            sizes.append(_resident_bytes(served.process.pid))
            load.stop.wait(1)
        load.finish()
        assert not load.failed, load.failed[0]
        assert load.query("SELECT count(*) AS n FROM events") == [{"n": load.events}]
        assert load.query("SELECT count(*) = count(DISTINCT id) AS once FROM users") == [{"once": True}]
        third = len(sizes) // 3
        middle, last = statistics.median(sizes[third : 2 * third]), statistics.median(sizes[2 * third :])
        print(f"resident: {sizes[0] >> 20} MiB at first, then {int(middle) >> 20}, at last {int(last) >> 20} MiB")
        assert last <= middle * _VARIATION + _VARIATION_BYTES


class _Load:
    """Clients in threads, each with one kind of request, until they are told to stop."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=900)
        self._number = 0
        self._lock = threading.Lock()
        self.events = 0
        self.failed: list[str] = []
        self.stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(action,))
            for action in (self._single, self._single, self._lines, self._arrow, self._aggregate, self._row)
        ]

    def create(self, table: str, config: dict[str, object]) -> None:
        answer = self._client.post("/v1/tables", json={"table_name": table, "config": config})
        assert answer.status_code == 201, answer.text

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def query(self, sql: str) -> object:
        answer = self._client.post("/v1/query", json={"sql": sql})
        assert answer.status_code == 200, answer.text
        return json.loads(answer.json()["result_json"])

    def _repeat(self, action: Callable[[], None]) -> None:
        try:
            while not self.stop.is_set():
                action()
        except Exception as error:
            self.failed.append(f"{action.__name__}: {error!r}")
            self.stop.set()

    def _single(self) -> None:
        (record,) = self._records(1)
        for table in ("events", "users"):
            self._taken(self._client.post("/v1/data", json={"table": table, **record}))
        self._count(1)

    def _lines(self) -> None:
        body = "\n".join(map(json.dumps, self._records(_BATCH)))
        self._batch(body.encode(), _LINES)

    def _arrow(self) -> None:
        rows = pa.Table.from_pylist(self._records(_BATCH))
        rows = rows.set_column(1, "timestamp", rows.column("timestamp").cast(pa.timestamp("us", "UTC")))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        self._batch(sink.getvalue().to_pybytes(), _ARROW)

    def _aggregate(self) -> None:
        self.query("SELECT payload.age, count(*), avg(payload.score) FROM events GROUP BY 1 ORDER BY 1")
        self.query("SELECT * FROM users ORDER BY id LIMIT 1000")
        self.stop.wait(0.5)

    def _row(self) -> None:
        answer = self._client.get(f"/v1/data/users/{self._number % _IDS:016}")
        assert answer.status_code in (200, 404), answer.text
        self.stop.wait(0.1)

    def _batch(self, body: bytes, kind: str) -> None:
        for table in ("events", "users"):
            path = f"/v1/data/batch?table={table}"
            self._taken(self._client.post(path, content=body, headers={"content-type": kind}))
        self._count(_BATCH)
        self.stop.wait(0.2)

    def _taken(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text

    def _count(self, records: int) -> None:
        with self._lock:
            self.events += records

    def _records(self, count: int) -> list[dict[str, object]]:
        with self._lock:
            first, self._number = self._number, self._number + count
        return [
            {
                "id": f"{number % _IDS:016}",
                "timestamp": f"2026-01-{1 + number % 28:02}T10:00:00.000Z",
                "payload": {"age": number % 90, "score": number / 2 + 0.25, "name": f"name {number % 1000}"},
            }
            for number in range(first, first + count)
        ]


def _resident_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
