import contextlib
import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.tree import FALSE, TRUE, And, Comparison, InList, IsNull, Like, Opaque, Or, Predicate
from lakelet.predicate.where import parse_where

COLUMNS = {
    "i": "INT",
    "b": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "dec": "DECIMAL(10, 2)",
    "s": "STRING",
    "ok": "BOOLEAN",
    "raw": "BYTES",
    "day": "DATE",
    "at": "TIME(3)",
    "ts3": "TIMESTAMP(3)",
    "ts6": "TIMESTAMP(6)",
    "ts9": "TIMESTAMP(9)",
    "utc": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "utc9": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
    "row": "ROW<x INT, y ROW<z INT>>",
    "list": "ARRAY<INT>",
    "Mixed": "INT",
    "twin": "INT",
    "TWIN": "INT",
    "odd name": "INT",
    'quo"ted': "INT",
    "pairs": "MAP<STRING, INT>",
}
FIELDS = [Field(number, name, parse_type(text)) for number, (name, text) in enumerate(COLUMNS.items())]


def where(text: str) -> Predicate:
    return parse_where(text, FIELDS)


def comparison(text: str) -> tuple[str, str, object]:
    found = where(text)
    assert isinstance(found, Comparison), found
    return found.column, found.operator, found.literal.as_py()


@pytest.mark.parametrize(
    ("text", "operator", "value"),
    [
        ("i = 1", "=", 1),
        ("i != 1", "<>", 1),
        ("1 < i", ">", 1),
        ("(i) >= (-5)", ">=", -5),
        ("i > 1.5", ">=", 2),
        ("i >= 1.5", ">=", 2),
        ("i < 1.5", "<=", 1),
        ("i < -1.5", "<=", -2),
        ("i = '7'", "=", 7),
        ("i = CAST('7' AS BIGINT)", "=", 7),
        ("i = 2 * 3 + 1", "=", 7),
        ("i = 2e0", "=", 2),
    ],
)
def test_integers(text: str, operator: str, value: int) -> None:
    assert comparison(text) == ("i", operator, value)


@pytest.mark.parametrize(
    "text", ["i = 1.5", "i = 3000000000", "i > 3000000000", "i < -1e10", "i = NULL", "i > 'NaN'::DOUBLE"]
)
def test_what_an_integer_can_never_be(text: str) -> None:
    assert where(text) == FALSE


@pytest.mark.parametrize(
    "text", ["i <> 1.5", "i < 3000000000", "NOT i = 1.5", "i > -99999999999999999999", "i < 'inf'::DOUBLE"]
)
def test_what_every_integer_is_but_null(text: str) -> None:
    assert where(text) == IsNull("i", negated=True)


def test_decimals_of_another_scale() -> None:
    assert comparison("dec = 1.5") == ("dec", "=", Decimal("1.50"))
    assert comparison("dec > 1.005") == ("dec", ">=", Decimal("1.01"))
    assert where("dec = 1.005") == FALSE
    assert where("dec < 100000000") == IsNull("dec", negated=True)


def test_floats_compare_in_the_type_duckdb_compares_in() -> None:
    assert comparison("f = 0.1") == ("f", "=", pa.scalar(0.1, pa.float32()).as_py())
    assert where("f = 1e-1") == FALSE
    assert comparison("d = 0.1") == ("d", "=", 0.1)
    assert isinstance(where("b = 9007199254740993e0"), Opaque)
    assert str(comparison("d = 'nan'")[2]) == "nan"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("day = '2024-01-01'", dt.date(2024, 1, 1)),
        ("day = DATE '2024-01-01'", dt.date(2024, 1, 1)),
        ("day = DATE '2023-12-31' + 1", dt.date(2024, 1, 1)),
        ("at = '10:00:00.5'", dt.time(10, 0, 0, 500_000)),
        ("ts6 = TIMESTAMP '2024-01-01 10:00:00'", dt.datetime(2024, 1, 1, 10)),
        ("ts3 = DATE '2024-01-01'", dt.datetime(2024, 1, 1)),
        ("utc = TIMESTAMPTZ '2024-01-01 00:00:00+02'", dt.datetime(2023, 12, 31, 22, tzinfo=dt.UTC)),
        ("utc = '2024-01-01'", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("utc = TIMESTAMP '2024-01-01'", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("raw = X'00ff'", b"\x00\xff"),
        ("raw = BLOB '\\xFF'", b"\xff"),
        ("s = 'it''s'", "it's"),
        ("ok = 'true'", True),
        ("ok", True),
    ],
)
def test_typed_literals(text: str, value: object) -> None:
    assert comparison(text)[1:] == ("=", value)


@pytest.mark.parametrize("text", ["'2024-01-01 00:00:00.123456789'", "TIMESTAMP '2024-01-01 00:00:00.123456789'"])
@pytest.mark.parametrize("column", ["ts9", "utc9"])
def test_nanoseconds_are_kept(column: str, text: str) -> None:
    found = where(f"{column} = {text}")
    assert isinstance(found, Comparison)
    assert found.literal.value == 1_704_067_200_123_456_789


def test_instants_between_two_steps_of_the_column() -> None:
    assert comparison("day > TIMESTAMP '2024-01-01 10:00:00'") == ("day", ">=", dt.date(2024, 1, 2))
    assert comparison("at < TIME '10:00:00.0005'") == ("at", "<=", dt.time(10))
    assert where("ts3 = TIMESTAMP '2024-01-01 00:00:00.0005'") == FALSE


def test_lists() -> None:
    found = where("i IN (1, 2.0, 2.5, NULL)")
    assert isinstance(found, InList)
    assert (found.values.to_pylist(), found.values.type, found.negated) == ([1, 2], pa.int32(), False)
    assert where("i NOT IN (1, NULL)") == FALSE
    assert where("i IN (NULL)") == FALSE
    assert where("i NOT IN (1.5)") == IsNull("i", negated=True)
    days = where("day IN ('2024-01-01', '2024-01-02')")
    assert isinstance(days, InList)
    assert days.values.to_pylist() == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    assert isinstance(where("s IN ('2', 1)"), Opaque)
    assert isinstance(where("i IN (1, b)"), Opaque)


def test_ranges_and_null_safe_comparisons() -> None:
    one, two = pa.scalar(1, pa.int32()), pa.scalar(2, pa.int32())
    assert where("i BETWEEN 1 AND 2.5") == And((Comparison("i", ">=", one), Comparison("i", "<=", two)))
    assert where("i NOT BETWEEN 1 AND 2") == Or((Comparison("i", "<", one), Comparison("i", ">", two)))
    assert where("i IS DISTINCT FROM 1") == Or((Comparison("i", "<>", one), IsNull("i")))
    assert where("i IS NOT DISTINCT FROM 1") == And((Comparison("i", "=", one), IsNull("i", negated=True)))
    assert where("i IS NOT DISTINCT FROM NULL") == IsNull("i")
    assert where("list IS NOT NULL") == IsNull("list", negated=True)


def test_booleans() -> None:
    yes = pa.scalar(True)
    assert where("NOT ok") == Comparison("ok", "<>", yes)
    assert where("ok IS NOT TRUE") == Or((Comparison("ok", "<>", yes), IsNull("ok")))
    assert where("1 = 1 AND TRUE") == TRUE
    assert where("1 > 2 OR NULL") == FALSE


def test_like() -> None:
    assert where("s LIKE 'a%'") == Like("s", "a%")
    assert where("s NOT LIKE 'a#%' ESCAPE '#'") == Like("s", "a#%", "#", negated=True)
    assert where("NOT s LIKE '_'") == Like("s", "_", negated=True)
    assert where("s LIKE NULL") == FALSE
    assert where("s ILIKE 'A%'") == Opaque("\"s\" ILIKE 'A%'", ("s",))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("i + 1 = 2", ("i",)),
        ("i = B", ("i", "b")),
        ("length(S) > 2", ("s",)),
        ("row.x = 1", ("row",)),
        ("row.y.z = 1", ("row",)),
        ("CASE WHEN ok THEN i > 1 END", ("ok", "i")),
        ("len(list_filter(list, x -> x > 1)) > 0", ("list",)),
        ("s = 1", ("s",)),
        ('"odd name" % 2 = 0', ("odd name",)),
        ('"quo""ted" + 1 > 1', ('quo"ted',)),
        ("pairs['k'] = 1", ("pairs",)),
        ("random() < 0.5", ()),
        ("s SIMILAR TO 'a.*'", ("s",)),
    ],
)
def test_everything_else_is_left_to_duckdb(text: str, columns: tuple[str, ...]) -> None:
    found = where(text)
    assert isinstance(found, Opaque)
    assert found.columns == columns


def test_column_names() -> None:
    assert comparison("MIXED = 1")[0] == "Mixed"
    assert comparison("twin = 1")[0] == "twin"
    assert comparison("TWIN = 1")[0] == "TWIN"
    assert comparison('"odd name" = 1')[0] == "odd name"
    assert comparison("`odd name` = 1")[0] == "odd name"
    with pytest.raises(InvalidError, match=r"'Twin' is ambiguous: it may be 'twin', 'TWIN'"):
        where("Twin = 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("i = 1 AND amont > 2", r"line 1, column 11: unknown column 'amont'"),
        ("i = 1 AND\n dday > 2", r"line 2, column 2: unknown column 'dday'; did you mean 'day'\?"),
        ("length(ss) > 1", "unknown column 'ss'; did you mean 's'"),
        ("i = ", "line 1, column 3: an operand is missing"),
        ("i = 1 AND AND", "column 13"),
        ("(i = 1", "line 1"),
        ("i = 'abc'", r"line 1, column 5: against column 'i' INT: .*'abc'"),
        ("i = '3000000000'", "3000000000"),
        ("day = '2024-13-01'", r"column 7: against column 'day' DATE"),
        ("day IN ('2024-01-01', 'soon')", r"column 23: against column 'day' DATE: .*soon"),
        ("i = DATE 'x'", "column 10"),
        ("s LIKE 'a#' ESCAPE '#'", "cannot end with its escape"),
        ("s LIKE 'a' ESCAPE 'ab'", "one character"),
        ("i IN (SELECT 1)", "a subquery cannot be used"),
        ("EXISTS (SELECT 1)", "a subquery cannot be used"),
        ("SELECT 1", "a subquery cannot be used"),
        ("sum(i) > 1", "an aggregate function cannot be used"),
        ("product(i) > 1", "aggregates"),
        ("row_number() OVER () = 1", "a window function cannot be used"),
        ("i = $1", "a parameter cannot be used"),
        ("i = 1; DROP TABLE t", "one condition"),
        ("i = 1;", "one condition"),
        ("nonsense(i)", "nonsense"),
        ("day = 1", "DATE"),
        ("s IN ('a', 1)", "Could not convert string 'a'"),
        ("twin = TWIN", "differ only in case"),
        ("s > X'61'", "VARCHAR and type BLOB"),
        ("other.i = 1", "unknown column 'other'"),
        ("i AS x", "syntax error"),
        ("*", "STAR"),
        ("'unclosed", "where"),
        ("read_text('/etc/passwd') IS NULL", "where"),
    ],
)
def test_bad_conditions_are_told_where_and_why(text: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        where(text)


@pytest.mark.parametrize(
    "text",
    [
        "f BETWEEN 16777217 AND 1e300",
        "f IN (16777217, 1e300)",
        "b IN (9007199254740993, 1e0)",
        "b BETWEEN 1e0 AND 9007199254740993",
    ],
)
def test_literals_of_several_kinds_beside_floats_are_left_to_duckdb(text: str) -> None:
    fields = [Field(number, name, parse_type(COLUMNS[name])) for number, name in enumerate(("f", "b"))]
    assert isinstance(parse_where(text, fields), Opaque)


@pytest.mark.parametrize(
    ("opened", "inner", "closed"),
    [
        ("(", "i = 1", ")"),
        ("NOT ", "i = 1", ""),
        ("abs(", "i", ")"),
        ("(i = 1 OR (i = 2 AND ", "i = 3", "))"),
        ("CASE WHEN ", "true", " THEN true END"),
        ("- ", "i", ""),
    ],
)
def test_a_condition_is_read_or_nested_too_deeply(opened: str, inner: str, closed: str) -> None:
    for depth in (10, 500, 5000):
        text = opened * depth + inner + closed * depth
        condition = text if inner != "i" else f"{text} = 1"
        with contextlib.nullcontext() if depth == 10 else contextlib.suppress(InvalidError):
            parse_where(condition, FIELDS)
    with pytest.raises(InvalidError, match=r"the condition is nested too deeply: '\(\(\("):
        parse_where("(" * 5000 + "i = 1" + ")" * 5000, FIELDS)
