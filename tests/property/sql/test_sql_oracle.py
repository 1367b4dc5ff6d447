"""DuckDB as the judge of SQL: a query over tables of the lake gives the rows that it gives over plain tables.

The tables have layouts, histories and schemas of every kind; the plain ones hold what `scan()` reads. What can go wrong in
between is which files are pruned, who reads them, under which schema, and what is answered without reading.
"""

import math
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelet
from lakelet import Lake
from lakelet.errors import InternalError, LakeletError
from lakelet.sql.engine.duck_types import duck_type
from tests.property.sql.test_predicates import KINDS, conditions, some_columns
from tests.property.sql.test_predicates import tables as typed_rows
from tests.property.sql_queries import QueryMaker, RandomQuery
from tests.property.sql_tables import RandomTable, Source
from tests.tiers.examples import examples

QUERIES = 20


def plain(value: Any) -> Any:
    """A value that is equal to itself, and the same for both zeros."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(plain(one) for one in value)
    if isinstance(value, dict):
        return tuple((key, plain(one)) for key, one in value.items())
    return value


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def connected() -> duckdb.DuckDBPyConnection:
    judge = duckdb.connect()
    judge.execute("SET TimeZone = 'UTC'; CREATE SCHEMA shop; USE shop")
    return judge


def judged(judge: duckdb.DuckDBPyConnection, text: str, params: dict[str, object]) -> pa.Table | str:
    try:
        return judge.sql(text, params=params).to_arrow_table() if params else judge.sql(text).to_arrow_table()
    except duckdb.Error as error:
        return str(error)


def check(lake: Lake, judge: duckdb.DuckDBPyConnection, query: RandomQuery) -> None:
    expected = judged(judge, query.theirs, query.params)
    try:
        found = lake.sql(query.ours, query.params or None).to_arrow()
    except LakeletError as error:
        if isinstance(error, InternalError) or not isinstance(expected, str):
            raise
        return
    if isinstance(expected, str):
        # An error that only some rows cause may not come up where they are pruned.
        return
    assert found.schema.equals(expected.schema), f"{found.schema} is not {expected.schema}"
    if query.part_of is not None:
        whole = judged(judge, query.part_of, query.params)
        assert isinstance(whole, pa.Table)
        assert found.num_rows == expected.num_rows
        assert not Counter(rows(found)) - Counter(rows(whole))
    elif query.ordered:
        assert rows(found) == rows(expected)
    else:
        left, right = Counter(rows(found)), Counter(rows(expected))
        assert left == right, f"only ours: {left - right}, missing: {right - left}"


def built(lake: Lake, rng: random.Random) -> list[RandomTable]:
    lake.create_database("shop")
    tables = [RandomTable(lake, rng, f"shop.{name}", rng.random() < 0.5) for name in ("t", "u")]
    for table in tables:
        table.build()
    return tables


def all_sources(tables: list[RandomTable], judge: duckdb.DuckDBPyConnection) -> list[Source]:
    found = [source for table in tables for source in table.sources(judge)]
    # A table of the database in use has two names.
    shorter = [Source(one.ours.removeprefix("shop."), one.theirs, one.columns, one.snapshot) for one in found]
    return [*found, *shorter]


@settings(max_examples=examples(6))
@given(seed=st.integers(0, 2**40))
def test_a_query_over_the_lake_gives_the_rows_of_plain_tables(seed: int) -> None:
    judge_queries(seed)


def judge_queries(seed: int) -> None:
    """Tables, queries, more changes, and queries again, all of it decided by a number."""
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        lake = lakelet.connect(Path(folder))
        judge = connected()
        tables = built(lake, rng)
        lake.sql("USE shop")
        earlier: list[RandomQuery] = []
        for _ in range(2):
            queries = QueryMaker(rng, all_sources(tables, judge))
            # Those of before once more, for what is kept of them may be outdated now.
            kept = [one for one in earlier if "VERSION" not in one.ours]
            earlier = [*kept[:10], *(queries.query() for _ in range(QUERIES))]
            for query in earlier:
                try:
                    check(lake, judge, query)
                except Exception as error:
                    steps = "\n  ".join(step for table in tables for step in (table.name, *table.steps))
                    pytest.fail(f"{error}\nours:   {query.ours}\ntheirs: {query.theirs}\n{query.params}\n  {steps}")
            for table in tables:
                table.go_on()


@st.composite
def conditioned(draw: st.DrawFn) -> tuple[pa.Table, list[str]]:
    """Rows with values in a few columns of every kind of type, and conditions about these."""
    names = draw(some_columns)
    return draw(typed_rows(names)), draw(st.lists(conditions(names), min_size=6, max_size=10))


LAYOUTS = ["append", "append", "keyed", "compacted"]


@settings(max_examples=examples(12))
@given(case=conditioned(), layout=st.sampled_from(LAYOUTS))
def test_a_condition_prunes_no_row_that_it_keeps(case: tuple[pa.Table, list[str]], layout: str) -> None:
    judge_conditions(case, layout)


def judge_conditions(case: tuple[pa.Table, list[str]], layout: str) -> None:
    """Conditions on a table that has a file for each of its rows."""
    rows_of_table, texts = case
    # A file for each row: whatever can be pruned is.
    numbered = rows_of_table.append_column("row_number", pa.array(range(rows_of_table.num_rows), pa.int32()))
    with TemporaryDirectory() as folder:
        lake = lakelet.connect(Path(folder))
        lake.create_database("shop")
        table = lake.create_table(
            "shop.t",
            [*((name, kind.type) for name, kind in KINDS.items()), ("row_number", "INT NOT NULL")],
            partitioned_by=["row_number"],
            primary_key=["row_number", "i8"] if layout == "keyed" and "i8" not in used(rows_of_table) else [],
            options={"bucket": "-1"},
        )
        table.write(filled_keys(numbered, table.schema.primary_keys))
        if layout == "compacted":
            table.compact(full=True)
        judge = connected()
        judge.register("rows_of_table", table.scan().to_arrow())
        types = ", ".join(f"CAST({one.name} AS {duck_type(one.type)}) AS {one.name}" for one in table.schema.fields)
        judge.execute(f"CREATE TABLE shop.t AS SELECT {types} FROM rows_of_table")
        for text in texts:
            for selected in ("row_number", "count(*)"):
                query = f"SELECT {selected} FROM shop.t WHERE {text}"
                check(lake, judge, RandomQuery(query, query, {}))


def used(table: pa.Table) -> set[str]:
    return {name for name in table.column_names if table[name].null_count < table.num_rows}


def filled_keys(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Rows whose keys are not NULL."""
    for name in keys:
        column = table[name]
        if column.null_count:
            place = table.column_names.index(name)
            table = table.set_column(place, table.schema.field(name), column.fill_null(pa.scalar(0, column.type)))
    return table
