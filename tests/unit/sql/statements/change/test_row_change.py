"""UPDATE, DELETE and MERGE while others write: rows are looked at again, and nothing is lost or done twice."""

from collections.abc import Callable
from typing import Any

import pytest

from lakelet import Lake, Table
from lakelet.errors import ConflictError, InvalidError
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.unit.hooked_store import HookedStore
from tests.unit.moving_clock import MovingClock
from tests.unit.sql.statements.changed_tables import KEYED, LAYOUTS, filled, values
from tests.unit.sql_session import SqlSession


def raced(sql: SqlSession, rival: Callable[[Table], object], text: str, when: str = "put") -> list[tuple[Any, ...]]:
    """Runs a statement; a rival commits after its rows were found and before it commits, or `when` it begins to look for them."""
    assert isinstance(sql.store, MemoryStore)
    hooked = HookedStore(sql.store)
    hooked.when = lambda call, path: call == when and "manifest-list" in path
    hooked.after = lambda: rival(sql.lake.table("default.t"))
    found = Session(Lake(hooked, clock=MovingClock())).run(text).rows()
    assert hooked.when is None, "the rival did not come in"
    return found


def data_files(sql: SqlSession) -> set[str]:
    return {path for path in sql.files() if "/bucket-" in path}


@pytest.fixture(params=LAYOUTS)
def sql(request: pytest.FixtureRequest) -> SqlSession:
    made = SqlSession()
    filled(made, request.param)
    return made


def change(sql: SqlSession, text: str) -> Callable[[Table], object]:
    return lambda _: sql.rows(text)


def test_an_update_sees_the_rows_that_others_changed(sql: SqlSession) -> None:
    raced(sql, change(sql, "UPDATE t SET v = 100 WHERE id = 1"), "UPDATE t SET v = v + 1 WHERE id = 1")
    assert values(sql)[1] == 101


def test_an_update_leaves_rows_that_do_not_match_any_more(sql: SqlSession) -> None:
    found = raced(sql, change(sql, "UPDATE t SET v = -1 WHERE id = 1"), "UPDATE t SET s = 'x' WHERE v = 10")
    assert found == [(None, 0)]
    assert values(sql)[1] == -1


def test_a_delete_does_not_bring_rows_back(sql: SqlSession) -> None:
    raced(sql, change(sql, "DELETE FROM t WHERE id = 2"), "DELETE FROM t WHERE id < 4")
    assert sorted(values(sql)) == [4, 5]


def test_an_update_does_not_bring_rows_back(sql: SqlSession) -> None:
    raced(sql, change(sql, "DELETE FROM t WHERE id = 2"), "UPDATE t SET v = 0 WHERE id < 4")
    assert values(sql) == {1: 0, 3: 0, 4: None, 5: 50}


def test_rows_of_overwritten_tables_stay_gone(sql: SqlSession) -> None:
    raced(
        sql,
        change(sql, "INSERT OVERWRITE t VALUES (1, 'a', 7, NULL), (6, 'b', 8, NULL)"),
        "UPDATE t SET v = v + 1 WHERE id < 9",
    )
    assert values(sql) == {1: 8, 6: 9}


def test_a_merge_inserts_a_key_once(sql: SqlSession) -> None:
    text = (
        "MERGE INTO t USING (SELECT 7 AS id, 1 AS v) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = t.v + q.v "
        "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (q.id, 'a', q.v)"
    )
    raced(sql, change(sql, text), text)
    assert values(sql)[7] == 2


@pytest.mark.parametrize("name", ["t", '"default".t', "T"])
def test_a_table_that_is_named_twice_is_seen_in_one_version(name: str) -> None:
    sql = SqlSession()
    filled(sql, "append")
    text = f"UPDATE t SET v = (SELECT max(v) FROM {name}) WHERE id = 1"
    raced(sql, change(sql, "INSERT INTO t VALUES (8, 'z', 1000, NULL)"), text, when="get")
    assert values(sql) == {1: 50, 2: 20, 3: 30, 4: None, 5: 50, 8: 1000}


@pytest.mark.parametrize("layout", [*LAYOUTS])
def test_rows_that_others_append_are_no_conflict(layout: str) -> None:
    sql = SqlSession()
    filled(sql, layout)
    before = len(sql.lake.table("default.t").snapshots())
    raced(sql, change(sql, "INSERT INTO t VALUES (8, 'z', 1, NULL)"), "UPDATE t SET v = 0 WHERE id = 1")
    assert values(sql) == {1: 0, 2: 20, 3: 30, 4: None, 5: 50, 8: 1}
    if layout not in KEYED:
        assert len(sql.lake.table("default.t").snapshots()) == before + 2


def test_what_was_written_in_vain_is_removed() -> None:
    sql = SqlSession()
    filled(sql, "append")
    raced(sql, change(sql, "DELETE FROM t WHERE id = 1"), "UPDATE t SET v = 0 WHERE id = 2")
    live: set[str] = set()
    table = sql.lake.table("default.t")
    for snapshot in table.snapshots():
        live |= {path for path, _ in table.files(version=snapshot.id)}
    assert data_files(sql) == live


def test_patience_ends() -> None:
    sql = SqlSession()
    table = filled(sql, "append", **{"commit.max-retries": "0"})
    with pytest.raises(ConflictError):
        raced(sql, change(sql, "DELETE FROM t WHERE id = 1"), "UPDATE t SET v = 0 WHERE id = 2")
    assert values(sql) == {2: 20, 3: 30, 4: None, 5: 50}
    assert len(table.snapshots()) == 3


def test_columns_that_differ_in_case_only() -> None:
    sql = SqlSession()
    sql.lake.create_database("default")
    sql.lake.create_table("default.c", [("a", "INT"), ("A", "INT")])
    sql.fails("UPDATE c SET a = 1", "differ in case alone", kind=InvalidError)
