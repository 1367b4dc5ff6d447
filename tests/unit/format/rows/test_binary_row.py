import datetime as dt
import math
from decimal import Decimal

import pytest

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.rows.binary_row import EMPTY_ROW, decode_row, encode_row, header_bytes
from lakelet.model.type_parser import parse_type
from tests.golden.binary_rows import golden_rows


def row(text: str, value: object) -> bytes:
    return encode_row([value], [parse_type(text)])


def test_rows_are_the_bytes_that_java_writes() -> None:
    rows = golden_rows()
    assert len(rows) > 300
    for golden in rows:
        assert encode_row(golden.values, golden.types).hex() == golden.row.hex(), (golden.types, golden.values)


def test_rows_of_java_are_read() -> None:
    for golden in golden_rows():
        # By their text, for NaN is not equal to itself.
        assert repr(decode_row(golden.row, golden.types)) == repr(golden.values)


def test_empty_row() -> None:
    assert encode_row([], []) == EMPTY_ROW
    assert decode_row(EMPTY_ROW, []) == ()


@pytest.mark.parametrize(("arity", "size"), [(0, 8), (1, 8), (56, 8), (57, 16), (120, 16), (121, 24)])
def test_header_grows_with_the_null_bits(arity: int, size: int) -> None:
    assert header_bytes(arity) == size


def test_nulls_of_wide_types_keep_their_room() -> None:
    assert len(row("DECIMAL(19, 0)", None)) == 4 + 8 + 8 + 16
    assert len(row("TIMESTAMP(4)", None)) == 4 + 8 + 8 + 8
    assert len(row("DECIMAL(18, 0)", None)) == 4 + 8 + 8
    assert len(row("TIMESTAMP(3)", None)) == 4 + 8 + 8


def test_nested_types_are_null_only() -> None:
    types = [parse_type("ARRAY<INT>"), parse_type("MAP<INT, INT>"), parse_type("ROW<a INT>")]
    assert decode_row(encode_row([None] * 3, types), types) == (None, None, None)
    with pytest.raises(InvalidError, match="field 0"):
        encode_row([[1], None, None], types)


def test_zeros_keep_their_sign() -> None:
    (value,) = decode_row(row("DOUBLE", -0.0), [parse_type("DOUBLE")])
    assert isinstance(value, float)
    assert math.copysign(1, value) == -1


def test_aware_datetimes_are_taken_to_utc() -> None:
    east = dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    text = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
    assert decode_row(row(text, east), [parse_type(text)]) == (dt.datetime(2024, 1, 1, tzinfo=dt.UTC),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("INT", 2**31),
        ("TINYINT", -129),
        ("INT", "1"),
        ("INT", True),
        ("BOOLEAN", 1),
        ("STRING", 5),
        ("DECIMAL(4, 2)", Decimal("100.00")),
        ("DECIMAL(4, 2)", Decimal("0.001")),
        ("DECIMAL(38, 0)", Decimal(10**38)),
        ("DECIMAL(4, 2)", Decimal("NaN")),
        ("DECIMAL(4, 2)", 1.5),
        ("DATE", dt.datetime(2024, 1, 1)),
        ("DATE", 5),
        ("TIME(3)", 5),
        ("TIMESTAMP(3)", dt.date(2024, 1, 1)),
        ("STRING", "\ud800"),
    ],
)
def test_values_that_do_not_fit_are_refused(text: str, value: object) -> None:
    with pytest.raises(InvalidError, match="field 0"):
        row(text, value)


def test_wrong_number_of_values_is_refused() -> None:
    with pytest.raises(InvalidError, match="2 fields was given 1"):
        encode_row([1], [parse_type("INT"), parse_type("INT")])


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("INT", ""),
        ("INT", "0000000000000000" + "00000000"),
        ("STRING", "0000000000000000" + "6161616161616188"),  # Eight bytes inside a slot.
        ("STRING", "0000000000000000" + "0900000010000000" + "6161616161616161"),  # One byte beyond the end.
        ("STRING", "0000000000000000" + "01000000ffffff7f"),
        ("STRING", "0000000000000000" + "ff00000000000081"),  # No UTF-8.
        ("DECIMAL(20, 0)", "0000000000000000" + "0000000010000000" + "00" * 16),
        ("DECIMAL(20, 0)", "0000000000000000" + "1100000010000000" + "00" * 24),
        ("DECIMAL(20, 0)", "0000000000000000" + "1000000010000000" + "7f" * 16),  # More than 20 digits.
        ("DECIMAL(4, 0)", "0000000000000000" + "1027000000000000"),
        ("TIMESTAMP(6)", "0000000000000000" + "0000000011000000" + "00" * 8),
        ("TIMESTAMP(6)", "0000000000000000" + "40420f0010000000" + "00" * 8),  # A million nanoseconds in a milli.
        ("TIME(3)", "0000000000000000" + "005c260500000000"),  # A day has 86,400,000 milliseconds.
        ("ARRAY<INT>", "0000000000000000" + "0000000010000000"),
    ],
)
def test_bad_bytes_are_corruption(text: str, body: str) -> None:
    with pytest.raises(CorruptionError, match=r"manifest-1: "):
        decode_row(bytes.fromhex("00000001" + body), [parse_type(text)], where="manifest-1")


def test_another_arity_is_corruption() -> None:
    with pytest.raises(CorruptionError, match="expected a row of 1 fields, found 2"):
        decode_row(encode_row([1, 2], [parse_type("INT")] * 2), [parse_type("INT")])


@pytest.mark.parametrize(("text", "slot"), [("DATE", "ffffff7f00000000"), ("TIMESTAMP(3)", "ffffffffffff0000")])
def test_times_beyond_python_are_no_corruption(text: str, slot: str) -> None:
    with pytest.raises(InvalidError, match="beyond what Python can hold"):
        decode_row(bytes.fromhex("00000001" + "00" * 8 + slot), [parse_type(text)])
