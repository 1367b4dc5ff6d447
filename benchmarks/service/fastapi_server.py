"""What one would write with FastAPI: a model, a handler, and threads whose puts share syncs of the same log."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.service.peer_server import peer_writer, run

_THREADS = 32
_, _writer = peer_writer()
_pool = ThreadPoolExecutor(_THREADS)
app = FastAPI()


class Body(BaseModel):
    """POST /v1/data."""

    table: str
    id: str
    timestamp: datetime
    payload: dict[str, Any]


@app.post("/v1/data")
async def write(body: Body) -> dict[str, Any]:
    """Write one record."""
    moment = body.timestamp.astimezone(UTC)
    row = {"id": body.id, "timestamp": moment, "payload": body.payload, "payload_rest": None, "dt": moment.date()}
    await asyncio.get_running_loop().run_in_executor(_pool, _writer.put_together, [row])
    return {"success": True, "message": "1 record written", "written": 1}


if __name__ == "__main__":
    run(app)
