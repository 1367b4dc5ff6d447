"""The adaptive radix tree in which Java's Roaring64Bitmap keeps the upper 48 bits of its numbers, in its bytes.

A leaf is a key of 6 bytes and the number of its container. Inner nodes come before their children, which are in the order of
their bytes; all numbers are little-endian.

    node     kind u1 │ children u2 │ prefix length u1 │ prefix │ body
    leaf     kind 4, no children and no prefix; body: key, 6 bytes, most significant first │ container u8
    kind 0   up to 4 children; body: their bytes as one u4, the first of them in front of the others
    kind 1   up to 16; body: their bytes as two u8, likewise
    kind 2   up to 48; body: for each of 256 bytes the slot of its child, 0xFF for none, in groups of 8 from the last to the first
    kind 3   body: a bit for each of 256 bytes, from the least

Nodes only grow: the kind of a node and the slots of its children tell in which order keys were added. So that a tree that is
read, gets more keys and is written again has the bytes that Java would have written, keys are added here as they are there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from lakelet.errors import CorruptionError

KEY_BYTES = 6
_LEAF = 4
_CAPACITIES = (4, 16, 48, 256)
_SLOTTED, _BITS = 2, 3
_NO_SLOT = 0xFF


@dataclass(frozen=True, slots=True)
class Leaf:
    """A key and the number of its container."""

    key: bytes
    container: int


@dataclass(slots=True)
class Inner:
    """A node with children, by the byte of their keys behind `prefix`; in `slots` these bytes as they were added."""

    kind: int
    prefix: bytes
    children: dict[int, Node] = field(default_factory=dict)
    slots: list[int] = field(default_factory=list)

    def add(self, byte: int, child: Node) -> None:
        """Adds a child; the node grows where it is full."""
        if len(self.children) == _CAPACITIES[self.kind]:
            self.kind += 1
            if self.kind == _SLOTTED:
                self.slots = sorted(self.children)
        self.children[byte] = child
        self.slots.append(byte)


Node = Leaf | Inner


def leaves(node: Node | None) -> Iterator[Leaf]:
    """All leaves, by their keys."""
    if isinstance(node, Leaf):
        yield node
    elif node is not None:
        for byte in sorted(node.children):
            yield from leaves(node.children[byte])


def inserted(node: Node | None, leaf: Leaf, depth: int = 0) -> Node:
    """The tree with one leaf more, whose key it does not have yet."""
    if node is None:
        return leaf
    prefix = node.key[depth:] if isinstance(node, Leaf) else node.prefix
    rest = leaf.key[depth:]
    common = _common(prefix, rest)
    if isinstance(node, Leaf) or common < len(prefix):
        above = Inner(0, rest[:common])
        if isinstance(node, Inner):
            node.prefix = prefix[common + 1 :]
        above.add(prefix[common], node)
        above.add(rest[common], leaf)
        return above
    byte = rest[common]
    child = node.children.get(byte)
    if child is None:
        node.add(byte, leaf)
    else:
        node.children[byte] = inserted(child, leaf, depth + common + 1)
    return node


def encode_tree(node: Node) -> Iterator[bytes]:
    """The bytes of a tree, in parts."""
    if isinstance(node, Leaf):
        yield struct.pack("<BHB6sq", _LEAF, 0, 0, node.key, node.container)
        return
    yield struct.pack("<BHB", node.kind, len(node.children), len(node.prefix)) + node.prefix + _body(node)
    for byte in sorted(node.children):
        yield from encode_tree(node.children[byte])


def decode_tree(data: bytes, at: int, above: bytes = b"") -> tuple[Node, int]:
    """The tree that begins at a place, and where it ends. `above` is what its keys begin with. CorruptionError or
    `struct.error` for bytes that are no tree."""
    kind, count, length = struct.unpack_from("<BHB", data, at)
    at += 4
    if kind == _LEAF:
        key, container = struct.unpack_from("<6sq", data, at)
        if not key.startswith(above) or length or count:
            raise CorruptionError(f"a key of the tree at {at} is not below its node")
        return Leaf(key, container), at + 14
    if kind > _LEAF or count > _CAPACITIES[kind] or not count or len(above) + length >= KEY_BYTES:
        raise CorruptionError(f"a node of the tree at {at - 4} is of kind {kind} with {count} children")
    prefix = data[at : at + length]
    (body,) = struct.unpack_from(f"{(4, 16, 256, 32)[kind]}s", data, at + length)
    at += length + len(body)
    keys, slots = _keys(kind, body, count)
    if len(keys) != count or len(set(keys)) != count:
        raise CorruptionError(f"a node of the tree has {len(keys)} keys for {count} children")
    node = Inner(kind, prefix, slots=slots)
    for byte in keys:
        node.children[byte], at = decode_tree(data, at, above + prefix + bytes((byte,)))
    return node, at


def _body(node: Inner) -> bytes:
    if node.kind == _BITS:
        return sum(1 << byte for byte in node.children).to_bytes(32, "little")
    if node.kind == _SLOTTED:
        places = bytearray([_NO_SLOT]) * 256
        for slot, byte in enumerate(node.slots):
            places[byte] = slot
        return _turned(bytes(places), 8)
    capacity = _CAPACITIES[node.kind]
    return _turned(bytes(sorted(node.children)).ljust(capacity, b"\0"), min(capacity, 8))


def _keys(kind: int, body: bytes, count: int) -> tuple[list[int], list[int]]:
    """The bytes of a node's children, ascending, and in the order of their slots."""
    if kind == _BITS:
        bits = int.from_bytes(body, "little")
        return [byte for byte in range(256) if bits >> byte & 1], []
    if kind == _SLOTTED:
        places = _turned(body, 8)
        found = [byte for byte in range(256) if places[byte] != _NO_SLOT]
        slots = sorted(found, key=lambda byte: places[byte])
        if [places[byte] for byte in slots] != list(range(len(slots))):
            raise CorruptionError("the slots of a node of the tree are not those of a bitmap that only grew")
        return found, slots
    keys = list(_turned(body, min(len(body), 8))[:count])
    if keys != sorted(keys):
        raise CorruptionError("the children of a node of the tree are out of order")
    return keys, []


def _turned(data: bytes, width: int) -> bytes:
    """The bytes with each group of some turned around."""
    return b"".join(data[start : start + width][::-1] for start in range(0, len(data), width))


def _common(one: bytes, other: bytes) -> int:
    """How many bytes at the front are the same."""
    return next(
        (place for place in range(min(len(one), len(other))) if one[place] != other[place]), min(len(one), len(other))
    )
