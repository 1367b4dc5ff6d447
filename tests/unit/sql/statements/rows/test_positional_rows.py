"""Rows without names go into columns of type ROW by the order of their fields, as in DuckDB."""

import pytest

from lakelet import InvalidError
from tests.unit.sql_session import SqlSession

TYPE = "ROW<x INT, y STRING, z ROW<a BIGINT>, w ARRAY<ROW<b INT, c STRING>>>"


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows(f"CREATE TABLE t (id INT, r {TYPE})")
    return made


@pytest.mark.parametrize(
    "value",
    [
        "(7, 'w', (8,), [(1, 'p'), (2, 'q')])",
        "ROW(7, 'w', ROW(8), [ROW(1, 'p'), ROW(2, 'q')])",
        "(7, 'w', {'a': 8}, [{'c': 'p', 'b': 1}, {'b': 2, 'c': 'q'}])",
        "{'y': 'w', 'x': 7, 'z': ROW(8), 'w': [(1, 'p'), (2, 'q')]}",
        "('7', 'w', ('8',), [('1', 'p'), ('2', 'q')])",
    ],
)
@pytest.mark.parametrize("text", ["INSERT INTO t VALUES (1, {})", "INSERT INTO t SELECT 1, {}", "UPDATE t SET r = {}"])
def test_values_go_by_their_order(sql: SqlSession, text: str, value: str) -> None:
    if text.startswith("UPDATE"):
        sql.rows("INSERT INTO t (id) VALUES (1)")
    sql.rows(text.format(value))
    expected = {"x": 7, "y": "w", "z": {"a": 8}, "w": [{"b": 1, "c": "p"}, {"b": 2, "c": "q"}]}
    assert sql.rows("SELECT * FROM t") == [(1, expected)]


def test_named_and_unnamed_rows_in_one_column_of_values(sql: SqlSession) -> None:
    sql.rows("CREATE TABLE u (id INT, r ROW<x INT, y STRING>)")
    sql.rows("INSERT INTO u VALUES (1, (1, 'a')), (2, {'y': 'b', 'x': 2}), (3, NULL), (4, ROW(NULL, 'd'))")
    rows = [(1, {"x": 1, "y": "a"}), (2, {"x": 2, "y": "b"}), (3, None), (4, {"x": None, "y": "d"})]
    assert sql.rows("SELECT * FROM u ORDER BY id") == rows


def test_names_that_are_there_count_before_the_order(sql: SqlSession) -> None:
    sql.rows(
        "CREATE TABLE u (r ROW<element2 INT, element1 INT>)", "INSERT INTO u VALUES ({'element1': 1, 'element2': 2})"
    )
    assert sql.rows("SELECT r.element1, r.element2 FROM u") == [(1, 2)]


@pytest.mark.parametrize("value", ["(7, 'w')", "(7, 'w', (8,), [], 5)", "(7.5, 'w', (8,), [])", "('x', 'w', (8,), [])"])
def test_what_does_not_fit_is_refused(sql: SqlSession, value: str) -> None:
    sql.fails(f"INSERT INTO t VALUES (1, {value})", "does not convert to it", kind=InvalidError)


@pytest.mark.parametrize("rest", ["NULL", "[]", "[NULL]"])
@pytest.mark.parametrize("value", ["7.5", "'x'", "3000000000"])
def test_a_part_of_which_nothing_is_known_spares_no_other(sql: SqlSession, value: str, rest: str) -> None:
    sql.rows("CREATE TABLE u (r ROW<x INT, w ARRAY<INT>>)")
    for row in (f"{{'x': {value}, 'w': {rest}}}", f"({value}, {rest})"):
        sql.fails(f"INSERT INTO u VALUES ({row})", "does not convert to it", kind=InvalidError)
    sql.rows(f"INSERT INTO u VALUES ({{'x': '7', 'w': {rest}}})")


def test_rows_in_keys_and_values_of_a_map_by_position() -> None:
    sql = SqlSession()
    sql.rows(
        "CREATE TABLE u (id INT, m MAP<ROW<a INT, b INT>, ROW<x INT, y STRING>>, l ARRAY<MAP<STRING, ROW<x INT, y STRING>>>)",
        "INSERT INTO u VALUES (1, MAP {ROW(1, 2): ROW(3, 'c')}, [MAP {'k': (4, 'd')}, NULL]), (2, NULL, NULL)",
        "INSERT INTO u SELECT 3, MAP {ROW(i, i): CASE WHEN i > 0 THEN ROW(i, 'e') END}, [] FROM range(2) AS r(i) WHERE i = 0",
        "UPDATE u SET m = MAP {ROW(5, 6): ROW(7, 'f')} WHERE id = 2",
    )
    assert sql.rows("SELECT * FROM u ORDER BY id") == [
        (1, [({"a": 1, "b": 2}, {"x": 3, "y": "c"})], [[("k", {"x": 4, "y": "d"})], None]),
        (2, [({"a": 5, "b": 6}, {"x": 7, "y": "f"})], None),
        (3, [({"a": 0, "b": 0}, None)], []),
    ]
    # Named fields are matched by their names.
    sql.rows("INSERT INTO u VALUES (4, MAP {{'b': 1, 'a': 2}: {'y': 'g', 'x': 3}}, NULL)")
    assert sql.rows("SELECT m FROM u WHERE id = 4") == [([({"a": 2, "b": 1}, {"x": 3, "y": "g"})],)]
    sql.fails("INSERT INTO u VALUES (5, MAP {ROW(1): ROW(3, 'c')}, NULL)", "does not convert")


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("ROW<`I` INT, j INT>", "{'i': 1, 'J': 2}", {"I": 1, "j": 2}),
        ("ROW<`I` ROW<k INT>>", "{'i': {'K': 1}}", {"I": {"k": 1}}),
        ("ARRAY<ROW<`I` INT>>", "[{'i': 1}, NULL]", [{"I": 1}, None]),
        ("MAP<STRING, ROW<`I` INT>>", "MAP {'a': {'i': 1}}", [("a", {"I": 1})]),
    ],
)
def test_names_of_fields_are_found_in_another_case(kind: str, value: str, found: object) -> None:
    sql = SqlSession()
    sql.rows(
        f"CREATE TABLE u (id INT, r {kind})",
        f"INSERT INTO u VALUES (1, {value})",
        f"INSERT INTO u SELECT 2, {value}",
        "INSERT INTO u VALUES (3, NULL)",
        f"UPDATE u SET r = {value} WHERE id = 3",
        "INSERT INTO u SELECT id + 3, r FROM u",
    )
    assert sql.rows("SELECT r FROM u") == [(found,)] * 6
