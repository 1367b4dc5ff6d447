import numpy as np
import pyarrow as pa
import pytest

from lakelet.iceberg.scan.positions import _by_file, kept_rows


def test_positions_by_file() -> None:
    rows = pa.table({"file_path": ["b", "a", "b", "b"], "pos": pa.array([5, 1, 2, 9], pa.int64())})
    chunked = pa.concat_tables([rows, rows.slice(1, 1)])
    encoded = chunked.set_column(0, "file_path", chunked.column(0).dictionary_encode())
    apart = pa.concat_tables(
        [one.set_column(0, "file_path", one.column(0).dictionary_encode()) for one in (rows, rows)]
    )
    for table, first in ((chunked, [1, 1]), (encoded, [1, 1]), (apart, [1, 1])):
        found = _by_file(table)
        assert found["a"].tolist() == first
        assert sorted(set(found["b"].tolist())) == [2, 5, 9]
    assert _by_file(rows.slice(0, 0)) == {}


@pytest.mark.parametrize(
    ("start", "count", "kept"),
    [(0, 3, [True, False, False]), (3, 2, None), (5, 3, [True, True, False]), (8, 4, None)],
)
def test_kept_rows(start: int, count: int, kept: list[bool] | None) -> None:
    found = kept_rows(np.array([1, 2, 7]), start, count)
    assert (None if found is None else found.to_pylist()) == kept
    assert kept_rows(None, start, count) is None
