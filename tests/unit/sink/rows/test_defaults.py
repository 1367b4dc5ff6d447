"""Defaults of columns that the data does not have."""

import datetime as dt
import pickle

import numpy as np
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults, check_default_expressions, checked_expression, folded

NOW = dt.datetime(2026, 3, 4, 5, 6, 7, 89_000)
NOW_MS = round(NOW.replace(tzinfo=dt.UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("INT", "7", 7),
        ("STRING", "", ""),
        ("BOOLEAN", "true", True),
        ("DATE", "2024-01-02", dt.date(2024, 1, 2)),
        ("TIME(3)", "01:02:03.004", dt.time(1, 2, 3, 4000)),
        ("BYTES", "ab", b"ab"),
        ("INT", None, None),
        ("ARRAY<INT>", None, None),
    ],
)
def test_every_row_has_it(kind: str, text: str | None, value: object) -> None:
    found = LITERALS.array(Field(0, "c", parse_type(kind), default=text), 3)
    assert found.to_pylist() == [value] * 3
    assert len(LITERALS.array(Field(0, "c", parse_type(kind), default=text), 0)) == 0


def column(kind: str, default: str | None = None) -> Field:
    return Field(0, "c", parse_type(kind), default=default)


def schema(*columns: Field, **options: str) -> TableSchema:
    return new_schema(columns, partition_keys=[], primary_keys=[], options=options, comment=None, time_ms=NOW_MS)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("TIMESTAMP(6)", "current_timestamp", NOW),
        ("TIMESTAMP(9)", "current_timestamp", NOW),
        ("TIMESTAMP(3)", "now()", NOW),
        ("TIMESTAMP(0)", "now()", NOW.replace(microsecond=0)),
        ("TIMESTAMP(1)", "localtimestamp", NOW.replace(microsecond=0)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "current_timestamp", NOW.replace(tzinfo=dt.UTC)),
        ("TIMESTAMP(2) WITH LOCAL TIME ZONE", "now()", NOW.replace(microsecond=80_000, tzinfo=dt.UTC)),
        ("TIMESTAMP(6)", "current_date", dt.datetime(2026, 3, 4)),
        ("DATE", "current_date + 1", dt.date(2026, 3, 5)),
        ("TIME(3)", "current_time", NOW.time()),
        ("TIME(0)", "localtime", NOW.time().replace(microsecond=0)),
        ("STRING", "current_date", "2026-03-04"),
        ("SMALLINT", "1 + 2", 3),
        ("DECIMAL(10, 2)", "1.5 * 3", pytest.approx(4.5)),
        ("DOUBLE", "1 + 0.5", 1.5),
        ("BYTES", "X'FF'", b"\xff"),
        ("BOOLEAN", "NOT TRUE", False),
        ("INT", "NULL::INT", None),
    ],
)
def test_expressions_in_the_types_of_columns(kind: str, text: str, value: object) -> None:
    found = ColumnDefaults({"c": text}, NOW_MS).array(column(kind), 3)
    assert found.type == LITERALS.array(column(kind), 0).type
    values = found.to_pylist()
    if kind.startswith("DECIMAL"):
        values = [float(one) for one in values]
    elif kind == "TIMESTAMP(9)":
        values = [one.to_pydatetime() if hasattr(one, "to_pydatetime") else one for one in values]
    assert values == [value] * 3


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("INT", "'x' || 'y'", "expected a value of type INT, found 'x' || 'y' of type string"),
        ("INT", "random()", "of type double"),
        ("INT", "1.5 + 1", "of type decimal"),
        ("DECIMAL(4, 1)", "1.25 + 0", "of type decimal"),
        ("DATE", "now()", "of type timestamp"),
        ("BOOLEAN", "1", "of type int32"),
        ("STRING", "X'FF'", "of type binary"),
        ("BYTES", "'x'", "of type string"),
        ("TIME(3)", "now()", "of type timestamp"),
        ("TIMESTAMP(6)", "CAST('2026-01-01' AS TIMESTAMP_NS)", r"of type timestamp\[ns\]"),
        ("ARRAY<INT>", "NULL", "takes no default"),
        ("TINYINT", "100 + 100", "out of range"),
        ("TIMESTAMP(0)", "TIMESTAMP '2026-01-01 00:00:00.5'", "default of column 'c'"),
        ("VARCHAR(3)", "uuid()", "of length 36"),
        ("INT NOT NULL", "nullif(1, 1)", "NULL"),
        ("INT", "a", "names no columns"),
    ],
)
def test_expressions_that_do_not_fit(kind: str, text: str, reason: str) -> None:
    made = schema(column(kind), **{"fields.c.default-expression": text})
    with pytest.raises(InvalidError, match=reason) as caught:
        check_default_expressions(made)
    assert str(caught.value).startswith("default of column 'c': ")


def test_a_moment_for_all_rows_and_a_value_for_each() -> None:
    defaults = ColumnDefaults({"c": "now()", "u": "uuid()"}, NOW_MS)
    again = pickle.loads(pickle.dumps(defaults))
    unique = Field(1, "u", parse_type("STRING"))
    for one in (defaults, again):
        assert set(one.array(column("TIMESTAMP(6)"), 100).to_pylist()) == {NOW}
        assert len(set(one.array(unique, 100).to_pylist())) == 100
    assert defaults.volatile([column("TIMESTAMP(6)"), unique]) == [unique]


def test_a_literal_goes_before_an_expression() -> None:
    """Another engine sets literals alone, and leaves options as they are."""
    made = schema(column("INT", "5"), **{"fields.c.default-expression": "1 + random()::INT"})
    defaults = ColumnDefaults.of(made, NOW_MS)
    assert defaults.array(made.fields[0], 2).to_pylist() == [5, 5]
    assert defaults.volatile(made.fields) == []


def test_rows_are_filled_where_they_lack_columns() -> None:
    fields = [Field(0, "a", parse_type("INT")), Field(1, "u", parse_type("STRING"))]
    defaults = ColumnDefaults({"u": "'x' || uuid()"}, NOW_MS)
    batch = pa.record_batch({"a": [1, 2]})
    filled = defaults.filled(batch, fields)
    assert filled.schema.names == ["a", "u"]
    assert len(set(filled.column("u").to_pylist())) == 2
    assert defaults.filled(filled, fields) is filled


def test_some_rows_get_their_default() -> None:
    column = Field(1, "u", parse_type("STRING"))
    defaults = ColumnDefaults({"u": "uuid()"}, NOW_MS)
    batch = pa.record_batch({"a": [1, 2, 3], "u": ["x", None, None]})
    found = defaults.replaced(batch, column, np.array([False, True, True])).column("u").to_pylist()
    assert found[0] == "x"
    assert len(set(found)) == 3
    assert defaults.replaced(batch, column, np.array([False] * 3)) is batch
    assert defaults.row([column, Field(2, "n", parse_type("INT"), default="5")]).to_pylist() == [{"u": None, "n": 5}]


def test_columns_that_are_not_there() -> None:
    with pytest.raises(InvalidError, match="the table has no column 'x'"):
        check_default_expressions(schema(column("INT"), **{"fields.x.default-expression": "1"}))
    with pytest.raises(InvalidError, match="has the literal '5' as its default as well"):
        check_default_expressions(schema(column("INT", "5"), **{"fields.c.default-expression": "1"}))


@pytest.mark.parametrize(
    ("kind", "text", "literal"),
    [
        ("INT", "1 + 2", "3"),
        ("STRING", "'a' || 'b'", "ab"),
        ("STRING", "' ' || ''", " "),
        ("BOOLEAN", "1 = 1", "true"),
        ("DATE", "DATE '2026-01-01' + 1", "2026-01-02"),
        ("TIMESTAMP(6)", "TIMESTAMP '2026-01-01' + INTERVAL 1 HOUR", "2026-01-01 01:00:00"),
        ("DECIMAL(6, 2)", "1.5 + 1", "2.50"),
        ("DOUBLE", "1 / 4", "0.25"),
        ("BYTES", "X'FF'", None),
        ("STRING", "nullif('a', 'a')", None),
        ("STRING", "uuid()", None),
        ("DATE", "current_date", None),
    ],
)
def test_constants_become_literals(kind: str, text: str, literal: str | None) -> None:
    assert folded(column(kind), text) == literal
    if literal is not None:
        expected = ColumnDefaults({"c": text}).array(column(kind), 1)
        assert LITERALS.array(column(kind, literal), 1).equals(expected)


def test_checked_once_for_each_type() -> None:
    assert checked_expression(column("STRING"), "uuid()") is checked_expression(column("STRING"), "uuid()")
