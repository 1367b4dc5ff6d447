import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.iceberg.scan.equality import deleted_values


def _kept(rows: Sequence[Any], gone: Sequence[Any], kind: pa.DataType) -> list[bool]:
    data = pa.record_batch({"a": pa.array(rows, kind)})
    found: list[bool] = deleted_values([pa.table({"a": pa.array(gone, kind)})]).keeps(data).to_pylist()
    return found


@pytest.mark.parametrize(
    ("rows", "gone", "kind", "kept"),
    [
        ([1, 2, None], [2, 7], pa.int64(), [True, False, True]),
        ([1, 2, None], [None], pa.int64(), [True, True, False]),
        ([1, 2], [], pa.int64(), [True, True]),
        ([], [1], pa.int64(), []),
        (["", "a", None], ["", None], pa.string(), [False, True, False]),
        ([math.nan, 0.0, -0.0], [math.nan, 0.0], pa.float64(), [False, False, True]),
        ([b"0" * 16, None], [b"0" * 16], pa.uuid(), [False, True]),
    ],
)
def test_one_column(rows: list[Any], gone: list[Any], kind: pa.DataType, kept: list[bool]) -> None:
    assert _kept(rows, gone, kind) == kept


_ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from("ab"), st.booleans()), max_size=12
)
_SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.string()), ("z", pa.bool_())])


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([pa.array([row[at] for row in rows], field.type) for at, field in enumerate(_SCHEMA)], _SCHEMA)


@given(_ROWS, _ROWS, _ROWS)
def test_several_columns_are_equal_together(
    rows: list[tuple[Any, ...]], gone: list[tuple[Any, ...]], more: list[tuple[Any, ...]]
) -> None:
    deleted = deleted_values([_table(gone), _table(more)])
    data = pa.RecordBatch.from_arrays([column.combine_chunks() for column in _table(rows).columns], schema=_SCHEMA)
    assert deleted.keeps(data).to_pylist() == [row not in (*gone, *more) for row in rows]
