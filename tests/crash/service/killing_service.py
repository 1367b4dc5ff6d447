"""Kills `lakelet serve` with SIGKILL at random moments of one load, also while it starts, and checks every row at the end."""

import json
import os
import random
import time
from pathlib import Path

import lakelet
from tests.crash.service.service_load import EVENTS, TABLES, Connections, Ledger, Load
from tests.services.lakelet_server import LakeletServer, lakelet_server

_CONFIG = {"buffer_size": 4000, "flush_interval_seconds": 1}
_THREADS = 4


def kill_service_and_check(folder: Path, *, rows: int, kills: int, seed: int, zone: str = "UTC") -> None:
    """Kill the service that often while it takes that many rows."""
    chance = random.Random(seed)
    ledger = Ledger()
    with lakelet_server(folder, zone=zone) as server:
        server.start()
        create_tables(server)
        load = Load(server, ledger, rows=rows, threads=_THREADS, chance=chance)
        load.start()
        moments = sorted(chance.sample(range(1, load.requests * 9 // 10), kills))
        for number, moment in enumerate(moments):
            ledger.wait_for_requests(moment, lambda: load.is_over)
            time.sleep(chance.random() / 20)
            load.down()
            server.kill()
            if number % 3 == 2:
                # Again before it has committed what the first kill left, or in the middle of that.
                server.launch()
                time.sleep(chance.uniform(0.3, 1.5))
                server.kill()
            server.start()
            load.up()
        load.join()
        assert load.reads > 0
        assert ledger.acknowledged_rows >= rows * 99 // 100
        assert server.stop() == 0
    check_lake(server, ledger)


def create_tables(server: LakeletServer, **config: object) -> None:
    """Create the tables of the load, with small buffers, so that kills find flushes and compactions at work."""
    connections = Connections(server)
    for name, properties in TABLES.items():
        body = {"table_name": name, "config": {**_CONFIG, **config, "properties": properties}}
        connections.post("/v1/tables", json.dumps(body).encode())
    connections.close()


def check_lake(server: LakeletServer, ledger: Ledger, options: dict[str, str] | None = None) -> None:
    """Of a service that was stopped: all rows are committed, as they were sent, and nothing is left in logs."""
    lake = lakelet.connect(server.warehouse, options)
    for name in TABLES:
        table = lake.table(f"default.{name}")
        found = table.scan(columns=["id", "timestamp", "payload"]).to_arrow()
        payloads = found.column("payload").to_pylist()
        ids = found.column("id").to_pylist()
        ledger.check(name, [(id, payload["n"]) for id, payload in zip(ids, payloads, strict=True)])
        assert all(one["half"] == one["n"] / 2 and one["name"] == f"名 {one['n']}" for one in payloads)
        if name == EVENTS:
            days = table.scan(columns=["timestamp", "dt"]).to_arrow().to_pylist()
            assert all(row["timestamp"].date() == row["dt"] for row in days)
        assert not table.check().damages
        with table.writer(wal_folder=server.wal_folder) as writer:
            assert sum(one.records for one in writer.recovered) == 0
    assert os.path.isdir(server.wal_folder)
