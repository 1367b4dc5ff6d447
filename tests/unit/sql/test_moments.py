"""A text beside a timestamp is read in microseconds, whatever the column's precision: by pruning and counting as by DuckDB."""

from pathlib import Path

import pytest

import lakelet


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path))
    lake.sql(
        "CREATE TABLE t (i INT, a TIMESTAMP(3), b TIMESTAMP(0), c TIMESTAMP_LTZ(3), d TIMESTAMP(9), e TIMESTAMP(6))"
    )
    for number, second in enumerate(("00", "00.001", "00.002")):
        moment = f"'2024-01-01 12:00:{second}'"
        lake.sql(f"INSERT INTO t VALUES ({number}, {moment}, '2024-01-01 12:00:00', {moment}, {moment}, {moment})")
    return lake


@pytest.mark.parametrize("column", ["a", "b", "c", "d", "e"])
@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">="])
def test_a_text_between_two_milliseconds(lake: lakelet.Lake, column: str, sign: str) -> None:
    below = {"a": 2, "b": 3, "c": 2, "d": 2, "e": 2}[column]
    expected = {"=": 0, "<>": 3, "<": below, "<=": below, ">": 3 - below, ">=": 3 - below}[sign]
    condition = f"{column} {sign} '2024-01-01 12:00:00.0015'"
    assert lake.sql(f"SELECT count(*) FROM t WHERE {condition}").rows() == [(expected,)]
    assert len(lake.sql(f"SELECT i FROM t WHERE {condition}").rows()) == expected
    assert len(lake.sql(f"SELECT i FROM (SELECT * FROM t) WHERE {condition}").rows()) == expected
