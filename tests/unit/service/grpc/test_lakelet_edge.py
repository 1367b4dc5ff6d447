"""`lakelet.v1`: batches, streams of batches, Arrow results; the health protocol and reflection beside them."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from google.protobuf import struct_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelet.protos as package
from lakelet.protos.message_types import LAKELET, OLAP
from lakelet.service.access.caller import ANYBODY
from lakelet.service.access.key_store import KeyStore
from lakelet.service.access.rate_limits import RateLimits
from lakelet.service.grpc.struct_values import params_of, payload_of
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.rest.metrics import metrics_text
from lakelet.service.service import Service
from lakelet.service.values import CreateTableRequest, RowRequest
from tests.unit.service.grpc.running_service import Compiled, compiled_client, running

PROTO = Path(package.__file__).parent / "lakelet" / "v1" / "lakelet.proto"


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compiled_client(PROTO.read_text(), LAKELET)


def _batch(compiled: Compiled, *ids: str, **fields: Any) -> Any:
    made = compiled.message("WriteBatchRequest")(table="users", **fields)
    for number, id in enumerate(ids):
        record = made.records.add(id=id)
        record.timestamp.seconds = 1_700_000_000 + number
        record.payload.update({"n": number})
    return made


async def _created(service: Service) -> None:
    await service.create_table(CreateTableRequest("users"), ANYBODY)


async def _rows(compiled: Compiled, channel: Any, sql: str, params: Any = None, **fields: Any) -> pa.Table:
    request = compiled.message("QueryArrowRequest")(sql=sql, **fields)
    if isinstance(params, list):
        request.params.list_value.extend(params)
    elif params is not None:
        request.params.struct_value.update(params)
    parts = [part.arrow async for part in compiled.call(channel, "QueryArrow")(request)]
    return pa.ipc.open_stream(b"".join(parts)).read_all()


def _arrow(ids: list[str], **payload: list[Any]) -> bytes:
    moments = pa.array([1_700_000_000_000_000] * len(ids), pa.timestamp("us", "UTC"))
    struct = pa.StructArray.from_arrays([pa.array(values) for values in payload.values()], list(payload))
    sink = io.BytesIO()
    table = pa.table({"id": ids, "timestamp": moments, "payload": struct})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_batches_and_arrow_results(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            write = compiled.call(channel, "WriteBatch")
            assert (await write(_batch(compiled, "a", "b"))).written == 2
            large = (1 << 60) + 1
            done = await write(compiled.message("WriteBatchRequest")(table="users", arrow=_arrow(["c"], n=[large])))
            assert done.written == 1
            found = await _rows(compiled, channel, "SELECT id, n FROM users ORDER BY id")
            assert found.to_pylist() == [{"id": "a", "n": 0}, {"id": "b", "n": 1}, {"id": "c", "n": large}]
            assert (await _rows(compiled, channel, "SELECT id FROM users WHERE n = ?", [1])).to_pylist() == [
                {"id": "b"}
            ]
            named = await _rows(compiled, channel, "SELECT id FROM users WHERE n = $n", {"n": 0})
            assert named.to_pylist() == [{"id": "a"}]
            zoned = await _rows(
                compiled, channel, "SELECT count(*) AS n FROM users WHERE timestamp < '2023-11-15 07:00:00'",
                time_zone="Asia/Shanghai",
            )  # fmt: skip
            assert zoned.to_pylist() == [{"n": 3}]
            assert (await _rows(compiled, channel, "SELECT id FROM users WHERE false")).num_rows == 0

    asyncio.run(run())


def test_a_batch_is_whole_or_partial(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            write = compiled.call(channel, "WriteBatch")
            wrong = _batch(compiled, "a", "", "c")
            wrong.records[2].timestamp.nanos = 5
            with pytest.raises(grpc.aio.AioRpcError, match="record 1") as caught:
                await write(wrong)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert (await _rows(compiled, channel, "FROM users")).num_rows == 0
            wrong.partial = True
            done = await write(wrong)
            assert (done.written, [one.place for one in done.refused]) == (1, [1, 2])
            with pytest.raises(grpc.aio.AioRpcError, match="found several"):
                await write(_batch(compiled, "a", arrow=b"x"))
            with pytest.raises(grpc.aio.AioRpcError, match="does not decode"):
                await write(compiled.message("WriteBatchRequest")(table="users", arrow=b"no stream"))

    asyncio.run(run())


def test_a_batch_of_refused_records_is_answered_as_over_http(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            write = compiled.call(channel, "WriteBatch")
            for unknown in (_batch(compiled, "", partial=True), _batch(compiled, arrow=b"no stream")):
                unknown.table = "nowhere"
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await write(unknown)
                assert caught.value.code() is grpc.StatusCode.NOT_FOUND
            refused = _batch(compiled, "", "", partial=True, idempotency_key="k")
            for repeated in (False, True):
                done = await write(refused)
                assert (done.written, [one.place for one in done.refused]) == (0, [0, 1])
                assert done.repeated_request is repeated
            # As over HTTP: the key is that of the request that was answered.
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await write(_batch(compiled, "a", idempotency_key="k"))
            assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS

    asyncio.run(run())


def test_a_stream_ends_when_its_key_is_revoked(compiled: Compiled, tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path / "keys.json"))
    key = store.create("streams", {"*": "admin"})

    async def run() -> None:
        async with running(tmp_path, store) as (service, channel):
            await _created(service)
            stream = compiled.call(channel, "WriteStream")(metadata=[("authorization", f"Bearer {key}")])
            await stream.write(_batch(compiled, "a"))
            while not (found := await service.get_rows(RowRequest("users", "a"), ANYBODY)):
                await asyncio.sleep(0.01)
            assert len(found) == 1
            store.revoke(key.split("_")[1])
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await stream.write(_batch(compiled, "b"))
                await stream.done_writing()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stream
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert await service.get_rows(RowRequest("users", "b"), ANYBODY) == []

    asyncio.run(run())


def test_a_stream_of_batches_says_what_is_durable(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            stream = compiled.call(channel, "WriteStream")
            done = await stream(iter([_batch(compiled, "a", "b"), _batch(compiled, "c", "", partial=True)]))
            assert (done.written, [one.place for one in done.refused]) == (3, [3])
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stream(iter([_batch(compiled, "d"), _batch(compiled, ""), _batch(compiled, "e")]))
            trailing = dict(caught.value.trailing_metadata())
            assert (trailing["lakelet-written"], trailing["lakelet-code"]) == ("1", "invalid")
            found = await _rows(compiled, channel, "SELECT id FROM users ORDER BY id")
            assert found.column("id").to_pylist() == ["a", "b", "c", "d"]

    asyncio.run(run())


def test_a_query_ends_when_it_is_cancelled(compiled: Compiled, tmp_path: Path) -> None:
    endless = "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = b.range"

    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            request = compiled.message("QueryArrowRequest")(sql=endless)
            call = compiled.call(channel, "QueryArrow")(request, metadata=(("x-request-id", "r-1"),))

            async def read() -> None:
                async for _ in call:
                    pass

            reading = asyncio.create_task(read())
            cancel = compiled.call(channel, "CancelQuery")
            while not reading.done():
                # The query may not run yet, or no longer.
                with suppress(grpc.aio.AioRpcError):
                    await cancel(compiled.message("CancelQueryRequest")(request_id="r-1"))
                await asyncio.sleep(0)
            with pytest.raises(grpc.aio.AioRpcError, match="has no query that runs"):
                await cancel(compiled.message("CancelQueryRequest")(request_id="r-1"))
            with pytest.raises(grpc.aio.AioRpcError, match="cancelled"):
                await reading
            with pytest.raises(grpc.aio.AioRpcError, match="longer than"):
                await _rows(compiled, channel, endless, timeout_seconds=0.1)

    asyncio.run(run())


def test_lines_of_json_and_parameters_are_exact(compiled: Compiled, tmp_path: Path) -> None:
    big = 2**60 + 1
    lines = f'{{"id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {{"n": {big}}}}}'.encode()

    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            write = compiled.call(channel, "WriteBatch")
            request = compiled.message("WriteBatchRequest")
            assert (await write(request(table="users", ndjson=lines))).written == 1
            with pytest.raises(grpc.aio.AioRpcError, match="found several of them"):
                await write(request(table="users", ndjson=lines, arrow=b"x"))
            sql = "SELECT n FROM users WHERE n = $n"
            found = await _rows(compiled, channel, sql, params_json=f'{{"n": {big}}}')
            assert found.to_pylist() == [{"n": big}]
            for wrong in ("{", "1", '"x"', "[" * 100_000):
                with pytest.raises(grpc.aio.AioRpcError, match="params_json") as refused:
                    await _rows(compiled, channel, sql, params_json=wrong)
                assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            rows = compiled.message("RowsRequest")(table="users", id="a")
            stored = await compiled.call(channel, "GetRows")(rows)
            assert json.loads(stored.records_json)[0]["payload"] == {"n": big}
            altered = compiled.message("AlterTableRequest")(table_name="users", retention_days=0, status="archived")
            await compiled.call(channel, "AlterTable")(altered)
            with pytest.raises(grpc.aio.AioRpcError, match="archived"):
                await compiled.call(channel, "DeleteRows")(rows)
            again = compiled.message("AlterTableRequest")(table_name="users", status="active")
            await compiled.call(channel, "AlterTable")(again)
            assert (await compiled.call(channel, "DeleteRows")(rows)).deleted == 1
            assert (await compiled.call(channel, "GetRows")(rows)).records_json == "[]"

    asyncio.run(run())


def test_health_and_reflection(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (_, channel):
            health = health_pb2_grpc.HealthStub(channel)
            for name in ("", OLAP, LAKELET):
                assert (await health.Check(health_pb2.HealthCheckRequest(service=name))).status == 1
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            asked = reflection_pb2.ServerReflectionRequest(list_services="")
            answers = [answer async for answer in stub.ServerReflectionInfo(iter([asked]))]
            assert {OLAP, LAKELET} <= {one.name for one in answers[0].list_services_response.service}
            symbol = reflection_pb2.ServerReflectionRequest(file_containing_symbol="olap.v1.WriteRequest")
            answers = [answer async for answer in stub.ServerReflectionInfo(iter([symbol]))]
            assert answers[0].file_descriptor_response.file_descriptor_proto

    asyncio.run(run())


_NUMBERS = st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False, allow_infinity=False).filter(
    # JSON says 1.0 and 1 by different words; a Struct has one for both.
    lambda number: not (number.is_integer() and abs(number) <= 1 << 53)
)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100)
@given(payload=st.dictionaries(st.text(), _VALUES, max_size=4))
def test_a_struct_is_what_json_says(payload: dict[str, Any]) -> None:
    struct = struct_pb2.Struct()
    struct.update(payload)
    found = payload_of(struct)
    assert found == payload
    assert json.dumps(found, sort_keys=True) == json.dumps(payload, sort_keys=True)
    assert params_of(struct_pb2.Value(struct_value=struct)) == payload


def test_a_batch_that_is_repeated_under_its_key_is_written_once(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            write = compiled.call(channel, "WriteBatch")
            first = await write(_batch(compiled, "a", "", "b", partial=True, idempotency_key="k"))
            again = await write(_batch(compiled, "a", "", "b", partial=True, idempotency_key="k"))
            by_metadata = await write(
                _batch(compiled, "a", "", "b", partial=True), metadata=(("idempotency-key", "k"),)
            )
            for one, repeated in ((first, False), (again, True), (by_metadata, True)):
                assert (one.written, [place.place for place in one.refused]) == (2, [1])
                assert (one.repeated_request, one.message) == (repeated, "2 records written, 1 refused")
            streamed = await compiled.call(channel, "WriteStream")(
                iter([_batch(compiled, "c", idempotency_key="s"), _batch(compiled, "c", idempotency_key="s")])
            )
            assert streamed.written == 2
            found = await _rows(compiled, channel, "SELECT id FROM users ORDER BY id")
            assert found.column("id").to_pylist() == ["a", "b", "c"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "fields", "metadata", "code"),
    [
        ("WriteBatch", {"idempotency_key": "k"}, None, grpc.StatusCode.ALREADY_EXISTS),
        ("WriteBatch", {"idempotency_key": "k"}, "other", grpc.StatusCode.INVALID_ARGUMENT),
        ("WriteBatch", {"idempotency_key": "a b"}, None, grpc.StatusCode.INVALID_ARGUMENT),
        ("WriteBatch", {}, "x" * 256, grpc.StatusCode.INVALID_ARGUMENT),
        ("WriteStream", {}, "k", grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_a_key_that_cannot_be_used_writes_nothing(
    compiled: Compiled, tmp_path: Path, method: str, fields: dict[str, str], metadata: str | None, code: grpc.StatusCode
) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            await _created(service)
            await compiled.call(channel, "WriteBatch")(_batch(compiled, "a", idempotency_key="k"))
            given = () if metadata is None else (("idempotency-key", metadata),)
            message = _batch(compiled, "b", **fields)
            call = compiled.call(channel, method)
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call(iter([message]) if method == "WriteStream" else message, metadata=given)
            assert raised.value.code() is code
            assert (await _rows(compiled, channel, "SELECT id FROM users")).column("id").to_pylist() == ["a"]

    asyncio.run(run())


def test_calls_are_counted_beside_requests_of_rest(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> str:
        metrics = RequestMetrics()
        async with running(tmp_path, metrics=metrics) as (service, channel):
            await _created(service)
            for _ in range(2):
                await compiled.call(channel, "WriteBatch")(_batch(compiled, "a", "b"))
            with suppress(grpc.RpcError):
                await compiled.call(channel, "WriteBatch")(_batch(compiled, ""))
            assert (await _rows(compiled, channel, "SELECT id FROM users")).num_rows == 4
            with suppress(grpc.RpcError):
                await _rows(compiled, channel, "SELECT nothing FROM users")
            assert metrics.running == 0
            return await metrics_text(service, metrics, RateLimits())

    lines = asyncio.run(run()).splitlines()
    for method, status, number in (
        ("WriteBatch", 200, 2),
        ("WriteBatch", 400, 1),
        ("QueryArrow", 200, 1),
        ("QueryArrow", 400, 1),
    ):
        labels = f'transport="grpc",route="/{LAKELET}/{method}",method="POST",status="{status}"'
        assert f"lakelet_requests_total{{{labels}}} {number}" in lines
    labels = f'transport="grpc",route="/{LAKELET}/WriteBatch"'
    assert f"lakelet_request_seconds_count{{{labels}}} 3" in lines
