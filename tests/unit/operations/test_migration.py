"""Migration and copies as operations."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.operations.migration import CopiedRows, Copy, Migrate, Migrated, copy, migrate
from lakelet.table import Table
from tests.unit.versioned_table import ids


def test_a_folder_becomes_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "files" / "dt=2026-01-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
    lake = connect(str(tmp_path / "lake"))
    lake.create_database("d")
    request = Migrate(str(tmp_path / "files"), "d.t", (("dt", "DATE"),))
    assert migrate(lake, request) == Migrated(1, 1, 2)
    assert ids(lake.table("d.t")) == [1, 2]


def test_rows_are_copied(lake: Lake, table: Table) -> None:
    assert copy(lake, table, Copy("d.copy", where="id > 1")) == CopiedRows(1, 2)
    assert copy(lake, table, Copy("d.copy", version=1, overwrite=True)) == CopiedRows(2, 1)
    assert ids(lake.table("d.copy")) == [1]
    with pytest.raises(InvalidError, match=r"d\.t cannot be copied into itself"):
        copy(lake, table, Copy("d.t"))
