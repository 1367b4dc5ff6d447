"""User files that are replaced under the same name: a query reads the current contents."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lakelet.storage.disk.local_store import LocalStore
from tests.unit.sql_session import SqlSession

_TIMES = 4
_ROWS = 10


def _write_csv(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path)


def _write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(f'{{"i": {value:4}}}\n' for value in table["i"].to_pylist()))


@pytest.fixture(params=["parquet", "csv", "json"])
def staged(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Path]:
    """Writes ten rows from a number on to one file, of one size and with one time of modification."""
    write = {"parquet": pq.write_table, "csv": _write_csv, "json": _write_json}[request.param]

    def stage(first: int) -> Path:
        path = tmp_path / f"staged.{request.param}"
        write(pa.table({"i": range(first, first + _ROWS)}), path)
        # A clock too coarse to tell two writings apart.
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return path

    return stage


@pytest.mark.parametrize(
    "query",
    [
        "FROM '{path}'",
        "SELECT i FROM '{path}' WHERE i >= {first}",
        "SELECT i FROM (FROM '{path}') WHERE i >= {first}",
        "SELECT f.i FROM '{path}' f JOIN seen ON f.i <> seen.i WHERE f.i >= {first} AND seen.i = -1",
        "SELECT i FROM '{path}' WHERE i >= {first} AND NOT EXISTS (FROM loaded l WHERE l.i = i + 10000)",
    ],
)
def test_every_row_is_loaded(tmp_path: Path, staged: Callable[[int], Path], query: str) -> None:
    lake = SqlSession(LocalStore(tmp_path / "lake"))
    lake.rows("CREATE TABLE loaded (i BIGINT)", "CREATE TABLE seen (i BIGINT)", "INSERT INTO seen VALUES (-1)")
    for first in range(1000, 1000 + _TIMES * _ROWS, _ROWS):
        path = staged(first)
        # A query over the lake's own files before it, which keeps their footers.
        lake.rows("SELECT count(i), sum(i) FROM seen WHERE i < 0")
        lake.rows(f"INSERT INTO loaded {query.format(path=path, first=first)}")
    assert lake.column("SELECT i FROM loaded ORDER BY i") == list(range(1000, 1000 + _TIMES * _ROWS))


def test_a_table_made_anew_under_its_name_is_read_anew(tmp_path: Path) -> None:
    lake = SqlSession(LocalStore(tmp_path / "lake"))
    for value in range(5):
        lake.rows("DROP TABLE IF EXISTS t", "CREATE TABLE t (i BIGINT)", f"INSERT INTO t VALUES ({value})")
        assert lake.rows(f"SELECT i FROM t WHERE i >= {value}") == [(value,)]
    lake.rows("INSERT INTO t VALUES (100)", "CALL sys.rollback_to(table => 'default.t', snapshot_id => 1)")
    lake.rows("INSERT INTO t VALUES (200)")
    assert lake.rows("SELECT i FROM t WHERE i >= 0 ORDER BY i") == [(4,), (200,)]
