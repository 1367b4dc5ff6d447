"""ALTER TABLE of Iceberg tables: what can be said, and where it is refused. What changes is in tests/unit/iceberg."""

from pathlib import Path

import pytest

from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.iceberg.table import IcebergTable
from tests.unit.sql.iceberg.ice_session import ice_session
from tests.unit.sql_session import SqlSession

ALTER = "ALTER TABLE iceberg.shop.t "


@pytest.fixture
def sql(tmp_path: Path) -> SqlSession:
    made = ice_session(tmp_path)
    made.rows(
        "CREATE TABLE iceberg.shop.t (id INT NOT NULL, ts TIMESTAMP, s STRING, n ROW<a INT>) PARTITIONED BY (days(ts))"
    )
    return made


def table(sql: SqlSession, name: str = "t") -> IcebergTable:
    return sql.lake.catalogs.open("iceberg").table(f"shop.{name}")


def test_columns(sql: SqlSession) -> None:
    for text in (
        "ADD COLUMN (x INT COMMENT 'c', y ARRAY<INT> AFTER id)",
        "ADD COLUMN IF NOT EXISTS x STRING",
        "ADD n.b STRING FIRST",
        "RENAME x TO z",
        "ALTER COLUMN id TYPE BIGINT, z COMMENT 'd' FIRST",
        "ALTER COLUMN id DROP NOT NULL",
        "MODIFY n.a BIGINT COMMENT 'inner'",
        "CHANGE s text STRING",
        "DROP COLUMN IF EXISTS nothing, y",
        "COMMENT 'the table'",
    ):
        sql.done(ALTER + text)
    sql.done("COMMENT ON COLUMN iceberg.shop.t.n.b IS 'nested'")
    made = table(sql)
    assert [str(field) for field in made.metadata.schema().fields] == [
        "8: z: optional int (d)",
        "1: id: optional long",
        "2: ts: optional timestamp",
        "3: text: optional string",
        "4: n: optional struct<9: b: optional string (nested), 5: a: optional long (inner)>",
    ]
    assert made.properties == {"comment": "the table"}


def test_partition_fields(sql: SqlSession) -> None:
    sql.done(ALTER + "ADD PARTITION FIELD bucket(4, id) AS shard")
    sql.done(ALTER + "REPLACE PARTITION FIELD ts_day WITH hour(ts)")
    sql.done(ALTER + "DROP PARTITION FIELD bucket(4, id)")
    assert [field.name for field in table(sql).metadata.spec().fields] == ["ts_hour"]
    sql.done(ALTER + "DROP PARTITION FIELD ts_hour")
    assert table(sql).metadata.spec().fields == ()


def test_properties(sql: SqlSession) -> None:
    sql.done(ALTER + "SET TBLPROPERTIES ('a' = '1', b = 2)")
    sql.done(ALTER + "SET ('c' = 'x')")
    sql.done(ALTER + "UNSET TBLPROPERTIES ('a')")
    sql.done(ALTER + "RESET ('c')")
    assert sql.done(ALTER + "UNSET TBLPROPERTIES IF EXISTS ('a')") == "table iceberg.shop.t stays as it is"
    assert sql.rows("SHOW TBLPROPERTIES iceberg.shop.t") == [("b", "2")]


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("ADD COLUMN id INT", "column 'id' exists", "id INT"),
        ("ADD COLUMN x INT NOT NULL", "must be nullable", "x"),
        ("ADD COLUMN ts_day INT", "exists in schema: ts_day", "ADD"),
        ("ADD PARTITION (a = 1)", "ADD PARTITION FIELD changes", "ADD"),
        ("ADD PARTITION FIELD days(nothing)", "column 'nothing' is not there", "nothing"),
        ("ADD PARTITION FIELD days(s)", "of which there is no day", "ADD"),
        ("ADD PARTITION FIELD days(ts)", "partitioned by it already", "ADD"),
        ("DROP PARTITION FIELD hours(ts)", "no partition field", "DROP"),
        ("DROP PARTITION FIELD ts_day AS x", "a field that goes needs no name", "ts_day"),
        ("REPLACE PARTITION FIELD ts_day hours(ts)", "expected WITH", "hours"),
        ("DROP COLUMN ts", "partition field 'ts_day' of spec 0", "DROP"),
        ("ALTER COLUMN id TYPE STRING", "", "STRING"),
        ("ALTER COLUMN s SET DEFAULT uuid()", "default values need format version 3", "ALTER COLUMN"),
        ("ALTER COLUMN s SET NOT NULL", "cannot become NOT NULL", "SET NOT NULL"),
        ("SET ('location' = 'x')", "stays where its files are", "SET"),
        ("SET ('format-version' = '3')", "versions 1 and 2", "SET"),
        ("SET TBLPROPERTIES", "properties in parentheses", ""),
        ("UNSET ('a')", "property 'a' is not set", "'a'"),
        ("SET LOCATION 'x'", "stays where its files are", "SET"),
        ("WRITE ORDERED BY id", "sort order", "WRITE"),
        ("CREATE BRANCH b", "no snapshot yet", "b"),
        ("CREATE BRANCH b AS OF VERSION x", "the id of a snapshot", "x"),
        ("DROP BRANCH main", "cannot be dropped", "main"),
        ("FROB", "expected ADD", "FROB"),
    ],
)
def test_refused(sql: SqlSession, text: str, reason: str, at: str) -> None:
    with pytest.raises(InvalidError):
        sql.rows(ALTER + text)
    sql.fails(ALTER + text, reason or "column", at)


def test_names(sql: SqlSession) -> None:
    sql.fails("ALTER TABLE iceberg.shop.tt DROP s", "does not exist; did you mean t", "iceberg", NotFoundError)
    assert sql.done("ALTER TABLE IF EXISTS iceberg.shop.tt DROP s") == "table iceberg.shop.tt does not exist"
    sql.fails("ALTER TABLE iceberg.shop.t$branch_b DROP s", "those of the whole table", "iceberg")
    sql.rows("CREATE DATABASE iceberg.other", "CREATE TABLE iceberg.shop.u (a INT)")
    sql.fails(ALTER + "RENAME TO u", "table 'iceberg.shop.u' exists", kind=AlreadyExistsError)
    sql.fails(ALTER + "RENAME TO nowhere.t", "database 'nowhere' is not in catalog", "nowhere", NotFoundError)
    assert sql.done(ALTER + "RENAME TO other.v") == "renamed table iceberg.shop.t to iceberg.other.v"
    assert (
        sql.done("RENAME TABLE iceberg.other.v TO iceberg.shop.t") == "renamed table iceberg.other.v to iceberg.shop.t"
    )


def test_branches_and_tags(sql: SqlSession) -> None:
    ((first, _),) = sql.rows("INSERT INTO iceberg.shop.t (id) VALUES (1)")
    sql.rows("INSERT INTO iceberg.shop.t (id) VALUES (2)")
    sql.done(ALTER + f"CREATE BRANCH old AS OF VERSION {first}")
    sql.done(f"CREATE TAG IF NOT EXISTS v1 ON iceberg.shop.t FOR VERSION AS OF {first} RETAIN 7 DAYS")
    assert table(sql).snapshot_id("old") == first
    assert table(sql).metadata.refs["v1"].max_ref_age_ms == 7 * 24 * 3_600_000
    assert "is at snapshot" in sql.done(ALTER + "CREATE BRANCH IF NOT EXISTS old")
    sql.fails(ALTER + "CREATE TAG old", "branch 'old' exists", kind=AlreadyExistsError)
    sql.fails(ALTER + "CREATE BRANCH x AS OF VERSION 1", "no snapshot 1", "x", NotFoundError)
    sql.fails(ALTER + "DROP BRANCH v1", "no branch 'v1'", "v1", NotFoundError)
    assert sql.done(ALTER + "DROP BRANCH IF EXISTS gone") == "branch gone of table iceberg.shop.t does not exist"
    sql.done("DROP TAG v1 ON iceberg.shop.t")
    assert (table(sql).branch_names(), table(sql).tag_names()) == (["main", "old"], [])
    sql.fails("CREATE BRANCH b", "CREATE BRANCH: CALL sys.create_branch makes one", "BRANCH")
