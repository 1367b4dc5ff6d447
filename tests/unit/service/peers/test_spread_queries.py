"""Queries that the nodes of a cluster answer together, by calls between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.protos.message_types import PEER, message_class
from lakelet.service.access.caller import ANYBODY, READ, Caller
from lakelet.service.query.query_engine import QueryRequest
from lakelet.sql.engine.duckdb_engine import ENGINE
from tests.unit.service.peers.nodes import Node, cluster

_SQL = "SELECT city, count(*) AS c, sum(n) AS s, avg(n) AS a FROM users GROUP BY city ORDER BY city"


async def _filled(nodes: list[Node]) -> None:
    await nodes[0].create("users")
    for part in range(6):
        node = nodes[part % len(nodes)]
        await node.write_batch("users", *((f"r{part}-{n}", {"n": n, "city": f"c{n % 3}"}) for n in range(10)))
        if part < 4:
            await node.shared.flush_table("users")


def _expected() -> list[dict[str, object]]:
    groups = [[n for n in range(10) if n % 3 == city] * 6 for city in range(3)]
    return [
        {"city": f"c{city}", "c": len(found), "s": sum(found), "a": sum(found) / len(found)}
        for city, found in enumerate(groups)
    ]


def test_every_node_answers_with_the_work_of_all(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three"), query_spread_bytes=0) as (_, nodes):
            await _filled(nodes)
            for node in nodes:
                assert json.loads(await node.rows(_SQL)) == _expected()
            told = {
                one["explain_key"]: one["explain_value"] for one in json.loads(await nodes[0].rows(f"EXPLAIN {_SQL}"))
            }
            assert told["distribution"].startswith("table users: 4 splits\n")
            assert "one: " in told["distribution"]
            assert "GROUP BY" in told["worker"]
            assert "lakelet_partials" in told["combine"]

    asyncio.run(run())
    assert not [one for one in caplog.messages if "runs on one node" in one or "run elsewhere" in one]


def _as_gateway(node: Node) -> None:
    known = node.town.nodes[node.name]
    node.town.nodes[node.name] = replace(known, role="gateway")


def test_a_gateway_leaves_the_last_step_to_a_worker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three"), query_spread_bytes=0) as (_, nodes):
            await _filled(nodes)
            _as_gateway(nodes[0])
            asked: list[Any] = []
            for node in nodes:
                whole = node.shared.fragments.run

                def noted(message: Any, whole: Any = whole) -> Any:
                    asked.append(message)
                    return whole(message)

                node.shared.fragments.run = noted  # type: ignore[method-assign]
            assert json.loads(await nodes[0].rows(_SQL)) == _expected()
            (combining,) = [one for one in asked if one.given]
            assert len(asked) == 1 + sum(len(one.shares) - 1 for one in combining.given)
            asked.clear()
            # What is not split runs on one worker.
            sql = "SELECT count(*) AS c FROM users a JOIN users b ON a.id = b.id"
            assert json.loads(await nodes[0].rows(sql)) == [{"c": 60}]
            assert [len(one.given) for one in asked] == [0]

    asyncio.run(run())
    assert not [one for one in caplog.messages if "runs on one node" in one or "run elsewhere" in one]


def test_a_fragment_of_a_worker_that_is_gone_is_run_elsewhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three"), query_spread_bytes=0) as (_, nodes):
            await _filled(nodes)
            for node in nodes:
                await node.shared.flush_table("users")
            # It has nothing that is not committed, but is still in the registry.
            await nodes[2].server.stop(0)
            assert json.loads(await nodes[0].rows(_SQL)) == _expected()

    asyncio.run(run())
    assert [one for one in caplog.messages if "node three: a fragment of a query is run elsewhere" in one]
    assert not [one for one in caplog.messages if "runs on one node" in one]


def test_a_worker_that_dies_after_its_first_rows_leaves_none_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three"), query_spread_bytes=0) as (_, nodes):
            await _filled(nodes)
            for node in nodes:
                await node.shared.flush_table("users")
            fragments = nodes[2].shared.fragments
            whole = fragments.run
            stops: list[asyncio.Task[None]] = []

            async def broken(message: Any) -> AsyncGenerator[Any]:
                async for rows in whole(message):
                    yield rows
                    # Its connections break before the stream has ended: the stop ends this call, and goes on.
                    stops.append(asyncio.create_task(nodes[2].server.stop(0)))
                    await asyncio.shield(stops[-1])

            fragments.run = broken  # type: ignore[method-assign]
            assert json.loads(await nodes[0].rows(_SQL)) == _expected()
            await asyncio.gather(*stops)

    asyncio.run(run())
    assert [one for one in caplog.messages if "node three: a fragment of a query is run elsewhere" in one]
    assert not [one for one in caplog.messages if "runs on one node" in one]


@pytest.mark.parametrize("ends_by", ["a request", "its time"])
def test_the_end_of_a_query_is_the_end_of_its_fragments(tmp_path: Path, ends_by: str) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three"), query_spread_bytes=0) as (_, nodes):
            await _filled(nodes)
            begun, ended = asyncio.Event(), asyncio.Event()

            async def endless(message: Any) -> AsyncGenerator[Any]:
                try:
                    begun.set()
                    await asyncio.Event().wait()
                    yield message
                finally:
                    ended.set()

            nodes[2].shared.fragments.run = endless  # type: ignore[method-assign]
            seconds = None if ends_by == "a request" else 1.0
            asked = QueryRequest(_SQL, request_id="r", timeout_seconds=seconds)
            query = asyncio.create_task(nodes[0].service.query_json(asked, ANYBODY))
            await begun.wait()
            if ends_by == "a request":
                await nodes[0].service.cancel_query("r")
            with pytest.raises(InvalidError, match=r"cancelled|longer than 1 seconds"):
                await query
            await ended.wait()

    asyncio.run(run())


def _fragment(sql: str) -> object:
    made = message_class("lakelet.peer.v1.FragmentRequest")
    return made(sql=sql, seconds=5, engine=ENGINE)


async def _run_fragment(node: Node, sql: str, authorization: str | None) -> None:
    address = node.shared.members.node.address
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_stream(
            f"/{PEER}/RunFragment",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class("lakelet.peer.v1.FragmentRows").FromString,
        )
        metadata = () if authorization is None else (("authorization", authorization),)
        async for _ in call(_fragment(sql), metadata=metadata):
            pass


def test_a_worker_runs_nothing_for_strangers_and_nothing_outside_of_the_sandbox(tmp_path: Path) -> None:
    secret = "known to all nodes"

    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), {"one": secret, "two": secret}) as (_, (one, _)):
            await one.create("users")
            for given in (None, "LakeletPeer known to nobody", "Bearer key"):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await _run_fragment(one, "SELECT 1", given)
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            await _run_fragment(one, "SELECT 1", f"LakeletPeer {secret}")
            for sql in ("SELECT * FROM read_text('/etc/passwd')", "SELECT getenv('HOME')"):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await _run_fragment(one, sql, f"LakeletPeer {secret}")
                assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                # A table that is served, but is none of the fragment.
                await _run_fragment(one, "SELECT * FROM users", f"LakeletPeer {secret}")
            assert "users" in str(caught.value.details())

    asyncio.run(run())


def test_a_caller_reads_together_what_it_may_read_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), query_spread_bytes=0) as (_, nodes):
            await _filled(nodes)
            reader = Caller("reader", {"orders": READ})
            with pytest.raises(NotFoundError, match="not served"):
                await nodes[0].service.query_json(QueryRequest(_SQL), reader)

    asyncio.run(run())
