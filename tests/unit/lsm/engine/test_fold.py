"""Folded batches: what the engine is asked for, what it is not, and how retracts are handled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakelet.lsm.engine.fold import fold_groups, folded_batches
from lakelet.lsm.engine.key_groups import KeyGroups, key_groups
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.model.type_parser import parse_type
from tests.unit.lsm.engine.column_fold import ColumnFold

ENGINE = ColumnFold(("sum",), removes_zeros=True)
SPEC = MergeSpec(key=(("k", parse_type("INT NOT NULL")),), partition=("p",), engine=ENGINE)
ROWS = pa.record_batch(
    {
        SEQUENCE_NUMBER: pa.array([4, 5, 6, 7]),
        VALUE_KIND: pa.array([0, 1, 0, 2], pa.int8()),
        "k": pa.array([1, 1, 2, 2], pa.int32()),
        "p": ["x"] * 4,
        "sum": pa.array([5, 5, 1, 2], pa.int32()),
    }
)
GROUPS = KeyGroups(ROWS, np.arange(4), np.array([0, 2]))


def test_all_columns_come_back_in_their_types() -> None:
    kept = fold_groups(GROUPS, ENGINE, replace(SPEC, drop_deletes=False))
    assert kept.schema == ROWS.schema
    assert [tuple(row.values()) for row in kept.to_pylist()] == [(5, 3, 1, "x", 0), (7, 0, 2, "x", 3)]


def test_results_that_are_retracts_are_dropped() -> None:
    assert fold_groups(GROUPS, ENGINE, SPEC).to_pylist() == [
        {SEQUENCE_NUMBER: 7, VALUE_KIND: 0, "k": 2, "p": "x", "sum": 3}
    ]


def test_only_columns_asked_for_are_folded() -> None:
    assert fold_groups(GROUPS, ENGINE, SPEC, ["p", "k"]).to_pylist() == [{"p": "x", "k": 2}]


def test_parts_fold_like_the_whole() -> None:
    parts = key_groups(pa.Table.from_batches([ROWS]), GROUPS.order, GROUPS.starts, 1)
    folded = list(folded_batches(parts, ENGINE, SPEC, ["k", "sum"]))
    assert [batch.to_pylist() for batch in folded] == [[], [{"k": 2, "sum": 3}]]
