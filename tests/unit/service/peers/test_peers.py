"""Several nodes over one warehouse answer as one: every acknowledged row is seen once, whichever node is asked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from lakelet.errors import NotFoundError, UnavailableError
from lakelet.service.access.caller import ANYBODY
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.values import DropTableRequest, RowRequest
from tests.unit.service.peers.nodes import Node, cluster


async def _ids(node: Node, table: str) -> list[str]:
    return [row["id"] for row in json.loads(await node.rows(f"SELECT id FROM {table} ORDER BY id"))]


def test_rows_of_every_node_are_seen_by_every_node(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three")) as (_, nodes):
            one, two, three = nodes
            await one.create("users")
            await one.write("users", "a", n=1)
            # Nobody has told the others of the table, nor of its payload.
            await two.write("users", "b", n=2, town="Bonn")
            assert [await _ids(node, "users") for node in nodes] == [["a", "b"]] * 3
            await one.shared.flush_table("users")
            assert [await _ids(node, "users") for node in nodes] == [["a", "b"]] * 3
            await three.write("users", "c", n=2.5)
            await two.shared.flush_table("users")
            assert [await _ids(node, "users") for node in nodes] == [["a", "b", "c"]] * 3
            assert json.loads(await one.rows("SELECT sum(payload.n) AS s FROM users")) == [{"s": 5.5}]
            found = await one.service.get_rows(RowRequest("users", "c"), ANYBODY)
            assert [row["payload"] for row in found] == [{"n": 2.5}]

    asyncio.run(run())


def test_a_row_is_seen_once_at_every_moment_of_a_flush(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            for number in range(12):
                await two.write_batch("users", (f"r{number:02}", {"n": number}))
                flush = asyncio.create_task(two.shared.flush_table("users"))
                counts = []
                while not flush.done():
                    counts.append(len(await _ids(one, "users")))
                await flush
                counts.append(len(await _ids(one, "users")))
                assert set(counts) == {number + 1}

    asyncio.run(run())


def test_a_deletion_finds_rows_that_another_node_has_buffered(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}), ("b", {"n": 1}))
            assert await one.service.delete_rows(RowRequest("users", "a"), ANYBODY) == 1
            assert await _ids(two, "users") == ["b"]

    asyncio.run(run())


@pytest.mark.parametrize("cascade", [False, True])
def test_a_table_that_one_node_drops_is_gone_everywhere(tmp_path: Path, cascade: bool) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            await one.service.drop_table(DropTableRequest("users", cascade=cascade), ANYBODY)
            for node in (one, two):
                with pytest.raises(NotFoundError):
                    await node.rows("SELECT id FROM users")
                with pytest.raises(NotFoundError):
                    await node.write("users", "b", n=1)
            if cascade:
                # A table of the same name is another one.
                await two.create("users")
                assert [await _ids(node, "users") for node in (one, two)] == [[], []]
            else:
                # No acknowledged row is lost with the service.
                assert one.service.lake.table("default.users").scan().to_arrow().column("id").to_pylist() == ["a"]

    asyncio.run(run())


def test_a_node_without_an_answer_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (town, (one, two)):
            await one.create("users")
            await one.write_batch("users", ("a", {"n": 1}))
            await two.server.stop(0)
            request = QueryRequest("SELECT id FROM users")
            assert json.loads(await one.service.query_json(request, ANYBODY)) == [{"id": "a"}]
            assert [text.split(" at ")[0] for text in request.warnings] == ["node two"]
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.get_rows(RowRequest("users", "a"), ANYBODY)
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.delete_rows(RowRequest("users", "a"), ANYBODY)
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.drop_table(DropTableRequest("users"), ANYBODY)
            assert await _ids(one, "users") == ["a"]
            # One that has left has committed its rows.
            town.gone.add("two")
            request = QueryRequest("SELECT id FROM users")
            assert json.loads(await one.service.query_json(request, ANYBODY)) == [{"id": "a"}]
            assert request.warnings == []

    asyncio.run(run())


def test_a_view_that_may_lack_nodes_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (town, (one, _)):
            await one.create("users")
            town.unsettled = "the keys are new"
            request = QueryRequest("SELECT id FROM users")
            assert json.loads(await one.service.query_json(request, ANYBODY)) == []
            assert request.warnings[0].startswith("the keys are new")
            with pytest.raises(UnavailableError, match="the keys are new"):
                await one.service.get_rows(RowRequest("users", "a"), ANYBODY)

    asyncio.run(run())


def test_a_node_is_announced_to_all_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three")) as (town, (one, _, three)):
            before = town.refreshes
            assert await one.shared.peers.announce()
            assert town.refreshes == before + 2
            await three.server.stop(0)
            assert not await one.shared.peers.announce()

    asyncio.run(run())


def test_strict_queries_fail_without_a_node(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, query_strict=True) as (_, (one, two)):
            await one.create("users")
            await two.server.stop(0)
            with pytest.raises(UnavailableError, match="node two"):
                await one.rows("SELECT id FROM users")

    asyncio.run(run())


def test_nodes_with_another_secret_are_strangers(tmp_path: Path) -> None:
    async def run() -> None:
        secrets = {"one": "a secret of sixteen", "two": "another of sixteen"}
        async with cluster(tmp_path, secrets=secrets) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            request = QueryRequest("SELECT id FROM users")
            assert json.loads(await one.service.query_json(request, ANYBODY)) == []
            assert "UNAUTHENTICATED" in request.warnings[0]

    asyncio.run(run())
