import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.cluster.hash_ring import POSITION_BITS, VIRTUAL_NODES, HashRing, key_position, node_points
from lakelet.errors import CorruptionError

NODES = st.sets(st.text("abcdefgh0123-_.", min_size=1, max_size=8), min_size=1, max_size=8)
KEYS = [("t" if number % 2 else "orders", f"id-{number}") for number in range(150)]


def owners(ring: HashRing) -> list[str | None]:
    return [ring.owner(table, id) for table, id in KEYS]


def test_positions_are_those_of_the_documentation() -> None:
    points = node_points("n1")
    assert [points["n1#0"], points["n1#1"], points["n1#2"]] == [1433493158270784, 3331314489965264, 4417040182848707]
    assert key_position("t", "a") == 3495391191551776
    assert key_position("orders", "ü/:%") == 3157464042753578
    ring = HashRing.of(["a", "b", "c"])
    assert "".join(ring.owner("t", str(number)) or "" for number in range(12)) == "acccbbcbabcb"


def test_a_position_fits_a_double() -> None:
    positions = [*node_points("n1").values(), *(key_position(*key) for key in KEYS)]
    assert all(0 <= position < 1 << POSITION_BITS and int(float(position)) == position for position in positions)


def test_a_table_and_an_id_do_not_run_together() -> None:
    assert key_position("ab", "c") != key_position("a", "bc")


def test_any_text_has_a_place() -> None:
    assert HashRing.of(["n"]).owner("t", "\ud800") == "n"


@given(NODES, st.text("abcdefgh0123-_.", min_size=1, max_size=8))
def test_a_join_moves_keys_to_the_new_node_alone(nodes: set[str], joined: str) -> None:
    before = owners(HashRing.of(nodes - {joined}))
    after = owners(HashRing.of(nodes | {joined}))
    assert all(new in (old, joined) for old, new in zip(before, after, strict=True))


@given(NODES)
def test_a_leave_moves_the_keys_of_that_node_alone(nodes: set[str]) -> None:
    left = min(nodes)
    ring = HashRing.of(nodes)
    rest = ring.restricted_to(nodes - {left})
    assert owners(rest) == owners(HashRing.of(nodes - {left}))
    assert all(old in (new, left) for old, new in zip(owners(ring), owners(rest), strict=True))


@given(NODES)
def test_a_ring_does_not_depend_on_the_order_of_its_nodes(nodes: set[str]) -> None:
    points = HashRing.of(sorted(nodes)).points
    assert len(points) == VIRTUAL_NODES * len(nodes)
    assert owners(HashRing(dict(reversed(points.items())))) == owners(HashRing(points))


@pytest.mark.parametrize("count", [2, 5, 10])
def test_nodes_have_about_equal_shares(count: int) -> None:
    ring = HashRing.of(f"node-{number}" for number in range(count))
    found = [ring.owner("t", str(number)) for number in range(20_000)]
    shares = [found.count(node) * count / len(found) for node in ring.nodes]
    assert len(shares) == count
    assert min(shares) > 0.7
    assert max(shares) < 1.35


def test_points_at_one_position_are_ordered_by_their_members() -> None:
    assert HashRing({"b#0": 5, "a#1": 5}).owner("t", "x") == "a"
    assert HashRing({"é#0": 5, "z#0": 5}).owner("t", "x") == "z"


def test_an_empty_ring_has_no_owner() -> None:
    assert HashRing.of([]).owner("t", "a") is None
    assert HashRing.of(["a"]).restricted_to([]).owner("t", "a") is None


@pytest.mark.parametrize("member", ["a", "#1", "a#", "a#x"])
def test_a_member_that_is_none_is_told(member: str) -> None:
    with pytest.raises(CorruptionError, match="n1#7"):
        HashRing({member: 1})
