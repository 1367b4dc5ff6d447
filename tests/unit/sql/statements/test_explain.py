"""EXPLAIN with DuckDB's options in parentheses."""

import json
from pathlib import Path

import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import LakeletError


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = lakelet.connect(tmp_path)
    made.sql("CREATE TABLE t (a INT)")
    made.sql("INSERT INTO t VALUES (1), (2)")
    return made


@pytest.mark.parametrize("options", ["(FORMAT JSON)", "(format json, analyze)", "(ANALYZE true, FORMAT json)"])
def test_plans_as_json(lake: Lake, options: str) -> None:
    rows = lake.sql(f"EXPLAIN {options} SELECT sum(a) FROM t").rows()
    assert rows[0][0] == "t"
    assert "files: 1 of 1" in rows[0][1]
    assert json.loads(rows[-1][1])


@pytest.mark.parametrize("start", ["", "ANALYZE ", "(ANALYZE) "])
def test_a_query_in_parentheses(lake: Lake, start: str) -> None:
    assert lake.sql(f"EXPLAIN {start}(SELECT a FROM t)").rows()[0][0] == "t"


@pytest.mark.parametrize(
    "options", ["(FORMAT nonsense)", "(FORMAT JSON, COSTS)", "(ANALYZE", "(FORMAT JSON) DROP TABLE t"]
)
def test_what_is_no_option_is_told(lake: Lake, options: str) -> None:
    with pytest.raises(LakeletError):
        lake.sql(f"EXPLAIN {options} SELECT a FROM t")
    assert lake.sql("SELECT count(*) FROM t").rows() == [(2,)]
