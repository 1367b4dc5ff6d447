"""Takes the store away from a service under load: its process is stopped by a signal, so that it accepts and answers nothing, or
ended, so that connections are refused; and gives it back."""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.service.killing_service import check_lake, create_tables
from tests.crash.service.service_load import Ledger, Load
from tests.services.lakelet_server import PATIENCE_SECONDS, LakeletServer, lakelet_server
from tests.services.minio import RestartableMinio
from tests.services.server import ServiceMissing

HANGS, GONE = "hangs", "gone"


def outlast_outage(folder: Path, outage: str, *, rows: int, least_seconds: float) -> None:
    """Rows are acknowledged during the outage, health tells of it, and behind it everything is committed."""
    ledger = Ledger()
    with _store(folder) as store:
        service = store.service
        options = [part for key, value in service.options.items() for part in ("-o", f"{key}={value}")]
        with lakelet_server(folder, options, warehouse=service.url("outage")) as server:
            server.start()
            create_tables(server, buffer_size=1000)
            load = Load(server, ledger, rows=rows, threads=3, chance=random.Random(20260131), reads=False)
            load.start()
            ledger.wait_for_requests(load.requests // 4, lambda: load.is_over)
            store.hang() if outage == HANGS else store.end()
            before, since = ledger.requests, time.monotonic()
            health = wait_for_health(server, "degraded")
            assert any(name.startswith(("store.", "flush.")) for name in health["details"]), health
            assert httpx.get(f"{server.url}/v1/health/live", timeout=PATIENCE_SECONDS).status_code == 200
            assert httpx.get(f"{server.url}/v1/health/ready", timeout=PATIENCE_SECONDS).status_code == 503
            # Rows are taken while nobody can commit them.
            ledger.wait_for_requests(min(before + load.requests // 4, load.requests), lambda: load.is_over)
            assert ledger.requests > before
            time.sleep(max(0.0, least_seconds - (time.monotonic() - since)))
            store.go_on() if outage == HANGS else store.start()
            load.join()
            wait_for_health(server, "ok")
            assert server.stop() == 0
        check_lake(server, ledger, service.options)


def wait_for_health(server: LakeletServer, wanted: str) -> dict[str, Any]:
    """The health of a service, once it is what it is to become."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        found: dict[str, Any] = json.loads(httpx.get(f"{server.url}/v1/health", timeout=PATIENCE_SECONDS).content)
        if found["status"] == wanted:
            return found
        assert time.monotonic() < until, found
        time.sleep(0.05)


def _store(folder: Path) -> RestartableMinio:
    try:
        return RestartableMinio(folder / "minio")
    except ServiceMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs this service: {missing}")
        pytest.skip(str(missing))
