"""A run in memory: what is known of it, its rows in key order, and rows by key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import encode_row
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.source.memory_run import MemoryRun
from lakelet.lsm.source.row_source import RowRequest
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import Comparison
from lakelet.read.lookup.key_bounds import WantedKeys
from tests.unit.read.key_value_table import schema_of_columns

SCHEMA = schema_of_columns({"k": "STRING NOT NULL", "n": "INT NOT NULL", "v": "BIGINT"}, ["k", "n"])
ROWS = [(7, 0, "b", 1, 10), (9, 3, "a", 2, None), (8, 2, "a", 2, 20), (6, 0, "a", -3, 30), (5, 1, "b", 1, 40)]
KEY_TYPES = [field.type for field in SCHEMA.trimmed_key_fields]


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    names = [SEQUENCE_NUMBER, VALUE_KIND, "k", "n", "v"]
    types = [pa.int64(), pa.int8(), pa.large_string(), pa.int32(), pa.int64()]
    return pa.table([pa.array([row[at] for row in rows], types[at]) for at in range(5)], names=names)


RUN = MemoryRun.of(table(ROWS), SCHEMA)


def request(*names: str, batch_rows: int = 100, where: Any = None, own: bool = True) -> RowRequest:
    fields = tuple(SCHEMA.field(name) for name in names)
    return RowRequest(fields, row_filter(where, SCHEMA.fields), own, own, batch_rows, 1)


def test_what_is_known_of_a_run() -> None:
    data = RUN.data
    assert (data.min_key, data.max_key) == (encode_row(["a", -3], KEY_TYPES), encode_row(["b", 1], KEY_TYPES))
    assert (data.min_sequence, data.max_sequence, data.row_count, data.delete_row_count) == (5, 9, 5, 2)
    assert (data.level, data.size) == (0, 0)


def test_rows_come_in_key_order_and_versions_of_a_key_oldest_first() -> None:
    asked = request("k", "n", "v", batch_rows=2)
    batches = list(RUN.batches(asked))
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    assert all(batch.schema == asked.schema for batch in batches)
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert found == [ROWS[3], ROWS[2], ROWS[1], ROWS[4], ROWS[0]]


def test_only_columns_asked_for_come_and_rows_that_match() -> None:
    where = Comparison("n", ">", pa.scalar(1, pa.int32()))
    assert [batch.to_pylist() for batch in RUN.batches(request("v", where=where, own=False))] == [
        [{"v": 20}, {"v": None}]
    ]
    nothing = Comparison("n", ">", pa.scalar(9, pa.int32()))
    assert list(RUN.batches(request("v", where=nothing))) == []


def wanted(*keys: tuple[str, int]) -> WantedKeys:
    return WantedKeys([pa.array([key[0] for key in keys]), pa.array([key[1] for key in keys], pa.int32())], KEY_TYPES)


def test_rows_are_found_by_key() -> None:
    (hits,) = RUN.search(wanted(("z", 0), ("a", 2), ("b", 1), ("a", -3), ("a", 2)))
    assert hits.places.tolist() == [1, 1, 2, 2, 3, 4, 4]
    assert hits.sequences().tolist() == [8, 9, 5, 7, 6, 8, 9]
    kinds = hits.kinds
    assert kinds is not None
    assert kinds.tolist() == [2, 3, 1, 0, 0, 2, 3]
    assert hits.rows([SCHEMA.field("v"), SCHEMA.field("k")]).to_pylist()[2] == {"v": 40, "k": "b"}
    kept = hits.keep(kinds & 1 == 0)
    assert kept.places.tolist() == [1, 2, 3, 4]
    assert kept.kinds is None
    assert RUN.search(wanted(("a", 3), ("", 0))) == ()


def test_a_run_has_rows() -> None:
    with pytest.raises(InvalidError, match="at least one row"):
        MemoryRun.of(table([]), SCHEMA)


def test_a_batch_is_as_good_as_a_table() -> None:
    assert MemoryRun.of(table(ROWS).to_batches()[0], SCHEMA).data == RUN.data
