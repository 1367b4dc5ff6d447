"""VALUES of literals are read as they are, or by the session's DuckDB without a catalog, and mean what they mean anywhere."""

import pytest

from lakelet import InvalidError
from lakelet.sql.engine.duckdb_engine import Engine, Space
from tests.unit.sql_session import SqlSession

KINDS = ("INT", "BIGINT", "SMALLINT", "DOUBLE", "DECIMAL(9, 3)", "STRING", "CHAR(4)", "DATE", "TIMESTAMP(6)", "BOOLEAN")
LITERALS = (
    "1",
    "-7",
    "+3",
    "1.50",
    "2147483648",
    "'5'",
    "'1.5'",
    "'2026-01-02'",
    "'2026-01-02 03:04:05'",
    "'true'",
    "NULL",
)


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.lake.create_database("default")
    return made


@pytest.fixture
def spaces(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each query had a catalog."""
    found: list[bool] = []
    real = Engine.space

    def space(self: Engine, *, has_tables: bool = True) -> Space:
        found.append(has_tables)
        return real(self, has_tables=has_tables)

    monkeypatch.setattr(Engine, "space", space)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_literal_means_the_same_as_in_a_query(sql: SqlSession, spaces: list[bool], kind: str) -> None:
    sql.rows(f"CREATE TABLE direct (x {kind})")
    sql.rows(f"CREATE TABLE queried (x {kind})")
    taken = []
    for value in LITERALS:
        spaces.clear()
        try:
            sql.rows(f"INSERT INTO direct VALUES ({value})")
            taken.append(True)
            assert not any(spaces), f"{value} was read in a catalog"
        except InvalidError:
            taken.append(False)
        try:
            sql.rows(f"INSERT INTO queried SELECT {value}")
            assert taken[-1], f"{value} is refused by VALUES alone"
        except InvalidError:
            assert not taken[-1], f"{value} is refused by SELECT alone"
    assert any(taken)
    assert sql.rows("SELECT * FROM direct ORDER BY ALL") == sql.rows("SELECT * FROM queried ORDER BY ALL")


@pytest.mark.parametrize(
    "values",
    ["(1, 'a')", "(1, 'a'), (2, NULL)", "(1.0, 5), (2, '02')", "(1, 'it''s')", "(1, E'a\\nb')", "(1, DEFAULT)"],
)
def test_rows_of_literals_need_no_catalog(sql: SqlSession, spaces: list[bool], values: str) -> None:
    sql.rows("CREATE TABLE t (id INT, s STRING)")
    spaces.clear()
    sql.rows(f"INSERT INTO t VALUES {values}")
    mixed = "'02'" in values
    assert any(spaces) == mixed, "only a column of several types is looked at first"


@pytest.mark.parametrize("default", ["'none'", "current_date"])
def test_defaults_are_filled_in_behind_the_rows(sql: SqlSession, spaces: list[bool], default: str) -> None:
    """However many there are: each as a query of its own would be more than DuckDB takes."""
    sql.rows(f"CREATE TABLE t (id INT, s STRING DEFAULT {default})")
    spaces.clear()
    rows = ", ".join(f"({number}, {'NULL' if number == 7 else 'DEFAULT'})" for number in range(3000))
    sql.rows(f"INSERT INTO t VALUES {rows}")
    assert not any(spaces)
    assert sql.rows("SELECT count(*), count(s), count(DISTINCT s) FROM t") == [(3000, 2999, 1)]
    assert sql.rows("SELECT id FROM t WHERE s IS NULL") == [(7,)]


@pytest.mark.parametrize("value", ["lower('A')", "$s", "(SELECT max(s) FROM t)", "DATE '2026-01-01'"])
def test_anything_else_is_looked_up(sql: SqlSession, spaces: list[bool], value: str) -> None:
    sql.rows("CREATE TABLE t (id INT, s STRING)")
    sql.lake.table("default.t").change_default("s", "none")
    spaces.clear()
    sql.rows(f"INSERT INTO t VALUES (1, {value})", params={"s": "x"} if value == "$s" else None)
    assert any(spaces)
    assert len(sql.rows("SELECT * FROM t")) == 1


def test_settings_of_the_session_hold_for_literals(sql: SqlSession) -> None:
    sql.rows("CREATE TABLE t (x TIMESTAMP_LTZ(6))")
    sql.rows("SET 'TimeZone' = 'Asia/Kolkata'")
    sql.rows("INSERT INTO t VALUES ('2026-01-01 00:00:00')")
    sql.rows("INSERT INTO t SELECT '2026-01-01 00:00:00'")
    found = sql.rows("SELECT * FROM t")
    assert found[0] == found[1]


def test_an_error_points_at_the_literal(sql: SqlSession) -> None:
    sql.rows("CREATE TABLE t (id INT, s STRING)")
    with pytest.raises(InvalidError, match="column 'id' is INT; 'x' does not convert to it") as found:
        sql.rows("INSERT INTO t VALUES (1, 'a'), ('x', 'b')")
    assert "'x'" in str(found.value)
    assert sql.rows("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.parametrize(("text", "queries"), [("'x'", []), ("E'x'", [False])], ids=["plain", "escaped"])
def test_literals_that_need_no_conversion_are_no_query_or_one(
    sql: SqlSession, spaces: list[bool], text: str, queries: list[bool]
) -> None:
    sql.rows("CREATE TABLE t (a BIGINT, b STRING, c INT)")
    spaces.clear()
    sql.rows(f"INSERT INTO t VALUES (1, {text}, 3), (-2147483648, 'y', 4)")
    assert spaces == queries, "a query reads what is plain, or a second one converts what fits"
    rows = sql.rows("SELECT * FROM t ORDER BY a")
    assert rows == [(-2147483648, "y", 4), (1, "x", 3)]
