"""Nodes that died with rows are known until they are back, recovered or forgotten."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.node_markers import MarkedNode, NodeMarkers
from lakelet.errors import UnavailableError
from lakelet.service.access.caller import ANYBODY
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.values import RowRequest
from lakelet.storage.open import open_store
from tests.unit.moving_clock import MovingClock
from tests.unit.service.peers.nodes import StaticMembership, Town, cluster

_ADDRESS = "127.0.0.1:1"


class SeenMarkers(NodeMarkers):
    """Markers that tell a test when they are looked for."""

    looks = 0
    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None

    def ids(self) -> frozenset[str]:
        self.looks += 1
        if self.before is not None:
            self.before()
        found = super().ids()
        if self.after is not None:
            self.after()
        return found


def _town(*ids: str) -> Town:
    return Town({id: ClusterNode(id, _ADDRESS) for id in ids})


def _known(name: str) -> tuple[Town, SeenMarkers, AbsentNodes, MovingClock]:
    town, clock = _town("one", "two"), MovingClock()
    markers = SeenMarkers(open_store(f"memory://{name}", {}))
    for id in ("one", "two"):
        markers.put(MarkedNode(id, _ADDRESS, 1_800_000_000_000))
    absent = AbsentNodes(markers, StaticMembership(town, "one"), clock)
    absent.look()
    return town, markers, absent, clock


def test_live_nodes_cost_no_look() -> None:
    _, markers, absent, _ = _known("live")
    assert absent.problems() == ()
    assert markers.looks == 1


def test_a_dead_node_is_absent_until_its_marker_is_gone() -> None:
    town, markers, absent, clock = _known("dead")
    two = town.nodes.pop("two")
    assert [one.id for one in absent.found()] == ["two"]
    assert "127.0.0.1:1, started 2027-01-15T08:00:00+00:00" in absent.problems()[0]
    # Looked for again at most once a second.
    looks = markers.looks
    assert len(absent.problems()) == 1
    assert markers.looks == looks
    town.nodes["two"] = two
    assert absent.found() == ()
    del town.nodes["two"]
    markers.remove("two")
    clock.move(minutes=0.1)
    assert absent.found() == ()


def test_a_node_that_leaves_is_never_absent() -> None:
    town, markers, absent, clock = _known("leaving")
    # It leaves before, and while, markers are looked for.
    markers.remove("two")
    two = town.nodes.pop("two")
    assert absent.found() == ()
    town.nodes["two"] = two
    markers.put(MarkedNode("two"))
    absent.look()

    def leaves() -> None:
        markers.remove("two")
        town.nodes.pop("two", None)

    markers.after = leaves
    absent.look()
    markers.after = None
    clock.move(minutes=0.1)
    assert absent.found() == ()


def test_a_store_that_is_silent_takes_no_node_back() -> None:
    town, markers, absent, clock = _known("silent")

    def silent() -> None:
        raise UnavailableError("the store is silent")

    markers.before = silent
    del town.nodes["two"]
    clock.move(minutes=0.1)
    assert [one.id for one in absent.found()] == ["two"]


def test_answers_without_an_absent_nodes_rows_are_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one",)) as (_, (one,)):
            await one.create("users")
            markers = NodeMarkers(one.service.lake.table_home("any.any").store)
            markers.put(MarkedNode("two", _ADDRESS))
            await one.service.in_thread(one.shared.absent.look)
            request = QueryRequest("SELECT id FROM users")
            assert await one.service.query_json(request, ANYBODY) == "[]"
            assert request.warnings[0].startswith("node two at 127.0.0.1:1")
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.get_rows(RowRequest("users", "a"), ANYBODY)
            with pytest.raises(UnavailableError, match="node two"):
                await one.service.delete_rows(RowRequest("users", "a"), ANYBODY)
            assert [(node.id, node.status) for node in await one.service.nodes(ANYBODY)][-1] == ("two", "absent")
            assert "node two" in (await one.service.health()).details["cluster"]
            await one.write("users", "a", n=1)
            markers.remove("two")
            await one.service.in_thread(one.shared.absent.look)
            request = QueryRequest("SELECT id FROM users")
            assert await one.service.query_json(request, ANYBODY) == '[{"id":"a"}]'
            assert request.warnings == []

    asyncio.run(run())


def test_strict_queries_fail_without_an_absent_node(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one",), query_strict=True) as (_, (one,)):
            await one.create("users")
            NodeMarkers(one.service.lake.table_home("any.any").store).put(MarkedNode("two", _ADDRESS))
            await one.service.in_thread(one.shared.absent.look)
            with pytest.raises(UnavailableError, match="node two"):
                await one.rows("SELECT id FROM users")

    asyncio.run(run())
