"""Makes the tables of a `file_layout`: one of Lakelet (which pypaimon plans too) and one of pyiceberg.

The metadata is real, made by each library's own commit; the data files are not there, for a plan does not open them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

import lakelet
from benchmarks.append.rows import SCHEMA
from benchmarks.contender import serve
from benchmarks.metadata.file_layout import BYTES_PER_FILE, ROWS_PER_FILE, Layout, PlannedFile
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_APPEND, DataFile, Stats

DAY_SCHEMA = SCHEMA.append(pa.field("dt", pa.string()))
TABLE = "bench.rows"


def lakelet_table(folder: str, **layout: Any) -> dict[str, Any]:
    """Commits the layout with Lakelet; returns the number of manifests."""
    plan = Layout(**layout)
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    target = lake.create_table(TABLE, DAY_SCHEMA, partitioned_by=["dt"])
    types = [field.type for field in target.schema.fields]
    for number in range(plan.commits):
        files = list(plan.commit(number))
        lows = encode_rows(
            [pa.array(column, f.type) for column, f in zip(_columns(files, 0), DAY_SCHEMA, strict=True)], types
        )
        highs = encode_rows(
            [pa.array(column, f.type) for column, f in zip(_columns(files, 1), DAY_SCHEMA, strict=True)], types
        )
        partitions = encode_rows([pa.array([file.day for file in files])], types[-1:])
        by_day: dict[bytes, list[DataFile]] = {}
        for file, partition, low, high in zip(
            files, *(column.to_pylist() for column in (partitions, lows, highs)), strict=True
        ):
            by_day.setdefault(partition, []).append(_lakelet_file(file, Stats(low, high, (0,) * len(types))))
        target.new_commit().commit([CommitMessage(day, 0, -1, tuple(found)) for day, found in by_day.items()])
    found = target.scan(where="dt = 'none'").plan()
    return {"manifests": found.manifests_total, "files": found.files_total}


def iceberg_table(folder: str, **layout: Any) -> dict[str, Any]:
    """Commits the layout with pyiceberg, one manifest per commit; returns the metadata location."""
    plan = Layout(**layout)
    Path(folder).mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("bench")
    schema = _iceberg_schema()
    spec = PartitionSpec(PartitionField(source_id=10, field_id=1000, transform=IdentityTransform(), name="dt"))
    target = catalog.create_table(TABLE, schema, partition_spec=spec)
    location = target.location()
    for number in range(plan.commits):
        with target.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for file in plan.commit(number):
                append.append_data_file(iceberg_file(file, location, schema))
    return {"metadata": target.metadata_location, "files": plan.files}


def _columns(files: list[PlannedFile], end: int) -> list[list[Any]]:
    """The least (`end` 0) or greatest (1) value of each column in each file."""
    return [list(column) for column in zip(*(_bounds(file)[end] for file in files), strict=True)]


def _bounds(file: PlannedFile) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    last = file.first_id + ROWS_PER_FILE - 1
    moment = datetime(2024, 1, 1)
    low = (
        file.first_id,
        "00012345-6789-4ab",
        1,
        0.5,
        Decimal("1.00"),
        moment,
        date(2024, 1, 1),
        False,
        "amber amber ambe",
        file.day,
    )
    late = moment + timedelta(milliseconds=last)
    high = (
        last,
        "fffe2345-6789-4ac",
        999,
        480.25,
        Decimal("49999.99"),
        late,
        late.date(),
        True,
        "pine pine pine 9",
        file.day,
    )
    return low, high


def _lakelet_file(file: PlannedFile, stats: Stats) -> DataFile:
    return DataFile(
        name=file.name,
        size=BYTES_PER_FILE,
        row_count=ROWS_PER_FILE,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=NO_STATS,
        value_stats=stats,
        min_sequence=0,
        max_sequence=ROWS_PER_FILE - 1,
        schema_id=0,
        level=0,
        creation_ms=int(datetime.now().timestamp() * 1000),
        delete_row_count=0,
        source=FILE_SOURCE_APPEND,
        value_stats_columns=None,
    )


def _iceberg_schema() -> Schema:
    types = [
        LongType(),
        StringType(),
        IntegerType(),
        DoubleType(),
        DecimalType(12, 2),
        TimestampType(),
        DateType(),
        BooleanType(),
    ]
    fields = zip(DAY_SCHEMA.names, [*types, StringType(), StringType()], strict=True)
    schema = Schema(*(NestedField(number, name, kind, required=False) for number, (name, kind) in enumerate(fields, 1)))
    assert schema_to_pyarrow(schema).names == DAY_SCHEMA.names
    return schema


def iceberg_file(file: PlannedFile, location: str, schema: Schema) -> IcebergFile:
    """A file of the layout with statistics of all columns, as pyiceberg describes it."""
    low, high = _bounds(file)
    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{location}/data/dt={file.day}/{file.name}",
        file_format=FileFormat.PARQUET,
        partition=Record(file.day),
        record_count=ROWS_PER_FILE,
        file_size_in_bytes=BYTES_PER_FILE,
        sort_order_id=None,
        spec_id=0,
        equality_ids=None,
        key_metadata=None,
        column_sizes=dict.fromkeys(range(1, 11), 40_000),
        value_counts=dict.fromkeys(range(1, 11), ROWS_PER_FILE),
        null_value_counts=dict.fromkeys(range(1, 11), 0),
        nan_value_counts={},
        lower_bounds=dict(_encoded(low, schema)),
        upper_bounds=dict(_encoded(high, schema)),
        split_offsets=[4],
    )


def _encoded(bounds: tuple[Any, ...], schema: Schema) -> Iterator[tuple[int, bytes]]:
    for field, value in zip(schema.fields, bounds, strict=True):
        yield field.field_id, to_bytes(field.field_type, value)


if __name__ == "__main__":
    serve(lakelet_table, iceberg_table)
