"""Manifests of specs whose columns were dropped, and of dropped partition fields."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StructType

from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.commit.tables import (
    NAME,
    check_sums,
    files_below,
    new_catalog,
    new_table,
    rows_of,
    set_partitions,
    write,
)

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    return new_catalog(tmp_path)


def row(number: int, day: int = 1) -> dict[str, object]:
    return {"id": number, "day": day}


def ids(table: IcebergTable) -> list[object]:
    return sorted(one["id"] for one in rows_of(table))  # type: ignore[type-var]


def filed(table: IcebergTable) -> set[tuple[int, str]]:
    library = table.reloaded().library
    return {(task.file.spec_id, repr(task.file.partition)) for task in library.scan().plan_files()}


def test_a_partition_column_that_was_dropped(catalog: IcebergCatalog) -> None:
    settings = {"commit.manifest.min-count-to-merge": "2"}
    table = new_table(catalog, COLUMNS, {"day": "identity"}, properties=settings)
    write(table, [row(1, 1), row(2, 2)])
    write(table, [row(3, 2)])
    before = filed(table)
    set_partitions(table, {})
    with table.reloaded().library.update_schema() as update:
        update.delete_column("day")
    # Manifests of the old spec are merged, rewritten and lose files; its values stay what they were.
    write(table, [{"id": 4}])
    write(table, [{"id": 5}])
    rewrite_manifests(table)
    assert before < filed(table)
    assert ids(table) == [1, 2, 3, 4, 5]
    rewrite_data_files(table)
    assert ids(table) == [1, 2, 3, 4, 5]
    assert len(filed(table)) == 1
    check_sums(table)


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_partition_field_of_a_required_column_that_was_dropped(catalog: IcebergCatalog, version: str) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "day", IntegerType(), required=True),
    )
    catalog.library.create_table(NAME, schema, properties={"format-version": version})
    table = catalog.table(NAME)
    set_partitions(table, {"day": "identity"})
    write(table, [row(1)])
    # Version 1 keeps the field as void.
    set_partitions(table, {"id": "bucket[2]"})
    write(table, [row(2)])
    write(table, [row(3, 2)])
    assert ids(table) == [1, 2, 3]
    write(table, [row(4, 3)], "overwrite")
    assert ids(table) == [4]
    check_sums(table)


def test_a_widened_column_keeps_its_partitions(catalog: IcebergCatalog) -> None:
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    write(table, [row(1, 1), row(2, 2)])
    with table.reloaded().library.update_schema() as update:
        update.update_column("day", LongType())
    write(table, [row(3, 2)], "overwrite_partitions")
    assert ids(table) == [1, 3]
    write(table, [], "overwrite", {"day": 1})
    assert ids(table) == [3]
    check_sums(table)


def test_doubles_are_read_whole(catalog: IcebergCatalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("y", pa.float32())])
    settings = {"commit.manifest.min-count-to-merge": "2"}
    table = new_table(catalog, schema, {"x": "identity", "y": "identity"}, properties=settings)
    values = [0.1, 1e300, None, -0.0, 0.0, float("inf")]
    for number, value in enumerate(values):
        write(table, [{"id": number, "x": value, "y": 0.1}])
    write(
        table,
        [{"id": 10 + number, "x": value, "y": 0.1} for number, value in enumerate(values)],
        "overwrite_partitions",
    )
    assert ids(table) == [10, 11, 12, 13, 14, 15]
    rewrite_manifests(table)
    write(table, [{"id": 20, "x": 1e300, "y": 0.1}], "overwrite", {"x": 1e300})
    assert ids(table) == [10, 12, 13, 14, 15, 20]


def test_a_required_member_of_a_struct_that_is_null(catalog: IcebergCatalog) -> None:
    inner = StructType(NestedField(3, "x", IntegerType(), required=True))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "spot", inner, required=False))
    spec = PartitionSpec(PartitionField(3, 1000, BucketTransform(2), "x_bucket"))
    catalog.library.create_table(NAME, schema, partition_spec=spec)
    table = catalog.table(NAME)
    write(table, [{"id": 1, "spot": None}, {"id": 2, "spot": {"x": 5}}])
    assert ids(table) == [1, 2]
    write(table, [{"id": 3, "spot": None}], "overwrite_partitions")
    assert ids(table) == [2, 3]


def test_old_metadata_files_go_where_asked(catalog: IcebergCatalog, tmp_path: Path) -> None:
    settings = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    table = new_table(catalog, COLUMNS, properties=settings)
    for number in range(5):
        write(table, [row(number)])
    assert len([path for path in files_below(tmp_path) if path.endswith(".metadata.json")]) == 3
    assert ids(table) == [0, 1, 2, 3, 4]
