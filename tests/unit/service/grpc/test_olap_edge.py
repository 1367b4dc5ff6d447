"""`olap.v1` called by a client that is compiled from the text of the design."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2

from lakelet.protos.message_types import OLAP, message_class
from lakelet.service.access.caller import READ, Caller
from tests.unit.service.grpc.running_service import Compiled, compiled_client, running, seed_text

Client = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compiled_client(seed_text(), OLAP)


def _client(compiled: Compiled, channel: Any, metadata: tuple[tuple[str, str], ...] = ()) -> Client:
    async def call(method: str, /, **fields: Any) -> Any:
        request = compiled.pool.FindServiceByName(OLAP).FindMethodByName(method).input_type.name
        return await compiled.call(channel, method)(compiled.message(request)(**fields), metadata=metadata)

    return call


def _write(compiled: Compiled, table: str, id: str, seconds: int, payload: dict[str, Any], nanos: int = 0) -> Any:
    made = compiled.message("WriteRequest")(table=table, id=id)
    made.timestamp.seconds, made.timestamp.nanos = seconds, nanos
    made.payload.update(payload)
    return made


def _plain(descriptor: Any) -> Any:
    found = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(found)
    return found


def test_the_proto_is_that_of_the_design(compiled: Compiled) -> None:
    ours = message_class("olap.v1.WriteRequest").DESCRIPTOR.file
    theirs = compiled.pool.FindFileByName("client.proto")
    assert sorted(ours.message_types_by_name) == sorted(theirs.message_types_by_name)
    for name, message in theirs.message_types_by_name.items():
        assert _plain(ours.message_types_by_name[name]) == _plain(message), name
    methods = {
        one.name: (one.input_type.name, one.output_type.name) for one in theirs.services_by_name["OlapService"].methods
    }
    assert methods == {
        one.name: (one.input_type.name, one.output_type.name) for one in ours.services_by_name["OlapService"].methods
    }


def test_the_compiled_descriptors_are_those_of_the_protos(tmp_path: Path) -> None:
    import lakelet.protos as package

    protos = Path(package.__file__).parent
    for name in ("olap/v1/olap", "lakelet/v1/lakelet"):
        from grpc_tools import protoc

        include = Path(protoc.__file__).parent / "_proto"
        out = tmp_path / "now.desc"
        assert protoc.main(["", f"-I{protos}", f"-I{include}", f"--descriptor_set_out={out}", f"{name}.proto"]) == 0
        stored = descriptor_pb2.FileDescriptorSet.FromString((protos / f"{name}.desc").read_bytes())
        assert stored == descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()), "run scripts/compile-protos.sh"


def test_the_way_of_a_record(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (_, channel):
            client = _client(compiled, channel)
            config = compiled.message("TableConfig")(buffer_size=2000, retention_days=730)
            made = await client("CreateTable", table_name="users", config=config)
            assert made.success
            again = await client("CreateTable", table_name="users", if_not_exists=True)
            assert (again.success, again.message) == (True, "table 'users' exists")
            payload = {"name": "张三", "age": 25, "score": 1.5, "tags": ["a", None], "home": {"city": "北京"}}
            done = await compiled.call(channel, "Write")(
                _write(compiled, "users", "user-123", 1698400800, payload, 500_000_000)
            )
            assert (done.success, done.message) == (True, "1 record written")
            found = await client("Query", sql="SELECT * FROM users WHERE payload.age > 20")
            assert json.loads(found.result_json) == [
                {
                    "id": "user-123",
                    "timestamp": "2023-10-27T10:00:00.5Z",
                    "payload": {"name": "张三", "age": 25, "score": 1.5, "tags": ["a", None], "home": {"city": "北京"}},
                    "payload_rest": None,
                }
            ]
            kinds = await client("Query", sql="SELECT typeof(age) AS a, typeof(score) AS s FROM users")
            assert json.loads(kinds.result_json) == [{"a": "BIGINT", "s": "DOUBLE"}]
            listed = await client("ListTables", pattern="us*")
            assert (listed.total, listed.tables[0].name, listed.tables[0].status) == (1, "users", "active")
            assert listed.tables[0].config.buffer_size == 2000
            described = await client("DescribeTable", table_name="users")
            assert (described.table_info.config.retention_days, described.stats.record_count) == (730, 1)
            stats = await client("GetStats")
            assert (stats.tables, stats.records, stats.buffered_records) == (1, 1, 1)
            nodes = await client("GetNodes")
            assert (nodes.total, len(nodes.nodes)) == (1, 1)
            assert nodes.nodes[0].last_heartbeat.seconds > 0
            health = await client("HealthCheck")
            assert (health.status, health.details["tables"]) == ("ok", "1")
            dropped = await client("DropTable", table_name="users", cascade=True)
            assert dropped.success
            assert (await client("ListTables")).total == 0

    asyncio.run(run())


def test_errors_have_the_status_of_their_kind(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (_, channel):
            client = _client(compiled, channel)
            await client("CreateTable", table_name="users")
            write = compiled.call(channel, "Write")
            cases: list[tuple[Awaitable[Any], grpc.StatusCode, str]] = [
                (client("Query", sql="SELEC 1"), grpc.StatusCode.INVALID_ARGUMENT, "line 1"),
                (client("Query", sql="FROM nothing"), grpc.StatusCode.NOT_FOUND, "not served"),
                (client("Query", sql="SELECT getenv('HOME')"), grpc.StatusCode.PERMISSION_DENIED, "getenv"),
                (client("DescribeTable", table_name="nothing"), grpc.StatusCode.NOT_FOUND, "nothing"),
                (client("DropTable", table_name="nothing"), grpc.StatusCode.NOT_FOUND, "nothing"),
                (client("CreateTable", table_name="users"), grpc.StatusCode.ALREADY_EXISTS, "users"),
                (client("CreateTable", table_name="a b"), grpc.StatusCode.INVALID_ARGUMENT, "a b"),
                (client("Write", table="users", id="x"), grpc.StatusCode.INVALID_ARGUMENT, "timestamp: missing"),
                (write(_write(compiled, "users", "", 1, {})), grpc.StatusCode.INVALID_ARGUMENT, "id"),
                (write(_write(compiled, "users", "x", 1, {}, nanos=1)), grpc.StatusCode.INVALID_ARGUMENT, "microseconds"),
                (write(_write(compiled, "users", "x", 1 << 50, {})), grpc.StatusCode.INVALID_ARGUMENT, "timestamp"),
                (write(_write(compiled, "users", "x", 1, {"a": math.nan})), grpc.StatusCode.INVALID_ARGUMENT, "finite"),
                (write(_write(compiled, "nothing", "x", 1, {})), grpc.StatusCode.NOT_FOUND, "nothing"),
                (client("TriggerBackup", table="users"), grpc.StatusCode.INVALID_ARGUMENT, "--backup"),
                (client("RecoverData", table="users"), grpc.StatusCode.INVALID_ARGUMENT, "--backup"),
                (write(_write(compiled, "users", "x", 1, {"a": "x" * (2 << 20)})), grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
            ]  # fmt: skip
            for call, status, text in cases:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                assert (caught.value.code(), text in str(caught.value.details())) == (status, True), (
                    caught.value.details()
                )
                assert "Traceback" not in str(caught.value.details())
            assert json.loads((await client("Query", sql="SELECT count(*) AS n FROM users")).result_json) == [{"n": 0}]

    asyncio.run(run())


class Keys:
    """Two keys: one that reads `users`, one that may do everything."""

    def caller_of(self, key: str) -> Caller | None:
        """The caller with this key."""
        return {"reader": Caller("reader", {"users": READ}), "root": Caller("root", {"*": "admin"})}.get(key)


def test_keys_and_rights(compiled: Compiled, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, Keys()) as (_, channel):
            root = _client(compiled, channel, (("authorization", "Bearer root"),))
            reader = _client(compiled, channel, (("authorization", "Bearer reader"),))
            nobody = _client(compiled, channel)
            await root("CreateTable", table_name="users")
            await root("CreateTable", table_name="secret")
            assert [one.name for one in (await reader("ListTables")).tables] == ["users"]
            sql = "SELECT table_name FROM information_schema.tables"
            assert json.loads((await reader("Query", sql=sql)).result_json) == [{"table_name": "users"}]
            refused: list[tuple[Awaitable[Any], grpc.StatusCode]] = [
                (nobody("ListTables"), grpc.StatusCode.UNAUTHENTICATED),
                (nobody("Query", sql="SELECT 1"), grpc.StatusCode.UNAUTHENTICATED),
                (reader("Query", sql="FROM secret"), grpc.StatusCode.NOT_FOUND),
                (reader("DropTable", table_name="users"), grpc.StatusCode.PERMISSION_DENIED),
                (reader("DescribeTable", table_name="secret"), grpc.StatusCode.PERMISSION_DENIED),
            ]
            for call, status in refused:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                assert caught.value.code() is status, caught.value.details()
            health = await nobody("HealthCheck")
            assert (health.status, dict(health.details)) == ("ok", {})

    asyncio.run(run())
