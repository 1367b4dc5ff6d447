"""Fixtures for tests of Iceberg tables: a lake, its own catalog, and a table of ten rows in two files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

import lakelet
from lakelet import Lake
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from tests.iceberg.viewed import ROWS, rows_of


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lakelet.connect(tmp_path / "lake")


@pytest.fixture
def catalog(lake: Lake) -> IcebergCatalog:
    found = lake.catalogs.open("iceberg")
    found.create_namespace("db")
    return found


@pytest.fixture
def table(catalog: IcebergCatalog) -> Table:
    """Ten rows in two files."""
    made = catalog.library.create_table("db.t", ROWS, properties={"format-version": "2"})
    made.append(rows_of(range(5)))
    made.append(rows_of(range(5, 10)))
    return made
