"""INSERT … ON CONFLICT on every kind of table with a primary key, judged by DuckDB."""

from typing import Any

import duckdb
import pytest

from lakelet import InvalidError, Table
from tests.unit.sql.statements.change.test_row_change import raced
from tests.unit.sql.statements.changed_tables import KEYED, START, filled, rows
from tests.unit.sql_session import SqlSession

NEW = "VALUES (1, 'a', 100, 'x'), (8, 'c', 800, 'z'), (4, 'b', 400, NULL), (8, 'c', 801, 'again')"
STATEMENTS = [
    f"INSERT INTO t {NEW} ON CONFLICT DO NOTHING",
    f"INSERT OR IGNORE INTO t {NEW}",
    f"INSERT OR REPLACE INTO t {NEW}",
    "INSERT OR REPLACE INTO t (s, id, p) VALUES ('x', 1, 'a'), ('y', 7, 'a')",
    "INSERT OR REPLACE INTO t BY NAME SELECT 1 AS id, 'a' AS p, 'n' AS s",
    f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET v = excluded.v + v, s = excluded.s",
    f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET (v, s) = (t.v, t.s || excluded.s), WHERE excluded.v > 100 OR t.v = 10",
    f"INSERT INTO t AS u {NEW} ON CONFLICT DO UPDATE SET s = u.s || excluded.s WHERE v IS NOT NULL",
    f"INSERT INTO t SELECT * FROM ({NEW}) AS q(a, b, c, d) WHERE c < 800 ON CONFLICT DO UPDATE SET v = DEFAULT",
    f"WITH q(a, b, c, d) AS ({NEW}) INSERT INTO t FROM q ON CONFLICT DO UPDATE SET v = excluded.id",
]


def judged(text: str, keys: tuple[str, ...]) -> list[tuple[Any, ...]]:
    duck = duckdb.connect()
    duck.execute(f"CREATE TABLE t (id INT, p VARCHAR, v BIGINT, s VARCHAR, PRIMARY KEY ({', '.join(keys)}))")
    duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", START)
    returned = sorted(duck.execute(f"{text} RETURNING *").fetchall(), key=str)
    return [returned, duck.execute("SELECT * FROM t ORDER BY ALL").fetchall()]  # type: ignore[list-item]


@pytest.mark.sampled
@pytest.mark.parametrize("text", STATEMENTS)
@pytest.mark.parametrize("layout", KEYED)
def test_rows_are_those_of_duckdb(layout: str, text: str) -> None:
    sql = SqlSession()
    table = filled(sql, layout)
    expected = judged(text, table.schema.primary_keys)
    assert [sorted(sql.rows(f"{text} RETURNING *"), key=str), rows(sql)] == expected


def test_how_many_rows_changed() -> None:
    sql = SqlSession()
    filled(sql, "fixed")
    assert sql.rows(f"INSERT INTO t {NEW} ON CONFLICT (id) DO NOTHING")[0][1] == 1
    assert sql.rows(f"INSERT INTO t {NEW} ON CONFLICT (ID) DO NOTHING") == [(None, 0)]
    assert sql.rows(f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET v = 1 WHERE t.id < 8")[0][1] == 2


@pytest.mark.parametrize(
    ("layout", "text", "reason", "at"),
    [
        ("append", f"INSERT INTO t {NEW} ON CONFLICT DO NOTHING", "has no primary key", "ON CONFLICT"),
        ("append", f"INSERT OR REPLACE INTO t {NEW}", "has no primary key", "OR REPLACE"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT (v) DO NOTHING", r"expected the primary key \(id\)", "ON CONFLICT"),
        ("dynamic", f"INSERT INTO t {NEW} ON CONFLICT (id) DO NOTHING", r"the primary key \(id, p\)", "ON CONFLICT"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT (id, v) DO NOTHING", r"the primary key \(id\)", "ON CONFLICT"),
        ("fixed", f"INSERT OVERWRITE t {NEW} ON CONFLICT DO NOTHING", "OVERWRITE", "ON CONFLICT"),
        ("fixed", f"INSERT OR IGNORE INTO t {NEW} ON CONFLICT DO NOTHING", "go without ON CONFLICT", "ON CONFLICT"),
        ("fixed", f"INSERT OR ABORT INTO t {NEW}", "REPLACE or IGNORE", "ABORT"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET id = 3", "part of the primary key", "id = 3"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET w = 3", "no column 'w'", "w = 3"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET v = w", '"w" not found', "w"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET v = q.v", 'table "q" not found', "q.v"),
        ("fixed", f"INSERT INTO t AS u {NEW} ON CONFLICT DO UPDATE SET v = t.v", 'table "t" not found', "t.v"),
        (
            "fixed",
            f"INSERT INTO t AS excluded {NEW} ON CONFLICT DO NOTHING",
            "'excluded' names the rows",
            "ON CONFLICT",
        ),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET v = max(v)", "an aggregate cannot stand", "max"),
        ("fixed", f"INSERT INTO t {NEW} ON CONFLICT ON CONSTRAINT k DO NOTHING", "expected DO", "ON CONSTRAINT"),
        ("fixed", "INSERT INTO t VALUES (1, 'a', 'x', 's') ON CONFLICT DO NOTHING", "'v' is BIGINT; 'x'", "'x'"),
    ],
)
def test_refused_at_its_place(layout: str, text: str, reason: str, at: str) -> None:
    sql = SqlSession()
    filled(sql, layout)
    sql.fails(text, reason, at)


def test_a_column_called_like_the_new_rows() -> None:
    sql = SqlSession()
    sql.rows("CREATE TABLE e (id INT, excluded INT, PRIMARY KEY (id) NOT ENFORCED)")
    sql.fails("INSERT INTO e VALUES (1, 2) ON CONFLICT DO NOTHING", "'excluded' names the rows to insert")


def test_a_key_that_is_null() -> None:
    sql = SqlSession()
    filled(sql, "fixed")
    sql.fails("INSERT INTO t (id) VALUES (NULL) ON CONFLICT DO NOTHING", "'id' is NOT NULL", kind=InvalidError)


@pytest.mark.parametrize("when", ["put", "get"])
@pytest.mark.parametrize("layout", ["fixed", "dynamic"])
def test_rows_that_came_meanwhile_are_in_conflict(layout: str, when: str) -> None:
    sql = SqlSession()
    filled(sql, layout)

    def rival(table: Table) -> None:
        table.write([{"id": 8, "p": "c", "v": 1, "s": "rival"}, {"id": 1, "p": "a", "v": 11, "s": "rival"}])

    text = f"INSERT INTO t {NEW} ON CONFLICT DO UPDATE SET v = t.v + excluded.v RETURNING id, v"
    assert sorted(raced(sql, rival, text, when)) == [(1, 111), (4, None), (8, 801)]
    assert [row for row in rows(sql) if row[0] in (1, 8)] == [(1, "a", 111, "rival"), (8, "c", 801, "rival")]
