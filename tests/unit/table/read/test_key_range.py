"""Ranges and prefixes of keys are those of tuples, and what prunes never leaves out a key that is inside."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.row_mask import row_mask
from lakelet.table.read.key_range import KeyRange, key_range

TEXTS = st.text(alphabet="\x00\x01ab\U0010ffff", max_size=3)
NUMBERS = st.integers(-2, 2)
KEYS = st.lists(st.tuples(TEXTS, NUMBERS, TEXTS), max_size=12)


def schema_of(*types: str) -> TableSchema:
    fields = [Field(place, "abc"[place], parse_type(f"{text} NOT NULL")) for place, text in enumerate(types)]
    return TableSchema(
        id=0,
        fields=tuple(fields),
        highest_field_id=len(types) - 1,
        partition_keys=(),
        primary_keys=tuple(field.name for field in fields),
        options={"bucket": "1"},
        comment=None,
        time_ms=0,
    )


def inside(schema: TableSchema, made: KeyRange, keys: list[Any]) -> list[Any]:
    """The keys in a range, after a check that none of them is pruned."""
    rows = pa.Table.from_pylist([dict(zip("abc", key, strict=False)) for key in keys], arrow_schema(schema.fields))
    columns = [rows.column(name).combine_chunks() for name in schema.primary_keys]
    mask = made.mask(encode_key_bytes(columns, [field.type for field in schema.fields])).to_pylist()
    if made.condition is not None:
        may = row_mask(made.condition, rows).to_pylist()
        assert not any(is_in and not kept for is_in, kept in zip(mask, may, strict=True))
    return [key for key, is_in in zip(keys, mask, strict=True) if is_in]


def named(values: tuple[Any, ...] | None) -> dict[str, Any] | None:
    return None if values is None else dict(zip("abc", values, strict=False))


BOUNDS = st.none() | st.tuples(TEXTS) | st.tuples(TEXTS, NUMBERS) | st.tuples(TEXTS, NUMBERS, TEXTS)


@given(KEYS, BOUNDS, BOUNDS)
def test_bounds_compare_like_tuples(keys: list[Any], start: Any, end: Any) -> None:
    schema = schema_of("STRING", "INT", "STRING")
    made = key_range(schema, start=named(start), end=named(end), prefix=None)
    if made is None:
        assert (start, end) == (None, None)
        return
    expected = [key for key in keys if (start is None or key >= start) and (end is None or key < end)]
    assert inside(schema, made, keys) == expected


@given(KEYS, st.tuples(TEXTS) | st.tuples(TEXTS, NUMBERS) | st.tuples(TEXTS, NUMBERS, TEXTS), BOUNDS)
def test_a_prefix_is_equal_up_to_its_last_text(keys: list[Any], prefix: tuple[Any, ...], start: Any) -> None:
    schema = schema_of("STRING", "INT", "STRING")
    made = key_range(schema, start=named(start), end=None, prefix=named(prefix))
    assert made is not None
    *equal, last = prefix
    expected = [
        key
        for key in keys
        if key[: len(equal)] == tuple(equal)
        and (key[len(equal)].startswith(last) if isinstance(last, str) else key[len(equal)] == last)
        and (start is None or key >= start)
    ]
    assert inside(schema, made, keys) == expected


def test_floats_are_in_the_order_of_keys() -> None:
    schema = schema_of("DOUBLE")
    keys = [(-math.inf,), (-0.0,), (0.0,), (1.0,), (math.inf,), (math.nan,)]
    made = key_range(schema, start={"a": 0.0}, end=None, prefix=None)
    assert made is not None
    assert repr(inside(schema, made, keys)) == repr(keys[2:])
    made = key_range(schema, start=None, end={"a": math.nan}, prefix=None)
    assert made is not None
    assert repr(inside(schema, made, keys)) == repr(keys[:-1])


def test_bytes_have_prefixes_too() -> None:
    schema = schema_of("BYTES")
    keys = [(b"",), (b"\xff",), (b"\xff\xff",), (b"\xff\xff\x00",)]
    made = key_range(schema, start=None, end=None, prefix={"a": b"\xff\xff"})
    assert made is not None
    assert inside(schema, made, keys) == keys[2:]


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({}, "expected a mapping of key columns"),
        (5, "expected a mapping of key columns"),
        ({"b": 1}, "expected the first columns of the key"),
        ({"a": None}, "NULL"),
        ({"a": "x", "c": "y"}, "expected the first columns of the key"),
        ({"a": "x", "b": "y"}, "do not fit the table's types"),
    ],
)
def test_bounds_that_are_none_are_refused(bound: Any, message: str) -> None:
    for what in ("start", "end", "prefix"):
        given_bounds = {"start": None, "end": None, "prefix": None, what: bound}
        with pytest.raises(InvalidError, match=message):
            key_range(schema_of("STRING", "INT", "STRING"), **given_bounds)
