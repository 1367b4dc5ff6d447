"""The service of the demo: `lakelet serve` as a process, asked over HTTP; its rows are a table of the lake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from typing import Any
from urllib.request import Request, urlopen

from lakelet.catalog.lake import Lake
from lakelet.cli.output.output import Output
from lakelet.errors import UnavailableError

_TABLE = "lakelet_demo_events"
_EVENTS = (("anna", {"page": "home", "ms": 120}), ("ben", {"page": "basket", "ms": 80.5, "items": ["lamp"]}))
_NEEDED = ("uvicorn", "starlette", "msgspec", "grpc")
_WAIT_SECONDS = 60


def show_service(lake: Lake, output: Output) -> None:
    """Starts the service, writes, asks while the rows are in memory, stops it, and reads the table."""
    if "://" in lake.location or any(find_spec(name) is None for name in _NEEDED):
        output.note("   left out: it needs a warehouse on this machine and pip install 'lakelet[server]'")
        return
    # Of a demo that was interrupted.
    lake.create_database("default", if_not_exists=True)
    lake.drop_table(f"default.{_TABLE}", if_exists=True)
    with tempfile.TemporaryDirectory(prefix="lakelet-demo-") as folder:
        process = _started(lake.location, folder)
        try:
            address = _address(process)
            _ask(address, "/v1/tables", {"table_name": _TABLE})
            for visitor, payload in _EVENTS:
                record = {"table": _TABLE, "id": visitor, "timestamp": "2026-01-31T10:00:00Z", "payload": payload}
                written = _ask(address, "/v1/data", record)
            found = _ask(
                address, "/v1/query", {"sql": f"SELECT id, payload.page, payload.ms FROM {_TABLE} ORDER BY id"}
            )
            rows = json.loads(found["result_json"])
        finally:
            process.terminate()
            process.wait(_WAIT_SECONDS)
    output.values("written over HTTP", {"answer": written["message"], "status": process.returncode})
    output.rows("asked before they were committed", tuple(rows[0]), [tuple(row.values()) for row in rows])
    stored = lake.sql(f"SELECT id, payload FROM default.{_TABLE} ORDER BY id").rows()
    output.rows("the table after the service stopped", ("id", "payload"), stored)
    lake.drop_table(f"default.{_TABLE}")


def _started(warehouse: str, folder: str) -> subprocess.Popen[str]:
    logs = os.path.join(folder, "wal")
    arguments = ["--warehouse", warehouse, "--wal-folder", logs, "--port", "0", "--grpc-port", "0", "--no-keys"]
    command = [sys.executable, "-m", "lakelet", "serve", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _address(process: subprocess.Popen[str]) -> str:
    """Where it listens, which it says when it does."""
    assert process.stdout is not None, "its output is a pipe"
    with process.stdout as told:
        for line in told:
            if line.startswith("REST on "):
                return line.removeprefix("REST on ").strip()
    raise UnavailableError("lakelet serve did not start; run it by hand to see why")


def _ask(address: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    asked = Request(address + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(asked, timeout=_WAIT_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
        return found
