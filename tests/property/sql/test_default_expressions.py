"""Random expressions as defaults give what DuckDB itself gives for them, in every way of writing rows."""

from __future__ import annotations

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet import InvalidError, Lake
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults, folded
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

NUMBERS = st.recursive(
    st.integers(-99, 99).map(str),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner),
        st.builds("CASE WHEN {} > {} THEN {} ELSE {} END".format, inner, inner, inner, inner),
        st.builds("coalesce(NULL, {})".format, inner),
        st.builds("abs({})".format, inner),
        st.builds("greatest({}, {})".format, inner, inner),
        st.builds("CAST({} AS BIGINT)".format, inner),
        st.builds("nullif({}, {})".format, inner, inner),
    ),
    max_leaves=6,
)
TEXTS = st.recursive(
    st.text(st.sampled_from("ab'\\ -é\"$"), max_size=4).map(lambda text: "'" + text.replace("'", "''") + "'"),
    lambda inner: st.one_of(
        st.builds("({} || {})".format, inner, inner),
        st.builds("upper({})".format, inner),
        st.builds("replace({}, 'a', {})".format, inner, inner),
        st.builds("substr({}, 2)".format, inner),
        st.builds("concat({}, {})".format, inner, NUMBERS),
        st.builds("CASE WHEN {} LIKE 'a%' THEN {} END".format, inner, inner),
    ),
    max_leaves=5,
)
DATES = st.builds("(DATE '2026-01-31' + {})".format, NUMBERS) | st.builds(
    "CAST(TIMESTAMP '2026-01-31 10:00:00' + INTERVAL ({}) MONTH AS DATE)".format, st.integers(-9, 9)
)
CASES = st.one_of(
    st.tuples(st.just("BIGINT"), NUMBERS), st.tuples(st.just("STRING"), TEXTS), st.tuples(st.just("DATE"), DATES)
)


@given(CASES)
@settings(max_examples=examples(40), deadline=None)
def test_pure_expressions(case: tuple[str, str]) -> None:
    kind, text = case
    column = Field(0, "c", parse_type(kind))
    duck = {"STRING": "VARCHAR"}.get(kind, kind)
    try:
        expected = duckdb.sql(f"SELECT CAST(({text}) AS {duck})").fetchall()[0][0]
    except duckdb.Error:
        expected = InvalidError
    try:
        found = ColumnDefaults({"c": text}, 0).array(column, 2).to_pylist()
    except InvalidError:
        assert expected is InvalidError
        return
    assert found == [expected, expected]
    literal = folded(column, text)
    if literal is not None:
        assert LITERALS.array(Field(0, "c", column.type, default=literal), 1)[0].as_py() == expected
    lake = Lake(MemoryStore())
    session = Session(lake)
    session.run("CREATE DATABASE d")
    session.run(f"CREATE TABLE d.t (id INT, c {kind} DEFAULT ({text}))")
    session.run("INSERT INTO d.t (id) VALUES (1)")
    session.run("INSERT INTO d.t VALUES (2, DEFAULT)")
    lake.table("d.t").write([{"id": 3}])
    session.run("UPDATE d.t SET c = DEFAULT WHERE id = 1")
    assert [row[1] for row in session.run("SELECT * FROM d.t").rows()] == [expected] * 3
