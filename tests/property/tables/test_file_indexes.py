"""Random conditions on random tables with file indexes of every type: no index ever hides a row.

Tables are written in several files, upserted, deleted from, compacted and evolved between them. What a scan finds with indexes
is what it finds with none, which is what the other properties of tables judge; SQL finds the same rows.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet import Lake, Table
from lakelet.model.schema import TableSchema
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

COLUMNS = {
    "n": "INT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "s": "STRING",
    "c": "CHAR(3)",
    "m": "DECIMAL(6, 2)",
    "t": "TIMESTAMP(3)",
    "u": "TIMESTAMP(6)",
    "day": "DATE",
    "b": "BOOLEAN",
}
INDEXED = {
    "bloom-filter": {"n", "d", "f", "s", "c", "t", "u", "day"},
    "bitmap": set(COLUMNS) - {"m"},
    "range-bitmap": set(COLUMNS),
}
WIDER = {"n": "BIGINT", "f": "DOUBLE", "m": "DECIMAL(9, 3)"}
NOON = dt.datetime(1970, 1, 1, 12)
FLOATS = [0.0, -0.0, 0.5, -1.5, 3.0, float("nan"), float("inf"), -float("inf")]
VALUES: dict[str, list[Any]] = {
    "n": [-(2**31), -5, 0, 1, 4, 9, 2**31 - 1],
    "d": FLOATS,
    "f": FLOATS,
    "s": ["", "a", "ab", "b", "é", "z" * 20, "z" * 20 + "a", "\U0001d11e", "\uffff"],
    "c": ["a", "ab", "abc", "é", "   "],
    "m": [Decimal(text) for text in ("-9999.99", "-0.01", "0", "0.01", "2.50", "9999.99")],
    "t": [NOON + dt.timedelta(milliseconds=ms) for ms in (-(10**11), -1, 0, 1, 10**9)],
    "u": [NOON + dt.timedelta(microseconds=us) for us in (-(10**14), -1, 0, 1, 10**9)],
    "day": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    "b": [True, False],
}
ENGINES: list[dict[str, str]] = [
    {},
    {"deletion-vectors.enabled": "true"},
    {"merge-engine": "partial-update"},
    {"merge-engine": "aggregation"},
    {"merge-engine": "first-row"},
]


def literal(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"CAST('{value}' AS {COLUMNS[name]})"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value}'"
    return f"DATE '{value}'" if isinstance(value, dt.date) else str(value)


@st.composite
def leaves(draw: st.DrawFn, names: dict[str, str]) -> str:
    column = draw(st.sampled_from(sorted(names)))
    kind = names[column]
    values = st.sampled_from(VALUES[kind]).map(lambda value: literal(kind, value))
    match draw(st.integers(0, 5)):
        case 0:
            return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 1:
            some = draw(st.lists(values | st.just("NULL"), min_size=1, max_size=3))
            return f"{column} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(some)})"
        case 2:
            return f"{column} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {draw(values)} AND {draw(values)}"
    return f"{column} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {draw(values)}"


def conditions(names: dict[str, str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaves(names),
        lambda one: (
            st.builds("({} {} {})".format, one, st.sampled_from(["AND", "OR"]), one) | st.builds("NOT ({})".format, one)
        ),
        max_leaves=4,
    )


def index_options(chosen: dict[str, list[str]], names: dict[str, str]) -> dict[str, str]:
    """Options of indexes; columns are chosen under the names that they had first."""
    now = {first: name for name, first in names.items()}
    options = {}
    for kind, columns in chosen.items():
        found = [now[one] for one in columns if one in now]
        if found:
            options[f"file-index.{kind}.columns"] = ", ".join(found)
        options |= {f"file-index.{kind}.{name}.items": "20" for name in found if kind == "bloom-filter"}
    return options


class Evolving:
    """A table and its columns: the names of now, each with the name that says its values."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.lake = Lake(MemoryStore())
        self.lake.create_database("d")
        engine = data.draw(st.none() | st.sampled_from(ENGINES), label="engine")
        self.keyed = engine is not None
        self.chosen = {
            kind: data.draw(st.lists(st.sampled_from(sorted(able)), min_size=1, unique=True), label=kind)
            for kind, able in INDEXED.items()
        }
        self.names = {name: name for name in COLUMNS}
        threshold = data.draw(st.sampled_from(["1 b", "1 mb"]), label="threshold")
        options = {"write-only": "true", "file-index.in-manifest-threshold": threshold, **(engine or {})}
        options["metadata.stats-mode"] = data.draw(st.sampled_from(["none", "truncate(16)"]), label="statistics")
        options |= index_options(self.chosen, self.names) | ({"bucket": "1"} if self.keyed else {})
        keys: dict[str, Any] = {"primary_key": ["k"]} if self.keyed else {}
        self.deletes = engine in ({}, {"deletion-vectors.enabled": "true"})
        self.table: Table = self.lake.create_table("d.t", [("k", "INT"), *COLUMNS.items()], options=options, **keys)

    def step(self) -> None:
        match self.data.draw(st.sampled_from("wwwwdcrta"), label="step"):
            case "d" if self.deletes:
                self.table.delete(where=f"k = {self.data.draw(st.integers(0, 5))}")
            case "c":
                self.table.compact(full=True)
            case "r":
                self.evolve("rename")
            case "t":
                self.evolve("type")
            case "a":
                self.evolve("again")
            case _:
                self.write()

    def write(self) -> None:
        columns = {name: st.none() | st.sampled_from(VALUES[first]) for name, first in self.names.items()}
        row = st.fixed_dictionaries({"k": st.integers(0, 5), **columns})
        self.table.write(self.data.draw(st.lists(row, min_size=1, max_size=4), label="rows"))

    def evolve(self, what: str) -> None:
        """A column gets another name or type, or goes and comes back empty; its indexes follow it."""
        name = self.data.draw(st.sampled_from(sorted(self.names)), label=what)
        first = self.names[name]
        before = [key for key in self.table.schema.options if key.startswith("file-index.") and "manifest" not in key]
        self.alter(dict.fromkeys(before))
        if what == "rename":
            self.table.rename_column(name, f"{name}x")
            del self.names[name]
            self.names[f"{name}x"] = first
        elif what == "type" and first in WIDER:
            self.table.change_type(name, WIDER[first])
        elif what == "again":
            kind = COLUMNS[first]
            self.table.drop_column(name)
            self.table.add_column(name, kind)
        self.alter(dict(index_options(self.chosen, self.names)))

    def alter(self, changes: dict[str, str | None]) -> None:
        def change(schema: TableSchema) -> TableSchema:
            return self.table.with_options(schema, changes)

        if changes:
            self.table.alter(change)

    def found(self, where: str) -> tuple[int, Counter[str], Counter[str]]:
        """The files that are read, and the rows by a scan and by SQL."""
        scan = self.table.scan(where=where)
        by_sql = self.lake.sql(f"SELECT * FROM d.t WHERE {where}").rows()
        return scan.plan().files, shown(scan.to_arrow().to_pylist()), shown([dict(enumerate(row)) for row in by_sql])


def shown(rows: list[dict[Any, Any]]) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in rows)


def check(data: st.DataObject, asked: int) -> None:
    table = Evolving(data)
    table.write()
    for _ in range(data.draw(st.integers(1, 6), label="steps")):
        table.step()
    wheres = [data.draw(conditions(table.names), label="where") for _ in range(asked)]
    with_indexes = [table.found(where) for where in wheres]
    table.table.set_options({"file-index.read.enabled": "false"})
    for where, (files, rows, by_sql) in zip(wheres, with_indexes, strict=True):
        all_files, all_rows, all_by_sql = table.found(where)
        assert files <= all_files
        assert rows == all_rows, where
        assert by_sql == all_by_sql, where
        assert sum(rows.values()) == sum(by_sql.values()), where


@given(data=st.data())
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
def test_no_index_hides_a_row(data: st.DataObject) -> None:
    check(data, 6)


@pytest.mark.deep
@given(data=st.data())
@settings(max_examples=examples(1000), deadline=None, suppress_health_check=list(HealthCheck))
def test_no_index_hides_a_row_of_many_tables(data: st.DataObject) -> None:
    check(data, 12)
