"""Rows by the compiled loop: values in the table's types, and what it leaves to expressions."""

import base64
import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelet.format.compiled.compile_cache import has_numba
from lakelet.model.type_parser import parse_type
from lakelet.spark.cdc.scan import event_scan
from lakelet.spark.cdc.scan.row_cells import RowReader, cell_plan
from lakelet.spark.cdc.value.wire_field import Codec, WireField

UNSURE = object()


def read(codec: Codec, kind: str, values: list[str], *, scale: int = 0, style: str = "debezium") -> list[Any]:
    """The values of a column, given as JSON; UNSURE for those that are left."""
    target: Any = parse_type(kind)
    plan = cell_plan(WireField("c", codec, target, scale), target, style)
    assert plan is not None
    rows = pa.array([f'{{"other":1, "c" : {value} }}'.encode() for value in values], pa.binary())
    nothing = pa.nulls(len(values), pa.binary())
    found = RowReader((plan,), (), (), ()).read(rows, nothing, pa.array(["i"] * len(values))).to_pylist()
    return [UNSURE if one["unsure"] else one["v0"] for one in found]


def packed(number: int, size: int) -> str:
    return json.dumps(base64.b64encode(number.to_bytes(size, "big", signed=True)).decode())


@pytest.mark.parametrize(
    ("codec", "kind", "value", "expected"),
    [
        (Codec.INTEGER, "TINYINT", "127", 127),
        (Codec.INTEGER, "TINYINT", "128", UNSURE),
        (Codec.INTEGER, "BIGINT", "-0", 0),
        (Codec.INTEGER, "BIGINT", '"+7"', 7),
        (Codec.INTEGER, "BIGINT", '" 7"', UNSURE),
        (Codec.INTEGER, "BIGINT", "1.0", UNSURE),
        (Codec.INTEGER, "BIGINT", "999999999999999999", 10**18 - 1),
        (Codec.INTEGER, "BIGINT", "null", None),
        (Codec.BOOLEAN, "BOOLEAN", "true", True),
        (Codec.BOOLEAN, "BOOLEAN", '"0"', False),
        (Codec.BOOLEAN, "BOOLEAN", "2", UNSURE),
        (Codec.FLOATING, "DOUBLE", "0.14285714285714285", 1 / 7),
        (Codec.FLOATING, "DOUBLE", "1.0E7", 1e7),
        (Codec.FLOATING, "DOUBLE", "-0.0", UNSURE),
        (Codec.FLOATING, "DOUBLE", '"NaN"', UNSURE),
        (Codec.DECIMAL_TEXT, "DECIMAL(10, 2)", '"-12.500"', Decimal("-12.50")),
        (Codec.DECIMAL_TEXT, "DECIMAL(10, 2)", '"12.505"', UNSURE),
        (Codec.DECIMAL_TEXT, "DECIMAL(4, 2)", '"0099.99"', Decimal("99.99")),
        (Codec.DECIMAL_TEXT, "DECIMAL(4, 2)", '"100"', UNSURE),
        (Codec.DECIMAL_TEXT, "DECIMAL(36, 4)", f'"-{"7" * 32}.25"', Decimal(f"-{'7' * 32}.2500")),
        (Codec.DECIMAL_TEXT, "DECIMAL(38, 0)", "1" * 38, UNSURE),
        (Codec.DECIMAL_TEXT, "DECIMAL(10, 2)", '"."', UNSURE),
        (Codec.DECIMAL_TEXT, "DECIMAL(10, 2)", '"1e2"', UNSURE),
        (Codec.DAYS, "DATE", "19723", date(2024, 1, 1)),
        (Codec.DAYS, "DATE", "-719163", UNSURE),
        (Codec.DATE_TEXT, "DATE", '"2024-02-29"', date(2024, 2, 29)),
        (Codec.DATE_TEXT, "DATE", '"1900-02-29"', UNSURE),
        (Codec.DATE_TEXT, "DATE", '"0099-12-31"', date(99, 12, 31)),
        (Codec.LOCAL_TEXT, "TIMESTAMP(3)", '"1969-12-31 23:59:59.999"', datetime(1969, 12, 31, 23, 59, 59, 999000)),
        (Codec.LOCAL_TEXT, "TIMESTAMP(3)", '"2024-01-01 00:00:00.1234"', UNSURE),
        (Codec.LOCAL_TEXT, "TIMESTAMP(3)", '"2024-01-01 00:00:00.123000"', datetime(2024, 1, 1, 0, 0, 0, 123000)),
        (Codec.LOCAL_TEXT, "TIMESTAMP(3)", '"2024-01-01 24:00:00"', UNSURE),
        (
            Codec.ZONED_TEXT,
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            '"2024-01-01T05:30:00+05:30"',
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
        (Codec.EPOCH_MILLIS, "TIMESTAMP(3)", "-1", datetime(1969, 12, 31, 23, 59, 59, 999000)),
        (Codec.EPOCH_MICROS, "TIMESTAMP(3)", "1001", UNSURE),
        (Codec.TIME_MICROS, "TIME(3)", "3600000000", 3_600_000),
        (Codec.TIME_MICROS, "TIME(3)", "3600000001", UNSURE),
        (Codec.TIME_TEXT, "TIME(3)", '"23:59:59.12"', 86_399_120),
        (Codec.TEXT, "STRING", '"0123456789\\u00e9\\ud83d\\ude00\\n\\/"', "0123456789é\U0001f600\n/"),
        (Codec.TEXT, "STRING", "12.50", "12.5"),
        (Codec.TEXT, "STRING", "-3.0", "-3"),
        (Codec.TEXT, "STRING", "-0.0", UNSURE),
        (Codec.TEXT, "STRING", "0.0", "0"),
        (Codec.TEXT, "STRING", "0.00000001", UNSURE),
        (Codec.TEXT, "STRING", "1E2", UNSURE),
        (Codec.TEXT, "STRING", "true", "true"),
        (Codec.TEXT, "VARCHAR(3)", '"äöü"', "äöü"),
        (Codec.TEXT, "VARCHAR(3)", '"äöüx"', UNSURE),
        (Codec.TEXT, "STRING", '"__debezium_unavailable_value"', UNSURE),
        (Codec.TEXT, "STRING", '"[\\"__debezium_unavailable_value\\"]"', UNSURE),
        (Codec.TEXT, "STRING", '"_\\u005fdebezium_unavailable_value"', UNSURE),
        (Codec.BASE64, "BYTES", '"AQID"', b"\1\2\3"),
        (Codec.BASE64, "BYTES", '"AQI="', b"\1\2"),
        (Codec.BASE64, "BYTES", '""', b""),
        (Codec.BASE64, "BYTES", '"AQJ="', UNSURE),
        (Codec.BASE64, "BYTES", '"A"', UNSURE),
        (Codec.BASE64, "VARBINARY(2)", '"AQID"', UNSURE),
    ],
)
def test_a_value(codec: Codec, kind: str, value: str, expected: object) -> None:
    found = read(codec, kind, [value, "null"])
    assert found == [expected, None]
    assert found[0] is UNSURE or type(found[0]) is type(expected)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_packed_decimals(size: int) -> None:
    top = 1 << 8 * size - 1
    numbers = [0, 1, -1, top - 1, -top, top // 3, -(top // 3)]
    found = read(Codec.DECIMAL_BYTES, "DECIMAL(38, 2)", [packed(one, size) for one in numbers], scale=2)
    assert found == [Decimal(one).scaleb(-2) for one in numbers]
    assert read(Codec.DECIMAL_BYTES, "DECIMAL(2, 0)", [packed(99, size), packed(100, size)]) == [Decimal(99), UNSURE]


def test_keys_and_what_must_be_there() -> None:
    """A key that moved, or a value that must be there and is not, is left."""
    target: Any = parse_type("BIGINT")
    plans = [cell_plan(WireField(name, Codec.INTEGER, target), target, "debezium") for name in ("id", "n", "s")]
    reader = RowReader(tuple(one for one in plans if one is not None), (0,), (1,), (2,))
    lines = [
        ('{"id":1,"n":1,"s":1}', None, "i", False),
        ('{"id":1,"n":1,"s":1}', '{"id":1}', "u", False),
        ('{"id":1,"n":1,"s":1}', '{"n":5}', "u", False),
        ('{"id":1,"n":1,"s":1}', '{"id":2}', "u", True),
        ('{"id":1,"n":1,"s":1}', '{"id":"x"}', "u", True),
        ('{"n":1,"s":1}', None, "i", True),
        ('{"id":1,"s":1}', None, "i", True),
        ('{"id":1,"s":1}', None, "d", False),
        ('{"id":1,"n":1}', None, "i", False),
        ('{"id":1,"n":1}', None, "d", True),
        (None, None, "i", True),
    ]
    columns = [
        pa.array([None if one[at] is None else str(one[at]).encode() for one in lines], pa.binary()) for at in (0, 1)
    ]
    found = reader.read(*columns, pa.array([one[2] for one in lines]))
    assert found.field("unsure").to_pylist() == [one[3] for one in lines]
    # A part of a column, as Arrow gives it, is read from where it begins.
    part = reader.read(*(column.slice(3) for column in columns), pa.array([one[2] for one in lines[3:]]))
    assert part.to_pylist() == found.slice(3).to_pylist()


def test_spellings_that_are_left() -> None:
    text: Any = parse_type("STRING")
    for codec in (Codec.DECIMAL_BYTES, Codec.DAYS, Codec.VARIABLE_DECIMAL):
        assert cell_plan(WireField("c", codec, text), text, "debezium") is None
    assert cell_plan(WireField("c"), parse_type("ARRAY<INT>"), "debezium") is None
    assert cell_plan(WireField("c"), parse_type("FLOAT"), "maxwell") is None


def numbers(chosen: random.Random) -> list[str]:
    """Numbers of all sizes, whole and not: what is added up in machine words must not run over."""
    made = []
    for size in range(1, 41):
        for point in (0, chosen.randrange(size), chosen.randrange(size)):
            digits = "".join(chosen.choices("0123456789", k=size - 1)) + "9"
            digits = chosen.choice("123456789") + digits[1:]
            made.append(chosen.choice(["", "-"]) + (digits[:point] + "." + digits[point:] if point else digits))
    return [*made, "9" * 18, "9" * 19, "9" * 36, "9" * 38]


def test_machine_code_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [
        "1",
        '"1.5"',
        "-7",
        '"x"',
        "12345678901234567",
        '"2024-01-01"',
        "null",
        "true",
        *numbers(random.Random(19)),
    ]
    monkeypatch.setenv("LAKELET_NO_NUMBA", "1")
    kinds = (
        (Codec.INTEGER, "INT"),
        (Codec.DECIMAL_TEXT, "DECIMAL(20, 3)"),
        (Codec.DECIMAL_TEXT, "DECIMAL(38, 6)"),
        (Codec.INTEGER, "BIGINT"),
        (Codec.TEXT, "STRING"),
        (Codec.DATE_TEXT, "DATE"),
    )
    expected = [read(codec, kind, values) for codec, kind in kinds]
    monkeypatch.delenv("LAKELET_NO_NUMBA")
    if not has_numba():
        pytest.skip("no numba")
    monkeypatch.setattr(event_scan, "INTERPRETED_BYTES", 0)
    assert [read(codec, kind, values) for codec, kind in kinds] == expected
