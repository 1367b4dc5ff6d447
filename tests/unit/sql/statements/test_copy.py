"""COPY to and from files: what goes out comes back the same, in the types of the table."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from lakelet import connect
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from tests.unit.sql_session import SqlSession

ROWS = [
    (1, "007", dt.datetime(2026, 1, 1, 10), [1, 2], Decimal("1.50"), True, dt.date(1969, 12, 31)),
    (2, 'a;b,"c"\nd', None, None, None, None, None),
]


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE TABLE t (id BIGINT, c STRING, at TIMESTAMP, l ARRAY<INT>, n DECIMAL(5, 2), b BOOLEAN, d DATE)")
    made.lake.table("default.t").write(
        [dict(zip(("id", "c", "at", "l", "n", "b", "d"), row, strict=True)) for row in ROWS]
    )
    return made


@pytest.mark.parametrize(
    ("name", "to", "back"),
    [
        ("x.csv", "", ""),
        ("x.csv", "(HEADER, DELIMITER ';')", "(HEADER, DELIMITER ';')"),
        ("x.csv", "WITH (HEADER false)", "WITH (HEADER false)"),
        ("x.csv.gz", "", ""),
        ("x.txt", "(FORMAT csv, NULL '-')", "(FORMAT 'csv', NULL '-')"),
        ("x.json", "(ARRAY true)", ""),
        ("x.ndjson", "", ""),
        ("x.jsonl", "", ""),
        ("x.parquet", "(COMPRESSION zstd)", ""),
        ("x", "(FORMAT parquet)", "(FORMAT parquet)"),
    ],
)
@pytest.mark.parametrize("key", ["", "WITH ('bucket' = '2', 'bucket-key' = 'id')"], ids=["plain", "buckets"])
def test_there_and_back(sql: SqlSession, tmp_path: Path, name: str, to: str, back: str, key: str) -> None:
    path = tmp_path / name
    assert sql.done(f"COPY t TO '{path}' {to}") == f"copied 2 rows to {path}"
    sql.rows(f"CREATE TABLE u LIKE t {key}", f"COPY u FROM '{path}' {back}")
    assert sorted(sql.rows("SELECT * FROM u"), key=str) == ROWS
    assert sql.rows("SELECT count(*) FROM u$snapshots") == [(1,)]


def test_a_query_and_some_columns(sql: SqlSession, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    sql.session.run(f"COPY (SELECT id, c FROM t WHERE id = $1) TO '{path}' (HEADER false)", [1]).rows()
    assert path.read_text() == "1,007\n"
    sql.rows(f"COPY t (c, id) TO '{path}'")
    assert path.read_text().splitlines()[:2] == ["c,id", "007,1"]
    sql.rows("CREATE TABLE u (id BIGINT, c STRING, n INT DEFAULT 5)", f"COPY u (c, id,) FROM '{path}' (HEADER)")
    assert sorted(sql.rows("SELECT id, c, n FROM u"))[0] == (1, "007", 5)


def test_columns_of_parquet_files_are_found_by_their_names(sql: SqlSession, tmp_path: Path) -> None:
    sql.rows(f"COPY (SELECT c, id FROM t) TO '{tmp_path}/x.parquet'", "CREATE TABLE u (id BIGINT, c STRING)")
    sql.rows(f"COPY u FROM '{tmp_path}/*.parquet'")
    assert sorted(sql.rows("SELECT id FROM u")) == [(1,), (2,)]


def test_a_row_that_does_not_fit_leaves_nothing(sql: SqlSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,c\n1,a\nx,b\n")
    sql.rows("CREATE TABLE u (id BIGINT, c STRING)")
    with pytest.raises(LakeletError):
        sql.rows(f"COPY u FROM '{tmp_path}/x.csv' (HEADER)")
    assert sql.rows("SELECT count(*) FROM u") == [(0,)]


def test_refused(sql: SqlSession) -> None:
    sql.fails("COPY t TO 'x.csv' (FOO 1)", "option FOO of a csv file", "FOO")
    sql.fails("COPY t TO 'x.parquet' (HEADER)", "option HEADER of a parquet file", "HEADER")
    sql.fails("COPY t FROM 'x.csv' (FORMAT avro)", "expected csv, json or parquet", "FORMAT")
    sql.fails("COPY t FROM 'x.txt'", "expected an ending", kind=InvalidError)
    sql.fails("COPY t (nope) FROM 'x.csv'", "column 'nope'", "nope")
    sql.fails("COPY nothing FROM 'x.csv'", "'default.nothing' is not in", "nothing", kind=NotFoundError)
    sql.fails("COPY t FROM '/nowhere/x.csv'", "No files found", kind=NotFoundError)
    sql.fails("COPY a.b.c FROM 'x.csv'", "Iceberg", "a.b.c")
    sql.fails("COPY t TO x", "the name of a file in quotes", "x")
    sql.fails("COPY t TO 'x.csv' (DELIMITER getenv('x'))", "expected", None)


@pytest.mark.parametrize("inside", ["d.db/t/snapshot/snapshot-9", "views/d/v.json", "catalogs/x.json", "../wh/d.db/x"])
def test_no_file_is_written_among_those_of_the_lake(tmp_path: Path, inside: str) -> None:
    lake = connect(str(tmp_path / "wh"))
    lake.create_database("d")
    (tmp_path / "link").symlink_to(tmp_path / "wh")
    for path in (tmp_path / "wh" / inside, tmp_path / "link" / inside, f"file://{tmp_path}/wh/{inside}"):
        with pytest.raises(InvalidError, match="among the files of the lake"):
            lake.sql(f"COPY (SELECT 1) TO '{path}' (FORMAT csv)")
    lake.sql(f"COPY (SELECT 1) TO '{tmp_path}/wh/mine.csv'")
    assert (tmp_path / "wh" / "mine.csv").exists()
