"""A query of the service over committed and buffered rows gives what `lake.sql` gives once they are flushed."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelet
from lakelet.errors import InternalError, InvalidError, LakeletError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.sql.engine.duck_types import duck_type
from tests.property.sql.test_sql_oracle import rows
from tests.property.sql_queries import QueryMaker, RandomQuery
from tests.property.sql_tables import RandomTable, Source
from tests.tiers.examples import examples
from tests.unit.service.query.served_lake import Served, ServedLake, engine_of

QUERIES = 15


def _served(made: ServedLake, table: RandomTable) -> Served:
    name = table.name.removeprefix("default.")
    if table.keyed and "deletion-vectors.enabled" in table.table.schema.options:
        # A rollback may have left rows that are hidden until the next compaction, which a flush brings.
        table.table.compact(full=True)
    try:
        writer = table.table.writer(wal_folder=made.wal_folder)
    except InvalidError:
        # Some layouts take no rows one by one.
        writer = None
    return Served(name, table.table, writer, hides_day=False)


def _answer(engine: QueryEngine, query: RandomQuery) -> pa.Table | LakeletError:
    try:
        return engine.run(QueryRequest(query.ours, query.params or None)).reader().read_all()
    except LakeletError as error:
        return error


def _judged(lake: lakelet.Lake, query: RandomQuery, found: pa.Table | LakeletError) -> None:
    try:
        expected = lake.sql(query.ours, query.params or None).to_arrow()
    except InternalError:
        raise
    except LakeletError:
        return
    if isinstance(found, LakeletError):
        raise found
    assert [field.type for field in found.schema] == [field.type for field in expected.schema]
    if query.part_of is not None:
        assert found.num_rows == expected.num_rows
    elif query.ordered:
        assert rows(found) == rows(expected)
    else:
        left, right = Counter(rows(found)), Counter(rows(expected))
        assert left == right, f"only ours: {left - right}, missing: {right - left}"


@settings(max_examples=examples(6))
@given(seed=st.integers(0, 2**40))
def test_buffered_rows_are_those_of_the_next_snapshot(seed: int) -> None:
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        made = ServedLake(lakelet.connect(Path(folder) / "lake"), Path(folder) / "wal")
        made.lake.create_database("default", if_not_exists=True)
        tables = [RandomTable(made.lake, rng, f"default.{name}", rng.random() < 0.5) for name in ("t", "u")]
        for table in tables:
            table.build()
            made.tables[table.name.removeprefix("default.")] = _served(made, table)
        for table, served in zip(tables, made.tables.values(), strict=True):
            if served.writer is not None and rng.random() < 0.8:
                given_rows = [table._row() for _ in range(rng.choice([1, 3, 8, 15]))]
                served.writer.put_many(pa.Table.from_pylist(given_rows, served.table.scan().arrow_schema))
                table.steps.append(f"put {given_rows}")
        sources = [
            Source(name, name, {field.name: duck_type(field.type) for field in one.table.schema.fields})
            for name, one in made.tables.items()
        ]
        queries = QueryMaker(rng, sources)
        with engine_of(made) as engine:
            drawn = [queries.query() for _ in range(QUERIES)]
            answers = [_answer(engine, query) for query in drawn]
        made.close()
        for query, found in zip(drawn, answers, strict=True):
            try:
                _judged(made.lake, query, found)
            except Exception as error:
                steps = "\n  ".join(step for table in tables for step in (table.name, *table.steps))
                pytest.fail(f"{error}\n{query.ours}\n{query.params}\n  {steps}")
