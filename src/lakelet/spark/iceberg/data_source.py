"""The source "lakelet-iceberg" of Spark's own API: `spark.read.format(…)`, `df.write.format(…)`, `USING "lakelet-iceberg"`.

    spark.read.format("lakelet-iceberg").option("catalog", "ice").load("shop.orders")

As with "lakelet" (`source/data_source`), the snapshot is pinned when the frame is made, Spark asks for all columns unless option
`columns` or a schema says otherwise, and takes no filters: option `where` prunes. `iceberg_table` reads faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from lakelet.iceberg.scan import ScanFile
from lakelet.spark.iceberg.source_options import IcebergSourceOptions
from lakelet.spark.iceberg.source_writer import IcebergSourceWriter
from lakelet.spark.iceberg.stream_reader import IcebergStreamReader
from lakelet.spark.iceberg.table_frame import PlannedRead
from lakelet.spark.iceberg.types import spark_fields
from lakelet.spark.read.merge_scan import OPEN_FILE_BYTES, balanced_parts, small_batches
from lakelet.spark.source.given_options import chosen_columns
from lakelet.spark.stream.read.refused_stream import stream_reader
from lakelet.spark.types import spark_schema
from lakelet.spark.workers import told_plainly


class IcebergDataSource(DataSource):
    """One table, as Spark's options describe it."""

    _pinned: PlannedRead | None = None

    @classmethod
    def name(cls) -> str:
        """What `format(…)` and `USING` call it."""
        return "lakelet-iceberg"

    def schema(self) -> StructType:
        """The columns that will be read; from here on the snapshot is fixed."""
        with told_plainly():
            self._pinned = IcebergSourceOptions.of(self.options).planned()
            return spark_schema(spark_fields(self._pinned.fields))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader, which plans and reads; a schema that the caller gave is a projection."""
        with told_plainly():
            read = self._pinned or IcebergSourceOptions.of(self.options).planned()
            stored = spark_schema(spark_fields(read.fields))
            return _Reader(replace(read, columns=chosen_columns(schema, stored)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of `spark.readStream`."""
        return stream_reader(lambda: IcebergStreamReader.of(IcebergSourceOptions.of(self.options), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer, which writes rows in the task that holds them, without a shuffle."""
        with told_plainly():
            return IcebergSourceWriter.of(IcebergSourceOptions.of(self.options), schema, overwrite=overwrite)


class _Part(InputPartition):
    """What one task reads."""

    def __init__(self, files: Sequence[ScanFile]) -> None:
        super().__init__(None)
        self.files = tuple(files)


class _Reader(DataSourceReader):
    """Reads a plan, task by task."""

    def __init__(self, read: PlannedRead) -> None:
        self._read = read

    def partitions(self) -> list[InputPartition]:
        """One partition per group of files, small files grouped; Spark wants one task even for an empty plan."""
        files = self._read.scan.files
        return [
            _Part(part) for part in balanced_parts(files, [max(file.size, OPEN_FILE_BYTES) for file in files], 1)
        ] or [_Part(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task in batches that the JVM takes one at a time."""
        assert isinstance(partition, _Part)
        for file in partition.files:
            for batch in self._read.rows(file):
                yield from small_batches(batch)
