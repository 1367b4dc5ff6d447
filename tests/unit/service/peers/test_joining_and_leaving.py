"""Queries and deletions while nodes join, leave and die: whoever is asked has answered, or is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.node_markers import MarkedNode, NodeMarkers
from lakelet.errors import InvalidError, OutcomeUnknownError, UnavailableError
from lakelet.service.access.caller import ANYBODY
from lakelet.service.peers import shared_tables
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.peers.peers import PEER_PROTOCOL
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.values import RowRequest
from lakelet.table.write.table_commit import TableCommit
from tests.unit.service.peers.nodes import Node, Town, cluster

_IDS = "SELECT id FROM users ORDER BY id"


async def _asked(node: Node) -> tuple[list[str], list[str]]:
    """The ids that a node finds, and the warnings."""
    request = QueryRequest(_IDS)
    found = json.loads(await node.service.query_json(request, ANYBODY))
    return [row["id"] for row in found], request.warnings


def _markers(node: Node) -> NodeMarkers:
    return NodeMarkers(node.service.lake.table_home("any.any").store)


def _comes_back(town: Town, two: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a dead node be live again, and commit what its logs have, after all live nodes were asked and before absent ones are
    looked for."""
    back = town.nodes.pop(two.name)
    town.epoch += 1
    two.service._started = False
    problems = AbsentNodes.problems

    def meanwhile(absent: AbsentNodes, *given: Any) -> tuple[str, ...]:
        town.nodes[two.name] = back
        return problems(absent, *given)

    monkeypatch.setattr(AbsentNodes, "problems", meanwhile)


@pytest.mark.parametrize("what", ["query", "record", "deletion"])
def test_a_node_that_comes_back_while_others_are_asked_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (town, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            for node in (one, two):
                await one.service.in_thread(_markers(one).put, MarkedNode(node.name))
            await one.service.in_thread(one.shared.absent.look)
            _comes_back(town, two, monkeypatch)
            if what == "query":
                ids, warnings = await _asked(one)
                assert (ids, len(warnings)) == ([], 1)
                assert "node two" in warnings[0]
            elif what == "record":
                with pytest.raises(UnavailableError, match="node two"):
                    await one.service.get_rows(RowRequest("users", "a"), ANYBODY)
            else:
                with pytest.raises(UnavailableError, match="node two"):
                    await one.service.delete_rows(RowRequest("users", "a"), ANYBODY)
            two.service._started = True
            assert await _asked(one) == (["a"], [])

    asyncio.run(run())


def test_rows_of_a_node_that_leaves_are_seen_until_they_are_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[list[str], list[str]]] = []
    look_back = TableCommit.look_back

    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            loop = asyncio.get_running_loop()

            def ask(commit: TableCommit) -> Any:
                if not found:
                    found.append(([], []))
                    for node in (one, two):
                        found.append(asyncio.run_coroutine_threadsafe(_asked(node), loop).result())
                return look_back(commit)

            monkeypatch.setattr(TableCommit, "look_back", ask)
            await two.service.commit_all()
            assert found[1:] == [(["a"], [])] * 2
            assert await _asked(one) == (["a"], [])
            # Nothing is left to be committed.
            await two.shared.flush_table("users")

    asyncio.run(run())


def test_rows_that_a_node_could_not_commit_before_it_leaves_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: TableCommit) -> Any:
        raise UnavailableError("the store is silent")

    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            with monkeypatch.context() as patched:
                patched.setattr(TableCommit, "look_back", silent)
                await two.service.commit_all()
            assert await _asked(one) == (["a"], [])
            with pytest.raises(UnavailableError, match="not committed"):
                await two.shared.flush_table("users")
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.delete_rows(RowRequest("users", "a"), ANYBODY)

    asyncio.run(run())


def test_a_node_at_the_address_of_another_answers_for_itself_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two")) as (town, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            # It died, and a node with another folder was started in its place; the registry has not forgotten it.
            town.nodes["dead"] = ClusterNode("dead", town.nodes["two"].address, protocol=PEER_PROTOCOL)
            ids, warnings = await _asked(one)
            assert (ids, len(warnings)) == (["a"], 1)
            assert "node dead" in warnings[0]
            with pytest.raises(OutcomeUnknownError, match="node dead"):
                await one.send("k", "users", ("b", {"n": 1}), ("c", {"n": 1}))
            with pytest.raises(UnavailableError, match="node dead"):
                await one.service.delete_rows(RowRequest("users", "a"), ANYBODY)
            # Records that it owns are written where they come.
            for number in range(20):
                await one.write("users", f"r{number}", n=1)
            ids, _ = await _asked(two)
            assert len(ids) == len(set(ids)) == 21

    asyncio.run(run())


def test_a_node_that_could_not_open_a_table_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            opened = two.service.tables._tables.pop("users")
            two.service.tables._leave_out("users", UnavailableError("the store is silent"))
            ids, warnings = await _asked(one)
            assert (ids, len(warnings)) == ([], 1)
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.delete_rows(RowRequest("users", "a"), ANYBODY)
            with pytest.raises(UnavailableError):
                await two.shared.leave_table("users", is_deleted=False)
            two.service.tables._tables["users"] = opened
            assert await _asked(one) == (["a"], [])

    asyncio.run(run())


def test_a_node_that_starts_commits_and_releases_nothing_before_it_has_read_its_logs(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            two.service._started = False
            calls: list[Callable[[], Any]] = [
                lambda: two.shared.flush_table("users"),
                lambda: two.shared.leave_table("users", is_deleted=False),
                lambda: one.service.delete_rows(RowRequest("users", "a"), ANYBODY),
            ]
            for call in calls:
                with pytest.raises(UnavailableError):
                    await call()
            two.service._started = True
            assert await _asked(one) == (["a"], [])

    asyncio.run(run())


def test_a_table_whose_logs_could_not_be_read_at_the_start_is_found_with_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: OpenTable) -> Any:
        raise UnavailableError("the store is silent")

    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.write_batch("users", ("a", {"n": 1}))
            tables = two.service.tables
            opened = tables._tables.pop("users")
            opened.close()
            with monkeypatch.context() as patched:
                patched.setattr(OpenTable, "open_writer", silent)
                await two.service.in_thread(tables.follow)
                assert tables.left_out() == {"users": "UnavailableError"}
            await two.service.in_thread(tables.follow)
            assert tables.left_out() == {}
            assert tables.open("users").writer is not None

    asyncio.run(run())


def test_a_node_that_announces_itself_is_known_by_its_marker_where_redis_is_silent(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one",)) as (_, (one,)):
            await one.create("users")
            await one.service.in_thread(_markers(one).put, MarkedNode("two"))
            # The registry does not tell of it.
            await one.shared.look_at_nodes()
            _, warnings = await _asked(one)
            assert "node two" in warnings[0]

    asyncio.run(run())


def test_a_death_is_seen_while_tables_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_tables, "_FOLLOW_SECONDS", 0.01)

    def broken() -> None:
        raise InvalidError("a table cannot be looked at")

    async def run() -> None:
        async with cluster(tmp_path, ("one",)) as (_, (one,)):
            await one.create("users")
            monkeypatch.setattr(one.service.tables, "follow", broken)
            await one.service.in_thread(_markers(one).put, MarkedNode("two"))
            while not (await _asked(one))[1]:
                await asyncio.sleep(0.01)

    asyncio.run(run())
