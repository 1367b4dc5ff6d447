"""DuckDB as the judge of statements that change rows: both take them or both refuse them, and the rows are the same afterwards.

Tables differ in what they are inside, the statements do not know: one in some is a temporary table, which hides one of the lake.
Rows that a statement reads are now and then those of another temporary table. Names in a third of the statements belong to no
table, to the wrong one, or to a side that has no row. No error shows a name of ours.
"""

import random
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet import Lake
from lakelet.errors import InternalError, LakeletError
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.property.sql_changes import ChangeMaker, RandomChange
from tests.tiers.examples import examples

STATEMENTS = 12
LAYOUTS: list[tuple[Any, ...]] = [
    {},
    {"partitioned_by": ["p"]},
    {"options": {"deletion-vectors.enabled": "true"}},
    {"primary_key": ["id"], "options": {"bucket": "2"}},
    {"primary_key": ["id", "p"], "partitioned_by": ["p"]},
    {"primary_key": ["id"], "partitioned_by": ["p"]},
    {"primary_key": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
]
_COLUMNS = "id INT NOT NULL, p INT, v BIGINT, s VARCHAR"
_READ = re.compile(r"\((VALUES (?:\([^()]*\)(?:, )?)+)\) AS q\(id, p, v, s\)")
_ALL = "SELECT * FROM t ORDER BY ALL"


class NoJudgementError(Exception):
    """DuckDB itself broke down over a statement, and its database with it."""


def judge_changes(seed: int) -> None:
    """Statements on one table, all of it decided by a number."""
    rng = random.Random(seed)
    layout = rng.choice(LAYOUTS)
    keys = layout.get("primary_key", [])
    lake = Lake(MemoryStore())
    lake.create_database("default")
    lake.create_table("default.t", [("id", "INT NOT NULL"), ("p", "INT"), ("v", "BIGINT"), ("s", "STRING")], **layout)
    key = f", PRIMARY KEY ({', '.join(keys)})" if keys else ""
    temporary = rng.random() < 0.25
    with closing(Session(lake)) as session, duckdb.connect() as duck:
        duck.execute(f"CREATE TABLE t ({_COLUMNS}{key})")
        if temporary:
            session.run("INSERT INTO t VALUES (77, 7, 7, 'the lake''s')")
            session.run(f"CREATE TEMP TABLE t ({_COLUMNS}{key})")
        for table in (session.run, duck.execute):
            table("INSERT INTO t VALUES (1, 0, 3, 'a'), (2, 1, NULL, 'b'), (5, 2, 4, NULL), (6, 0, 2, 'ax')")
        maker = ChangeMaker(rng, keys)
        for _ in range(STATEMENTS):
            change = maker.change()
            if temporary:
                change = RandomChange(change.theirs, change.theirs)
            if rng.random() < 0.3:
                change = _with_source(change, (session.run, duck.execute))
            try:
                check(session, duck, change)
            except NoJudgementError:
                return
            except Exception as error:
                rows = duck.execute(_ALL).fetchall()
                pytest.fail(f"{error}\n{layout}\n{change.ours}\nDuckDB's table afterwards: {rows}")
        if temporary:
            assert session.run('SELECT s FROM "default".t').rows() == [("the lake's",)]


def _with_source(change: RandomChange, sides: Sequence[Callable[[str], object]]) -> RandomChange:
    """The statement with the rows that it reads in a temporary table, where it reads any."""
    found = _READ.search(change.ours)
    if found is None:
        return change
    for run in sides:
        run("CREATE OR REPLACE TEMP TABLE src (id INT, p INT, v BIGINT, s VARCHAR)")
        run(f"INSERT INTO src {found[1]}")
    before = None if change.before is None else _READ.sub("src AS q", change.before)
    return RandomChange(_READ.sub("src AS q", change.ours), _READ.sub("src AS q", change.theirs), before)


def check(session: Session, duck: duckdb.DuckDBPyConnection, change: RandomChange) -> None:
    expected = _judged(duck, change)
    found, refused = _changed(session, change)
    if refused is not None:
        assert not isinstance(refused, InternalError), refused
        assert "__lakelet" not in str(refused).replace("__lakelet_row", ""), refused
        assert "lakelet_temporary" not in str(refused), refused
        assert isinstance(expected, str), f"only we refuse it: {refused}"
    else:
        assert not isinstance(expected, str), f"only DuckDB refuses it: {expected}"
        if "RETURNING" in change.ours:
            assert sorted(found, key=str) == sorted(expected, key=str), f"{found} is not {expected}"
        else:
            assert found[0][1] == expected[0][0]
    rows = session.run(_ALL).rows()
    assert rows == duck.execute(_ALL).fetchall(), f"ours: {rows}"


def _changed(session: Session, change: RandomChange) -> tuple[list[tuple[Any, ...]], LakeletError | None]:
    try:
        return session.run(change.ours).rows(), None
    except LakeletError as error:
        return [], error


def _judged(duck: duckdb.DuckDBPyConnection, change: RandomChange) -> list[tuple[Any, ...]] | str:
    duck.execute("BEGIN")
    try:
        if change.before is not None:
            duck.execute(change.before)
        result = duck.execute(change.theirs)
        found = result.fetchall()
    except duckdb.InternalException as error:
        raise NoJudgementError from error
    except duckdb.Error as error:
        duck.execute("ROLLBACK")
        return str(error)
    duck.execute("COMMIT")
    return found


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 2**40))
def test_a_statement_changes_the_rows_that_it_changes_in_duckdb(seed: int) -> None:
    judge_changes(seed)
