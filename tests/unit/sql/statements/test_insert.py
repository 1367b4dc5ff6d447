"""INSERT INTO and INSERT OVERWRITE."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelet import InvalidError, NotFoundError
from lakelet.model.snapshot import CommitKind
from tests.unit.sql_session import SqlSession

DAY = dt.date(2026, 1, 2)


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.lake.create_database("default")
    made.lake.create_table(
        "default.t",
        [("id", "INT NOT NULL"), ("v", "DECIMAL(5, 2)"), ("d", "DATE"), ("s", "STRING")],
    )
    return made


@pytest.fixture
def parts() -> SqlSession:
    """A table with partitions by dt and h."""
    made = SqlSession()
    made.lake.create_database("default")
    table = made.lake.create_table(
        "default.p", [("id", "INT"), ("dt", "STRING"), ("h", "INT")], partitioned_by=["dt", "h"]
    )
    table.write([{"id": 1, "dt": "a", "h": 1}, {"id": 2, "dt": "a", "h": 2}, {"id": 3, "dt": "b", "h": 1}])
    return made


def rows(sql: SqlSession, table: str = "t") -> list[tuple[object, ...]]:
    return sql.rows(f"SELECT * FROM {table} ORDER BY ALL")


class TestValues:
    def test_many_rows_with_casts(self, sql: SqlSession) -> None:
        assert sql.rows("INSERT INTO t VALUES (1, 1.5, '2026-01-02', 'a'), (2.0, '7', NULL, 5)") == [(1, 2)]
        assert rows(sql) == [(1, Decimal("1.50"), DAY, "a"), (2, Decimal("7.00"), None, "5")]

    def test_every_value_keeps_the_type_it_was_written_with(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t (id, d, s) VALUES (1, '2026-01-02', 1), (2, DATE '2026-01-02', '02'), (3, NULL, true)")
        assert rows(sql) == [(1, None, DAY, "1"), (2, None, DAY, "02"), (3, None, None, "true")]

    def test_columns_in_any_order(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t (S, id) VALUES ('a', 1)")
        assert rows(sql) == [(1, None, None, "a")]

    def test_parameters_and_subqueries(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t (id, s, d) VALUES (?, ?, ?), (2, ?, NULL)", params=[1, "a", DAY, 4])
        sql.rows("INSERT INTO t (id, v) VALUES ($n, (SELECT max(id) FROM t))", params={"n": 3})
        assert rows(sql) == [(1, None, DAY, "a"), (2, None, None, "4"), (3, Decimal("2.00"), None, None)]

    def test_common_tables(self, sql: SqlSession) -> None:
        sql.rows("WITH x AS (SELECT 5 AS n) INSERT INTO t (id) VALUES ((SELECT n FROM x))")
        sql.rows("WITH x AS (SELECT 6 AS n) INSERT INTO t (id) SELECT n FROM x")
        sql.rows("INSERT INTO t (id) WITH x AS (SELECT 7 AS n) SELECT n FROM x")
        assert [row[0] for row in rows(sql)] == [5, 6, 7]

    @pytest.mark.parametrize(
        ("text", "reason", "at"),
        [
            ("INSERT INTO t VALUES (1, 1, NULL, 'a'), (1.5, 1, NULL, 'a')", "'id' is INT NOT NULL; 1.5", "1.5,"),
            ("INSERT INTO t VALUES (1, 1, NULL, 'a'),\n(2, 1.555, NULL, 'a')", "'v' is DECIMAL.*; 1.555", "1.555"),
            ("INSERT INTO t VALUES (1, 'x', NULL, 'a')", "'v' is .*; 'x'", "'x'"),
            ("INSERT INTO t (id, d) VALUES (1, '2026-02-30')", "'d' is DATE; '2026-02-30'", "'2026"),
            ("INSERT INTO t (id, d) VALUES (1, 5)", "'d' is DATE; a value of type INTEGER", "5)"),
            ("INSERT INTO t VALUES (1, 2)", "expected 4 values for id, v, d, s, found 2", "(1, 2)"),
            ("INSERT INTO t (id) VALUES (1), (2, 3)", "expected 1 values for id, found 2", "(2, 3)"),
            ("INSERT INTO t (id, ss) VALUES (1, 2)", "no column 'ss'; did you mean s", "ss)"),
            ("INSERT INTO t (id, ID) VALUES (1, 2)", "named twice", "ID)"),
            ("INSERT INTO t (id) VALUES (nope)", "nope", "nope"),
            ("INSERT INTO t (id) VALUES ()", "an expression", ")"),
            ("INSERT INTO t VALUES (1, 2, NULL, 'a') RETURNING", "an expression", ""),
            ("INSERT INTO t (id) DEFAULT VALUES", "goes without a list", "DEFAULT"),
            ("INSERT INTO t", "VALUES or a query", ""),
            ("INSERT INTO t SET id = 1", "VALUES or a query", "SET"),
            ("INSERT t VALUES (1)", "INTO or OVERWRITE", "t VALUES"),
        ],
    )
    def test_refused_at_its_place(self, sql: SqlSession, text: str, reason: str, at: str) -> None:
        sql.fails(text, f"(?i){reason}", at)

    def test_null_where_it_must_not_be(self, sql: SqlSession) -> None:
        sql.fails("INSERT INTO t (id) VALUES (1), (NULL)", "'id' is NOT NULL, but row 1", kind=InvalidError)
        sql.fails("INSERT INTO t (v) VALUES (1)", "'id' is NOT NULL and has no default", kind=InvalidError)
        sql.fails("INSERT INTO t (id) VALUES (DEFAULT)", "'id' is NOT NULL and has no default", kind=InvalidError)
        sql.fails("INSERT INTO t DEFAULT VALUES", "'id' is NOT NULL and has no default", kind=InvalidError)


class TestDefaults:
    @pytest.fixture
    def sql(self) -> SqlSession:
        made = SqlSession()
        made.rows("CREATE TABLE t (id INT NOT NULL DEFAULT 7, d DATE DEFAULT '2026-01-02', s STRING)")
        return made

    def test_where_values_are_left_out(self, sql: SqlSession) -> None:
        sql.rows(
            "INSERT INTO t (s) VALUES ('a')", "INSERT INTO t DEFAULT VALUES", "INSERT INTO t BY NAME SELECT 1 AS id"
        )
        assert rows(sql) == [(1, DAY, None), (7, DAY, "a"), (7, DAY, None)]

    def test_where_default_is_written(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t VALUES (DEFAULT, '2026-02-03', DEFAULT), (2, DEFAULT, 'default')")
        assert rows(sql) == [(2, DAY, "default"), (7, dt.date(2026, 2, 3), None)]


class TestQueries:
    def test_streams_rows_of_the_table_itself(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t (id) VALUES (1), (2)")
        assert sql.rows("INSERT INTO t SELECT id + 10, id, '2026-01-02', s FROM t") == [(2, 2)]
        assert [row[0] for row in rows(sql)] == [1, 2, 11, 12]

    @pytest.mark.parametrize(
        "source", ["TABLE other", "FROM other", "(SELECT * FROM other)", "VALUES (1) UNION ALL VALUES (2)"]
    )
    def test_all_kinds_of_queries(self, sql: SqlSession, source: str) -> None:
        sql.rows("CREATE TABLE other (id INT)", "INSERT INTO other VALUES (1), (2)", f"INSERT INTO t (id) {source}")
        assert [row[0] for row in rows(sql)] == [1, 2]

    def test_by_name(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t BY NAME SELECT 'a' AS S, 1 AS id")
        assert rows(sql) == [(1, None, None, "a")]
        sql.fails(
            "INSERT INTO t BY NAME SELECT 1 AS id, 2 AS idd", "no column 'idd'; did you mean id", kind=InvalidError
        )
        sql.fails("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS ID", "no column 'ID_1'", kind=InvalidError)
        sql.fails("INSERT INTO t BY NAME VALUES (1)", "VALUES have none", kind=InvalidError)

    def test_data_frames(self, sql: SqlSession) -> None:
        frame = pa.table({"n": [1, 2], "words": ["a", "b"]})
        sql.rows("INSERT INTO t (id, s) SELECT * FROM f", frames={"f": frame})
        assert rows(sql) == [(1, None, None, "a"), (2, None, None, "b")]

    def test_nothing_comes_of_no_rows(self, sql: SqlSession) -> None:
        assert sql.rows("INSERT INTO t SELECT * FROM t") == [(None, 0)]

    def test_refused(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t (id, s) VALUES (1, 'a'), (2, 'b')")
        sql.fails("INSERT INTO t SELECT 1, 2", "expected 4 columns for id, v, d, s, found 2", kind=InvalidError)
        sql.fails("INSERT INTO t (id) SELECT s FROM t", "'id' is INT NOT NULL; 'a'", kind=InvalidError)
        sql.fails("INSERT INTO t (id) SELECT ids FROM t", "ids", "ids")
        sql.fails("INSERT INTO t (id) SELECT 1 +", "syntax error", kind=InvalidError)
        sql.fails("INSERT INTO tt VALUES (1)", "did you mean t", kind=NotFoundError)
        sql.fails("INSERT INTO t$files VALUES (1)", "system table", kind=InvalidError)
        assert len(rows(sql)) == 2


class TestOverwrite:
    def test_a_table_without_partitions(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO t (id) VALUES (1), (2)", "INSERT OVERWRITE t SELECT id + 1, v, d, s FROM t WHERE id = 1")
        assert [row[0] for row in rows(sql)] == [2]
        snapshot = sql.lake.table("default.t").latest_snapshot()
        assert snapshot is not None
        assert snapshot.commit_kind is CommitKind.OVERWRITE

    def test_partitions_that_rows_belong_to(self, parts: SqlSession) -> None:
        parts.rows("INSERT OVERWRITE p VALUES (9, 'a', 2)")
        assert rows(parts, "p") == [(1, "a", 1), (3, "b", 1), (9, "a", 2)]

    def test_a_partition_named_in_full(self, parts: SqlSession) -> None:
        parts.rows("INSERT OVERWRITE TABLE p PARTITION (dt = 'a', h = '1') SELECT 9")
        assert rows(parts, "p") == [(2, "a", 2), (3, "b", 1), (9, "a", 1)]
        parts.rows("INSERT OVERWRITE p PARTITION (dt = ?, H = 1) SELECT 9 WHERE false", params=["a"])
        assert rows(parts, "p") == [(2, "a", 2), (3, "b", 1)]

    def test_a_partition_named_in_part(self, parts: SqlSession) -> None:
        parts.rows("INSERT OVERWRITE p PARTITION (dt = 'a', h) SELECT 9, 1")
        assert rows(parts, "p") == [(2, "a", 2), (3, "b", 1), (9, "a", 1)]

    @pytest.mark.parametrize(
        "choice",
        ["SET 'dynamic-partition-overwrite' = 'false'", "ALTER TABLE p SET ('dynamic-partition-overwrite' = 'false')"],
    )
    def test_all_that_is_left_open(self, parts: SqlSession, choice: str) -> None:
        parts.rows(choice, "INSERT OVERWRITE p PARTITION (dt = 'a', h) SELECT 9, 1")
        assert rows(parts, "p") == [(3, "b", 1), (9, "a", 1)]
        parts.rows("INSERT OVERWRITE INTO p VALUES (8, 'c', 1)")
        assert rows(parts, "p") == [(8, "c", 1)]

    def test_a_partition_of_an_append(self, parts: SqlSession) -> None:
        parts.rows("INSERT INTO p PARTITION (dt = 'c', h = 1 + 1) VALUES (9)")
        assert rows(parts, "p")[-1] == (9, "c", 2)

    def test_refused(self, parts: SqlSession) -> None:
        parts.fails("INSERT OVERWRITE p PARTITION (id = 1) SELECT 1", "'id' is no partition column", "id =")
        parts.fails("INSERT OVERWRITE p PARTITION (dt = 'a', DT = 'b') SELECT 1", "given twice", "DT")
        parts.fails("INSERT INTO p PARTITION (h = 'x') VALUES (1, 'a')", "'h' is INT; 'x'", kind=InvalidError)
        parts.fails("INSERT INTO p PARTITION (h = 1) (id, h) VALUES (1, 2)", "from PARTITION", "h) VALUES")
        parts.fails("INSERT OVERWRITE p PARTITION (dt = 'a', h = 1) VALUES (1, 2)", "expected 1 values", "(1, 2)")


def test_a_branch(sql: SqlSession) -> None:
    sql.rows("INSERT INTO t (id) VALUES (1)")
    sql.lake.table("default.t").branches.create("dev")
    sql.rows("INSERT INTO t$branch_dev (id) VALUES (2)", "INSERT OVERWRITE `t$branch_dev` (id) VALUES (3)")
    assert [row[0] for row in rows(sql)] == [1]
    assert [row[0] for row in rows(sql, "t$branch_dev")] == [3]


def test_a_primary_key_replaces_rows(sql: SqlSession) -> None:
    sql.lake.create_table("default.k", [("id", "INT"), ("s", "STRING")], primary_key=["id"], options={"bucket": "1"})
    sql.rows("INSERT INTO k VALUES (1, 'a'), (2, 'b')", "INSERT INTO k VALUES (2, 'c'), (3, 'd')")
    assert rows(sql, "k") == [(1, "a"), (2, "c"), (3, "d")]
