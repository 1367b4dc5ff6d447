"""Random INSERT, UPDATE, DELETE and MERGE give the rows that the same statements give in a plain DuckDB table.

Tables differ in what they are inside (keys, partitions, buckets, deletion vectors, files of two schemas); the statements do not
know. In a primary-key table INSERT replaces rows of the same key, which the DuckDB table is told by a DELETE before. Rows are
compared after every statement, and so is how many rows it says it changed. `LAKELET_CASES` multiplies the number of runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.core import given

from lakelet import Lake
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

_COLUMNS = [("id", "INT NOT NULL"), ("p", "INT"), ("v", "BIGINT"), ("s", "STRING")]
_LAYOUTS: list[dict[str, Any]] = [
    {},
    {"partitioned_by": ["p"]},
    {"options": {"deletion-vectors.enabled": "true"}},
    {"primary_key": ["id"], "options": {"bucket": "2"}},
    {"primary_key": ["id", "p"], "partitioned_by": ["p"], "options": {"bucket": "1"}},
    {"primary_key": ["id", "p"], "partitioned_by": ["p"]},
    {"primary_key": ["id"], "partitioned_by": ["p"]},
    {"primary_key": ["id"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
]
_NUMBERS = [
    *("v + 1", "v * -2", "NULL", "7", "id * 10", "CASE WHEN v > 3 THEN 0 ELSE v END", "length(s)", "CAST('5' AS INT)"),
    *("(SELECT max(v) FROM t)", "(SELECT count(*) FROM t AS o WHERE o.id < 3)", "2.0", "'11'"),
]
_TEXTS = ["s || 'x'", "NULL", "'k'", "CAST(v AS VARCHAR)", "upper(s)", "(SELECT min(s) FROM t)"]
_CONDITIONS = [
    *("id < 4", "v IS NULL", "v % 2 = 0", "s = 'a'", "id IN (SELECT id FROM t WHERE v > 2)", "p = 1", "s LIKE '%x'"),
    *(
        "v > (SELECT avg(v) FROM t)",
        "TRUE",
        "FALSE",
        "v IS DISTINCT FROM 3",
        "id BETWEEN 2 AND 5",
        "p IN (0, 2) OR s IS NULL",
    ),
]
_rows = st.tuples(
    st.integers(0, 7), st.integers(0, 2), st.none() | st.integers(-5, 5), st.none() | st.sampled_from(["a", "b", "ax"])
)


@dataclass
class Both:
    """A table of ours and one of DuckDB's."""

    lake: Session
    duck: duckdb.DuckDBPyConnection
    keys: list[str]

    def run(self, ours: str, theirs: str | None = None) -> None:
        """Runs a statement in both; afterwards both hold the same."""
        rows = self.lake.run(ours).rows()[0][1]
        found = self.duck.execute(theirs or ours).fetchall()
        assert rows == found[0][0], ours
        query = "SELECT * FROM t ORDER BY ALL"
        assert self.lake.run(query).rows() == self.duck.execute(query).fetchall(), ours


def _literal(value: object) -> str:
    return "NULL" if value is None else repr(value)


def _values(rows: list[tuple[Any, ...]]) -> str:
    return ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)


def _distinct(rows: list[tuple[Any, ...]], keys: list[str]) -> list[tuple[Any, ...]]:
    places = [["id", "p", "v", "s"].index(name) for name in keys]
    return list({tuple(row[place] for place in places): row for row in rows}.values()) if keys else rows


def _insert(both: Both, data: st.DataObject) -> None:
    rows = _distinct(data.draw(st.lists(_rows, min_size=1, max_size=6)), both.keys)
    source = f"VALUES {_values(rows)}"
    if data.draw(st.booleans()):
        source = f"SELECT * FROM ({source}) AS q(a, b, c, d)"
    if both.keys:
        match = " AND ".join(f"t.{name} = q.{name}" for name in both.keys)
        both.duck.execute(
            f"DELETE FROM t USING (VALUES {_values(rows)}) AS q(id, p, v, s) WHERE {match}",
        )
    both.run(f"INSERT INTO t {source}")


def _assignments(both: Both, data: st.DataObject) -> str:
    choices: dict[str, list[str]] = {"v": _NUMBERS, "s": _TEXTS}
    if "p" not in both.keys:
        choices["p"] = ["p + 1", "0", "id % 2"]
    chosen = data.draw(st.lists(st.sampled_from(sorted(choices)), min_size=1, unique=True))
    return ", ".join(f"{name} = {data.draw(st.sampled_from(choices[name]))}" for name in chosen)


def _update(both: Both, data: st.DataObject) -> None:
    alias = data.draw(st.sampled_from(["", " AS x"]))
    text = f"UPDATE t{alias} SET {_assignments(both, data)}"
    if data.draw(st.booleans()):
        text += f" WHERE {data.draw(st.sampled_from(_CONDITIONS))}"
    both.run(text)


def _update_from(both: Both, data: st.DataObject) -> None:
    rows = _distinct(data.draw(st.lists(_rows, min_size=1, max_size=4)), ["id"])
    both.run(f"UPDATE t SET v = q.c + t.v, s = q.d FROM (VALUES {_values(rows)}) AS q(a, b, c, d) WHERE t.id = q.a")


def _delete(both: Both, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        both.run(f"DELETE FROM t WHERE {data.draw(st.sampled_from(_CONDITIONS))}")
    else:
        rows = data.draw(st.lists(_rows, min_size=1, max_size=5))
        both.run(f"DELETE FROM t USING (VALUES {_values(rows)}) AS q(a, b, c, d) WHERE id = q.a AND p <> q.b")


def _merge(both: Both, data: st.DataObject) -> None:
    keys = both.keys or ["id"]
    rows = _distinct(data.draw(st.lists(_rows, min_size=1, max_size=5)), keys)
    on = " AND ".join(f"t.{name} = q.{name}" for name in keys)
    clauses = {
        "matched": ["UPDATE SET v = q.v, s = t.s || q.s", "DELETE", "UPDATE SET v = t.v + 1", "DO NOTHING"],
        "not matched": [
            *("INSERT VALUES (q.id, q.p, q.v, q.s)", "INSERT (id, p) VALUES (q.id, q.p)", "DO NOTHING"),
            "INSERT (s, v, p, id) VALUES (upper(q.s), q.v + 1, q.p, q.id)",
        ],
        "not matched by source": ["DELETE", "UPDATE SET s = 'gone'"],
    }
    conditions = {
        "matched": ["t.v > q.v", "q.s IS NULL", "t.id < 4"],
        "not matched": ["q.v > 0", "q.id < 5"],
        "not matched by source": ["t.v IS NULL", "t.id % 2 = 0"],
    }
    text = f"MERGE INTO t USING (VALUES {_values(rows)}) AS q(id, p, v, s) ON {on}"
    closed = set()
    for when in data.draw(st.lists(st.sampled_from(sorted(clauses)), min_size=1, max_size=4)):
        if when in closed:
            continue
        condition = f" AND {data.draw(st.sampled_from(conditions[when]))}" if data.draw(st.booleans()) else ""
        closed.update([] if condition else [when])
        text += f" WHEN {when.upper()}{condition} THEN {data.draw(st.sampled_from(clauses[when]))}"
    both.run(text)


_STATEMENTS: list[Callable[[Both, st.DataObject], None]] = [
    _insert,
    _insert,
    _update,
    _update_from,
    _delete,
    _merge,
    _merge,
]


@settings(
    deadline=None,
    max_examples=examples(12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.sampled_from(_LAYOUTS), st.data())
def test_statements_change_rows_as_in_duckdb(layout: dict[str, Any], data: st.DataObject) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("default")
    lake.create_table("default.t", _COLUMNS, **layout)
    session = Session(lake)
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t (id INT, p INT, v BIGINT, s VARCHAR)")
    both = Both(session, duck, layout.get("primary_key", []))
    try:
        _insert(both, data)
        for _ in range(data.draw(st.integers(1, 6))):
            data.draw(st.sampled_from(_STATEMENTS))(both, data)
    finally:
        session.close()
        duck.close()
