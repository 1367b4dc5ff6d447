"""RETURNING: the rows of a statement as they were committed, or as they were before they were deleted."""

import pytest

from lakelet import InvalidError
from lakelet.sql.statements.change import returned_rows
from tests.unit.sql.statements.changed_tables import KEYED, LAYOUTS, START, filled, rows
from tests.unit.sql_session import SqlSession


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


def test_every_statement_gives_its_rows(sql: SqlSession) -> None:
    assert sql.rows("INSERT INTO t VALUES (7, 'c', '70', 'new') RETURNING *") == [(7, "c", 70, "new")]
    found = sql.session.run(
        "INSERT INTO default.t (p, id) SELECT 'c', 8 RETURNING id + 1 AS more, default.t.p, t.v, upper(p)"
    )
    assert (found.columns[:3], found.rows()) == (("more", "p", "v"), [(9, "c", None, "C")])
    assert sorted(sql.rows("UPDATE t AS x SET v = v + 1 WHERE id < 3 RETURNING x.id, v")) == [(1, 11), (2, 21)]
    assert sql.rows("DELETE FROM t WHERE id = 5 RETURNING *, v * 2 AS twice") == [(*START[4], 100)]
    merge = (
        "MERGE INTO t USING (VALUES (1, 'a'), (9, 'b')) AS q(id, p) ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = q.p "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (id, p) WHEN NOT MATCHED BY SOURCE AND id = 3 THEN DELETE "
        "RETURNING merge_action, * EXCLUDE (v), t.id AS again"
    )
    assert sorted(sql.rows(merge)) == [
        ("DELETE", 3, "a", None, 3),
        ("INSERT", 9, "b", None, 9),
        ("UPDATE", 1, "a", "a", 1),
    ]
    assert [row[0] for row in rows(sql)] == [1, 2, 4, 7, 8, 9]


@pytest.mark.parametrize(
    "text", ["*", "t.*", "* EXCLUDE (v)", "* EXCLUDE v", "*, merge_action", "* REPLACE (1 AS v)", "1 * v"]
)
def test_the_action_is_no_part_of_a_star(plain: SqlSession, text: str) -> None:
    merge = "MERGE INTO t USING (SELECT 1 AS q) ON id = q WHEN MATCHED THEN UPDATE SET v = 5 RETURNING"
    found = plain.session.run(f"{merge} {text}")
    assert ("merge_action" in found.columns) == ("merge_action" in text)


def test_no_row_gives_no_rows_of_the_same_columns(plain: SqlSession) -> None:
    found = plain.session.run("DELETE FROM t WHERE FALSE RETURNING id, s AS x")
    assert (found.columns, found.rows()) == (("id", "x"), [])
    assert found.schema.types == plain.session.run("DELETE FROM t RETURNING id, s AS x").schema.types


@pytest.mark.parametrize(
    ("items", "reason", "at"),
    [
        ("nope", '"nope" not found', "nope"),
        ("q.id", 'table "q" not found', "q.id"),
        ("count(*)", "an aggregate cannot stand in RETURNING", "count"),
        ("id, 1 + max(v)", "an aggregate cannot stand in RETURNING", "max"),
        ("row_number() OVER ()", "a window function cannot stand in RETURNING", "row_number"),
        ("(SELECT 1)", "a query cannot stand in RETURNING", "(SELECT"),
        ("EXISTS (FROM t)", "a query cannot stand in RETURNING", "(FROM"),
        ("DISTINCT id", "expected expressions in RETURNING", "DISTINCT"),
        ("id UNION SELECT 1", "expected expressions in RETURNING", "id UNION"),
        ("id FROM t", "expected expressions in RETURNING", "id FROM"),
        ("id ORDER BY id", "expected expressions in RETURNING", "id ORDER"),
        ("merge_action", '"merge_action" not found', "merge_action"),
    ],
)
@pytest.mark.parametrize(
    "statement", ["INSERT INTO t (id) VALUES (1)", "DELETE FROM t USING (SELECT 1 AS z) AS q WHERE t.id = z"]
)
def test_refused_before_anything_is_changed(
    plain: SqlSession, statement: str, items: str, reason: str, at: str
) -> None:
    plain.fails(f"{statement} RETURNING {items}", reason, at)


def test_an_expression_that_fails_changes_nothing(sql: SqlSession) -> None:
    before = rows(sql)
    for text in ("UPDATE t SET v = 1", "DELETE FROM t", "INSERT INTO t VALUES (8, 'a', 1, 'x')"):
        with pytest.raises(InvalidError, match="stop"):
            sql.rows(f"{text} RETURNING CASE WHEN id > 2 THEN error('stop') END")
    assert rows(sql) == before


def test_parameters(plain: SqlSession) -> None:
    found = plain.rows("UPDATE t SET v = ? WHERE id = ? RETURNING v + ?", params=[1, 2, 3])
    assert found == [(4,)]


@pytest.mark.parametrize("layout", KEYED)
def test_two_rows_with_one_key_are_not_given_as_two(layout: str) -> None:
    sql = SqlSession()
    filled(sql, layout)
    text = "INSERT INTO t VALUES (7, 'a', 1, 'x'), (7, 'a', 2, 'y')"
    sql.fails(f"{text} RETURNING *", "several rows would be written with the key id = 7", kind=InvalidError)
    sql.rows(text)


def test_rows_that_are_merged_when_they_are_read_are_not_given() -> None:
    sql = SqlSession()
    filled(sql, "fixed", **{"merge-engine": "first-row"})
    sql.fails("INSERT INTO t (id) VALUES (1) RETURNING *", "'merge-engine' = 'first-row'", kind=InvalidError)


def test_many_rows_wait_on_disk(plain: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returned_rows, "_MEMORY_BYTES", 1000)
    text = "INSERT INTO t SELECT i, 'a', i, NULL FROM range(300000) AS r(i) RETURNING id, v"
    found = plain.session.run(text).to_arrow()
    assert sorted(found.column("id").to_pylist()) == list(range(300000))
    assert found.column("id").equals(found.column("v").cast("int32"))
