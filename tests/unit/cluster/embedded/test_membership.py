import asyncio

import pytest

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.embedded.membership import EmbeddedMembership
from lakelet.cluster.membership import Membership
from lakelet.errors import InvalidError
from tests.unit.moving_clock import START_MS, MovingClock


def test_one_node_owns_everything() -> None:
    async def run() -> None:
        membership: Membership = EmbeddedMembership(ClusterNode("n1", "127.0.0.1:50051"), MovingClock())
        await membership.start()
        assert [node.id for node in membership.nodes()] == ["n1"]
        assert membership.nodes()[0].heartbeat_ms > START_MS
        assert membership.owner("t", "x").id == membership.node.id
        assert (membership.epoch, membership.problem()) == (0, None)
        await membership.set_status("draining")
        assert membership.node.status == "draining"
        assert membership.owner("t", "x").id == "n1"
        await membership.stop()

    asyncio.run(run())


def test_which_nodes_own_keys() -> None:
    assert ClusterNode("n", "h:1").owns_keys
    assert ClusterNode("n", "h:1", role="worker").owns_keys
    assert not ClusterNode("n", "h:1", role="gateway").owns_keys
    assert not ClusterNode("n", "h:1", status="draining").owns_keys


@pytest.mark.parametrize("id", ["", "a b", "a#1", "a:b", "ä", "x" * 65])
def test_an_id_that_no_key_can_hold_is_refused(id: str) -> None:
    with pytest.raises(InvalidError, match="node id"):
        ClusterNode(id, "h:1")


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(InvalidError, match="all or gateway or worker"):
        ClusterNode("n", "h:1", role="leader")  # type: ignore[arg-type]
