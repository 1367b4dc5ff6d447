"""A few rows are the same bytes and hashes as many."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.format.rows.binary_row import encode_row, null_flags
from lakelet.format.rows.binary_row_columns import encode_rows, hash_rows
from lakelet.format.rows.few_rows import MOST_ROWS, encode_few_rows
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from tests.tiers.examples import examples

SIMPLE = tuple(map(parse_type, ["STRING", "BIGINT NOT NULL", "BOOLEAN", "TINYINT", "CHAR(3)"]))
ROWS = st.lists(
    st.tuples(
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=400),
        st.integers(-(2**63), 2**63 - 1),
        st.none() | st.booleans(),
        st.none() | st.integers(-128, 127),
        st.none() | st.text("aé ", max_size=3),
    ),
    min_size=1,
    max_size=MOST_ROWS,
)


@settings(max_examples=examples(60), deadline=None)
@given(rows=ROWS, chunked=st.booleans())
def test_few_rows_are_what_many_are(rows: list[tuple[object, ...]], chunked: bool) -> None:
    columns = [pa.array([row[place] for row in rows], to_arrow(kind)) for place, kind in enumerate(SIMPLE)]
    many = [pa.concat_arrays([column] * (MOST_ROWS + 1)) for column in columns]
    assert encode_few_rows(many, SIMPLE) is None
    given_columns = [pa.chunked_array([column]) for column in columns] if chunked else columns
    assert encode_few_rows(given_columns, SIMPLE) == encode_rows(many, SIMPLE).to_pylist()[: len(rows)]
    assert encode_rows(given_columns, SIMPLE).equals(encode_rows(many, SIMPLE).slice(0, len(rows)))
    hashes = hash_rows(given_columns, SIMPLE)
    assert hashes.dtype == np.int32
    assert hashes.tolist() == hash_rows(many, SIMPLE).tolist()[: len(rows)]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("DOUBLE", pa.array([float("nan")])),
        ("FLOAT", pa.array([1.5], pa.float32())),
        ("DATE", pa.array([2**31 - 1], pa.int32()).view(pa.date32())),
        ("TIMESTAMP(9)", pa.array([1], pa.timestamp("ns"))),
        ("DECIMAL(5, 2)", pa.array([None], pa.decimal128(5, 2))),
        ("ARRAY<INT>", pa.nulls(1, pa.list_(pa.int32()))),
        ("BIGINT", pa.array([1], pa.int32())),
    ],
)
def test_other_types_are_left_to_columns(text: str, column: pa.Array) -> None:
    data_type = parse_type(text)
    assert encode_few_rows([column], [data_type]) is None
    many = pa.concat_arrays([column] * (MOST_ROWS + 1))
    assert encode_rows([column], [data_type]).to_pylist() == encode_rows([many], [data_type]).to_pylist()[:1]


def test_text_that_is_no_text_is_the_bytes_that_it_is() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x02\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    many = pa.concat_arrays([broken] * (MOST_ROWS + 1))
    kind = [parse_type("STRING")]
    assert encode_rows([broken], kind).to_pylist() == encode_rows([many], kind).to_pylist()[:1]


def test_no_rows_no_columns_and_columns_of_several_lengths() -> None:
    kind = parse_type("INT")
    assert encode_few_rows([], []) is None
    assert encode_few_rows([pa.array([], pa.int32())], [kind]) == []
    assert encode_few_rows([pa.array([1], pa.int32()), pa.array([1, 2], pa.int32())], [kind, kind]) is None


def test_nulls_of_a_row_are_told_by_their_bits() -> None:
    types = [parse_type(text) for text in ("INT", "STRING", "TIMESTAMP(9)", "DATE", "DECIMAL(30, 1)")] * 15
    values = [(1, "a long text of its own", 5, dt.date(2020, 1, 1), None)[place % 5] for place in range(len(types))]
    values[3] = values[70] = None
    assert null_flags(encode_row(values, types), len(types)) == tuple(value is None for value in values)
    assert null_flags(encode_row([], []), 0) == ()
