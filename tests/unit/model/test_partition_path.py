import datetime as dt
import math
from decimal import Decimal
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.model.partition_path import escape, parse_partition_value, partition_path, partition_text
from lakelet.model.type_parser import parse_type
from lakelet.model.types import BINARIES, Atomic
from tests.golden.binary_rows import golden_rows


def path(text: str, value: object, *, legacy: bool = True) -> str:
    return partition_path(["k"], [parse_type(text)], [value], legacy=legacy)


def test_folders_are_those_of_java() -> None:
    checked = 0
    for golden in golden_rows():
        plain = partition_path(golden.names, golden.types, golden.values, legacy=False)
        assert plain == golden.plain_path
        if golden.path is not None:
            assert partition_path(golden.names, golden.types, golden.values) == golden.path
            checked += 1
    assert checked > 250


def test_texts_are_parsed_back() -> None:
    for golden in golden_rows():
        for data_type, value in zip(golden.types, golden.values, strict=True):
            assert isinstance(data_type, Atomic)
            if value is None or data_type.kind in BINARIES or value == "__DEFAULT_PARTITION__":
                continue
            for legacy in (True, False):
                found = parse_partition_value(partition_text(data_type, value, legacy=legacy), data_type)
                assert repr(found) == repr(value)


def test_no_partition_keys_no_folder() -> None:
    assert partition_path([], [], []) == ""


@pytest.mark.parametrize("value", [None, "", " ", "\t\n", "\u3000", "\x1c"])
def test_null_and_blank_text_share_a_folder(value: str | None) -> None:
    assert path("STRING", value) == "k=__DEFAULT_PARTITION__"
    assert partition_path(["k"], [parse_type("STRING")], [value], default_name="none?") == "k=none%3F"


@pytest.mark.parametrize("value", ["\xa0", "\u2007", "\u202f", "\x85"])
def test_spaces_that_java_takes_for_text_are_text(value: str) -> None:
    assert path("STRING", value) == f"k={value}"


def test_path_tricks_stay_one_folder() -> None:
    assert path("STRING", "../../etc") == "k=..%2F..%2Fetc"
    assert path("STRING", "a\x00b\\c") == "k=a%00b%5Cc"


@given(st.text())
def test_escapes_are_undone(text: str) -> None:
    escaped = escape(text)
    assert not set(escaped) & set("/=:?\\*\x00\n")
    assert unquote(escaped) == text


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("DOUBLE", -0.0, "-0.0"),
        ("DOUBLE", 2e23, "2.0E23"),
        ("DOUBLE", -1234567.125, "-1234567.125"),
        ("DOUBLE", 0.00123, "0.00123"),
        ("DOUBLE", 1, "1.0"),
        ("FLOAT", 1.1754943508222875e-38, "1.1754944E-38"),
        ("DECIMAL(38, 3)", Decimal(10**34), f"1{'0' * 34}.000"),
        ("DECIMAL(5, 2)", Decimal("1E+1"), "10.00"),
        (
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "2024-01-01T00:00",
        ),
    ],
)
def test_texts(text: str, value: object, expected: str) -> None:
    assert partition_text(parse_type(text), value) == expected


@given(st.floats(allow_nan=False))
def test_doubles_come_back(value: float) -> None:
    text = partition_text(parse_type("DOUBLE"), value)
    assert repr(parse_partition_value(text, parse_type("DOUBLE"))) == repr(value)


@given(st.floats(width=32, allow_nan=False))
def test_floats_come_back(value: float) -> None:
    text = partition_text(parse_type("FLOAT"), value)
    assert repr(parse_partition_value(text, parse_type("FLOAT"))) == repr(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("INT", "1"),
        ("INT", True),
        ("STRING", 1),
        ("DATE", 19723),
        ("BYTES", b"a"),
        ("ARRAY<INT>", [1]),
        ("DECIMAL(5, 2)", Decimal("0.001")),
        ("BOOLEAN", 1),
    ],
)
def test_values_of_another_type_are_refused(text: str, value: object) -> None:
    with pytest.raises(InvalidError):
        partition_text(parse_type(text), value)


@pytest.mark.parametrize(
    ("type_text", "text", "value"),
    [
        ("STRING", "", ""),
        ("STRING", "null", "null"),
        ("STRING", "__DEFAULT_PARTITION__", None),
        ("INT", "__DEFAULT_PARTITION__", None),
        ("INT", "+5", 5),
        ("TINYINT", "-128", -128),
        ("BOOLEAN", "TRUE", True),
        ("BOOLEAN", "0", False),
        ("DATE", "2024-01-01", dt.date(2024, 1, 1)),
        ("DATE", "2024-1-1", dt.date(2024, 1, 1)),
        ("DATE", "19723", dt.date(2024, 1, 1)),
        ("TIME(3)", "10:11", dt.time(10, 11)),
        ("TIME(3)", "36672500", dt.time(10, 11, 12, 500000)),
        ("DECIMAL(5, 2)", "1.5", Decimal("1.50")),
        ("DECIMAL(5, 2)", "1E2", Decimal("100.00")),
        ("DOUBLE", "-Infinity", -math.inf),
        ("FLOAT", "0.1", 0.10000000149011612),
        ("BYTES", "ab", b"ab"),
        ("TIMESTAMP(3)", "2024-01-01", dt.datetime(2024, 1, 1)),
        ("TIMESTAMP(3)", "2024-01-01 10:11:12.5", dt.datetime(2024, 1, 1, 10, 11, 12, 500000)),
        ("TIMESTAMP(3)", "2024-01-01T10:11", dt.datetime(2024, 1, 1, 10, 11)),
        ("TIMESTAMP(3)", "2024-01-01 10:11:12.500000", dt.datetime(2024, 1, 1, 10, 11, 12, 500000)),
        ("TIMESTAMP(9)", "1970-01-01 00:00:01.000000001", 1_000_000_001),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "2024-01-01T10:00:00Z", dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "2024-01-01 10:00:00+02:00", dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", "1970-01-01 00:00:00-01:00", 3_600_000_000_000),
    ],
)
def test_texts_people_write(type_text: str, text: str, value: object) -> None:
    found = parse_partition_value(text, parse_type(type_text))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_text", "text"),
    [
        ("INT", ""),
        ("INT", " 5"),
        ("INT", "5.0"),
        ("INT", "1_000"),
        ("INT", "２"),
        ("INT", "2147483648"),
        ("TINYINT", "128"),
        ("BOOLEAN", "x"),
        ("DOUBLE", "x"),
        ("DOUBLE", "1e999"),
        ("FLOAT", "1e40"),
        ("DECIMAL(5, 2)", "1.555"),
        ("DECIMAL(5, 2)", "1000"),
        ("DECIMAL(5, 2)", "NaN"),
        ("DECIMAL(5, 2)", "1E999"),
        ("DATE", "x"),
        ("DATE", "2024-02-30"),
        ("DATE", "2024-01-01 10:00:00"),
        ("DATE", "99999999999"),
        ("TIME(3)", "25:00"),
        ("TIME(3)", "86400000"),
        ("TIME(0)", "10:11:12.5"),
        ("TIMESTAMP(3)", "x"),
        ("TIMESTAMP(3)", "2024-01-01 10:11:12.1234"),
        ("TIMESTAMP(3)", "2024-01-01T10:11:12Z"),
        ("TIMESTAMP(3)", "2024-13-01"),
        ("VARCHAR(3)", "abcd"),
        ("VARBINARY(3)", "éé"),
        ("ARRAY<INT>", "1"),
    ],
)
def test_bad_texts_are_refused(type_text: str, text: str) -> None:
    with pytest.raises(InvalidError):
        parse_partition_value(text, parse_type(type_text))
