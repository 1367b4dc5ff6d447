"""What the words of a query tell before it is parsed."""

import pytest

from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)", "CREATE TEMP TABLE u AS SELECT 1 AS a")
    return made


@pytest.mark.parametrize("target", ["t", "u"])
@pytest.mark.parametrize("kind", ["", "MATERIALIZED ", "NOT MATERIALIZED "])
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {} VALUES (2) RETURNING a",
        "UPDATE {} SET a = 2 RETURNING a",
        "DELETE FROM {} RETURNING a",
        "MERGE INTO {} USING (VALUES (1)) AS s(a) USING (a) WHEN MATCHED THEN DELETE",
    ],
)
def test_a_query_changes_no_table(sql: SqlSession, target: str, kind: str, change: str) -> None:
    changed = f"WITH x AS {kind}({change.format(target)})"
    for text in (
        f"{changed} SELECT * FROM x",
        f"EXPLAIN {changed} SELECT 1",
        f"{changed} INSERT INTO t SELECT a FROM x",
    ):
        sql.fails(text, "in WITH: a query changes no table", change.format(target))
    assert sql.rows(f"SELECT * FROM {target}") == [(1,)]


def test_names_may_be_called_like_changes(sql: SqlSession) -> None:
    assert sql.rows('WITH "delete" AS (SELECT a AS "update" FROM t) SELECT "update" AS "insert" FROM "delete"') == [
        (1,)
    ]


def test_names_of_signs_need_no_quotes(sql: SqlSession) -> None:
    sql.rows(
        "CREATE TABLE 👤 (🔑 INT, ✍ STRING)",
        "INSERT INTO 👤 (✍, 🔑) VALUES ('x', 1)",
        "UPDATE 👤 SET ✍ = 'y' WHERE 🔑 = 1",
    )
    assert sql.rows("SELECT 👤.✍ FROM 👤 WHERE 🔑 = 1") == [("y",)]
