"""Expressions as defaults: what they may be made of, and what they give."""

import datetime as dt

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.predicate.default_expression import MOST_CHARACTERS, DefaultExpression, evaluated

NOW = dt.datetime(2026, 3, 4, 5, 6, 7, 89_000, dt.UTC)
NOW_MS = round(NOW.timestamp() * 1000)


def value(text: str, now_ms: int = NOW_MS) -> object:
    """The value of an expression, in Python."""
    found: object = evaluated(DefaultExpression.parse("c", text).bound(now_ms), 1, "c")[0].as_py()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("current_timestamp", NOW),
        ("CURRENT_TIMESTAMP", NOW),
        ("now()", NOW),
        ("transaction_timestamp()", NOW),
        ("current_date", NOW.date()),
        ("today()", NOW.date()),
        ("current_time", NOW.time()),
        ("localtime", NOW.time()),
        ("localtimestamp", NOW.replace(tzinfo=None)),
        ("CAST(now() AS TIMESTAMP)", NOW.replace(tzinfo=None)),
        ("now() AT TIME ZONE 'Asia/Kolkata'", dt.datetime(2026, 3, 4, 10, 36, 7, 89_000)),
        ("current_timestamp + INTERVAL 1 DAY", NOW + dt.timedelta(days=1)),
        ("date_trunc('month', current_date)", dt.datetime(2026, 3, 1)),
        ("extract(year FROM now())", 2026),
        ("strftime(now(), '%Y%m%d')", "20260304"),
    ],
)
def test_the_time_is_the_given_one_in_utc(text: str, expected: object) -> None:
    assert value(text) == expected
    expression = DefaultExpression.parse("c", text)
    assert not expression.constant
    assert not expression.volatile


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", 3),
        ("-5", -5),
        ("'it''s' || 'x'", "it'sx"),
        ("coalesce(NULL, 'a')", "a"),
        ("CASE WHEN 1 IN (1, 2) THEN 'a' ELSE 'b' END", "a"),
        ("2 BETWEEN 1 AND 3", True),
        ("DATE '2026-01-01' + 3", dt.date(2026, 1, 4)),
        ("X'FF'", b"\xff"),
        ("1 /* one */ + 2 -- three", 3),
        ("'current_timestamp'", "current_timestamp"),
    ],
)
def test_constants(text: str, expected: object) -> None:
    assert value(text) == expected
    assert DefaultExpression.parse("c", text).constant


@pytest.mark.parametrize("text", ["uuid()", "gen_random_uuid()", "random()", "replace(uuid()::VARCHAR, '-', '')"])
def test_chance_gives_every_row_another_value(text: str) -> None:
    expression = DefaultExpression.parse("c", text)
    assert expression.volatile
    assert len(set(evaluated(expression.bound(NOW_MS), 1000, "c").to_pylist())) == 1000


def test_digits_of_the_time() -> None:
    expression = DefaultExpression.parse("c", "current_timestamp")
    for digits, micros in ((0, 0), (1, 0), (2, 80_000), (3, 89_000), (9, 89_000)):
        assert evaluated(expression.bound(NOW_MS, digits), 1, "c")[0].as_py() == NOW.replace(microsecond=micros)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "a default names no columns, found a"),
        ("t.current_timestamp", "names no columns"),
        ("current_user", "names no columns"),
        ("current_catalog", "names no columns"),
        ("(SELECT 1)", "takes no subquery"),
        ("EXISTS (FROM t)", "takes no subquery"),
        ("sum(1)", r"does not call sum\(\)"),
        ("sum(1) OVER ()", "takes no window"),
        ("unnest([1, 2])", r"does not call unnest\(\)"),
        ("range(1000000000000)", r"does not call range\(\)"),
        ("repeat('x', 1000000000)", r"does not call repeat\(\)"),
        ("read_text('/etc/passwd')", r"does not call read_text\(\)"),
        ("getenv('HOME')", r"does not call getenv\(\)"),
        ("current_setting('threads')", r"does not call current_setting\(\)"),
        ("getvariable('x')", r"does not call getvariable\(\)"),
        ("query('SELECT 1')", r"does not call query\(\)"),
        ("nextval('s')", r"does not call nextval\(\)"),
        ("error('x')", r"does not call error\(\)"),
        ("memory.main.uuid()", r"does not call memory.main.uuid\(\)"),
        ("list_transform([1], x -> x)", "does not call list_transform"),
        ("'x' COLLATE nocase", "takes no collate"),
        ("COLUMNS(*)", "takes no star"),
        ("?", "takes no parameter"),
        ("#1", "takes no positional"),
        ("now(1)", r"now\(\) takes no arguments"),
        ("", "default of column 'c'"),
        ("1 +", "expected an expression"),
        ("1), (2", "expected one expression"),
        ("1) FROM read_text('/etc/passwd') WHERE (1 = 1", "takes no table function"),
        ("1) FROM t WHERE (1 = 1", "takes no base table"),
        ("1) WHERE (1 = 1", "expected one expression"),
        ("1) LIMIT (1", "limit"),
        ("1) UNION ALL SELECT (2", "set operation"),
        ("1); COPY (SELECT 1) TO 'x'; SELECT (1", "expected an expression"),
        ("1); SELECT (2", "found 2 statements"),
        ("(" * 1500 + "1" + ")" * 1500, "default of column 'c'"),
        ("- " * 1500 + "x", "default of column 'c'"),
        ("1 + " * MOST_CHARACTERS + "1", f"at most {MOST_CHARACTERS} characters"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason) as caught:
        DefaultExpression.parse("c", text)
    assert "default of column 'c'" in str(caught.value)


def test_what_fails_names_the_column() -> None:
    with pytest.raises(InvalidError, match=r"default of column 'c': .*Could not convert"):
        evaluated(DefaultExpression.parse("c", "CAST('x' AS INT)").bound(0), 1, "default of column 'c'")


def test_no_rows() -> None:
    assert evaluated("uuid()", 0, "c").type == pa.string()
