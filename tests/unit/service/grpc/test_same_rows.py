"""The same record by REST and by gRPC is the same row."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.protos.message_types import OLAP
from lakelet.service.access.access import Access
from lakelet.service.access.caller import ANYBODY
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.rest.app import RestApp
from lakelet.service.service import Service
from lakelet.service.timestamps import timestamp_text
from lakelet.service.values import CreateTableRequest
from tests.tiers.examples import examples
from tests.unit.service.grpc.running_service import Compiled, compiled_client, running, seed_text

_NAMES = st.sampled_from(
    ["a", "b", "A", "name", "名", "x y", 'q"', "dt", "payload", "İ", "i", "é", "e\u0301"]
) | st.text(min_size=1, max_size=5)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.sampled_from([25.0, -0.0, 0.5, 1e300, 1.5e-7, float(1 << 60)])
    | st.text(max_size=8)
    | st.sampled_from(["NaN", "Infinity", "-Infinity", "null", "1e400", "2026-01-31T10:00:00Z", "İı", "\u0000", "ﬀ"])
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_RECORDS = st.lists(
    st.tuples(st.text(min_size=1, max_size=20), st.integers(0, 1 << 50), st.dictionaries(_NAMES, _VALUES, max_size=4)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=examples(5))
@given(groups=st.lists(_RECORDS, min_size=1, max_size=3))
def test_rows_by_rest_and_grpc_are_equal(groups: list[list[tuple[str, int, dict[str, Any]]]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder), groups))


async def _compare(folder: Path, groups: list[list[tuple[str, int, dict[str, Any]]]]) -> None:
    compiled = compiled_client(seed_text(), OLAP)
    names = itertools.count()
    async with running(folder) as (service, channel):
        transport = httpx.ASGITransport(app=RestApp(service, Access(None)))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for records in groups:
                rest, rpc = (f"t{next(names)}" for _ in range(2))
                for name in (rest, rpc):
                    await service.create_table(CreateTableRequest(name), ANYBODY)
                for record in records:
                    assert await _by_rest(client, rest, *record) == await _by_rpc(compiled, channel, rpc, *record)
                assert await _rows(service, rest) == await _rows(service, rpc)
                # Integers that only JSON can carry, and the same answer by both edges.
                for number in (1 << 53, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1, 1 << 64):
                    await _by_rest(client, rest, f"exact {number}", 0, {"exact": number, "nested": [[number], []]})
                for table in (rest, rpc):
                    sql = f"SELECT *, dt, count(*) OVER () AS n, sum(length(id)) OVER () AS s FROM {table} ORDER BY ALL"
                    asked = await client.post("/v1/query", json={"sql": sql})
                    request = compiled.message("QueryRequest")(sql=sql)
                    answered = (await compiled.call(channel, "Query")(request)).result_json
                    assert asked.json()["result_json"] == answered


async def _by_rest(client: httpx.AsyncClient, table: str, id: str, moment_us: int, payload: dict[str, Any]) -> str:
    body = {"table": table, "id": id, "timestamp": timestamp_text(moment_us), "payload": payload}
    answer = await client.post("/v1/data", content=json.dumps(body, ensure_ascii=True).encode())
    return str(answer.json()["message"]) if answer.status_code == 200 else str(answer.json()["code"])


async def _by_rpc(
    compiled: Compiled, channel: Any, table: str, id: str, moment_us: int, payload: dict[str, Any]
) -> str:
    import grpc

    request = compiled.message("WriteRequest")(table=table, id=id)
    request.timestamp.FromMicroseconds(moment_us)
    request.payload.update(payload)
    try:
        return str((await compiled.call(channel, "Write")(request)).message)
    except grpc.aio.AioRpcError as error:
        return str(dict(error.trailing_metadata())["lakelet-code"])


async def _rows(service: Service, table: str) -> list[Any]:
    sql = f"SELECT * FROM {table} ORDER BY id, timestamp, payload_rest, payload::VARCHAR"
    found = json.loads(await service.query_json(QueryRequest(sql), ANYBODY))
    for row in found:
        # An object has no order, and neither have fields of a Struct.
        row["payload_rest"] = row["payload_rest"] and json.loads(row["payload_rest"])
    return list(found)
