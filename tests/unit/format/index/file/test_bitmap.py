"""Bitmap indexes list exactly the values that went in, whatever their type, and damage is told."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.format.index.deletion_vectors import encode_bitmap
from lakelet.format.index.file.bitmap import BitmapIndex, BitmapWriter
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Atomic

VALUES = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(),
    "FLOAT": st.floats(width=32),
    "STRING": st.text(max_size=6),
    "DATE": st.dates(),
}


def index_of(text: str, parts: list[list[object]], block_bytes: int = 40) -> tuple[BitmapIndex, pa.DataType]:
    kind = parse_type(text)
    assert isinstance(kind, Atomic)
    writer = BitmapWriter(kind, block_bytes)
    for part in parts:
        writer.update(pa.array(part, to_arrow(kind)))
    return BitmapIndex.of(writer.finish(), kind, where="f"), to_arrow(kind)


def plain(value: object) -> object:
    return "nan" if isinstance(value, float) and math.isnan(value) else repr(value)


@pytest.mark.parametrize("text", VALUES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_the_list_is_exact(text: str, data: st.DataObject) -> None:
    value = VALUES[text]
    parts = data.draw(st.lists(st.lists(st.none() | value, max_size=12), min_size=1, max_size=3))
    index, arrow = index_of(text, parts)
    there = [one for part in parts for one in part]
    known = {plain(one) for one in there if one is not None}
    assert index.has_null == (None in there)
    assert index.count == len(known)
    for one in [*there, *data.draw(st.lists(value, max_size=5))]:
        if one is not None:
            asked = pa.array([one], arrow)
            assert index.may_hold(asked) == (plain(one) in known)
            assert index.may_hold_others(asked) == bool(known - {plain(one)})


@pytest.mark.parametrize("cut", [0, 1, 5, 9, 12])
def test_damage_is_told(cut: int) -> None:
    index, arrow = index_of("STRING", [["a", "b", None]])
    with pytest.raises(CorruptionError):
        BitmapIndex.of(index.data[:cut], index.type, where="f").may_hold(pa.array(["a"], arrow))


def test_another_version_is_told() -> None:
    with pytest.raises(CorruptionError, match="version 1 or 2, found 3"):
        BitmapIndex.of(b"\3" + bytes(20), index_of("INT", [[1]])[0].type, where="f")


def encoded(value: object) -> bytes:
    if isinstance(value, str):
        return len(value.encode()).to_bytes(4, "big") + value.encode()
    assert isinstance(value, int)
    return value.to_bytes(8, "big", signed=True)


def plainly(values: list[object], block_bytes: int) -> bytes:
    """The bytes of an index, value by value."""
    rows: dict[object, list[int]] = {}
    for row, value in enumerate(values):
        rows.setdefault(value, []).append(row)
    nulls = rows.pop(None, [])
    head = b"\2" + struct.pack(">ii", len(values), len(rows)) + bytes([bool(nulls)])
    body = b""
    if nulls:
        bitmap = encode_bitmap(np.array(nulls))
        head += struct.pack(">ii", -1 - nulls[0] if len(nulls) == 1 else 0, len(bitmap))
        body = bitmap if len(nulls) > 1 else b""
    blocks: list[list[bytes]] = []
    firsts = []
    for value in sorted(rows, key=lambda one: one.encode() if isinstance(one, str) else one):  # type: ignore[arg-type, return-value]
        bitmap = encode_bitmap(np.array(rows[value]))
        place = (-1 - rows[value][0], -1) if len(rows[value]) == 1 else (len(body), len(bitmap))
        body += bitmap if len(rows[value]) > 1 else b""
        entry = encoded(value) + struct.pack(">ii", *place)
        if not blocks or 4 + sum(map(len, blocks[-1])) + len(entry) > block_bytes:
            blocks.append([])
            firsts.append(encoded(value))
        blocks[-1].append(entry)
    data = [struct.pack(">i", len(block)) + b"".join(block) for block in blocks]
    head += struct.pack(">i", len(blocks))
    for number, first in enumerate(firsts):
        head += first + struct.pack(">i", sum(len(one) for one in data[:number]))
    return head + struct.pack(">i", sum(map(len, data))) + b"".join(data) + body


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_bytes_are_those_of_each_value_alone(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["BIGINT", "STRING"]))
    value = data.draw(
        st.sampled_from([VALUES[text], st.sampled_from([1, 2, 3] if text == "BIGINT" else ["", "é", "zz"])])
    )
    values = data.draw(st.lists(st.none() | value, max_size=40))
    block_bytes = data.draw(st.sampled_from([1, 40, 16384]))
    cut = data.draw(st.integers(0, len(values)))
    index, _ = index_of(text, [values[:cut], values[cut:]], block_bytes)
    assert index.data == plainly(values, block_bytes)


@pytest.mark.parametrize(
    ("text", "expected"), [("TIMESTAMP(6)", False), ("TIMESTAMP(7)", True), ("TIMESTAMP(9)", True)]
)
def test_values_that_are_rounded_stand_for_others(text: str, expected: bool) -> None:
    index, arrow = index_of(text, [[index_value(text)]])
    assert index.may_hold(pa.array([index_value(text)], arrow))
    assert index.may_hold_others(pa.array([index_value(text)], arrow)) is expected


def index_value(text: str) -> int:
    """A microsecond in the unit of a type."""
    return 1 if text == "TIMESTAMP(6)" else 1_000
