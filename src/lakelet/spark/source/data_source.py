"""The source "lakelet" of Spark's own API: `spark.read.format("lakelet")`, `df.write.format("lakelet")`, `USING lakelet`.

    spark.read.format("lakelet").option("warehouse", "./warehouse").load("shop.orders")

Spark runs it in Python processes of its own: one makes the source and asks for the schema, one plans, executors read. The
snapshot is pinned when the frame is made. Spark asks a Python source for all its columns, so that option `columns`, or a
schema given to the reader, is what avoids reading the others; `lakelet.spark.table` reads raw files by Spark's own reader
and prunes by itself. With a schema Spark has nothing to ask when the frame is made and runs none of this: the snapshot is then
pinned where the frame is first used, unless `version` names it.

The reader takes no filters from Spark, whatever spark.sql.python.filterPushdown.enabled says: Spark keeps what was planned with
a filter in the relation, and a later plan of the same frame with another filter, or with none, reads by it (Spark 4.3:
`df.where("id > 7").count()`, then `df.count()`, gives the same number). Option `where` prunes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.options import SOURCE_SPLIT_OPEN_FILE_COST, SOURCE_SPLIT_TARGET_SIZE, TableOptions
from lakelet.spark.read.merge_scan import small_batches
from lakelet.spark.source.given_options import chosen_columns
from lakelet.spark.source.options import SourceOptions
from lakelet.spark.source.writer import SourceWriter
from lakelet.spark.types import spark_schema, to_spark_arrow
from lakelet.spark.workers import told_plainly
from lakelet.table.read.table_scan import TableScan


class LakeletDataSource(DataSource):
    """One table, as Spark's options describe it."""

    _pinned: TableScan | None = None

    @classmethod
    def name(cls) -> str:
        """What `format(…)` and `USING` call it."""
        return "lakelet"

    def schema(self) -> StructType:
        """The columns that will be read; from here on the snapshot is fixed, unless options say that this is a stream."""
        with told_plainly():
            options = SourceOptions.of(self.options)
            if options.streams:
                return _stream_schema(options)
            try:
                self._pinned = _scan(self.options)
            except NotFoundError:
                # The point at which a stream begins need not be a version of a batch, whose reader will find that out, too.
                if not options.begins:
                    raise
                return _stream_schema(options)
            return spark_schema(_fields(self._pinned))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader, which plans and reads; a schema that the caller gave is a projection."""
        with told_plainly():
            scan = self._pinned or _scan(self.options)
            return _Reader(replace(scan, columns=chosen_columns(schema, spark_schema(_fields(scan)))))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of `spark.readStream`."""
        from lakelet.spark.stream.read.refused_stream import stream_reader  # noqa: PLC0415 - batches do without.
        from lakelet.spark.stream.read.stream_reader import LakeletStreamReader  # noqa: PLC0415

        def made() -> DataSourceStreamReader:
            options = SourceOptions.of(self.options)
            self._check_columns(options, schema)
            return LakeletStreamReader.of(options, schema)

        return stream_reader(made)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer, for tables whose rows need no routing."""
        with told_plainly():
            return SourceWriter.of(SourceOptions.of(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer of `df.writeStream`, for the same tables."""
        from lakelet.spark.stream.write.stream_writer import LakeletStreamWriter  # noqa: PLC0415 - batches do without.

        with told_plainly():
            return LakeletStreamWriter.of(self.options, schema, overwrite=overwrite)

    def _check_columns(self, options: SourceOptions, schema: StructType) -> None:
        """InvalidError where the columns of an older version were taken for those of a stream.

        Spark asks for columns without saying whether it reads a stream, and `scan.snapshot-id` names the version of a batch, too.
        """
        if options.streams or not options.begins or self._pinned is None:
            return
        if schema == spark_schema(_fields(self._pinned)) and schema != _stream_schema(options):
            raise InvalidError(
                f"{options.table}: its columns have changed since the version that the scan options name, and those of the "
                "version were taken: say that this is a stream by an option that only streams have, such as "
                "'read.changelog' = 'false', or use lakelet.spark.read_stream"
            )


class _Part(InputPartition):
    """What one task reads."""

    def __init__(self, splits: Sequence[Split]) -> None:
        super().__init__(None)
        self.splits = tuple(splits)


class _Reader(DataSourceReader):
    """Reads a scan, task by task."""

    def __init__(self, scan: TableScan) -> None:
        self._scan = scan

    def partitions(self) -> list[InputPartition]:
        """One partition per group of splits, small splits grouped; Spark wants one task even for an empty plan."""
        return [_Part(group) for group in _groups(self._scan)] or [_Part(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task in batches that the JVM takes one at a time."""
        assert isinstance(partition, _Part)
        fields = _fields(self._scan)
        # One reader for all splits: it reads files of several of them at once, and what it learns of them only once.
        for batch in self._scan.batches_of(partition.splits):
            for piece in small_batches(batch):
                yield to_spark_arrow(piece, fields)


def _stream_schema(options: SourceOptions) -> StructType:
    """The columns of a stream."""
    from lakelet.spark.stream.read.stream_reader import stream_schema, stream_settings  # noqa: PLC0415 - batches do without.

    settings, schema = stream_settings(options)
    return stream_schema(schema, settings, options.given.columns)


def _scan(given: Any) -> TableScan:
    options = SourceOptions.of(given)
    given = options.given
    given.refuse_for_reading()
    return options.open().scan(
        given.columns,
        given.get("where"),
        version=given.get("version"),
        timestamp=given.timestamp,
        tag=given.get("tag"),
    )


def _fields(scan: TableScan) -> list[Field]:
    return [scan.schema.field(name) for name in scan.columns]


def _groups(scan: TableScan) -> Iterator[list[Split]]:
    """The splits of a scan in groups of about the target size of a split, so that small buckets share a task."""
    options = TableOptions(scan.schema.options)
    target, opening = options.get(SOURCE_SPLIT_TARGET_SIZE), options.get(SOURCE_SPLIT_OPEN_FILE_COST)
    group: list[Split] = []
    weight = 0
    for split in scan.plan().splits:
        cost = sum(max(file.size, opening) for file in split.files)
        if group and weight + cost > target:
            yield group
            group, weight = [], 0
        group.append(split)
        weight += cost
    if group:
        yield group
