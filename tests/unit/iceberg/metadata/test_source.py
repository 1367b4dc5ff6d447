"""The source of the metadata of Iceberg tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.metadata.uncached import UncachedIcebergMetadata
from lakelet.iceberg.scan.scan import scan_of
from lakelet.iceberg.table import IcebergTable
from lakelet.storage.open import open_store
from tests.unit.iceberg.commit.tables import new_catalog, new_table, write


class Recording(UncachedIcebergMetadata):
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def for_queries(self) -> "Recording":
        self.asked.append("for_queries")
        return self

    def table(self, catalog: Any, name: Any) -> Any:
        self.asked.append("table")
        return super().table(catalog, name)

    def manifest_list(self, io: Any, snapshot: Any) -> Any:
        self.asked.append("manifest_list")
        return super().manifest_list(io, snapshot)

    def manifest(self, io: Any, manifest: Any, statistics: Sequence[int] = ()) -> Any:
        self.asked.append("manifest")
        return super().manifest(io, manifest, statistics)

    def manifest_rows(self, io: Any, manifest: Any) -> Any:
        self.asked.append("manifest_rows")
        return super().manifest_rows(io, manifest)


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    made = new_table(new_catalog(tmp_path), pa.schema([("id", pa.int64())]))
    return IcebergTable(made.catalog, made.library, Recording())


def asked(table: IcebergTable) -> list[str]:
    assert isinstance(table.source, Recording)
    found, table.source.asked = table.source.asked, []
    return found


def test_a_commit_asks_the_source_of_its_table(table: IcebergTable) -> None:
    write(table, [{"id": 1}])
    assert "table" in asked(table)
    write(table, [{"id": 2}])
    assert {"table", "manifest_list"} <= set(asked(table))


def test_a_scan_asks_for_queries(table: IcebergTable) -> None:
    write(table, [{"id": 1}])
    now = table.reloaded()
    assert now.source is table.source
    asked(table)
    assert len(scan_of(now).plan.files) == 1
    assert asked(table) == ["for_queries", "manifest_list", "manifest"]


def test_upkeep_asks_the_source_of_its_table(table: IcebergTable) -> None:
    for number in range(3):
        write(table, [{"id": number}])
    asked(table)
    expire_snapshots(table.reloaded(), retain_last=1, older_than_ms=1 << 60)
    assert {"table", "manifest_list"} <= set(asked(table))


def test_a_lake_gives_its_source_to_all_catalogs(tmp_path: Path) -> None:
    source = Recording()
    lake = Lake(open_store(str(tmp_path), {}), iceberg_metadata=source)
    lake.sql("CREATE DATABASE iceberg.d")
    lake.sql("CREATE TABLE iceberg.d.t (id BIGINT)")
    lake.sql("INSERT INTO iceberg.d.t VALUES (1)")
    source.asked.clear()
    assert lake.sql("SELECT id FROM iceberg.d.t").to_arrow().to_pylist() == [{"id": 1}]
    assert {"table", "for_queries", "manifest_list", "manifest"} <= set(source.asked)


def test_versions_of_a_table_keep_its_source(table: IcebergTable) -> None:
    assert table.at_version(table.version_json()).source is table.source
