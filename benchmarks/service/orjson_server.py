"""NDJSON as one would read it in Python: orjson, a list of dicts, Arrow, and the same log; plain ASGI."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.service.peer_server import peer_writer, run
from lakelet.model.arrow.arrow_types import arrow_schema

_table, _writer = peer_writer()
_PAYLOAD = arrow_schema(_table.schema.fields).field("payload").type
_SCHEMA = pa.schema([("id", pa.string()), ("timestamp", pa.string()), ("payload", _PAYLOAD)])


def put(body: bytes) -> int:
    """Write the records of a body."""
    rows = pa.Table.from_pylist([orjson.loads(line) for line in body.splitlines()], _SCHEMA)
    moments = rows.column("timestamp").cast(pa.timestamp("us", "UTC"))
    days = pc.cast(pc.cast(moments, pa.timestamp("us")), pa.date32())
    rows = rows.set_column(1, "timestamp", moments)
    rows = rows.append_column("payload_rest", pa.nulls(len(rows), pa.string())).append_column("dt", days)
    _writer.put_together(rows)
    return len(rows)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer a batch."""
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    count = await asyncio.get_running_loop().run_in_executor(None, put, b"".join(parts))
    answer = orjson.dumps({"success": True, "message": f"{count} records written", "written": count})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    run(app)
