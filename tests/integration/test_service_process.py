"""`lakelet serve` as a process: SIGTERM drains it, keys are asked for, gRPC is beside REST. Kills are in tests/crash/service."""

import random
import subprocess
import sys
from pathlib import Path

import httpx

from lakelet.protos.message_types import OLAP
from tests.crash.service.killing_service import check_lake, create_tables
from tests.crash.service.service_load import Ledger, Load
from tests.services.lakelet_server import PATIENCE_SECONDS, lakelet_server
from tests.unit.service.grpc.running_service import compiled_client, seed_text


def test_sigterm_answers_what_it_took_and_commits_everything(tmp_path: Path) -> None:
    ledger = Ledger()
    with lakelet_server(tmp_path) as server:
        server.start()
        create_tables(server, flush_interval_seconds=60)
        load = Load(server, ledger, rows=20_000, threads=4, chance=random.Random(20260131))
        load.start()
        ledger.wait_for_requests(load.requests // 2, lambda: load.is_over)
        load.down()
        assert server.stop() == 0
        load.end()
        load.join()
    check_lake(server, ledger)


def test_a_public_address_asks_for_the_key_that_the_first_start_tells(tmp_path: Path) -> None:
    with lakelet_server(tmp_path, ["--require-keys"]) as served:
        served.start()
        key = served.told[0].rsplit(" ", 1)[1]
        assert httpx.get(f"{served.url}/v1/tables", timeout=PATIENCE_SECONDS).status_code == 401
        answer = httpx.get(
            f"{served.url}/v1/tables", headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE_SECONDS
        )
        assert answer.status_code == 200
    with lakelet_server(tmp_path, ["--require-keys"]) as served:
        served.start()
        assert not any("API key" in line for line in served.told)
    assert key not in (tmp_path / "log").read_text()


def test_grpc_is_served_beside_rest(tmp_path: Path) -> None:
    import grpc

    with lakelet_server(tmp_path) as served:
        served.start()
        assert (
            httpx.post(f"{served.url}/v1/tables", json={"table_name": "users"}, timeout=PATIENCE_SECONDS).status_code
            == 201
        )
        body = {"table": "users", "id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": 1}}
        assert httpx.post(f"{served.url}/v1/data", json=body, timeout=PATIENCE_SECONDS).status_code == 200
        assert f"gRPC on {served.grpc_address}" in served.told
        client = compiled_client(seed_text(), OLAP)
        with grpc.insecure_channel(served.grpc_address) as channel:
            found = client.call(channel, "Query")(client.message("QueryRequest")(sql="SELECT id, n FROM users"))
        assert found.result_json == '[{"id":"a","n":1}]'


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with lakelet_server(tmp_path) as served:
        served.start()
        port = served.address.rsplit(":", 1)[1]
        again = subprocess.run(
            [sys.executable, "-m", "lakelet", "serve", "--warehouse", str(tmp_path / "other"), "--port", port],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert again.returncode == 1
        assert "cannot be listened at" in again.stderr
        assert "Traceback" not in again.stderr
