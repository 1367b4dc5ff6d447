"""Tables whose metadata names classes."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import InvalidError

PROVIDER = "write.py-location-provider.impl"
CODE = """
open({canary!r}, "w").close()
from pyiceberg.table.locations import SimpleLocationProvider
class Class(SimpleLocationProvider): pass
"""


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that exists as soon as the class is imported."""
    canary = tmp_path / "canary"
    (tmp_path / "hostile_table_class.py").write_text(CODE.format(canary=str(canary)))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield canary
    sys.modules.pop("hostile_table_class", None)


def prepared(folder: Path, **properties: str) -> lakelet.Lake:
    """A lake with a table that somebody else gave the properties."""
    lake = lakelet.connect(str(folder / "lake"))
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t AS SELECT 1 AS a")
    for metadata in (folder / "lake").rglob("*.metadata.json"):
        found = json.loads(metadata.read_text())
        metadata.write_text(json.dumps({**found, "properties": {**found["properties"], **properties}}))
    return lakelet.connect(str(folder / "lake"))


@pytest.mark.parametrize("key", ["py-io-impl", "s3.retry-strategy-impl", "py-catalog-impl", PROVIDER])
def test_are_read_without_them(tmp_path: Path, canary: Path, key: str) -> None:
    lake = prepared(tmp_path, **{key: "hostile_table_class.Class"})
    assert lake.sql("SELECT a FROM iceberg.db.t").rows() == [(1,)]
    assert lake.sql("SHOW TBLPROPERTIES iceberg.db.t").to_arrow().num_rows > 0
    if key != PROVIDER:
        lake.sql("INSERT INTO iceberg.db.t VALUES (2)")
        lake.sql("UPDATE iceberg.db.t SET a = 3 WHERE a = 2")
        lake.sql("CALL sys.iceberg_expire_snapshots('iceberg.db.t')")
        lake.sql("DROP TABLE iceberg.db.t")
    assert not canary.exists()


WRITES: list[Callable[[lakelet.Lake], object]] = [
    lambda lake: lake.sql("INSERT INTO iceberg.db.t VALUES (2)"),
    lambda lake: lake.sql("INSERT OVERWRITE iceberg.db.t VALUES (2)"),
    lambda lake: lake.sql("UPDATE iceberg.db.t SET a = 3"),
    lambda lake: lake.sql("DELETE FROM iceberg.db.t"),
    lambda lake: lake.sql("TRUNCATE TABLE iceberg.db.t"),
    lambda lake: lake.sql("ALTER TABLE iceberg.db.t ADD COLUMN b INT"),
    lambda lake: lake.sql("ALTER TABLE iceberg.db.t CREATE TAG x"),
    lambda lake: lake.sql("ALTER TABLE iceberg.db.t SET TBLPROPERTIES ('x' = 'y')"),
]


@pytest.mark.parametrize("write", WRITES)
def test_are_not_written_by_them(tmp_path: Path, canary: Path, write: Callable[[lakelet.Lake], object]) -> None:
    lake = prepared(tmp_path, **{PROVIDER: "hostile_table_class.Class"})
    with pytest.raises(
        InvalidError, match=r"names the class 'hostile_table_class\.Class', which runs only where connect"
    ):
        write(lake)
    assert lake.sql("SELECT a FROM iceberg.db.t").rows() == [(1,)]
    assert not canary.exists()


def test_are_written_where_the_program_names_the_class(tmp_path: Path, canary: Path) -> None:
    prepared(tmp_path, **{PROVIDER: "hostile_table_class.Class"})
    lake = lakelet.connect(str(tmp_path / "lake"), {f"catalog.iceberg.{PROVIDER}": "hostile_table_class.Class"})
    lake.sql("INSERT INTO iceberg.db.t VALUES (2)")
    assert lake.sql("SELECT count(*) FROM iceberg.db.t").rows() == [(2,)]
    assert canary.exists()


def test_are_mended_by_taking_the_property_away(tmp_path: Path, canary: Path) -> None:
    lake = prepared(tmp_path, **{PROVIDER: "hostile_table_class.Class"})
    lake.sql(f"ALTER TABLE iceberg.db.t UNSET TBLPROPERTIES ('{PROVIDER}')")
    lake.sql("INSERT INTO iceberg.db.t VALUES (2)")
    assert lake.sql("SELECT count(*) FROM iceberg.db.t").rows() == [(2,)]
    assert not canary.exists()


@pytest.mark.parametrize("key", ["py-io-impl", PROVIDER])
def test_are_not_made_by_statements(tmp_path: Path, canary: Path, key: str) -> None:
    lake = lakelet.connect(str(tmp_path / "lake"))
    lake.sql("CREATE DATABASE iceberg.db")
    said = f"TBLPROPERTIES ('{key}' = 'hostile_table_class.Class')"
    with pytest.raises(InvalidError, match="names a class"):
        lake.sql(f"CREATE TABLE iceberg.db.t (a INT) {said}")
    with pytest.raises(InvalidError, match="names a class"):
        lake.sql(f"CREATE TABLE iceberg.db.t {said} AS SELECT 1 AS a")
    lake.sql("CREATE TABLE iceberg.db.t (a INT)")
    with pytest.raises(InvalidError, match="names a class"):
        lake.sql(f"ALTER TABLE iceberg.db.t SET {said}")
    assert not canary.exists()
