"""Creation of tables: their locations."""

from pathlib import Path

import pytest

import lakelet
from lakelet.errors import InvalidError


@pytest.mark.parametrize("sign", ["#", "?"])
def test_an_address_that_would_be_cut(tmp_path: Path, sign: str) -> None:
    lake = lakelet.connect(str(tmp_path / "lake"))
    lake.sql("CREATE DATABASE iceberg.db")
    with pytest.raises(InvalidError, match=r"an address cannot have # or [?] in it"):
        lake.sql(f"CREATE TABLE iceberg.db.t (id INT) LOCATION 'file://{tmp_path}/a{sign}b'")
    assert lake.sql("SHOW TABLES IN iceberg.db").rows() == []
    lake.sql(f"CREATE TABLE iceberg.db.t (id INT) LOCATION '{tmp_path}/a{sign}b'")
    lake.sql("INSERT INTO iceberg.db.t VALUES (1)")
    assert lake.sql("SELECT * FROM iceberg.db.t").rows() == [(1,)]
    assert list((tmp_path / f"a{sign}b").rglob("*.parquet"))
