"""The consistent-hash ring: which node owns an id of a table. A pure function of the nodes and the key.

A node has 128 points on a circle of 2^52 positions. A key belongs to the node whose point is the first at or after the key's
position, past the end that of the first point of all. Positions are the upper 52 bits of XXH3 (64 bits, seed 0), so that Redis,
whose scores are doubles, holds them exactly:

    point of node `n1`, number 7     xxh3_64("n1#7") >> 12                        the bytes 6e 31 23 37
    position of id `a` in table `t`  xxh3_64(table ‖ 00 ‖ id) >> 12               the bytes 74 00 61

in UTF-8; no table name contains a zero byte. In Redis a point is a member `{node}#{number}` of `cluster:hash_ring` with its
position as score. Points at one position are ordered by the bytes of their members, as in a sorted set, and the first one owns.

A node that joins takes 1/n of the keys, and none moves between the others; a node that leaves gives its keys to the others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

import xxhash

from lakelet.errors import CorruptionError

VIRTUAL_NODES = 128
POSITION_BITS = 52
_SHIFT = 64 - POSITION_BITS


def key_position(table: str, id: str) -> int:
    """The position of an id of a table on the circle."""
    # Texts that UTF-8 does not have are placed too: a request is refused elsewhere, not by its place.
    key = b"\0".join((table.encode("utf-8", "surrogatepass"), id.encode("utf-8", "surrogatepass")))
    return int(xxhash.xxh3_64_intdigest(key)) >> _SHIFT


def node_points(node: str) -> dict[str, int]:
    """The points of a node: member of the sorted set to position."""
    members = [f"{node}#{number}" for number in range(VIRTUAL_NODES)]
    return {member: int(xxhash.xxh3_64_intdigest(member.encode())) >> _SHIFT for member in members}


class HashRing:
    """Points of several nodes in the order of their positions."""

    def __init__(self, points: Mapping[str, int]) -> None:
        ordered = sorted((position, member.encode(), _node_of(member)) for member, position in points.items())
        self.points = dict(points)
        self._positions = [position for position, _, _ in ordered]
        self._owners = [node for _, _, node in ordered]
        self.nodes = frozenset(self._owners)

    @staticmethod
    def of(nodes: Iterable[str]) -> HashRing:
        """The ring of these nodes."""
        points: dict[str, int] = {}
        for node in nodes:
            points.update(node_points(node))
        return HashRing(points)

    def restricted_to(self, nodes: Iterable[str]) -> HashRing:
        """The ring without points of other nodes: their keys belong to those that follow them on the circle."""
        kept = self.nodes & set(nodes)
        if kept == self.nodes:
            return self
        return HashRing({member: position for member, position in self.points.items() if _node_of(member) in kept})

    def owner(self, table: str, id: str) -> str | None:
        """The node that owns an id of a table; None on an empty ring."""
        if not self._positions:
            return None
        place = bisect_left(self._positions, key_position(table, id))
        return self._owners[place if place < len(self._owners) else 0]


def _node_of(member: str) -> str:
    node, separator, number = member.rpartition("#")
    if not node or not separator or not number.isdigit():
        raise CorruptionError(f"hash ring: expected members such as n1#7, found {member!r}")
    return node
