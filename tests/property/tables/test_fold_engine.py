"""A table whose merge engine folds: written, compacted, scanned, asked by key and by SQL, it holds what a dict adds up.

The engine is one of tests (`column_fold`), put in the place of `deduplicate`: sums that retracts take off from, and the last
values that are not NULL. Options decide how often rows are folded on their way (tiny buffers spill, compactions take some
runs), never what comes of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet import Lake, Table
from lakelet.lsm.engine.table_engine import ENGINES
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from tests.property.served_rows import check_served
from tests.tiers.examples import examples
from tests.unit.lsm.engine.column_fold import ColumnFold, Values, folded_row, sums_by_name, zeros_by_name

KINDS = {0: "+I", 1: "-U", 2: "+U", 3: "-D"}
COLUMNS = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("id", pa.int32(), nullable=False),
        ("version", pa.int32()),
        ("sum_a", pa.int64()),
        ("sum_b", pa.int32()),
        ("text", pa.string()),
    ]
)
KEY = ["part", "id"]
_Arrived = tuple[int, int, Values]

rows = st.tuples(
    st.sampled_from([0, 0, 0, 1, 2, 3]),
    st.fixed_dictionaries(
        {
            "part": st.sampled_from(["p", "q"]),
            "id": st.integers(0, 5),
            "version": st.none() | st.integers(0, 2),
            "sum_a": st.none() | st.integers(-2, 3),
            "sum_b": st.none() | st.integers(-1, 2),
            "text": st.none() | st.sampled_from(["x", "y", "z"]),
        }
    ),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(rows, min_size=1, max_size=12)),
        st.tuples(st.just("write"), st.lists(rows, min_size=1, max_size=12)),
        st.tuples(st.just("compact"), st.booleans()),
    ),
    min_size=1,
    max_size=7,
)
options = st.fixed_dictionaries(
    {"bucket": st.sampled_from(["1", "2", "-1"])},
    optional={
        "deletion-vectors.enabled": st.just("true"),
        "write-only": st.just("true"),
        "num-sorted-run.compaction-trigger": st.sampled_from(["2", "3"]),
        "write-buffer-size": st.just("2 kb"),
        "sequence.field": st.just("version"),
        "ignore-delete": st.just("true"),
        "file.format": st.sampled_from(["orc", "avro", "sst"]),
        "data-file.thin-mode": st.just("true"),
    },
)


def state(arrived: dict[tuple[Any, ...], list[_Arrived]], engine: ColumnFold, chosen: dict[str, str]) -> list[Values]:
    """The rows that a table shows, by the model."""
    found = []
    for members in arrived.values():
        left = [one for one in members if not ("ignore-delete" in chosen and one[1] & 1)]
        if "sequence.field" in chosen:
            left.sort(key=lambda one: (one[2]["version"] is not None, one[2]["version"] or 0, one[0]))
        row = folded_row(engine, [(kind, values) for _, kind, values in left], KEY) if left else None
        if row is not None:
            found.append(row)
    return sorted(found, key=_by_key)


@contextmanager
def made(chosen: dict[str, str], *, local: bool, partitioned: bool) -> Iterator[tuple[Lake, Table]]:
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(LocalStore(folder) if local else MemoryStore())
        lake.create_database("d")
        partition = ["part"] if partitioned else []
        yield lake, lake.create_table("d.t", COLUMNS, partitioned_by=partition, primary_key=KEY, options=chosen)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=operations,
    chosen=options,
    local=st.booleans(),
    partitioned=st.booleans(),
    zeros=st.booleans(),
)
def test_a_folding_table_holds_what_a_dict_adds_up(
    steps: list[tuple[str, Any]], chosen: dict[str, str], local: bool, partitioned: bool, zeros: bool
) -> None:
    if zeros:
        # A row that is gone remembers nothing, so that it must have had nothing but zeros.
        steps = [(step, _only_sums(argument) if step == "write" else argument) for step, argument in steps]
    arrived: dict[tuple[Any, ...], list[_Arrived]] = {}
    count = 0
    with pytest.MonkeyPatch.context() as patched, made(chosen, local=local, partitioned=partitioned) as (lake, table):
        patched.setitem(ENGINES, "deduplicate", zeros_by_name if zeros else sums_by_name)
        engine = (zeros_by_name if zeros else sums_by_name)(table.schema)
        for step, argument in steps:
            if step == "compact":
                table.compact(argument)
            else:
                given_rows = pa.Table.from_pylist([row for _, row in argument], COLUMNS)
                table.write(given_rows, kinds=[KINDS[kind] for kind, _ in argument])
                for kind, row in argument:
                    arrived.setdefault((row["part"], row["id"]), []).append((count, kind, row))
                    count += 1
            wanted = state(arrived, engine, chosen)
            if "deletion-vectors.enabled" in chosen and "write-only" in chosen:
                continue
            _check(lake, table, wanted)


def _only_sums(given_rows: list[tuple[int, Values]]) -> list[tuple[int, Values]]:
    empty = {"version": None, "text": None}
    return [
        (kind, {**row, **empty, "sum_a": row["sum_a"] or 0, "sum_b": row["sum_b"] or 0}) for kind, row in given_rows
    ]


def _by_key(row: Values) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def _check(lake: Lake, table: Table, wanted: list[Values]) -> None:
    assert sorted(table.scan().to_arrow().to_pylist(), key=_by_key) == wanted
    assert table.scan().count() == len(wanted)
    texts = table.scan(columns=["text"]).to_arrow().column(0).to_pylist()
    assert sorted(texts, key=repr) == sorted([row["text"] for row in wanted], key=repr)
    keys = [{"part": part, "id": number} for part in ("p", "q") for number in range(6)]
    assert sorted(table.get_many(keys).to_pylist(), key=_by_key) == wanted
    with tempfile.TemporaryDirectory() as folder, table.lookup(folder=folder) as lookup:
        check_served(table, lookup, pa.Table.from_pylist(keys))
    conditions = {
        "sum_a > 1 AND text = 'x'": [row for row in wanted if (row["sum_a"] or 0) > 1 and row["text"] == "x"],
        "id = 3 AND sum_b = 0": [row for row in wanted if row["id"] == 3 and row["sum_b"] == 0],
    }
    for where, matching in conditions.items():
        assert sorted(table.scan(where=where).to_arrow().to_pylist(), key=_by_key) == matching
        queried = lake.sql(f"SELECT * FROM d.t WHERE {where}").to_arrow().to_pylist()
        assert sorted(queried, key=_by_key) == matching
    assert sorted(lake.sql("SELECT * FROM d.t").to_arrow().to_pylist(), key=_by_key) == wanted
