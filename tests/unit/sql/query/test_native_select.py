"""ROW columns that DuckDB reads: fields by their ids, whatever became of them, and numbers that footers know too little of."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet import Lake
from tests.unit.sql.viewed import readers_of


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = lakelet.connect(tmp_path)
    made.sql("CREATE TABLE t (id INT, r ROW<a INT, b STRING, c ROW<x DOUBLE, y FLOAT>>)")
    made.table("default.t").write(
        [
            {"id": 1, "r": {"a": 1, "b": "p", "c": {"x": 1.5, "y": math.nan}}},
            {"id": 2, "r": {"a": None, "b": None, "c": None}},
            {"id": 3, "r": None},
            {"id": 4, "r": {"a": 4, "b": "q", "c": {"x": math.nan, "y": 0.5}}},
        ]
    )
    return made


def _same(lake: Lake) -> None:
    """The rows of a query are those of a scan."""
    found, expected = lake.sql("SELECT * FROM t ORDER BY id").to_arrow(), lake.table("default.t").scan().to_arrow()
    assert str(found.to_pylist()) == str(expected.sort_by("id").to_pylist())
    assert found.column("r").type == pa.struct([field.with_nullable(True) for field in expected.column("r").type])


def test_a_row_with_numbers_of_floating_point(lake: Lake) -> None:
    assert readers_of(lake, "SELECT * FROM t") == (1, 0)
    _same(lake)
    # NaN is the greatest number, and no footer has it.
    assert lake.sql("SELECT id FROM t WHERE r.c.x > 1000 OR r.c.y > 1000 ORDER BY id").rows() == [(1,), (4,)]
    assert lake.sql("SELECT id FROM t WHERE r.c.x = 'nan'::DOUBLE").rows() == [(4,)]
    assert lake.sql("SELECT id FROM t WHERE r IS NULL").rows() == [(3,)]
    assert lake.sql("SELECT id FROM t WHERE r.c IS NULL ORDER BY id").rows() == [(2,), (3,)]


@pytest.mark.parametrize(
    "changes",
    [
        ["ADD COLUMN r.d STRING"],
        ["ADD COLUMN r.c.z BIGINT", "ADD COLUMN r.e DOUBLE"],
        ["RENAME COLUMN r.b TO bb", "ADD COLUMN r.b BIGINT"],
        ["RENAME COLUMN r TO old", "RENAME COLUMN old TO r"],
        ["DROP COLUMN r.a", "ADD COLUMN r.a STRING"],
        ["DROP COLUMN r.c.y"],
        ["ALTER COLUMN r.a TYPE BIGINT"],
        ["ALTER COLUMN r.c.y TYPE DOUBLE"],
    ],
)
def test_a_row_that_has_changed(lake: Lake, changes: list[str]) -> None:
    for change in changes:
        lake.sql(f"ALTER TABLE t {change}")
    _same(lake)
    assert readers_of(lake, "SELECT * FROM t") == (1, 0)
    lake.table("default.t").write([{"id": 5, "r": None}])
    _same(lake)


def test_fields_that_cannot_be_converted_as_we_do_are_ours(lake: Lake) -> None:
    lake.sql("ALTER TABLE t ADD COLUMN r.l ARRAY<ROW<v DOUBLE>>")
    assert readers_of(lake, "SELECT * FROM t") == (0, 1)
    _same(lake)
