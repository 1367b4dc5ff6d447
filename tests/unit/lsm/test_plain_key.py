"""The bytes of one key without Arrow are those of the columns."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.plain_key import plain_key, plain_keys
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT NOT NULL": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT NOT NULL": st.integers(-(2**15), 2**15 - 1),
    "INT NOT NULL": st.integers(-(2**31), 2**31 - 1),
    "BIGINT NOT NULL": st.integers(-(2**63), 2**63 - 1),
    "BOOLEAN NOT NULL": st.booleans(),
    "STRING NOT NULL": st.text(),
    "BYTES NOT NULL": st.binary() | st.just(b"\x00\x00\xff"),
}


@given(st.data())
def test_the_bytes_are_those_of_the_columns(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    types = [parse_type(name) for name in names]
    values = [data.draw(VALUES[name]) for name in names]
    columns = [pa.array([value], to_arrow(data_type)) for value, data_type in zip(values, types, strict=True)]
    parts = []
    for place, (value, data_type) in enumerate(zip(values, types, strict=True)):
        encode = plain_key(data_type, is_last=place == len(types) - 1)
        assert encode is not None
        parts.append(encode(value) or b"")
    assert b"".join(parts) == encode_key_bytes(columns, types)[0].as_py()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TINYINT", 128),
        ("TINYINT", True),
        ("BIGINT", 2**63),
        ("BIGINT", 1.0),
        ("BIGINT", None),
        ("BOOLEAN", 1),
        ("STRING", b"a"),
        ("STRING", "\ud800"),
        ("STRING", None),
        ("BYTES", "a"),
        ("BYTES", bytearray(b"a")),
    ],
)
@pytest.mark.parametrize("is_last", [True, False])
def test_a_value_that_needs_a_cast_is_left_to_the_columns(name: str, value: object, is_last: bool) -> None:
    encode = plain_key(parse_type(name), is_last=is_last)
    assert encode is not None
    assert encode(value) is None


@pytest.mark.parametrize("name", ["DOUBLE", "DATE", "VARCHAR(3)", "BINARY(3)", "DECIMAL(9, 2)", "ARRAY<INT>"])
def test_other_types_are_left_to_the_columns(name: str) -> None:
    assert plain_key(parse_type(name), is_last=True) is None


@given(st.data())
def test_many_keys_are_those_one_by_one(data: st.DataObject) -> None:
    """Also where one of them is of another type, or out of its range: then there are none."""
    data_type = parse_type(data.draw(st.sampled_from(sorted(VALUES))))
    others = st.sampled_from([None, True, 2**63, 300, 1.5, "\ud800", "text", b"bytes"])
    values = data.draw(
        st.lists(VALUES[str(data_type)] | others if data.draw(st.booleans()) else VALUES[str(data_type)])
    )
    encode, encode_many = plain_key(data_type, is_last=True), plain_keys(data_type)
    assert encode is not None
    assert encode_many is not None
    expected, found = [encode(value) for value in values], encode_many(values)
    if found is None:
        assert None in expected or not values
    else:
        joined, at = found[0], found[1].tolist()
        assert [joined[begin:end] for begin, end in itertools.pairwise(at)] == expected


def test_a_type_without_plain_keys_has_none_for_many() -> None:
    assert plain_keys(parse_type("DOUBLE NOT NULL")) is None
