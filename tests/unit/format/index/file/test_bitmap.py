"""Bitmap indexes list exactly the values that went in, whatever their type, and damage is told."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
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
