"""Rows of a bucket in files and in-memory runs: scans and gets agree with a dict, whatever the engine.

Every row has its own sequence number. Files hold a key once, as they do in a table; what would stand twice in a file goes to
another or to a run in memory, which may hold every version of a key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelet.lsm.engine.merge_engine import DEDUPLICATE, FIRST_ROW, MergeEngine
from lakelet.lsm.engine.table_engine import ENGINES
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.source.memory_run import MemoryRun
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.where import parse_where
from lakelet.read.lookup.block_cache import BlockCache
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.merge.merge_reader import BUDGET_BYTES, MergeReader
from lakelet.read.merge.overlaid_split import AnySplit, OverlaidSplit
from lakelet.read.table_reader import TableReader
from tests.tiers.examples import examples
from tests.unit.lsm.engine.column_fold import ColumnFold, Values, folded_row
from tests.unit.read.key_value_table import KeyValueTable, schema_of_columns

COLUMNS = {"name": "STRING NOT NULL", "id": "INT NOT NULL", "version": "INT", "sum": "BIGINT", "text": "STRING"}
KEY = ["name", "id"]
NAMES = ["", "a", "a\0"]
ENGINE_CHOICES: list[MergeEngine] = [
    DEDUPLICATE,
    FIRST_ROW,
    ColumnFold(("sum",)),
    ColumnFold(("sum",), removes_zeros=True),
]
_Key = tuple[Any, ...]


@dataclass(frozen=True)
class Rows:
    """All rows of a bucket, in the order of their arrival, and the source that each is in: files first, then runs."""

    rows: list[tuple[int, Values, int]]
    files: int
    runs: int


@st.composite
def strewn(draw: st.DrawFn) -> Rows:
    files, runs = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    value = st.fixed_dictionaries(
        {
            "name": st.sampled_from(NAMES),
            "id": st.integers(0, 1),
            "version": st.none() | st.integers(0, 2),
            "sum": st.none() | st.integers(-2, 2),
            "text": st.sampled_from([None, "x", "y", "z"]),
        }
    )
    row = st.tuples(st.sampled_from([0, 0, 0, 1, 2, 3]), value, st.integers(0, max(files + runs - 1, 0)))
    drawn = st.lists(row, max_size=8) | st.lists(row, min_size=12, max_size=40)
    return Rows(draw(drawn) if files + runs else [], files, runs)


def key_of(row: Values) -> _Key:
    return tuple(row[name] for name in KEY)


def order_of(key: _Key) -> tuple[Any, ...]:
    return key[0].encode(), key[1]


def laid_out(
    rows: Rows, options: dict[str, str]
) -> tuple[KeyValueTable, AnySplit, dict[_Key, list[tuple[int, int, Values]]]]:
    """The table, its bucket, and (sequence, kind, row) of every key."""
    table = KeyValueTable(schema_of_columns(COLUMNS, KEY))
    table.evolve(replace(table.schema, options={**table.schema.options, **options}))
    sources: list[list[tuple[int, int, Values]]] = [[] for _ in range(rows.files + rows.runs)]
    model: dict[_Key, list[tuple[int, int, Values]]] = {}
    for sequence, (kind, row, place) in enumerate(rows.rows):
        if place < rows.files and any(key_of(other) == key_of(row) for _, _, other in sources[place]):
            continue
        sources[place].append((sequence, kind, row))
        model.setdefault(key_of(row), []).append((sequence, kind, row))
    for part in sources[: rows.files]:
        if part:
            table.write(sorted(part, key=lambda one: order_of(key_of(one[2]))), group_rows=3)
    runs = tuple(MemoryRun.of(_arrow(part, table), table.schema) for part in sources[rows.files :] if part)
    return table, OverlaidSplit(table.split() if table.files else None, runs), model


def _arrow(rows: list[tuple[int, int, Values]], table: KeyValueTable) -> pa.Table:
    columns = {
        SEQUENCE_NUMBER: pa.array([row[0] for row in rows], pa.int64()),
        VALUE_KIND: pa.array([row[1] for row in rows], pa.int8()),
    }
    for field in table.schema.fields:
        columns[field.name] = pa.array([row[2][field.name] for row in rows], to_arrow(field.type))
    return pa.table(columns)


def merged(
    members: list[tuple[int, int, Values]], engine: MergeEngine, *, versions: bool, ignore_delete: bool
) -> Values | None:
    """What the rows of a key come to."""
    left = [one for one in members if not (ignore_delete and one[1] & 1)]

    def rank(one: tuple[int, int, Values]) -> tuple[Any, ...]:
        version = one[2]["version"]
        return (version is not None, version or 0, one[0]) if versions else (one[0],)

    left.sort(key=rank)
    if not left:
        return None
    if isinstance(engine, ColumnFold):
        return folded_row(engine, [(kind, row) for _, kind, row in left], KEY)
    _, kind, row = left[0] if engine is FIRST_ROW else left[-1]
    return None if kind & 1 else row


NOTHING = {"name": "", "id": 0, "version": None, "sum": None, "text": None}


@settings(max_examples=examples(150), deadline=None)
@example(
    rows=Rows([*[(0, NOTHING, 0)] * 3, (0, {**NOTHING, "sum": 0}, 0)], files=0, runs=1),
    engine=FIRST_ROW,
    versions=False,
    ignore_delete=False,
    ordered=False,
    budget=BUDGET_BYTES,
    columns=list(COLUMNS),
    where=None,
)
@given(
    rows=strewn(),
    engine=st.sampled_from(ENGINE_CHOICES),
    versions=st.booleans(),
    ignore_delete=st.booleans(),
    ordered=st.booleans(),
    budget=st.sampled_from([BUDGET_BYTES, 1]),
    columns=st.sampled_from([list(COLUMNS), ["text"], ["sum", "id"], []]),
    where=st.sampled_from([None, "id > 0", "sum > 0", "name = 'a' AND text = 'x'", "sum = 0 OR text IS NULL"]),
)
def test_rows_strewn_among_files_and_memory_are_those_of_a_dict(
    rows: Rows,
    engine: MergeEngine,
    versions: bool,
    ignore_delete: bool,
    ordered: bool,
    budget: int,
    columns: list[str],
    where: str | None,
) -> None:
    versions = versions and engine is not FIRST_ROW
    options = {"ignore-delete": str(ignore_delete).lower(), **({"sequence.field": "version"} if versions else {})}
    table, split, members = laid_out(rows, options)
    model = {
        key: row
        for key, part in sorted(members.items(), key=lambda item: order_of(item[0]))
        if (row := merged(part, engine, versions=versions, ignore_delete=ignore_delete)) is not None
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(ENGINES, "deduplicate", lambda schema: engine)
        condition = row_filter(None if where is None else parse_where(where, table.schema.fields), table.schema.fields)
        reader = MergeReader(
            table.home,
            table.schema,
            columns,
            condition,
            table.schema_of,
            ordered=ordered,
            budget_bytes=budget,
        )
        found = [row for batch in reader.batches([split]) for row in _listed(batch)]
        wanted = [{name: row[name] for name in columns} for row in model.values() if _matches(row, where)]
        whole = _listed(reader.table([split]))
        if not ordered:
            found, whole, wanted = (sorted(part, key=repr) for part in (found, whole, wanted))
        assert found == wanted
        assert whole == wanted
        through = TableReader(table.home, table.schema, columns, condition, table.schema_of, ordered=True)
        assert sorted(_listed(through.table([split])), key=repr) == sorted(wanted, key=repr)
        got = _got(table, split, columns or ["text"])
    assert got == {key: {name: row[name] for name in columns or ["text"]} for key, row in model.items()}


def _listed(rows: pa.RecordBatch | pa.Table) -> list[Values]:
    return [{} for _ in range(rows.num_rows)] if not rows.num_columns else rows.to_pylist()


def _got(table: KeyValueTable, split: AnySplit, columns: list[str]) -> dict[_Key, Values]:
    keys = [(name, number) for name in [*NAMES, "absent"] for number in (1, 0, -1)]
    asked = pa.table({"name": [key[0] for key in keys], "id": pa.array([key[1] for key in keys], pa.int32())})
    reader = PointReader(table.home, table.schema, columns, table.schema_of, cache=BlockCache())
    rows, places = reader.get_many([(split, np.arange(len(keys)))], asked)
    return {keys[place]: row for place, row in zip(places.tolist(), rows.to_pylist(), strict=True)}


def _matches(row: Values, where: str | None) -> bool:
    total = row["sum"]
    return {
        None: True,
        "id > 0": row["id"] > 0,
        "sum > 0": total is not None and total > 0,
        "name = 'a' AND text = 'x'": row["name"] == "a" and row["text"] == "x",
        "sum = 0 OR text IS NULL": total == 0 or row["text"] is None,
    }[where]
