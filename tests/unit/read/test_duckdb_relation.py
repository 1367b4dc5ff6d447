"""A scan that DuckDB reads: columns and filters as it asks for them, and any number of scans at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakelet.read.duckdb_relation import scan_dataset

ROWS = pa.table({"a": list(range(100)), "b": [f"{n % 7}" for n in range(100)], "c": [None, 1.5] * 50})


def rescan(names: Sequence[str] | None, _: pc.Expression | None) -> Iterator[pa.RecordBatch]:
    """The rows in small batches; the condition is left to the dataset."""
    yield from (ROWS if names is None else ROWS.select(list(names))).to_batches(max_chunksize=30)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t",
        "SELECT count(*) FROM t WHERE a > 50",
        "SELECT a FROM t WHERE b = '3' ORDER BY a",
        "SELECT c, b FROM t WHERE c IS NULL AND a < 9 ORDER BY b",
        "SELECT * FROM t WHERE a BETWEEN 3 AND 7 ORDER BY a",
        "SELECT b, sum(a), count(c) FROM t GROUP BY b ORDER BY b",
        "SELECT a FROM t WHERE a > 1000",
        "SELECT x.a FROM t x JOIN t y ON x.a = y.a WHERE x.b = '1' ORDER BY 1",
        "SELECT a FROM t WHERE b IN ('1', '2') OR c > 1 ORDER BY a LIMIT 5",
    ],
)
def test_queries_have_the_rows_of_a_table(sql: str) -> None:
    with duckdb.connect() as connection:
        connection.register("t", scan_dataset(ROWS.schema, rescan))
        found = connection.sql(sql).fetchall()
        connection.register("t", ROWS)
        assert found == connection.sql(sql).fetchall()


def test_more_scans_than_arrow_has_threads_wait_for_none(tmp_path: Path) -> None:
    """Each scan reads a file by Arrow's threads while all are being read."""
    many = pa.io_thread_count() + 4
    path = tmp_path / "rows.parquet"
    pq.write_table(ROWS, path)
    together = threading.Barrier(many)

    def reading(names: Sequence[str] | None, _: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        together.wait(60)
        yield from ds.dataset(path).to_table(columns=names).to_batches()

    def asked(_: int) -> list[tuple[int]]:
        with duckdb.connect() as connection:
            connection.register("t", scan_dataset(ROWS.schema, reading))
            found: list[tuple[int]] = connection.sql("SELECT sum(a) FROM t").fetchall()
            return found

    with ThreadPoolExecutor(many) as pool:
        assert list(pool.map(asked, range(many))) == [[(4950,)]] * many


def test_an_error_of_the_rows_is_told() -> None:
    told: list[BaseException] = []

    def failing(names: Sequence[str] | None, _: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        yield from ROWS.select(names or []).to_batches()
        raise ValueError("gone")

    with duckdb.connect() as connection:
        connection.register("t", scan_dataset(ROWS.schema, failing, told.append))
        with pytest.raises(duckdb.Error):
            connection.sql("SELECT sum(a) FROM t").fetchall()
    assert [str(one) for one in told] == ["gone"]
