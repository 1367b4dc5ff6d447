"""MERGE INTO on every kind of table."""

import pytest

from lakelet import InvalidError
from tests.unit.sql.statements.changed_tables import LAYOUTS, START, filled, rows
from tests.unit.sql_session import SqlSession

SOURCE = "(VALUES (1, 'a', 100, 'x'), (4, 'b', 400, 'y'), (9, 'a', 900, 'z')) AS q(id, p, v, s)"


@pytest.fixture(params=LAYOUTS)
def sql(request: pytest.FixtureRequest) -> SqlSession:
    made = SqlSession()
    filled(made, request.param)
    return made


@pytest.fixture
def plain() -> SqlSession:
    made = SqlSession()
    filled(made, "append")
    return made


@pytest.fixture
def keyed() -> SqlSession:
    made = SqlSession()
    filled(made, "fixed")
    return made


class TestEveryTable:
    def test_an_upsert(self, sql: SqlSession) -> None:
        text = (
            f"MERGE INTO t USING {SOURCE} ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = q.v, s = t.s || q.s "
            "WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.p, q.v, q.s)"
        )
        assert sql.rows(text)[0][1] == 3
        assert rows(sql) == [
            (1, "a", 100, "onex"),
            START[1],
            START[2],
            (4, "b", 400, "foury"),
            START[4],
            (9, "a", 900, "z"),
        ]

    def test_all_columns_by_name(self, sql: SqlSession) -> None:
        sql.rows(
            f"MERGE INTO t AS x USING (SELECT s, id, v, p, 1 AS more FROM {SOURCE}) AS y ON x.id = y.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY TARGET THEN INSERT *"
        )
        assert rows(sql)[0] == (1, "a", 100, "x")
        assert rows(sql)[-1] == (9, "a", 900, "z")

    def test_without_a_word_more_all_columns_by_position(self, sql: SqlSession) -> None:
        sql.rows(
            "MERGE INTO t USING (VALUES (1, 'a', 100, 'x'), (9, 'b', 900, 'z')) AS q(id, p, s, v) ON t.id = q.id "
            "WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
        )
        assert rows(sql)[0] == (1, "a", 100, "x")
        assert rows(sql)[-1] == (9, "b", 900, "z")
        assert sql.rows(
            "MERGE INTO t USING (VALUES (9, 'b', 901, 'q')) AS q ON t.id = q.col0 WHEN MATCHED THEN UPDATE RETURNING id, v"
        ) == [(9, 901)]
        few = "MERGE INTO t USING (VALUES (1, 'a'), (8, 'b')) AS q(id, p) ON t.id = q.id WHEN"
        sql.fails(f"{few} MATCHED THEN UPDATE", "expected 4 columns of the source, found 2", kind=InvalidError)
        sql.fails(f"{few} NOT MATCHED THEN INSERT", "expected 4 columns of the source, found 2", kind=InvalidError)
        sql.fails(f"{few} NOT MATCHED BY SOURCE THEN UPDATE", "expected SET", "", kind=InvalidError)

    def test_the_first_clause_whose_condition_holds(self, sql: SqlSession) -> None:
        sql.rows(
            f"MERGE INTO t USING {SOURCE} ON t.id = q.id "
            "WHEN MATCHED AND t.v IS NULL THEN DELETE "
            "WHEN MATCHED AND CASE WHEN q.v > 1 THEN false ELSE true END THEN UPDATE SET v = -1 "
            "WHEN MATCHED THEN DO NOTHING "
            "WHEN NOT MATCHED AND q.v > ? THEN INSERT (id, p) VALUES (q.id, q.p) "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET s = 'alone', v = DEFAULT",
            params=[5],
        )
        assert rows(sql) == [START[0], (3, "a", None, "alone"), START[4], (9, "a", None, None)]

    def test_by_source_only(self, sql: SqlSession) -> None:
        assert sql.rows(f"MERGE INTO t USING {SOURCE} ON t.id = q.id WHEN NOT MATCHED BY SOURCE THEN DELETE")[0][1] == 3
        assert [row[0] for row in rows(sql)] == [1, 4]

    def test_nothing_to_do_is_no_commit(self, sql: SqlSession) -> None:
        before = sql.files()
        text = f"MERGE INTO t USING {SOURCE} ON t.id = q.id AND false WHEN MATCHED THEN DELETE"
        assert sql.rows(text) == [(None, 0)]
        assert sql.files() == before

    def test_a_row_is_changed_once(self, sql: SqlSession) -> None:
        text = "MERGE INTO t USING (VALUES (1, 5), (1, 6)) AS q(i, x) ON t.id = q.i WHEN MATCHED THEN "
        for action in ("UPDATE SET v = q.x", "DELETE"):
            sql.fails(text + action, "MERGE: several rows of the source match one row of default.t", kind=InvalidError)
        # Where the clause takes one of the two only, there is no doubt.
        sql.rows(text.replace("THEN", "AND q.x = 6 THEN") + "UPDATE SET v = q.x")
        assert rows(sql)[0][2] == 6

    def test_expressions_count_for_their_rows_only(self, sql: SqlSession) -> None:
        sql.rows(
            f"MERGE INTO t USING {SOURCE} ON t.id = q.id WHEN MATCHED AND q.id = 1 THEN UPDATE SET v = q.v "
            "WHEN MATCHED AND q.v = 0 THEN UPDATE SET v = CAST(q.s AS INT)"
        )
        assert rows(sql)[0][2] == 100

    def test_the_table_itself_and_common_tables(self, sql: SqlSession) -> None:
        sql.rows(
            "WITH x AS (SELECT id, v * 2 AS twice FROM t WHERE v > 10) "
            "MERGE INTO t USING x ON t.id = x.id WHEN MATCHED THEN UPDATE SET v = twice + (SELECT max(v) FROM t)"
        )
        assert [row[2] for row in rows(sql)] == [10, 90, 110, None, 150]


class TestPrimaryKeys:
    def test_the_key_stays(self, keyed: SqlSession) -> None:
        text = f"MERGE INTO t USING {SOURCE} ON t.id = q.id WHEN MATCHED THEN UPDATE SET id = 3"
        keyed.fails(text, "'id' is part of the primary key", "id = 3")

    def test_a_key_is_written_once(self, keyed: SqlSession) -> None:
        keyed.fails(
            "MERGE INTO t USING (VALUES (7), (7)) AS q(i) ON t.id = q.i WHEN NOT MATCHED THEN INSERT (id) VALUES (i)",
            "several rows would be written with the key id = 7",
            kind=InvalidError,
        )
        keyed.fails(
            "MERGE INTO t USING (VALUES (8)) AS q(i) ON t.id = q.i WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0 "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (i - 7)",
            "a row would be inserted with the key id = 1",
            kind=InvalidError,
        )

    def test_not_null_columns_need_a_value(self, keyed: SqlSession) -> None:
        keyed.fails(
            f"MERGE INTO t USING {SOURCE} ON t.id = q.id WHEN NOT MATCHED THEN INSERT (v) VALUES (q.v)",
            "'id' is NOT NULL and has no default",
            kind=InvalidError,
        )

    def test_first_rows_take_new_keys_only(self, keyed: SqlSession) -> None:
        filled(keyed, "fixed", name="default.f", **{"merge-engine": "first-row"})
        text = f"MERGE INTO f USING {SOURCE} ON f.id = q.id "
        keyed.fails(text + "WHEN MATCHED THEN DELETE", "keeps the first row", kind=InvalidError)
        keyed.rows(text + "WHEN NOT MATCHED THEN INSERT *")
        assert [row[0] for row in rows(keyed, "f")] == [1, 2, 3, 4, 5, 9]


def test_conditions_of_any_kind(plain: SqlSession) -> None:
    plain.rows(
        "MERGE INTO t USING (SELECT 25 AS least) AS q ON t.v > q.least AND t.id IN (SELECT id FROM t WHERE p = 'a') "
        "WHEN MATCHED THEN UPDATE SET s = 'much' WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'little'"
    )
    assert [row[3] for row in rows(plain)] == ["little", "little", "much", "little", "much"]


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("MERGE INTO t USING s ON t.id = s.id", "expected WHEN", ""),
        ("MERGE INTO t USING t ON true WHEN MATCHED THEN DELETE", "both sides are called t", "ON"),
        (f"MERGE INTO t USING {SOURCE} ON true WHEN MATCHED THEN INSERT *", "UPDATE or DELETE", "INSERT"),
        (f"MERGE INTO t USING {SOURCE} ON true WHEN NOT MATCHED THEN DELETE", "expected INSERT", "DELETE"),
        (
            f"MERGE INTO t USING {SOURCE} ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
            "never reached",
            "WHEN MATCHED THEN DELETE",
        ),
        (
            f"MERGE INTO t USING {SOURCE} ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
            "expected 1 values, found 2",
            "(1, 2)",
        ),
        (
            f"MERGE INTO t USING {SOURCE} ON true WHEN NOT MATCHED THEN INSERT VALUES (1)",
            "expected 4 values",
            "(1)",
        ),
        (f"MERGE INTO t USING {SOURCE} ON nope WHEN MATCHED THEN DELETE", "nope", "nope"),
        (f"MERGE INTO t USING {SOURCE} ON true WHEN MATCHED THEN UPDATE SET vv = 1", "no column 'vv'", "vv"),
        (
            f"MERGE INTO t USING {SOURCE} ON true WHEN NOT MATCHED THEN INSERT (idd) VALUES (1)",
            "no column 'idd'",
            "idd",
        ),
        (
            "MERGE INTO t USING (SELECT 1 AS id, 2 AS vs) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET *",
            "the source has no column",
            "WHEN",
        ),
    ],
)
def test_refused_at_its_place(text: str, reason: str, at: str) -> None:
    sql = SqlSession()
    filled(sql, "append")
    sql.fails(text, reason, at)
