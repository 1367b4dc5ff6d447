"""Integers of 128 bits arrive as they are, or are refused: never as another number."""

from decimal import Decimal

import pytest

from lakelet import InvalidError
from tests.unit.sql_session import SqlSession

UNSIGNED, SIGNED = 2**128 - 1, 2**127 - 1
REFUSED = f"the UHUGEINT {UNSIGNED} is greater than any HUGEINT"


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE TABLE t (id INT, d DECIMAL(38, 0), l ARRAY<DECIMAL(38, 0)>)", "INSERT INTO t VALUES (1, 5, [6])")
    return made


@pytest.mark.parametrize(
    "value",
    [
        f"{UNSIGNED}::UHUGEINT",
        f"[1, {UNSIGNED}::UHUGEINT]",
        f"[{UNSIGNED}::UHUGEINT]::UHUGEINT[1]",
        f"{{'UHUGEINT': 1, 'x y': [{UNSIGNED}::UHUGEINT]}}",
        f"MAP {{'k': {UNSIGNED}::UHUGEINT}}",
        f"MAP {{{UNSIGNED}::UHUGEINT: 1}}",
    ],
)
def test_what_arrow_would_show_as_another_number_is_refused(sql: SqlSession, value: str) -> None:
    for text in (
        f"SELECT 1 AS a, {value} AS a",
        f'SELECT {value} AS "b c" FROM t',
        f"CREATE TABLE u AS SELECT {value} AS x",
        f"UPDATE t SET id = 2 RETURNING {value}",
    ):
        sql.fails(text, REFUSED, kind=InvalidError)
    sql.rows(f"CREATE TEMP TABLE w AS SELECT {value} AS x")
    with pytest.raises(InvalidError, match=REFUSED):
        sql.rows("FROM w")


def test_values_that_fit_arrive_as_they_are(sql: SqlSession) -> None:
    nested = "[7::UHUGEINT, NULL], {'UHUGEINT': 8::UHUGEINT, 'b': 'x'}, MAP {'k': 9::UHUGEINT}"
    text = f"SELECT {SIGNED}::UHUGEINT, {nested}, 'end'"
    assert sql.rows(text) == [
        (Decimal(SIGNED), [Decimal(7), None], {"UHUGEINT": Decimal(8), "b": "x"}, [("k", Decimal(9))], "end")
    ]
    assert sql.rows("SELECT i::UHUGEINT AS i FROM range(3) AS r(i) ORDER BY i DESC") == [(2,), (1,), (0,)]
    assert sql.rows(f"SELECT ({UNSIGNED}::UHUGEINT)::VARCHAR") == [(str(UNSIGNED),)]
    sql.rows("INSERT INTO t SELECT 2, 10::UHUGEINT, [11::UHUGEINT]")
    assert sql.rows("SELECT * FROM t WHERE id = 2") == [(2, Decimal(10), [Decimal(11)])]


@pytest.mark.parametrize(
    "number", [f"{UNSIGNED}::UHUGEINT", f"{SIGNED}::HUGEINT", f"(-{SIGNED} - 1)::HUGEINT", f"{10**38}::UHUGEINT"]
)
def test_a_table_takes_no_decimal_of_39_digits(sql: SqlSession, number: str) -> None:
    for text in (
        f"INSERT INTO t (d) VALUES ({number})",
        f"INSERT INTO t (d) SELECT {number}",
        f"INSERT INTO t (l) SELECT [{number}]",
        f"UPDATE t SET d = {number}",
        f"UPDATE t SET l = [{number}]",
        f"MERGE INTO t USING (SELECT {number} AS n) AS s ON t.id = 1 WHEN MATCHED THEN UPDATE SET d = s.n",
        f"CREATE TABLE u AS SELECT {number} AS x",
        f"CREATE TABLE u AS SELECT [{number}] AS x",
    ):
        sql.fails(text, "UHUGEINT|38 digits", kind=InvalidError)
    assert sql.rows("SELECT * FROM t") == [(1, Decimal(5), [Decimal(6)])]
