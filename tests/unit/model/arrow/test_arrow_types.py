"""Logical types as Arrow's and back."""

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema, from_arrow, to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, Row


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("BIGINT", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
        ("STRING", pa.string()),
        ("BYTES", pa.binary()),
        ("DATE", pa.date32()),
        ("TIME(3)", pa.time32("ms")),
        ("TIMESTAMP(3)", pa.timestamp("ms")),
        ("TIMESTAMP(6)", pa.timestamp("us")),
        ("TIMESTAMP(9)", pa.timestamp("ns")),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", "UTC")),
        ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32()))),
        ("ARRAY<INT NOT NULL>", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        ("MAP<STRING NOT NULL, BIGINT>", pa.map_(pa.string(), pa.int64())),
    ],
)
def test_both_ways(text: str, arrow: pa.DataType) -> None:
    assert to_arrow(parse_type(text)) == arrow
    assert str(from_arrow(arrow)) == text


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("CHAR(3)", pa.string()),
        ("VARCHAR(3)", pa.string()),
        ("BINARY(3)", pa.binary()),
        ("TIME(0)", pa.time32("ms")),
        ("TIME(9)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(7) WITH LOCAL TIME ZONE", pa.timestamp("ns", "UTC")),
        ("MULTISET<STRING>", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
    ],
)
def test_types_that_share_an_arrow_type(text: str, arrow: pa.DataType) -> None:
    assert to_arrow(parse_type(text)) == arrow


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.uint8(), "SMALLINT"),
        (pa.uint16(), "INT"),
        (pa.uint32(), "BIGINT"),
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.float16(), "FLOAT"),
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.large_binary(), "BYTES"),
        (pa.binary(16), "BINARY(16)"),
        (pa.date64(), "DATE"),
        (pa.time64("us"), "TIME(6)"),
        (pa.time32("s"), "TIME(0)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("us", "Europe/Berlin"), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.large_list(pa.int8()), "ARRAY<TINYINT>"),
        (pa.list_(pa.int8(), 3), "ARRAY<TINYINT>"),
        (pa.decimal256(30, 2), "DECIMAL(30, 2)"),
        (pa.struct([pa.field("a", pa.int8(), nullable=False)]), "ROW<`a` TINYINT NOT NULL>"),
    ],
)
def test_what_people_hand_over(arrow: pa.DataType, text: str) -> None:
    assert str(from_arrow(arrow)) == text


@pytest.mark.parametrize(
    "arrow", [pa.null(), pa.duration("s"), pa.decimal256(40, 0), pa.decimal128(5, -2), pa.month_day_nano_interval()]
)
def test_what_has_no_counterpart(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidError, match="column 'x'"):
        from_arrow(arrow, where="column 'x'")


def test_the_place_inside_a_nested_type_is_named() -> None:
    arrow = pa.struct([pa.field("a", pa.list_(pa.duration("s")))])
    with pytest.raises(InvalidError, match=r"x\.a\.element"):
        from_arrow(arrow, where="x")


def test_a_schema_has_nullability_and_comments() -> None:
    row = parse_type("ROW<a INT NOT NULL>")
    assert isinstance(row, Row)
    found = arrow_schema([Field(0, "id", parse_type("BIGINT NOT NULL"), "the key"), Field(1, "r", row)])
    assert found.field("id").nullable is False
    assert found.field("id").metadata == {b"comment": b"the key"}
    assert found.field("r").type == pa.struct([pa.field("a", pa.int32(), nullable=False)])
    assert found.field("r").metadata is None
