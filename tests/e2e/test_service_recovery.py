"""A service with a backup store: damaged, wiped and recovered tables have the same rows, on disk and in buckets."""

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import lakelet
from lakelet.storage.open import open_store
from tests.services.lakelet_server import PATIENCE_SECONDS, LakeletServer, lakelet_server
from tests.services.server import S3Service

EVENTS, USERS = "Events", "Users"
# A day is as old as its date, and every commit looks for old ones.
BY_DATE = {"partition.expiration-strategy": "values-time", "partition.expiration-check-interval": "1 ms"}
STORES = ["folder to folder", "bucket to bucket", pytest.param("bucket to folder", marks=pytest.mark.deep)]
TODAY = datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the warehouse and the backup are, and the options of each."""

    warehouse: str
    backup: str
    options: dict[str, str]
    backup_options: dict[str, str]

    def arguments(self) -> list[str]:
        """The flags of `lakelet serve`."""
        return [
            *(part for key, value in self.options.items() for part in ("-o", f"{key}={value}")),
            *("--backup", self.backup),
            *(part for key, value in self.backup_options.items() for part in ("--backup-option", f"{key}={value}")),
        ]


class Client:
    """Requests to a service, each of which succeeds."""

    def __init__(self, server: LakeletServer) -> None:
        self._server = server

    def send(self, method: str, path: str, **more: Any) -> Any:
        answer = httpx.request(method, f"{self._server.url}{path}", timeout=PATIENCE_SECONDS, **more)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def write(self, table: str, ids: range, days_ago: int) -> None:
        """Write a batch of rows of one day."""
        moment = (TODAY - timedelta(days=days_ago)).isoformat().replace("+00:00", "Z")
        lines = [{"id": f"id/{n}", "timestamp": moment, "payload": {"n": n, "名": f"x{n}"}} for n in ids]
        body = "\n".join(map(json.dumps, lines))
        self.send(
            "POST", f"/v1/data/batch?table={table}", content=body, headers={"content-type": "application/x-ndjson"}
        )

    def checksum(self, table: str) -> tuple[int, str]:
        """The number of rows of a table and a hash of all of them."""
        sql = f"SELECT *, dt FROM {table} ORDER BY id" if table == EVENTS else f"SELECT * FROM {table} ORDER BY id"
        text = self.send("POST", "/v1/query", json={"sql": sql})["result_json"]
        return len(json.loads(text)), hashlib.sha256(text.encode()).hexdigest()

    def checksums(self) -> dict[str, tuple[int, str]]:
        return {table: self.checksum(table) for table in (EVENTS, USERS)}


def backup_command(stores: Stores, *words: str) -> Any:
    """The answer of `lakelet backup` beside the service, as JSON."""
    command = [sys.executable, "-m", "lakelet", "backup", *words, "-w", stores.warehouse, *stores.arguments(), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    warehouse, backup = request.param.split(" to ")
    service: S3Service | None = request.getfixturevalue("s3_minio") if "bucket" in request.param else None

    def place(kind: str, name: str) -> tuple[str, dict[str, str]]:
        if kind == "folder":
            return str(tmp_path / name), {}
        assert service is not None
        return service.url(f"{tmp_path.name}-{name}"), service.options

    (one, options), (other, backup_options) = place(warehouse, "warehouse"), place(backup, "backup")
    return Stores(one, other, options, backup_options)


@pytest.mark.parametrize("stores", STORES, indirect=True)
def test_backed_up_wiped_and_recovered_tables_are_the_same(stores: Stores, tmp_path: Path) -> None:
    store = open_store(stores.warehouse, stores.options)
    with lakelet_server(tmp_path, stores.arguments(), warehouse=stores.warehouse, zone="America/New_York") as server:
        client = Client(server)
        server.start()
        for name, properties in ((EVENTS, BY_DATE), (USERS, {"primary_key": "id"})):
            config = {"backup_enabled": True, "buffer_size": 50, "properties": properties}
            client.send("POST", "/v1/tables", json={"table_name": name, "config": config})
            client.write(name, range(100), days_ago=9)
            client.write(name, range(100 if name == EVENTS else 50, 200), days_ago=0)
            assert client.send("DELETE", f"/v1/data/{name}?id=id/7")["deleted"] == 1
            assert client.send("POST", "/v1/backup/trigger", json={"table": name})["success"]
        before = client.checksums()
        assert {table: count for table, (count, _) in before.items()} == {EVENTS: 199, USERS: 199}
        assert {one["table"] for one in client.send("GET", "/v1/backup")["backups"]} == {EVENTS, USERS}

        # One file is damaged, another one missing, while the service runs.
        files = [path for path, _ in lakelet.connect(stores.warehouse, stores.options).table("default.Events").files()]
        store.put(files[0], b"damaged")
        store.delete(files[1:2])
        assert client.send("POST", "/v1/backup/recover", json={"table": EVENTS})["files_recovered"] == 2
        assert client.checksums() == before

        # A day expires; what is restored from the backup of before does not have it either.
        client.send("PATCH", f"/v1/tables/{EVENTS}", json={"config": {"retention_days": 3}})
        client.write(EVENTS, range(200, 210), days_ago=0)
        for name in (EVENTS, USERS):
            client.send("POST", "/v1/backup/trigger", json={"table": name})
        after = client.checksums()
        assert after[EVENTS][0] == 110
        assert after[USERS] == before[USERS]
        files = [path for path, _ in lakelet.connect(stores.warehouse, stores.options).table("default.Events").files()]
        store.delete(files)
        client.send("POST", "/v1/backup/recover", json={"table": EVENTS})
        assert client.checksums() == after

        # All is gone: one table is recovered beside the stopped service, the other one by the running one.
        server.kill()
        for name in (EVENTS, USERS):
            store.delete_folder(f"default.db/{name}")
        assert backup_command(stores, "recover", f"default.{EVENTS}")
        server.start()
        assert client.checksum(EVENTS) == after[EVENTS]
        client.send("POST", "/v1/backup/recover", json={"table": USERS})
        assert client.checksums() == after
        for name in (EVENTS, USERS):
            assert client.send("GET", f"/v1/backup/{name}/verify")["problems"] == []
            client.write(name, range(300, 310), days_ago=0)
        last = client.checksums()
        assert server.stop() == 0
        server.start()
        assert client.checksums() == last
        assert {name: count for name, (count, _) in last.items()} == {EVENTS: 120, USERS: 209}
