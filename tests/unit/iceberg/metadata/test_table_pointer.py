"""The pointer to an Iceberg table: what a catalog is asked, and when its metadata is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table

from lakelet.iceberg.metadata import table_pointer
from lakelet.iceberg.metadata.table_pointer import TablePointer, checked_pointer, newest_location
from tests.unit.iceberg.commit.tables import NAME, new_catalog, new_table, write


class Vending(SqlCatalog):
    """Answers with the whole table and with credentials that are others each time, as a REST catalog does."""

    answers = 0

    def load_table(self, identifier: Any) -> Table:
        found = super().load_table(identifier)
        Vending.answers += 1
        io: FileIO = load_file_io({**self.properties, "s3.session-token": str(Vending.answers)}, found.location())
        return Table(found.name(), found.metadata, found.metadata_location, io, self)


@pytest.fixture
def folder(tmp_path: Path) -> Path:

    write(new_table(new_catalog(tmp_path), pa.schema([("id", pa.int64())])), [{"id": 1}])
    return tmp_path


def sql_catalog(folder: Path, kind: type[SqlCatalog] = SqlCatalog) -> SqlCatalog:
    return kind("ice", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def test_a_catalog_in_a_database_is_asked_for_the_location_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = sql_catalog(folder)
    first, granted = checked_pointer(catalog, NAME, None)
    assert granted is not None
    assert newest_location(catalog, NAME) == first.location
    assert newest_location(catalog, ("shop", "orders")) == first.location
    monkeypatch.setattr(table_pointer, "load_table", lambda *_: pytest.fail("the metadata was read"))
    assert checked_pointer(catalog, NAME, first) == (first, None)


def test_a_table_that_is_gone_is_not_found(folder: Path) -> None:
    catalog = sql_catalog(folder)
    first, _ = checked_pointer(catalog, NAME, None)
    catalog.drop_table(NAME)
    assert newest_location(catalog, NAME) is None
    with pytest.raises(NoSuchTableError):
        checked_pointer(catalog, NAME, first)


def test_a_catalog_with_a_way_of_its_own_is_asked_in_no_other(folder: Path) -> None:
    catalog = sql_catalog(folder, Vending)
    assert newest_location(catalog, NAME) is None
    first, _ = checked_pointer(catalog, NAME, None)
    assert first.has_own_credentials
    again, granted = checked_pointer(catalog, NAME, first)
    assert again is first
    assert granted is not None
    assert granted.properties["s3.session-token"] != first.loaded.io.properties["s3.session-token"]


def test_another_catalog_has_another_pointer(folder: Path) -> None:
    first, _ = checked_pointer(sql_catalog(folder), NAME, None)
    again, _ = checked_pointer(sql_catalog(folder), NAME, first)
    assert again is not first


def test_the_line_of_schemas_changes_with_the_schema_alone(folder: Path) -> None:
    catalog = sql_catalog(folder)

    def line() -> str:
        return TablePointer(catalog.load_table(NAME)).schema_line

    first = line()
    with catalog.load_table(NAME).transaction() as change:
        change.set_properties({"owner": "me"})
    assert line() == first
    with catalog.load_table(NAME).update_schema() as update:
        update.rename_column("id", "number")
    assert line() != first
