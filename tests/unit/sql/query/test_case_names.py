"""Tables, databases, frames and columns whose names differ in case alone: never one taken for the other."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from tests.unit.sql_session import SqlSession

_ROW = pa.schema([("id", pa.int32()), ("v", pa.int32())])
_TABLES = {"d.Src": 1, "d.src": 2, "D.src": 3, "D.SRC": 4}


@pytest.fixture
def lake() -> Iterator[SqlSession]:
    session = SqlSession()
    session.lake.create_database("d")
    session.lake.create_database("D")
    for name, value in _TABLES.items():
        session.lake.create_table(name, _ROW).write(pa.table({"id": [1], "v": [value]}, schema=_ROW))
    yield session
    session.session.close()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a.v, b.v FROM d.Src a JOIN d.src b USING (id)", [(1, 2)]),
        ("SELECT Src.v, b.v FROM d.Src JOIN d.src b ON Src.id = b.id", [(1, 2)]),
        ("SELECT (SELECT v FROM D.SRC), (SELECT v FROM d.src), (SELECT v FROM D.src)", [(4, 2, 3)]),
        ("FROM d.Src UNION ALL FROM d.src ORDER BY v", [(1, 1), (1, 2)]),
        ("WITH x AS (SELECT v FROM d.Src) SELECT x.v, y.v FROM x, d.src y", [(1, 2)]),
        ("SELECT a.v, b.v FROM d.Src FOR VERSION AS OF 1 a, d.src b", [(1, 2)]),
        ("SELECT v FROM d.src WHERE v = 2 AND EXISTS (SELECT 1 FROM d.Src s WHERE s.v = 1)", [(2,)]),
        ("SELECT v FROM d.Src a WHERE a.v = 2 UNION ALL SELECT v FROM d.src b WHERE b.v = 1", []),
    ],
)
def test_tables_are_told_apart(lake: SqlSession, query: str, rows: list[Any]) -> None:
    assert lake.rows(query) == rows
    assert lake.rows("USE d", query) == rows


def test_short_and_long_names_of_one_table_are_the_same(lake: SqlSession) -> None:
    query = "SELECT (SELECT v FROM Src), (SELECT v FROM src), (SELECT v FROM d.src), (SELECT v FROM D.src)"
    assert lake.rows("USE d", query) == [(1, 2, 2, 3)]


def test_a_name_in_another_case_is_the_only_table_that_is_called_so(lake: SqlSession) -> None:
    lake.lake.create_table("d.Orders", _ROW).write(pa.table({"id": [1], "v": [9]}, schema=_ROW))
    assert lake.rows("SELECT a.v, b.v FROM d.ORDERS a JOIN d.orders b USING (id)") == [(9, 9)]


@pytest.mark.parametrize("query", ["SELECT * FROM d.SRC", "DELETE FROM d.SRC", "INSERT INTO d.SRC VALUES (1, 2)"])
def test_an_ambiguous_name_is_refused_with_the_candidates(lake: SqlSession, query: str) -> None:
    lake.fails(query, r"'d\.SRC' is ambiguous: it may be 'd\.Src' or 'd\.src'", kind=InvalidError)


@pytest.mark.parametrize("query", ["TABLE d.Src UNION ALL TABLE d.src", "PIVOT d.Src ON v USING count(src.v)"])
def test_what_cannot_be_told_apart_is_refused(lake: SqlSession, query: str) -> None:
    with pytest.raises(InvalidError, match="differ in case alone"):
        lake.rows("USE d", query)


@pytest.mark.parametrize(
    ("statement", "target", "rows"),
    [
        ("DELETE FROM d.src USING d.Src s WHERE s.v = 1 AND src.v = 2", "d.src", []),
        ("DELETE FROM d.src USING d.Src s WHERE s.v = 2", "d.src", [(1, 2)]),
        ("DELETE FROM d.src WHERE v IN (SELECT v + 1 FROM d.Src)", "d.src", []),
        ("UPDATE d.src SET v = (SELECT v + 100 FROM d.Src)", "d.src", [(1, 101)]),
        ("UPDATE D.src SET v = (SELECT v + 100 FROM d.src)", "D.src", [(1, 102)]),
        (
            "MERGE INTO d.Src t USING d.src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 10",
            "d.Src",
            [(1, 12)],
        ),
        ("INSERT INTO d.src SELECT * FROM d.Src", "d.src", [(1, 1), (1, 2)]),
        ("INSERT OVERWRITE D.SRC SELECT * FROM D.src", "D.SRC", [(1, 3)]),
    ],
)
def test_statements_change_one_and_read_the_other(
    lake: SqlSession, statement: str, target: str, rows: list[Any]
) -> None:
    lake.rows(statement)
    assert lake.rows(f"SELECT * FROM {target} ORDER BY v") == rows
    for name, value in _TABLES.items():
        if name != target:
            assert lake.rows(f"SELECT v FROM {name}") == [(value,)]


def test_frames_are_told_apart(lake: SqlSession) -> None:
    frames = {"f": pa.table({"id": [1], "v": [7]}), "F": pa.table({"id": [1], "v": [8]})}
    assert lake.rows("SELECT a.v, b.v FROM f a JOIN F b USING (id)", frames=frames) == [(7, 8)]
    assert lake.rows("SELECT v FROM F", frames=frames) == [(8,)]
    assert lake.rows("SELECT v FROM G", frames={"g": frames["f"]}) == [(7,)]
    more = {"Gg": frames["f"], "gG": frames["F"]}
    with pytest.raises(InvalidError, match="'GG' is ambiguous: it may be 'Gg' or 'gG'"):
        lake.rows("SELECT v FROM GG", frames=more)


def test_variables_are_told_apart(lake: SqlSession) -> None:
    rows, ROWS = pa.table({"v": [7]}), pa.table({"v": [8]})
    assert lake.lake.sql("SELECT a.v, b.v FROM rows a, ROWS b").rows() == [(7, 8)]
    assert rows != ROWS


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM d.c",
        "SELECT V FROM d.c",
        "SELECT id FROM d.c",
        "SELECT * FROM d.c$audit_log",
        "INSERT INTO d.c SELECT * FROM d.c",
        "INSERT INTO d.src SELECT id, V FROM d.c",
        "DELETE FROM d.c WHERE V = 3",
        "UPDATE d.c SET v = 1",
        "MERGE INTO d.c USING d.src s ON c.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_columns_that_differ_in_case_alone_are_refused(lake: SqlSession, statement: str) -> None:
    schema = pa.schema([("id", pa.int32()), ("v", pa.int32()), ("V", pa.int32())])
    lake.lake.create_table("d.c", schema).write(pa.table({"id": [1], "v": [2], "V": [3]}, schema=schema))
    lake.fails(statement, "'v' and 'V' differ in case alone", kind=InvalidError)
    assert lake.lake.table("d.c").scan(where="V = 3", columns=["V"]).to_arrow().to_pylist() == [{"V": 3}]
    with pytest.raises(InvalidError, match="'v' and 'V' differ in case alone"):
        lake.lake.table("d.c").scan().to_duckdb()
    lake.rows("ALTER TABLE d.c RENAME COLUMN V TO w")
    assert lake.rows("SELECT * FROM d.c") == [(1, 2, 3)]


def test_frames_with_columns_that_differ_in_case_alone_are_refused(lake: SqlSession) -> None:
    arrow = pa.table([[1], [2]], names=["v", "V"])
    for frame in (arrow, arrow.to_reader(), pd.DataFrame([[1, 2]], columns=["v", "V"]), pl.DataFrame(arrow)):
        with pytest.raises(InvalidError, match="'v' and 'V' differ in case alone"):
            lake.rows("SELECT V FROM f", frames={"f": frame})
