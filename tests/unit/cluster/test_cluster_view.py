from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.cluster_view import KnownNode, next_view

A, B = ClusterNode("a", "h:1", heartbeat_ms=1), ClusterNode("b", "h:2", heartbeat_ms=1)
KNOWN = {"a": KnownNode(A, 100.0), "b": KnownNode(B, 100.0)}


def ids(view: dict[str, KnownNode]) -> list[str]:
    return sorted(view)


def test_a_node_that_is_not_reported_is_kept_for_as_long_as_a_liveness_key() -> None:
    for now, expected in ((159.0, ["a", "b"]), (160.0, ["a"])):
        assert ids(next_view(KNOWN, {"a": A}, [], now=now, steady_since=0.0, alive_seconds=60)) == expected


def test_nobody_is_dropped_while_nobody_can_register() -> None:
    assert ids(next_view(KNOWN, {}, [], now=10**6, steady_since=None, alive_seconds=60)) == ["a", "b"]
    assert ids(next_view(KNOWN, {}, [], now=10**6, steady_since=10**6 - 59, alive_seconds=60)) == ["a", "b"]
    assert ids(next_view(KNOWN, {}, [], now=10**6, steady_since=10**6 - 60, alive_seconds=60)) == []


def test_a_node_that_left_is_gone_at_once() -> None:
    assert ids(next_view(KNOWN, {"a": A}, ["b"], now=101.0, steady_since=None, alive_seconds=60)) == ["a"]


def test_a_heartbeat_is_noticed_by_its_change_and_not_by_the_clock_of_its_node() -> None:
    past = replace(B, heartbeat_ms=-5_000_000)
    view = next_view(KNOWN, {"a": A, "b": past}, [], now=200.0, steady_since=0.0, alive_seconds=60)
    assert (view["a"].noticed, view["b"].noticed) == (100.0, 200.0)


@given(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")), st.floats(0, 1000))
def test_whoever_is_reported_is_live(before: set[str], reported: set[str], now: float) -> None:
    known = {id: KnownNode(ClusterNode(id, "h:1"), 0.0) for id in before}
    nodes = {id: ClusterNode(id, "h:1") for id in reported}
    view = next_view(known, nodes, [], now=now, steady_since=0.0, alive_seconds=60)
    assert reported <= view.keys() <= reported | before
