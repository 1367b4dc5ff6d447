"""`lakelet serve` as a process: killed under load it loses no acknowledged row and doubles none; SIGTERM drains it."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import lakelet
from lakelet.protos.message_types import OLAP
from tests.unit.service.grpc.running_service import compiled_client, seed_text

_SEED = 20260131
# Only a hang takes longer, whatever else the machine does.
_PATIENCE_SECONDS = 900
_CLIENTS = 4


class Served:
    """A running process and its address."""

    def __init__(self, process: subprocess.Popen[str], address: str, told: list[str]) -> None:
        self.process = process
        self.address = address
        self.told = told


@contextmanager
def serving(folder: Path, *arguments: str, zone: str = "UTC") -> Iterator[Served]:
    command = [
        *(sys.executable, "-m", "lakelet", "serve", "--warehouse", str(folder / "warehouse")),
        *("--wal-folder", str(folder / "wal"), "--port", "0", "--grpc-port", "0", "--log-level", "warning", *arguments),
    ]
    with open(folder / "log", "a") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "TZ": zone}
        )
    try:
        told: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line.strip())
            if line.startswith("REST on "):
                break
        assert told, (folder / "log").read_text()
        yield Served(process, told[-1].removeprefix("REST on "), told)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class Load:
    """Clients that write records of their own until the service goes away; what was acknowledged is noted."""

    def __init__(self, address: str, round_number: int) -> None:
        self._address = address
        self._round = round_number
        self.acknowledged: set[str] = set()
        self.sent: set[str] = set()
        self._lock = threading.Lock()
        self.enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(_CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        with httpx.Client(base_url=self._address, timeout=_PATIENCE_SECONDS) as client:
            for count in range(100_000):
                ids = [f"{self._round}-{number}-{count}-{place}" for place in range(1 if number % 2 else 20)]
                records = [
                    {"id": id, "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": count, f"f{count % 7}": count / 2}}
                    for id in ids
                ]
                with self._lock:
                    self.sent.update(ids)
                try:
                    if len(ids) == 1:
                        answer = client.post("/v1/data", json={"table": "t", **records[0]})
                    else:
                        answer = client.post("/v1/data/batch?table=t", json=records)
                except httpx.HTTPError:
                    return
                if answer.status_code in (429, 503):
                    continue
                if answer.status_code != 200:
                    return
                with self._lock:
                    self.acknowledged.update(ids)
                    if len(self.acknowledged) > 400:
                        self.enough.set()


def ids_in(folder: Path) -> list[str]:
    lake = lakelet.connect(str(folder / "warehouse"))
    return [row["id"] for row in lake.sql("SELECT id FROM t").to_arrow().to_pylist()]


def query(address: str, sql: str) -> list[dict[str, object]]:
    answer = httpx.post(f"{address}/v1/query", json={"sql": sql}, timeout=_PATIENCE_SECONDS)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = json.loads(answer.json()["result_json"])
    return found


@pytest.mark.parametrize("zone", ["America/St_Johns"])
def test_a_killed_service_loses_no_acknowledged_row_and_doubles_none(tmp_path: Path, zone: str) -> None:
    chance = random.Random(_SEED)
    acknowledged: set[str] = set()
    sent: set[str] = set()
    for round_number in range(3):
        with serving(tmp_path, zone=zone) as served:
            if round_number == 0:
                config = {"buffer_size": 150, "flush_interval_seconds": 1}
                made = httpx.post(
                    f"{served.address}/v1/tables", json={"table_name": "t", "config": config}, timeout=_PATIENCE_SECONDS
                )
                assert made.status_code == 201
            there = {str(row["id"]) for row in query(served.address, "SELECT id FROM t")}
            assert acknowledged <= there
            load = Load(served.address, round_number)
            load.start()
            assert load.enough.wait(_PATIENCE_SECONDS)
            threading.Event().wait(chance.random() / 4)
            served.process.kill()
            load.join()
            acknowledged |= load.acknowledged
            sent |= load.sent
    with serving(tmp_path) as served:
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(_PATIENCE_SECONDS) == 0
    found = ids_in(tmp_path)
    assert len(found) == len(set(found))
    assert acknowledged <= set(found) <= sent


def test_sigterm_answers_what_it_took_and_commits_everything(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        made = httpx.post(f"{served.address}/v1/tables", json={"table_name": "t"}, timeout=_PATIENCE_SECONDS)
        assert made.status_code == 201
        load = Load(served.address, 0)
        load.start()
        assert load.enough.wait(_PATIENCE_SECONDS)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(_PATIENCE_SECONDS) == 0
        load.join()
    found = ids_in(tmp_path)
    assert len(found) == len(set(found))
    assert load.acknowledged <= set(found) <= load.sent
    table = lakelet.connect(str(tmp_path / "warehouse")).table("default.t")
    with table.writer(wal_folder=str(tmp_path / "wal")) as writer:
        # The logs are empty: all is committed.
        assert sum(one.records for one in writer.recovered) == 0


def test_a_public_address_asks_for_the_key_that_the_first_start_tells(tmp_path: Path) -> None:
    with serving(tmp_path, "--require-keys") as served:
        key = served.told[0].rsplit(" ", 1)[1]
        assert httpx.get(f"{served.address}/v1/tables", timeout=_PATIENCE_SECONDS).status_code == 401
        answer = httpx.get(
            f"{served.address}/v1/tables", headers={"authorization": f"Bearer {key}"}, timeout=_PATIENCE_SECONDS
        )
        assert answer.status_code == 200
    with serving(tmp_path, "--require-keys") as served:
        assert not any("API key" in line for line in served.told)
    assert key not in (tmp_path / "log").read_text()


def test_grpc_is_served_beside_rest(tmp_path: Path) -> None:
    import grpc

    with serving(tmp_path) as served:
        assert (
            httpx.post(
                f"{served.address}/v1/tables", json={"table_name": "users"}, timeout=_PATIENCE_SECONDS
            ).status_code
            == 201
        )
        body = {"table": "users", "id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": 1}}
        assert httpx.post(f"{served.address}/v1/data", json=body, timeout=_PATIENCE_SECONDS).status_code == 200
        (address,) = [line.rsplit(" ", 1)[1] for line in served.told if line.startswith("gRPC on")]
        client = compiled_client(seed_text(), OLAP)
        with grpc.insecure_channel(address) as channel:
            found = client.call(channel, "Query")(client.message("QueryRequest")(sql="SELECT id, n FROM users"))
        assert found.result_json == '[{"id":"a","n":1}]'


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        port = served.address.rsplit(":", 1)[1]
        again = subprocess.run(
            [sys.executable, "-m", "lakelet", "serve", "--warehouse", str(tmp_path / "other"), "--port", port],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
        )
        assert again.returncode == 1
        assert "cannot be listened at" in again.stderr
        assert "Traceback" not in again.stderr
