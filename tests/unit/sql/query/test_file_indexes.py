"""Queries plan by file indexes: files without a value between their least and greatest are not even opened."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakelet
from lakelet import Lake
from tests.unit.scan.spread_values import spread


@pytest.mark.parametrize(
    "condition",
    [
        "n = 16",
        "n BETWEEN 16 AND 16",
        "n > 15 AND n < 17",
        "n IN (16, 17) AND n < 17",
        "s = 's16'",
        "b = 16",
        "s = 's16' OR n > 15 AND n < 17",
    ],
)
def test_files_that_indexes_leave_out_are_not_opened(tmp_path: Path, condition: str) -> None:
    spread(tmp_path)
    lake = lakelet.connect(str(tmp_path))
    query = f"SELECT id FROM d.t WHERE {condition}"
    assert "files: 1 of 3" in str(lake.sql(f"EXPLAIN {query}").rows()[0][1])
    assert lake.sql(query).rows() == [(16,)]
    joined = f"SELECT t.id FROM d.t AS t JOIN (SELECT 16 AS id) o ON t.id = o.id WHERE {condition}"
    assert lake.sql(joined).rows() == [(16,)]


def found(lake: Lake, query: str) -> tuple[str, list[tuple[object, ...]]]:
    shown = str(lake.sql(f"EXPLAIN {query}").rows()[0][1])
    return next(line.strip() for line in shown.splitlines() if "files:" in line), lake.sql(query).rows()


def test_a_primary_key_table_is_asked_by_key_and_changes_are_seen(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.sql(
        "CREATE TABLE t (id INT NOT NULL, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1', "
        "'write-only' = 'true', 'file-index.range-bitmap.columns' = 'id, n')"
    )
    for start in range(3):
        lake.sql(f"INSERT INTO t SELECT 10 * i + {start}, i FROM range(0, 9) r(i)")
    assert "files: 0 of 3" in found(lake, "SELECT * FROM t WHERE id BETWEEN 13 AND 19")[0]
    lake.sql("UPDATE t SET n = 50 WHERE id = 11")
    lines, rows = found(lake, "SELECT id FROM t WHERE n BETWEEN 40 AND 60")
    assert rows == [(11,)], lines
    assert found(lake, "SELECT id FROM t WHERE n = 1 ORDER BY id")[1] == [(10,), (12,)]
