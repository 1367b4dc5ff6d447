"""Reordering the rows of large tables."""

import numpy as np
import pyarrow as pa
import pytest

from lakelet.lsm import ordered_rows
from lakelet.lsm.ordered_rows import rows_in_order

TABLE = pa.table(
    {
        "text": ["a", "bb" * 50, None, "d" * 200, ""],
        "data": [b"1", None, b"333" * 30, b"", b"5"],
        "list": [["x"], None, [], ["y" * 100, None], ["z"]],
        "row": pa.array([{"s": "q"}, None, {"s": None}, {"s": "r" * 80}, {"s": ""}]),
        "map": pa.array([[("k", b"v")], None, [], [("l", None)], [("m", b"w")]], pa.map_(pa.string(), pa.binary())),
        "number": [1, 2, 3, 4, 5],
    }
)


@pytest.mark.parametrize("most", [1 << 30, 700, 40])
@pytest.mark.parametrize("batch_rows", [2, 100])
def test_rows_come_as_asked_whatever_their_size(monkeypatch: pytest.MonkeyPatch, most: int, batch_rows: int) -> None:
    monkeypatch.setattr(ordered_rows, "_MOST_BYTES", most)
    chunked = pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)])
    rows = np.array([4, 0, 3, 3, 1, 2])
    batches = list(rows_in_order(chunked, rows, batch_rows))
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert pa.Table.from_batches(batches).equals(TABLE.take(pa.array(rows)).cast(TABLE.schema))
    assert all(batch.schema == TABLE.schema for batch in batches)


def test_no_rows_are_asked_for() -> None:
    assert list(rows_in_order(TABLE, np.empty(0, np.int64), 10)) == []
