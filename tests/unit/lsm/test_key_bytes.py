"""Key bytes: they compare like the keys, whatever keys are encoded with them, and one key has one form."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Atomic, Kind, string
from tests.tiers.examples import examples
from tests.unit.lsm.key_model import TYPES, column_of, places, row_key, values


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[Atomic], list[tuple[object, ...]]]:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    return types, draw(st.lists(st.tuples(*(values(one) for one in types)), min_size=1, max_size=12))


def columns_of(types: list[Atomic], rows: list[tuple[object, ...]]) -> list[pa.Array]:
    return [column_of(data_type, [row[place] for row in rows]) for place, data_type in enumerate(types)]


@given(keys())
@settings(max_examples=examples(150), deadline=None)
def test_bytes_compare_like_keys(drawn: tuple[list[Atomic], list[tuple[object, ...]]]) -> None:
    types, rows = drawn
    encoded = encode_key_bytes(columns_of(types, rows), types)
    assert encoded.type == pa.large_binary()
    assert places(encoded.to_pylist()) == places([row_key(row) for row in rows])


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_every_type_alone(data_type: Atomic) -> None:
    @given(st.lists(values(data_type), max_size=12))
    @settings(max_examples=examples(15), deadline=None)
    def check(cells: list[object]) -> None:
        encoded = encode_key_bytes([column_of(data_type, cells)], [data_type]).to_pylist()
        assert places(encoded) == places([row_key((cell,)) for cell in cells])
        for cell, found in zip(cells, encoded, strict=True):
            alone = encode_key_bytes([column_of(data_type, [cell])], [data_type]).to_pylist()
            assert alone == [found], "the form of a key does not depend on others"

    check()


def test_slices_are_read_from_where_they_begin() -> None:
    types = [Atomic(Kind.INT), string(), Atomic(Kind.DECIMAL, 30, 2), Atomic(Kind.BOOLEAN), Atomic(Kind.DOUBLE)]
    rows: list[tuple[object, ...]] = [(number, str(number), number, number % 2 == 0, number / 2) for number in range(5)]
    whole = columns_of(types, rows)
    assert encode_key_bytes([one.slice(2) for one in whole], types) == encode_key_bytes(whole, types).slice(2)


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (("STRING", "STRING"), b"a\x00\x00b\x00"),
        (("BYTES", "TINYINT"), b"a\x00\x00\x81"),
        (("SMALLINT", "INT", "BIGINT"), b"\x80\x01\x7f\xff\xff\xff\x80" + b"\0" * 7),
    ],
)
def test_the_layout(texts: tuple[str, ...], wanted: bytes) -> None:
    cells = {
        "STRING": ["a", "b\0"],
        "BYTES": [b"a"],
        "TINYINT": [1],
        "SMALLINT": [1],
        "INT": [-1],
        "BIGINT": [0],
    }
    types = [parse_type(text) for text in texts]
    row = [cells[text].pop(0) if text == "STRING" else cells[text][0] for text in texts]
    columns = [column_of(one, [cell]) for one, cell in zip(types, row, strict=True)]  # type: ignore[arg-type]
    assert encode_key_bytes(columns, types).to_pylist() == [wanted]


def test_zero_bytes_inside_are_told_from_ends() -> None:
    types = [string(), string()]
    columns = [pa.array(["a", "a\0", "a\0b"]), pa.array(["z", "a", "a"])]
    encoded = encode_key_bytes(columns, types).to_pylist()
    assert encoded == [b"a\0\0z", b"a\0\xff\0\0a", b"a\0\xffb\0\0a"]
    assert encoded == sorted(encoded)


def test_a_null_key_is_named() -> None:
    with pytest.raises(InvalidError, match="key column 1 holds NULL in row 2"):
        encode_key_bytes([pa.array([1, 2, 3]), pa.array(["", "", None])], [Atomic(Kind.BIGINT), string()])


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"key column 0.*ARRAY"):
        encode_key_bytes([pa.array([[1]])], [parse_type("ARRAY<INT>")])
