"""CREATE TABLE of Iceberg tables."""

from pathlib import Path

import pytest

from lakelet.errors import AlreadyExistsError, CommitUnknownError, InvalidError, NotFoundError
from lakelet.iceberg.table import IcebergTable
from lakelet.sql.iceberg import create
from tests.unit.sql.iceberg.ice_session import ice_session
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql(tmp_path: Path) -> SqlSession:
    return ice_session(tmp_path)


def table(sql: SqlSession, name: str = "t") -> IcebergTable:
    return sql.lake.catalogs.open("iceberg").table(f"shop.{name}")


def test_all_that_can_be_said(sql: SqlSession, tmp_path: Path) -> None:
    text = f"""
    CREATE TABLE IF NOT EXISTS Iceberg.SHOP.t (
      id BIGINT NOT NULL COMMENT 'the key', ts TIMESTAMP(3), `odd name` STRING, n ROW<a INT NOT NULL COMMENT 'inner', b STRING>
    ) USING iceberg
    PARTITIONED BY (day(ts), bucket(id, 16) AS shard, truncate(4, `odd name`), n.b, region STRING COMMENT 'where', identity(id))
    COMMENT 'orders' TBLPROPERTIES ('write.x' = 'y', k = 5) LOCATION 'file://{tmp_path}/elsewhere'
    """
    assert sql.done(text) == "created table iceberg.shop.t"
    made = table(sql)
    assert [str(field) for field in made.metadata.schema().fields] == [
        "1: id: required long (the key)",
        "2: ts: optional timestamp",
        "3: odd name: optional string",
        "4: n: optional struct<6: a: required int (inner), 7: b: optional string>",
        "5: region: optional string (where)",
    ]
    assert [(field.name, str(field.transform), field.source_id) for field in made.metadata.spec().fields] == [
        ("ts_day", "day", 2),
        ("shard", "bucket[16]", 1),
        ("odd name_trunc", "truncate[4]", 3),
        ("n.b", "identity", 7),
        ("region", "identity", 5),
        ("id", "identity", 1),
    ]
    assert made.properties == {"write.x": "y", "k": "5", "comment": "orders"}
    assert made.location == f"file://{tmp_path}/elsewhere"
    assert (made.format_version, made.snapshot_id()) == (2, None)
    assert sql.done(text) == "table iceberg.shop.t exists"
    sql.fails(text.replace("IF NOT EXISTS", ""), "table 'iceberg.shop.t' exists", kind=AlreadyExistsError)
    sql.fails("CREATE TABLE iceberg.shop.T (a INT)", "table 'iceberg.shop.t' exists", kind=AlreadyExistsError)


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_void_field_partitions_nothing(sql: SqlSession, version: str) -> None:
    sql.rows(
        f"""CREATE TABLE iceberg.shop.t (id INT, x STRING) PARTITIONED BY (void(x), identity(id))
            TBLPROPERTIES ('format-version' = '{version}')"""
    )
    found = [(field.name, str(field.transform)) for field in table(sql).metadata.spec().fields]
    assert found == [("x_null", "void"), ("id", "identity")]
    sql.rows("INSERT INTO iceberg.shop.t VALUES (1, 'a'), (1, 'b'), (2, NULL)")
    assert sorted(sql.rows("SELECT id, x FROM iceberg.shop.t WHERE x IS NOT NULL")) == [(1, "a"), (1, "b")]
    sql.rows("DELETE FROM iceberg.shop.t WHERE x = 'a'")
    assert sorted(sql.rows("SELECT id, x FROM iceberg.shop.t"), key=str) == [(1, "b"), (2, None)]


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("(a INT, b MULTISET<INT>)", "column 'b': Iceberg has no MULTISET", "b MULTISET"),
        ("(a INT, t TIMESTAMP(9))", r"TIMESTAMP\(9\) needs format version 3", "t TIMESTAMP"),
        ("(a INT, u UUID)", "STRING may do", "UUID"),
        ("(a INT, A INT)", "column 'A' is given twice", "A INT"),
        ("(a INT DEFAULT 1)", "default values need format version 3", "1)"),
        ("(a STRING DEFAULT uuid())", "default values need format version 3", "uuid"),
        ("(a INT PRIMARY KEY)", "checks no keys", "PRIMARY"),
        ("(a INT, PRIMARY KEY (a))", "checks no keys", "PRIMARY"),
        ("(a INT, CHECK (a > 1))", "checks no conditions", "CHECK"),
        ("()", "the name of a column", ")"),
        ("", "the columns in parentheses, or AS", ""),
        ("(a INT) USING paimon", "a table of a catalog is an Iceberg table", "paimon"),
        ("(a INT) STORED AS orc", "'write.format.default'", "STORED"),
        ("(a INT) LIKE b", "the columns are given", "LIKE"),
        ("(a INT) COMMENT 'a' COMMENT 'b'", "COMMENT is given twice", "COMMENT 'b'"),
        ("(a INT) WITH ('k' = 'a', 'k' = 'b')", "'k' is given twice", "'k' = 'b'"),
        ("(a INT) WITH ('k' = NULL)", "cannot be NULL", "'k'"),
        ("(a INT) WITH ('format-version' = '3')", "versions 1 and 2 are written", "("),
        ("(a INT) PARTITIONED BY (b)", "column 'b' is not there", "b)"),
        ("(a INT) PARTITIONED BY (days(a))", "column 'a' is int, of which there is no day", "days"),
        ("(a INT) PARTITIONED BY (a, a)", "already tells as much of a", "a)"),
        ("(a INT) PARTITIONED BY (weeks(a))", "no partitions are made by it", "weeks"),
        ("(a INT) PARTITIONED BY (buckets(4, a))", "did you mean bucket", "buckets"),
        ("(a INT) PARTITIONED BY (bucket(a))", "expected ,", ")"),
        ("(a INT) PARTITIONED BY (bucket(a, b))", "a whole number", "b)"),
        ("(a INT) PARTITIONED BY (bucket(0, a))", "from 1 to 2147483647, found 0", "0"),
        ("(a INT) PARTITIONED BY (truncate(a, -1))", "found -1", "-1"),
        ("(a INT) PARTITIONED BY (bucket(4, a) AS a)", "name that exists in schema", "bucket"),
        ("(l ARRAY<INT>) PARTITIONED BY (l.element)", "by fields of a ROW", "l.element"),
        ("(a INT) AS SELECT 1 AS a", "the columns come from the query", "a INT"),
        ("AS", "expected a query", ""),
        ("(a INT) junk", "expected USING, PARTITIONED BY", "junk"),
    ],
)
def test_refused(sql: SqlSession, text: str, reason: str, at: str) -> None:
    sql.fails(f"CREATE TABLE iceberg.shop.t {text}", reason, at)


def test_names_that_are_not_there(sql: SqlSession) -> None:
    sql.fails(
        "CREATE TABLE iceberg.shoop.t (a INT)",
        "database 'shoop' is not in catalog iceberg; did you mean shop",
        "iceberg",
        NotFoundError,
    )
    sql.fails(
        "CREATE TABLE iceburg.shop.t (a INT)",
        "catalog 'iceburg' is not known .* did you mean iceberg",
        "iceburg",
        NotFoundError,
    )
    sql.fails("CREATE TABLE iceberg.shop.t$branch_b (a INT)", "ALTER TABLE … CREATE BRANCH", "iceberg")
    sql.fails("CREATE TABLE iceberg.shop.t$files (a INT)", "names a system table", "iceberg")
    sql.fails('CREATE TABLE iceberg.shop."a.b" (a INT)', "table name 'a.b'", "iceberg")


class TestFromAQuery:
    def test_columns_and_rows(self, sql: SqlSession) -> None:
        text = "CREATE TABLE iceberg.shop.t PARTITIONED BY (bucket(2, id)) AS SELECT 1::BIGINT AS id, DATE '2026-01-01' AS d"
        assert sql.done(text) == "created table iceberg.shop.t, 1 row"
        assert len(table(sql).metadata.snapshots) == 1
        assert sql.rows("SELECT id FROM iceberg.shop.t") == [(1,)]
        assert sql.done("CREATE TABLE iceberg.shop.e AS SELECT 1 AS a WITH NO DATA") == "created table iceberg.shop.e"
        assert table(sql, "e").snapshot_id() is None
        assert (
            sql.done("CREATE TABLE IF NOT EXISTS iceberg.shop.e AS SELECT error('no')") == "table iceberg.shop.e exists"
        )

    def test_names_for_columns(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE iceberg.shop.t (x, y) AS SELECT 1 AS a, 2 AS a")
        assert sql.session.run("FROM iceberg.shop.t").columns == ("x", "y")
        sql.rows("CREATE TABLE iceberg.shop.u AS SELECT 1 AS a, 2 AS A, 3 AS a")
        assert sql.session.run("FROM iceberg.shop.u").columns == ("a", "A_1", "a_2")
        sql.rows("DROP TABLE iceberg.shop.u CASCADE")
        sql.fails("CREATE TABLE iceberg.shop.v (x, y)", "expected a type", ", y")

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("SELECT error('boom') AS a", "boom"),
            ("SELECT NULL AS a", "NULL without a type"),
            ("SELECT TIMESTAMP_NS '2026-01-01' AS a", "needs format version 3"),
            ("SELECT '10:00:00+01'::TIMETZ AS a", "CAST it to TIME"),
        ],
    )
    def test_a_query_that_fails_leaves_no_table(self, sql: SqlSession, query: str, reason: str) -> None:
        sql.fails(f"CREATE TABLE iceberg.shop.t AS {query}", reason, kind=InvalidError)
        assert sql.rows("SHOW TABLES IN iceberg.shop") == []

    def test_rows_that_fail_late_take_the_table_away(self, sql: SqlSession) -> None:
        before = set(sql.files())
        with pytest.raises(InvalidError, match="late"):
            sql.rows(
                "CREATE TABLE iceberg.shop.t PARTITIONED BY (a) AS "
                "SELECT i % 3 AS a, CASE WHEN i = 90000 THEN CAST(error('late') AS INT) END AS b FROM range(100000) r(i)"
            )
        assert sql.rows("SHOW TABLES IN iceberg.shop") == []
        assert set(sql.files()) == before

    def test_an_unknown_outcome_keeps_the_table(self, sql: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
        def lost(*_: object, **__: object) -> None:
            raise CommitUnknownError("no answer")

        monkeypatch.setattr(create, "insert_rows", lost)
        with pytest.raises(CommitUnknownError):
            sql.rows("CREATE TABLE iceberg.shop.t AS SELECT 1 AS a")
        assert sql.rows("SHOW TABLES IN iceberg.shop") == [("t",)]

    def test_rows_of_another_writer_keep_the_table(self, sql: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
        def overtaken(*_: object, **__: object) -> None:
            SqlSession(sql.store).rows("INSERT INTO iceberg.shop.t VALUES (7)")
            raise InvalidError("does not fit")

        monkeypatch.setattr(create, "insert_rows", overtaken)
        with pytest.raises(InvalidError, match="does not fit"):
            sql.rows("CREATE TABLE iceberg.shop.t AS SELECT 1 AS a")
        assert sql.rows("SELECT * FROM iceberg.shop.t") == [(7,)]


def test_what_is_shown_makes_the_same_table(sql: SqlSession) -> None:
    sql.rows(
        """
        CREATE TABLE iceberg.shop.t (
          `a.b` INT NOT NULL COMMENT 'it''s', ts TIMESTAMP_LTZ, m MAP<STRING, ROW<x DATE>>, f BINARY(3), r BYTES
        )
        PARTITIONED BY (bucket(4, `a.b`), hours(ts) AS `h``our`, truncate(2, r))
        COMMENT 'c' WITH ('k''' = 'v', 'format-version' = '1')
        """
    )
    (shown,) = sql.column("SHOW CREATE TABLE iceberg.shop.t")
    before = table(sql)
    sql.rows("ALTER TABLE iceberg.shop.t RENAME TO u", shown)
    after = table(sql)
    assert after.metadata.schema() == before.metadata.schema()
    assert after.metadata.spec() == before.metadata.spec()
    assert (after.properties, after.format_version) == (before.properties, 1)
