"""Sets of 64-bit numbers as Java's Roaring64Bitmap writes them, and their union.

    has any u1 (0 │ 1) │ keys u8 │ radix tree (`radix_tree`) │ arrays u4 │ arrays │ containers u8 │ last array i4 │ last place i4
    array       mark i1 -2 │ places u4 │ for each: 0, or 1 and a container
    container   kind u1 │ how many numbers u4 │ 0: count of runs u2, then first u2 and length - 1 u2 of each
                                               1: 65,536 bits
                                               2: the numbers, u2 each

A container has the lower 16 bits of the numbers that share the upper 48. Its kind and its place follow from how the set came
about, and are kept, so that a union has the bytes that Java gives it: containers of the first set stay, those of keys that it
lacks are added in the order of the keys, and a container with few runs becomes one of runs, but never again another.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.format.index.radix_tree import Leaf, Node, decode_tree, encode_tree, inserted, leaves

_RUNS, _BITS, _ARRAY = range(3)
_ARRAY_LIMIT = 4096
_BITMAP_BYTES = 8192
_SPAN = 1 << 16
_MARK = -2
_MASK = (1 << 32) - 1

Values = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Container:
    """Some numbers of 16 bits, ascending, and how they are kept."""

    kind: int
    values: Values


@dataclass(slots=True)
class RadixBitmap:
    """A set: its tree, and the places of its containers."""

    tree: Node | None = None
    places: list[list[Container | None]] = field(default_factory=list)
    last: int = 0

    def add(self, other: RadixBitmap) -> None:
        """Adds the numbers of another set."""
        known = {leaf.key: leaf.container for leaf in leaves(self.tree)}
        for leaf in leaves(other.tree):
            container = other.container(leaf.container)
            if leaf.key in known:
                place = known[leaf.key]
                self.places[place >> 32][place & _MASK] = _union(self.container(place), container)
            else:
                self.tree = inserted(self.tree, Leaf(leaf.key, self._placed(container)))

    def container(self, number: int) -> Container:
        """The container of a leaf. CorruptionError where there is none."""
        array, place = number >> 32, number & _MASK
        if 0 <= array < len(self.places) and place < len(self.places[array]):
            found = self.places[array][place]
            if found is not None:
                return found
        raise CorruptionError(f"the bitmap has no container {number}")

    def _placed(self, container: Container) -> int:
        if not self.places:
            self.places.append([None])
            self.last = 0
        else:
            self.last += 1
        array = self.places[-1]
        if self.last >= len(array):
            # Java's arrays grow by half, and are written with the places that are left.
            size = max(len(array) + (len(array) >> 1), self.last + 1)
            array.extend([None] * (size - len(array)))
        array[self.last] = container
        return len(self.places) - 1 << 32 | self.last


def united(older: bytes, newer: bytes) -> bytes:
    """The union of two sets. CorruptionError for bytes that are none."""
    first = decode(older)
    first.add(decode(newer))
    first.places = [[None if one is None else _optimized(one) for one in array] for array in first.places]
    return encode(first)


def decode(data: bytes) -> RadixBitmap:
    """A set. CorruptionError for bytes that are none."""
    try:
        return _decode(data)
    except (struct.error, IndexError) as error:
        raise CorruptionError(f"the bytes of the bitmap end too early: {error}") from error


def encode(bitmap: RadixBitmap) -> bytes:
    """The bytes of a set."""
    if bitmap.tree is None:
        return b"\0"
    keys = sum(1 for _ in leaves(bitmap.tree))
    parts = [struct.pack("<Bq", 1, keys), *encode_tree(bitmap.tree), struct.pack("<I", len(bitmap.places))]
    for array in bitmap.places:
        parts.append(struct.pack("<bI", _MARK, len(array)))
        parts += [b"\0" if one is None else _encoded(one) for one in array]
    count = sum(one is not None for array in bitmap.places for one in array)
    parts.append(struct.pack("<qii", count, len(bitmap.places) - 1, bitmap.last))
    return b"".join(parts)


def _decode(data: bytes) -> RadixBitmap:
    if not data:
        raise CorruptionError("the bitmap has no bytes")
    if not data[0]:
        return RadixBitmap()
    tree, at = decode_tree(data, 9)
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    places: list[list[Container | None]] = []
    for _ in range(count):
        mark, size = struct.unpack_from("<bI", data, at)
        if mark != _MARK or size > len(data):
            raise CorruptionError(f"an array of containers at {at} begins with {mark}")
        at += 5
        array: list[Container | None] = []
        for _ in range(size):
            has = data[at]
            at += 1
            container = None
            if has:
                container, at = _decode_container(data, at)
            array.append(container)
        places.append(array)
    _, first, last = struct.unpack_from("<qii", data, at)
    if first != len(places) - 1 or not places or not 0 <= last < len(places[-1]):
        raise CorruptionError(f"the bitmap ends with array {first} and place {last} of {len(places)} arrays")
    found = RadixBitmap(tree, places, last)
    for leaf in leaves(tree):
        found.container(leaf.container)
    return found


def _decode_container(data: bytes, at: int) -> tuple[Container, int]:
    kind, count = struct.unpack_from("<BI", data, at)
    at += 5
    if kind == _RUNS:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = _numbers(data, at + 2, "<u2", 2 * runs).astype(np.int64).reshape(-1, 2)
        at += 2 + 4 * runs
        sizes = pairs[:, 1] + 1
        ends = np.cumsum(sizes)
        if runs and ends[-1] > _SPAN:
            raise CorruptionError(f"a container of the bitmap has runs of {ends[-1]} numbers")
        values = np.arange(int(ends[-1]) if runs else 0) + np.repeat(pairs[:, 0] - (ends - sizes), sizes)
    elif kind == _BITS:
        bits = _numbers(data, at, "u1", _BITMAP_BYTES).astype(np.uint8)
        values = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        at += _BITMAP_BYTES
    elif kind == _ARRAY:
        values = _numbers(data, at, "<u2", count).astype(np.int64)
        at += 2 * count
    else:
        raise CorruptionError(f"a container of the bitmap is of the kind {kind}")
    if (
        not len(values)
        or values[-1] >= _SPAN
        or (np.diff(values) <= 0).any()
        or (kind != _RUNS and len(values) != count)
    ):
        raise CorruptionError(
            f"a container of the bitmap has {len(values)} numbers for {count}, or has them out of order"
        )
    return Container(kind, values.astype(np.uint16)), at


def _numbers(data: bytes, at: int, kind: str, count: int) -> NDArray[np.generic]:
    if at + count * np.dtype(kind).itemsize > len(data):
        raise CorruptionError(f"the bytes of the bitmap end at {len(data)}, with {count} numbers missing at {at}")
    return np.frombuffer(data, kind, count, at)


def _encoded(container: Container) -> bytes:
    values = container.values
    head = struct.pack("<BBI", 1, container.kind, len(values))
    if container.kind == _ARRAY:
        return head + values.astype("<u2").tobytes()
    if container.kind == _BITS:
        bits = np.zeros(_SPAN, np.bool_)
        bits[values] = True
        return head + np.packbits(bits, bitorder="little").tobytes()
    starts = _run_starts(values)
    lengths = np.diff(starts, append=len(values)) - 1
    pairs = np.column_stack((values[starts], lengths)).astype("<u2")
    return head + struct.pack("<H", len(starts)) + pairs.tobytes()


def _run_starts(values: Values) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(values.astype(np.int64), prepend=-2) != 1)


def _run_bytes(values: Values) -> int:
    return 2 + 4 * len(_run_starts(values))


def _union(one: Container, other: Container) -> Container:
    """The union of two containers, of the kind that Java gives it."""
    if one.kind == _RUNS and len(one.values) == _SPAN:
        return one
    values = np.union1d(one.values, other.values)
    kinds = {one.kind, other.kind}
    if _BITS in kinds:
        return Container(_RUNS if len(values) == _SPAN else _BITS, values)
    plain = _BITS if len(values) > _ARRAY_LIMIT else _ARRAY
    if _RUNS in kinds:
        fits = _run_bytes(values) <= min(_BITMAP_BYTES, 2 * len(values) + 2)
        return Container(_RUNS if fits else plain, values)
    return Container(plain, values)


def _optimized(container: Container) -> Container:
    """A container as one of runs, where that is smaller."""
    size = {_RUNS: 0, _BITS: _BITMAP_BYTES, _ARRAY: 2 * len(container.values)}[container.kind]
    return Container(_RUNS, container.values) if size > _run_bytes(container.values) else container
