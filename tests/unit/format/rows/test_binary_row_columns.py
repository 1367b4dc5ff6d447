import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.format.rows import binary_row_columns, murmur
from lakelet.format.rows.binary_row import decode_row, encode_row
from lakelet.format.rows.binary_row_columns import bucket_of, decode_bounds, decode_rows, encode_rows, hash_rows
from lakelet.format.rows.few_rows import MOST_ROWS
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType
from tests.golden.binary_rows import FOLDER, column_of, from_json, golden_rows
from tests.tiers.examples import examples

EVERY_TYPE = [
    parse_type(text)
    for text in (
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIME(3)",
        "CHAR(3)",
        "STRING",
        "BYTES",
        "TIMESTAMP(3)",
        "TIMESTAMP(6)",
        "TIMESTAMP(9)",
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "ARRAY<INT>",
        "DECIMAL(9, 2)",
        "DECIMAL(30, 5)",
    )
]


@pytest.fixture(params=["numba", "numpy"], autouse=True)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test of this file runs compiled and in numpy."""
    for loop in (murmur._hash_loop, binary_row_columns._copy_loop):
        if request.param == "numba":
            loop.load()
        else:
            monkeypatch.setattr(loop, "enabled", False)


def columns_of(rows: list[tuple[object, ...]], types: tuple[DataType, ...]) -> list[pa.Array]:
    return [column_of([row[index] for row in rows], data_type) for index, data_type in enumerate(types)]


def same(left: pa.Array, right: pa.Array) -> bool:
    return left.type == right.type and str(left.to_pylist()) == str(right.to_pylist())


def test_rows_and_hashes_are_those_of_java() -> None:
    for golden in golden_rows():
        if golden.types:
            # Few rows are encoded one by one.
            for count in (1, 3, MOST_ROWS + 1):
                columns = columns_of([golden.values] * count, golden.types)
                rows = encode_rows(columns, golden.types)
                assert rows.to_pylist() == [golden.row] * count
                assert hash_rows(columns, golden.types).tolist() == [golden.hash] * count
                decoded = decode_rows(rows, golden.types)
                assert all(same(a, b) for a, b in zip(decoded, columns, strict=True))


def test_buckets_are_those_of_java() -> None:
    vectors = json.loads((FOLDER / "bucket-vectors.json").read_text())
    assert len(vectors) == 16
    for name, case in vectors.items():
        types = [parse_type(column["type"]) for column in case["columns"]]
        columns = [
            column_of([from_json(row[index + 1], data_type) for row in case["rows"]], data_type)
            for index, data_type in enumerate(types)
        ]
        buckets = bucket_of(hash_rows(columns, types), case["buckets"])
        assert buckets.dtype == np.int32
        assert buckets.tolist() == [row[0] for row in case["rows"]], name


def test_buckets_drop_the_sign_of_a_truncated_remainder() -> None:
    hashes = np.array([-(2**31), -7, -1, 0, 7, 2**31 - 1], np.int32)
    assert bucket_of(hashes, 5).tolist() == [int(abs(math.fmod(int(h), 5))) for h in hashes]
    assert bucket_of(hashes, 1).tolist() == [0] * 6
    with pytest.raises(InvalidError):
        bucket_of(hashes, 0)


texts = st.one_of(st.none(), st.text(max_size=20))
longs = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
wide = st.one_of(st.none(), st.decimals(-(10**24), 10**24, places=5, allow_nan=False))
moments = st.one_of(st.none(), st.datetimes())
MIXED = tuple(map(parse_type, ["STRING", "BIGINT", "DECIMAL(30, 5)", "TIMESTAMP(6)", "STRING"]))


@settings(max_examples=examples(60), deadline=None)
@given(rows=st.lists(st.tuples(texts, longs, wide, moments, texts), min_size=1, max_size=30), cut=st.integers(0, 5))
def test_columns_equal_row_by_row(rows: list[tuple[object, ...]], cut: int) -> None:
    expected = [encode_row(row, MIXED) for row in rows][cut:]
    columns = [column.slice(cut) for column in columns_of(rows, MIXED)]
    encoded = encode_rows(columns, MIXED)
    assert encoded.to_pylist() == expected
    assert hash_rows(columns, MIXED).tolist() == [murmur.murmur3_32(row[4:]) for row in expected]
    assert [column.to_pylist() for column in decode_rows(encoded, MIXED)] == [column.to_pylist() for column in columns]


def test_chunks_slices_and_other_widths_are_taken() -> None:
    chunked = pa.chunked_array([["a", None], [], ["a text that is long"]], pa.large_string())
    number = pa.array([0, 1, None, 3], pa.int16()).slice(1)
    types = [parse_type("STRING"), parse_type("BIGINT")]
    rows = encode_rows([chunked, number], types)
    assert rows.to_pylist() == [encode_row(row, types) for row in [("a", 1), (None, None), ("a text that is long", 3)]]
    text, value = decode_rows(rows.slice(1), types)
    assert text.to_pylist() == [None, "a text that is long"]
    assert value.to_pylist() == [None, 3]
    again = decode_rows(pa.chunked_array([rows, rows]), types)
    assert len(again[0]) == 6


def test_no_rows_and_no_columns() -> None:
    for data_type in EVERY_TYPE:
        empty = encode_rows([pa.array([], to_arrow(data_type))], [data_type])
        assert len(empty) == 0
        (column,) = decode_rows(empty, [data_type])
        assert column.type == to_arrow(data_type)
        assert len(hash_rows([pa.array([], to_arrow(data_type))], [data_type])) == 0
    assert len(encode_rows([], [])) == 0
    assert decode_rows(pa.array([encode_row([], [])]), []) == []


def test_a_missing_row_is_null_everywhere() -> None:
    full = encode_row([None] * len(EVERY_TYPE), EVERY_TYPE)
    columns = decode_rows(pa.array([full, None], pa.binary()), EVERY_TYPE)
    assert [column.to_pylist() for column in columns] == [[None, None]] * len(EVERY_TYPE)
    assert [column.type for column in columns] == [to_arrow(data_type) for data_type in EVERY_TYPE]


def test_all_null_columns_are_the_row_by_row_bytes() -> None:
    columns = [pa.nulls(2, to_arrow(data_type)) for data_type in EVERY_TYPE]
    assert encode_rows(columns, EVERY_TYPE).to_pylist() == [encode_row([None] * len(EVERY_TYPE), EVERY_TYPE)] * 2


def test_many_rows_are_hashed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array([f"key {number}" for number in range(1000)])
    whole = hash_rows([column], [parse_type("STRING")])
    monkeypatch.setattr(binary_row_columns, "_HASH_ROWS", 7)
    assert hash_rows([column], [parse_type("STRING")]).tolist() == whole.tolist()


def test_wrong_input_is_refused() -> None:
    number = parse_type("INT")
    with pytest.raises(InvalidError, match="2 fields were given 1"):
        encode_rows([pa.array([1])], [number, number])
    with pytest.raises(InvalidError, match="differ in length"):
        encode_rows([pa.array([1]), pa.array([1, 2])], [number, number])
    with pytest.raises(InvalidError, match="cannot be taken as INT"):
        encode_rows([pa.array([2**40])], [number])
    with pytest.raises(InvalidError, match="ARRAY<INT>"):
        hash_rows([pa.array([[1]])], [parse_type("ARRAY<INT>")])


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("INT", "00" * 12),
        ("STRING", "00" * 8 + "6161616161616188"),
        ("STRING", "00" * 8 + "0900000010000000" + "6161616161616161"),
        ("STRING", "00" * 8 + "01000000ffffff7f"),
        ("STRING", "00" * 8 + "ff00000000000081"),
        ("DECIMAL(20, 0)", "00" * 8 + "0000000010000000" + "00" * 16),
        ("DECIMAL(20, 0)", "00" * 8 + "1100000010000000" + "00" * 24),
        ("DECIMAL(20, 0)", "00" * 8 + "1000000010000000" + "7f" * 16),
        ("DECIMAL(4, 0)", "00" * 8 + "1027000000000000"),
        ("TIMESTAMP(6)", "00" * 8 + "0000000011000000" + "00" * 8),
        ("TIMESTAMP(6)", "00" * 8 + "40420f0010000000" + "00" * 8),
        ("TIMESTAMP(6)", "00" * 8 + "0000000010000000" + "ffffffffffffff7f"),
        ("TIME(3)", "00" * 8 + "005c260500000000"),
        ("ARRAY<INT>", "00" * 8 + "0000000010000000"),
    ],
)
def test_bad_bytes_are_corruption(text: str, body: str) -> None:
    data_type = parse_type(text)
    rows = pa.array([encode_row([None], [data_type]), bytes.fromhex("00000001" + body)])
    with pytest.raises(CorruptionError, match=r"manifest-1: "):
        decode_rows(rows, [data_type], where="manifest-1")


def test_another_arity_is_corruption() -> None:
    number = parse_type("INT")
    with pytest.raises(CorruptionError, match="row 1: expected a row of 1 fields, found 2"):
        decode_rows(pa.array([encode_row([1], [number]), encode_row([1, 2], [number] * 2)]), [number])


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_damaged_rows_decode_alike_or_are_refused(data: st.DataObject) -> None:
    row = bytearray(encode_row(("a longer text", 5, None, None, "b"), MIXED))
    for _ in range(data.draw(st.integers(1, 4))):
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(row[: data.draw(st.integers(0, len(row)))] if data.draw(st.booleans()) else row)
    outcomes: list[object] = []
    decoders: list[Callable[[], object]] = [
        lambda: decode_row(damaged, MIXED),
        lambda: tuple(column[0].as_py() for column in decode_rows(pa.array([damaged]), MIXED)),
    ]
    for decode in decoders:
        try:
            outcomes.append(decode())
        except LakeletError as error:
            outcomes.append(type(error))
        except OverflowError:  # Arrow cannot show a timestamp beyond the year 9999 as a datetime either.
            outcomes.append(InvalidError)
    assert outcomes[0] == outcomes[1] or InvalidError in outcomes


_DAMAGED = {
    "STRING": "0900000010000000" + "6161616161616161",
    "DECIMAL(20, 0)": "1000000010000000" + "7f" * 16,
    "TIMESTAMP(6)": "0000000010000000" + "ffffffffffffff7f",
    "TIME(3)": "005c260500000000",
    "ARRAY<INT>": "0000000010000000",
}


@pytest.mark.parametrize("text", _DAMAGED)
@pytest.mark.parametrize("bad", [[0], [3], [6], [0, 1, 5], list(range(7))])
def test_rule_28_a_bound_that_cannot_be_decoded_is_unknown(text: str, bad: list[int]) -> None:
    types = [parse_type(text)]
    damaged = bytes.fromhex("00000001" + "00" * 8 + _DAMAGED[text])
    good = _KNOWN.get(text)
    rows = pa.array([damaged if place in bad else encode_row([good], types) for place in range(7)])
    (found,) = decode_bounds(rows, types)
    assert found.to_pylist() == [None if place in bad else good for place in range(7)]


_KNOWN = {
    "STRING": "a",
    "DECIMAL(20, 0)": Decimal(7),
    "TIMESTAMP(6)": datetime.datetime(2024, 1, 1),
    "TIME(3)": datetime.time(1),
}


def test_rule_28_what_stands_beside_a_damaged_bound_is_known() -> None:
    types = [parse_type("INT"), parse_type("TIME(3)"), parse_type("STRING")]
    row = bytearray(encode_row([5, datetime.time(1), "abc"], types))
    row[4 + 8 + 8 : 4 + 8 + 12] = (-1).to_bytes(4, "little", signed=True)
    columns = decode_bounds(pa.array([bytes(row)]), types)
    assert [column.to_pylist() for column in columns] == [[5], [None], ["abc"]]


@pytest.mark.parametrize("row", [b"", b"\0" * 4, b"\0\0\0\2" + b"\0" * 24, b"\0\0\0\1" + b"\0" * 8])
def test_rule_28_rows_of_another_shape_bound_nothing(row: bytes) -> None:
    types = [parse_type("INT")]
    (found,) = decode_bounds(pa.array([encode_row([5], types), row]), types)
    assert found.to_pylist() == [5, None]


@pytest.mark.parametrize("arity", [1, 2, 61, 130])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_rows_of_slots_alone_hash_as_their_bytes(arity: int, nulls: float) -> None:
    """They are hashed without being assembled: bits of NULLs are in the header, also in its second and third word."""
    random = np.random.default_rng(arity)
    texts = ["BIGINT", "INT", "BOOLEAN", "DOUBLE", "DATE", "DECIMAL(10, 2)", "TIMESTAMP(3)", "TINYINT", "FLOAT"]
    types = [parse_type(texts[at % len(texts)]) for at in range(arity)]
    columns = []
    for data_type in types:
        numbers = random.integers(-128, 128, 50)
        given = pa.array(numbers % 2 == 0) if str(data_type) == "BOOLEAN" else pa.array(numbers)
        if str(data_type) == "TIMESTAMP(3)":
            given = given.cast(pa.timestamp("ms"))
        if str(data_type) == "DATE":
            given = given.cast(pa.int32()).cast(pa.date32())
        if str(data_type) == "DECIMAL(10, 2)":
            given = given.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
        taken = given.cast(to_arrow(data_type)).to_pylist()
        gone = random.random(50) < nulls
        columns.append(
            pa.array(
                [None if is_null else value for value, is_null in zip(taken, gone, strict=True)], to_arrow(data_type)
            )
        )
    expected = [murmur.murmur3_32(row[4:]) for row in encode_rows(columns, types).to_pylist()]
    assert hash_rows(columns, types).tolist() == expected
    assert hash_rows([column.slice(7, 5) for column in columns], types).tolist() == expected[7:12]
