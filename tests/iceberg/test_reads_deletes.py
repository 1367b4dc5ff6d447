"""Queries over Iceberg tables with deletes, as other engines write them: positions, vectors, values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StructType

from lakelet import CorruptionError, InvalidError, Lake
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.scan import scan_of
from tests.iceberg.delete_commits import commit_deletes, data_paths, equality_deletes, position_deletes, vector
from tests.iceberg.viewed import ROWS, ids_of, readers_of, rows_of


def test_positions_of_several_files_and_delete_files(lake: Lake, table: Table) -> None:
    first, second = data_paths(table)
    table = commit_deletes(table, position_deletes(table, {first: [4, 1], second: [0]}))
    assert ids_of(lake) == [0, 2, 3, 6, 7, 8, 9]
    table = commit_deletes(table, position_deletes(table, {first: [1, 2]}, bounds=True))
    assert ids_of(lake) == [0, 3, 6, 7, 8, 9]
    assert readers_of(lake, "SELECT * FROM iceberg.db.t") == (2, 0)
    table = commit_deletes(table, position_deletes(table, {second: range(5)}, bounds=True))
    assert ids_of(lake) == [0, 3]
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [0, 3]


def test_positions_fall_on_files_of_their_partition_alone(lake: Lake, catalog: IcebergCatalog) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    schema = Schema(NestedField(1, "p", LongType()), NestedField(2, "id", LongType()))
    table = catalog.library.create_table("db.t", schema, partition_spec=spec, properties={"format-version": "2"})
    table.append(pa.table({"p": pa.array([1, 1, 2, 2], pa.int64()), "id": pa.array([0, 1, 2, 3], pa.int64())}))
    files = {file.partition: file.path for file in scan_of(catalog.table("db.t")).files}
    # The second delete names a file of another partition, on which it does not fall.
    deletes = [
        position_deletes(table, {files[(1,)]: [0]}, partition=Record(1)),
        position_deletes(table, {files[(2,)]: [0]}, partition=Record(1)),
    ]
    commit_deletes(table, *deletes)
    assert ids_of(lake) == [1, 2, 3]


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "AVRO"])
def test_formats_of_delete_files(lake: Lake, table: Table, file_format: str) -> None:
    first, second = data_paths(table)
    commit_deletes(table, position_deletes(table, {first: [0, 1], second: [4]}, file_format=file_format))
    assert ids_of(lake) == [2, 3, 4, 5, 6, 7, 8]


def test_a_vector_goes_before_positions(lake: Lake, table: Table) -> None:
    first, second = data_paths(table)
    table = commit_deletes(table, position_deletes(table, {first: [0], second: [0]}))
    commit_deletes(table, vector(table, first, [2, 3]))
    assert ids_of(lake) == [0, 1, 4, 6, 7, 8, 9]
    assert readers_of(lake, "SELECT * FROM iceberg.db.t") == (2, 0)


def test_many_files_with_deleted_rows_are_joined_at_once(lake: Lake, catalog: IcebergCatalog) -> None:
    table = catalog.library.create_table("db.t", ROWS, properties={"format-version": "2"})
    for start in range(0, 60, 3):
        table.append(rows_of(range(start, start + 3)))
    deletes = position_deletes(table, {path: [1] for path in data_paths(table)})
    commit_deletes(table, deletes)
    assert ids_of(lake) == [number for number in range(60) if number % 3 != 1]


def test_values_fall_on_older_files_alone(lake: Lake, table: Table) -> None:
    table = commit_deletes(table, equality_deletes(table, rows_of([3, 7, 99]).select(["id"])))
    assert ids_of(lake) == [0, 1, 2, 4, 5, 6, 8, 9]
    table.append(rows_of([3, 20], None))
    assert ids_of(lake) == [0, 1, 2, 3, 4, 5, 6, 8, 9, 20]
    # NULL equals NULL, and both columns count.
    table = commit_deletes(table.refresh(), equality_deletes(table, rows_of([20, 4], None)))
    assert ids_of(lake) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    table = commit_deletes(table, equality_deletes(table, pa.table({"v": pa.array([None], pa.string())})))
    assert ids_of(lake) == [0, 1, 2, 4, 5, 6, 8, 9]
    assert lake.sql("SELECT count(*), count(v) FROM iceberg.db.t WHERE id > 4").rows() == [(4, 4)]


def test_values_in_a_column_that_was_dropped_since(lake: Lake, table: Table) -> None:
    table = commit_deletes(table, equality_deletes(table, rows_of([2]).select(["v"])))
    with table.update_schema() as update:
        update.delete_column("v")
    assert lake.sql("SELECT * FROM iceberg.db.t WHERE id < 4 ORDER BY 1").rows() == [(0,), (1,), (3,)]


def test_values_fall_on_their_partition_alone(lake: Lake, catalog: IcebergCatalog) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    schema = Schema(NestedField(1, "p", LongType()), NestedField(2, "id", LongType()))
    table = catalog.library.create_table("db.t", schema, partition_spec=spec, properties={"format-version": "2"})
    table.append(pa.table({"p": pa.array([1, 2, None], pa.int64()), "id": pa.array([5, 5, 5], pa.int64())}))
    gone = pa.table({"id": pa.array([5], pa.int64())})
    table = commit_deletes(table, equality_deletes(table, gone, partition=Record(2)))
    assert lake.sql("SELECT p FROM iceberg.db.t ORDER BY p").rows() == [(1,), (None,)]
    commit_deletes(table, equality_deletes(table, gone, partition=Record(None)))
    assert lake.sql("SELECT p FROM iceberg.db.t").rows() == [(1,)]


def test_deletes_that_cannot_be_applied_are_refused(lake: Lake, catalog: IcebergCatalog) -> None:
    schema = Schema(NestedField(1, "s", StructType(NestedField(2, "x", LongType()))))
    table = catalog.library.create_table("db.t", schema, properties={"format-version": "2"})
    table.append(pa.table({"s": pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))}))
    made = equality_deletes(table, pa.table({"s": pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))}))
    made.equality_ids.clear()
    made.equality_ids.append(2)
    commit_deletes(table, made)
    with pytest.raises(InvalidError, match="rows are deleted by the values of field 2"):
        lake.sql("SELECT * FROM iceberg.db.t").rows()


def test_a_position_beyond_the_file_is_told(lake: Lake, table: Table) -> None:
    first, _ = data_paths(table)
    commit_deletes(table, position_deletes(table, {first: [5]}))
    with pytest.raises(CorruptionError, match="has 5 rows, and positions 5 to 5 of it are deleted"):
        lake.sql("SELECT * FROM iceberg.db.t")
