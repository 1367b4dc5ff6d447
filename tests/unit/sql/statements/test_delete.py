"""DELETE on every kind of table."""

import pytest

from lakelet import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.sql.statements.changed_tables import LAYOUTS, START, filled, rows
from tests.unit.sql_session import SqlSession


@pytest.fixture(params=LAYOUTS)
def sql(request: pytest.FixtureRequest) -> SqlSession:
    made = SqlSession()
    filled(made, request.param)
    return made


class TestEveryTable:
    @pytest.mark.parametrize(
        ("condition", "gone"),
        [
            ("id = 2", [2]),
            ("v IS NULL OR s LIKE 'f%'", [4, 5]),
            ("v > (SELECT avg(v) FROM t)", [3, 5]),
            ("p = 'a'", [1, 3, 5]),
            ("id IN (SELECT id + 1 FROM t WHERE p = 'a')", [2, 4]),
            ("TRUE", [1, 2, 3, 4, 5]),
        ],
    )
    def test_rows_that_match(self, sql: SqlSession, condition: str, gone: list[int]) -> None:
        assert sql.rows(f"DELETE FROM t WHERE {condition}")[0][1] == len(gone)
        assert rows(sql) == [row for row in START if row[0] not in gone]

    def test_all_rows(self, sql: SqlSession) -> None:
        assert sql.rows("DELETE FROM t")[0][1] == 5
        assert rows(sql) == []
        assert sql.rows("DELETE FROM t") == [(None, 0)]

    def test_twice_from_the_same_files(self, sql: SqlSession) -> None:
        sql.rows("DELETE FROM t AS x WHERE x.id = 1", "DELETE FROM t WHERE id = 3")
        assert [row[0] for row in rows(sql)] == [2, 4, 5]

    def test_by_rows_of_others(self, sql: SqlSession) -> None:
        text = (
            "DELETE FROM t USING (VALUES (1), (1), (2)) AS q(i), (VALUES ('a')) AS w(p) WHERE t.id = q.i AND t.p = w.p"
        )
        assert sql.rows(text)[0][1] == 1
        assert [row[0] for row in rows(sql)] == [2, 3, 4, 5]
        sql.fails("DELETE FROM t USING (SELECT 1 AS id) AS q WHERE id = 1", "(?i)ambiguous", "id = 1")
        sql.rows("WITH x AS (SELECT 5 AS n) DELETE FROM t USING x WHERE id = n")
        assert [row[0] for row in rows(sql)] == [2, 3, 4]

    @pytest.mark.parametrize(
        "source",
        [
            "(SELECT v FROM (VALUES (1)) AS x(i)) AS q",
            "(SELECT i FROM (VALUES (1)) AS x(i) WHERE i = t.id) AS q",
            "LATERAL (SELECT t.id AS i) AS q",
            "(VALUES (1)) AS x(i), (SELECT t.id) AS q",
            "(VALUES (1)) AS x(i) JOIN (VALUES (1)) AS y(j) ON x.i = t.id",
            "unnest([id]) AS q(i)",
        ],
    )
    def test_columns_of_the_target_are_not_in_scope_in_the_rows_of_others(self, sql: SqlSession, source: str) -> None:
        # A misspelt column of a subquery would be the target's otherwise, and match every row.
        sql.fails(f"DELETE FROM t USING {source}", "not found")
        sql.fails(f"UPDATE t SET v = 0 FROM {source}", "not found")
        assert rows(sql) == START

    def test_rows_of_others_may_name_those_to_their_left(self, sql: SqlSession) -> None:
        sql.rows("DELETE FROM t USING (VALUES (1), (2)) AS x(i), (SELECT x.i + 1 AS j) AS q WHERE t.id = q.j")
        assert [row[0] for row in rows(sql)] == [1, 4, 5]

    def test_nothing_to_do_is_no_commit(self, sql: SqlSession) -> None:
        before = sql.files()
        assert sql.rows("DELETE FROM t WHERE id > $n", params={"n": 5}) == [(None, 0)]
        assert sql.files() == before


def test_tables_that_take_no_deletes() -> None:
    sql = SqlSession()
    filled(sql, "fixed", name="default.f", **{"merge-engine": "first-row"})
    filled(sql, "fixed", name="default.i", **{"ignore-delete": "true"})
    sql.fails("DELETE FROM f", "keeps the first row of each key", kind=InvalidError)
    sql.fails("DELETE FROM i", "drops deletes", kind=InvalidError)
    sql.fails("DELETE FROM f$snapshots", "system table", kind=InvalidError)


def test_a_delete_wins_whatever_the_sequence() -> None:
    sql = SqlSession()
    filled(sql, "fixed", **{"sequence.field": "v"})
    sql.rows("DELETE FROM t WHERE id IN (1, 4)")
    assert [row[0] for row in rows(sql)] == [2, 3, 5]


def test_rows_that_older_files_lack_columns_of() -> None:
    sql = SqlSession()
    table = filled(sql, "fixed")
    table.add_column("n", "INT")
    sql.rows("INSERT INTO t VALUES (6, 'a', 1, 'six', 6)", "DELETE FROM t WHERE n IS NULL AND id < 5")
    assert [row[0] for row in rows(sql)] == [5, 6]


def test_files_are_read_only_where_rows_may_match() -> None:
    store = CountingStore(MemoryStore())
    sql = SqlSession(store)
    filled(sql, "append")
    store.reset()
    sql.rows("DELETE FROM t WHERE id = 5")
    read = {path for _, path in store.log if path.endswith(".parquet")}
    # The file with the row, and the one that it is rewritten to.
    assert len(read) == 2
    store.reset()
    sql.rows("DELETE FROM t")
    assert not [path for _, path in store.log if path.endswith(".parquet")]


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("DELETE FROM t WHERE nope = 1", "nope", "nope"),
        ("DELETE t", "expected FROM", "t"),
        ("DELETE FROM t WHERE id = 1 RETURNING", "an expression", ""),
        ("DELETE FROM t USING WHERE id = 1", "a table", "WHERE"),
        ("DELETE FROM t LIMIT 1", "the end of the statement", "1"),
    ],
)
def test_refused_at_its_place(text: str, reason: str, at: str) -> None:
    sql = SqlSession()
    filled(sql, "append")
    sql.fails(text, reason, at)
