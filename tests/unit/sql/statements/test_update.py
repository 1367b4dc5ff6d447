"""UPDATE on every kind of table."""

import pytest

from lakelet import InvalidError
from lakelet.model.snapshot import CommitKind
from tests.unit.sql.statements.changed_tables import KEYED, LAYOUTS, START, filled, rows, values
from tests.unit.sql_session import SqlSession


@pytest.fixture(params=LAYOUTS)
def sql(request: pytest.FixtureRequest) -> SqlSession:
    made = SqlSession()
    filled(made, request.param)
    return made


@pytest.fixture
def keyed() -> SqlSession:
    made = SqlSession()
    filled(made, "fixed", name="shop.t")
    return made


class TestEveryTable:
    def test_some_rows(self, sql: SqlSession) -> None:
        before = sql.lake.table("default.t").latest_snapshot()
        assert before is not None
        assert sql.rows("UPDATE t SET v = v + 1, s = upper(s) WHERE id IN (1, 3)")[0][1] == 2
        assert rows(sql) == [(1, "a", 11, "ONE"), START[1], (3, "a", 31, None), START[3], START[4]]
        assert rows(sql, f"t FOR VERSION AS OF {before.id}") == START

    def test_all_rows_by_their_old_values(self, sql: SqlSession) -> None:
        sql.rows("UPDATE t SET v = id, s = CAST(v AS VARCHAR)")
        assert rows(sql) == [(id_, p, id_, None if v is None else str(v)) for id_, p, v, _ in START]

    def test_conditions_may_look_at_the_table_itself(self, sql: SqlSession) -> None:
        sql.rows("UPDATE t SET v = (SELECT max(v) FROM t) WHERE v < (SELECT avg(v) FROM t AS o WHERE o.p = t.p)")
        assert values(sql) == {1: 50, 2: 20, 3: 30, 4: None, 5: 50}
        sql.rows(
            "UPDATE t AS x SET v = 0 WHERE EXISTS (SELECT 1 FROM \"default\".t AS o WHERE o.id = x.id + 1 AND x.p = 'a')"
        )
        assert values(sql) == {1: 0, 2: 20, 3: 0, 4: None, 5: 50}

    def test_values_of_other_tables(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE names (n INT, name STRING)", "INSERT INTO names VALUES (1, 'x'), (2, 'y'), (9, 'z')")
        assert (
            sql.rows("UPDATE t SET s = names.name, v = t.v + n FROM names WHERE t.id = n AND v > ?", params=[5])[0][1]
            == 2
        )
        assert rows(sql)[:2] == [(1, "a", 11, "x"), (2, "b", 22, "y")]
        before = rows(sql)
        sql.fails(
            "UPDATE t SET v = x FROM (VALUES (1, 5), (1, 6)) AS q(i, x) WHERE id = i",
            "several rows of the source match one row of default.t",
            kind=InvalidError,
        )
        assert rows(sql) == before

    def test_nothing_to_do_is_no_commit(self, sql: SqlSession) -> None:
        before = len(sql.lake.table("default.t").snapshots())
        assert sql.rows("UPDATE t SET v = 1 WHERE id = 9") == [(None, 0)]
        assert len(sql.lake.table("default.t").snapshots()) == before

    def test_defaults_and_common_tables(self, sql: SqlSession) -> None:
        sql.rows("WITH x AS (SELECT 3 AS n) UPDATE t SET v = (SELECT n FROM x), s = DEFAULT WHERE id = 1")
        assert rows(sql)[0] == (1, "a", 3, None)

    def test_one_snapshot_with_all_of_it(self, sql: SqlSession) -> None:
        table = sql.lake.table("default.t")
        before = {snapshot.id for snapshot in table.snapshots()}
        sql.rows("UPDATE t SET v = 1")
        made = [one for one in table.snapshots() if one.id not in before and one.commit_kind is not CommitKind.COMPACT]
        assert len(made) == 1

    def test_values_that_do_not_convert(self, sql: SqlSession) -> None:
        sql.fails("UPDATE t SET v = 1.5", "'v' is BIGINT; 1.5 does not convert", kind=InvalidError)
        sql.fails("UPDATE t SET v = s WHERE id > 1", "'v' is BIGINT; '.*' does not convert", kind=InvalidError)
        sql.fails("UPDATE t SET v = true", "'v' is BIGINT; a value of type BOOLEAN", kind=InvalidError)


@pytest.mark.parametrize("layout", ["append", "partitioned", "append_vectors", "crossing"])
def test_a_partition_column_moves_rows(layout: str) -> None:
    sql = SqlSession()
    filled(sql, layout)
    sql.rows("UPDATE t SET p = 'c' WHERE id < 3")
    assert rows(sql) == [(1, "c", 10, "one"), (2, "c", 20, "two"), *START[2:]]


@pytest.mark.parametrize("layout", KEYED)
def test_a_key_stays(layout: str) -> None:
    sql = SqlSession()
    filled(sql, layout)
    sql.fails("UPDATE t SET v = 1, id = 7", "'id' is part of the primary key", "id = 7")


class TestKeys:
    def test_in_another_database(self, keyed: SqlSession) -> None:
        keyed.rows("UPDATE shop.t SET v = shop.t.v + 1 WHERE shop.t.id = (SELECT max(id) FROM shop.t)")
        assert values(keyed, "shop.t")[5] == 51

    def test_not_null(self, keyed: SqlSession) -> None:
        keyed.rows("CREATE TABLE n (id INT PRIMARY KEY NOT ENFORCED, v INT NOT NULL)", "INSERT INTO n VALUES (1, 1)")
        keyed.fails("UPDATE n SET v = NULL", "'v' is NOT NULL", kind=InvalidError)
        keyed.fails("UPDATE n SET v = DEFAULT", "'v' is NOT NULL", kind=InvalidError)

    def test_a_lower_sequence_is_refused(self, keyed: SqlSession) -> None:
        filled(keyed, "fixed", name="shop.q", **{"sequence.field": "v"})
        keyed.fails("UPDATE shop.q SET v = v - 1 WHERE id = 1", "lower value of 'sequence.field'", kind=InvalidError)
        keyed.fails("UPDATE shop.q SET v = NULL WHERE id = 1", "lower value of 'sequence.field'", kind=InvalidError)
        keyed.rows("UPDATE shop.q SET v = v + 1, s = 'later'", "UPDATE shop.q SET s = s || '!'")
        assert values(keyed, "shop.q") == {1: 11, 2: 21, 3: 31, 4: None, 5: 51}
        assert {row[3] for row in rows(keyed, "shop.q")} == {"later!"}

    def test_a_higher_one_where_it_descends(self, keyed: SqlSession) -> None:
        filled(keyed, "fixed", name="shop.q", **{"sequence.field": "v", "sequence.field.sort-order": "descending"})
        keyed.fails("UPDATE shop.q SET v = v + 1 WHERE id = 1", "lower value of 'sequence.field'", kind=InvalidError)
        keyed.rows("UPDATE shop.q SET v = v - 1 WHERE id = 1")
        assert values(keyed, "shop.q")[1] == 9

    def test_first_rows_cannot_be_changed(self, keyed: SqlSession) -> None:
        filled(keyed, "fixed", name="shop.f", **{"merge-engine": "first-row"})
        keyed.fails("UPDATE shop.f SET v = 1", "keeps the first row of each key", kind=InvalidError)

    def test_rows_that_wait_for_a_bucket(self, keyed: SqlSession) -> None:
        filled(keyed, "fixed", name="shop.w", bucket="-2")
        keyed.fails("UPDATE shop.w SET v = 1", "wait for compaction", kind=InvalidError)
        keyed.lake.table("shop.w").compact()
        assert keyed.rows("UPDATE shop.w SET v = 1 WHERE id = 1")[0][1] == 1

    def test_deletes_may_be_dropped(self, keyed: SqlSession) -> None:
        filled(keyed, "fixed", name="shop.i", **{"ignore-delete": "true"})
        keyed.rows("UPDATE shop.i SET v = 7 WHERE id = 1")
        assert values(keyed, "shop.i")[1] == 7


def test_all_types_survive() -> None:
    sql = SqlSession()
    sql.rows(
        "CREATE TABLE a (id INT PRIMARY KEY NOT ENFORCED, t0 TIMESTAMP(0), t3 TIMESTAMP(3), t9 TIMESTAMP(9), "
        "z TIMESTAMP_LTZ(9), y TIME(3), d DECIMAL(38, 10), f FLOAT, b BYTES, "
        "r ROW<a INT, b ARRAY<STRING>>, m MAP<STRING, INT>, n INT)",
        "INSERT INTO a VALUES (1, '2026-01-02 03:04:05', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678901234', "
        "'2026-01-02 03:04:05.678901234', '01:02:03.004', 1234567890123456789012345678.0123456789, 0.1, 'x', "
        "{'a': 1, 'b': ['q', NULL]}, MAP {'k': 1}, 0), (2, NULL, NULL, NULL, NULL, NULL, NULL, 'nan', NULL, NULL, NULL, 0)",
    )
    before = sql.lake.table("default.a").scan().to_arrow().drop_columns(["n"])
    sql.rows("UPDATE a SET n = 1")
    sql.rows("MERGE INTO a USING (SELECT 2 AS i) AS s ON a.id = s.i WHEN MATCHED THEN UPDATE SET n = 5")
    after = sql.lake.table("default.a").scan()
    assert after.to_arrow().column("n").to_pylist() == [1, 5]
    # By their text, for NaN is not equal to itself.
    assert str(after.to_arrow().drop_columns(["n"]).to_pylist()) == str(before.to_pylist())


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("UPDATE t SET vv = 1", "no column 'vv'; did you mean v", "vv"),
        ("UPDATE t SET v = 1, V = 2", "set twice", "V"),
        ("UPDATE t SET v = nope", "nope", "nope"),
        ("UPDATE t SET v = 1 WHERE nope", "nope", "nope"),
        ("UPDATE t SET x.v = 1", "a column of t", "x.v"),
        ("UPDATE t AS x SET t.v = 1", "a column of x", "t.v"),
        ("UPDATE t SET v", "expected =", ""),
        ("UPDATE t v = 1", "expected SET", "="),
        ("UPDATE t SET v = 1 RETURNING", "an expression", ""),
        ("UPDATE t SET v = max(v)", "an aggregate cannot stand in UPDATE", "max"),
        ("UPDATE t SET v = 1 + row_number() OVER ()", "a window function cannot stand in UPDATE", "row_number"),
        ("UPDATE t SET v = unnest([1, 2])", "UNNEST cannot stand in UPDATE", "unnest"),
        ("UPDATE t SET s = COLUMNS('s')", "a star cannot stand in UPDATE", "COLUMNS"),
        ("WITH t AS (SELECT 1 AS id) UPDATE t SET v = 1", "'t' is a common table", "t SET"),
        ("UPDATE t SET v = 1 WHERE", "an expression", ""),
    ],
)
def test_refused_at_its_place(text: str, reason: str, at: str) -> None:
    sql = SqlSession()
    filled(sql, "append")
    sql.fails(text, reason, at)
