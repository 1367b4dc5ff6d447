"""The stream reader of `spark.readStream.format("lakelet-iceberg")`: the rows of a table, then those of every append.

Columns and condition are fixed when the query starts. Offsets and limits are those of native tables
(`stream/read/stream_reader`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lakelet.errors import InvalidError
from lakelet.iceberg.scan import ScanFile
from lakelet.spark.iceberg.append_source import AppendSource, Skipped
from lakelet.spark.iceberg.source_options import IcebergSourceOptions
from lakelet.spark.iceberg.table_frame import PlannedRead
from lakelet.spark.iceberg.types import spark_fields
from lakelet.spark.read.merge_scan import OPEN_FILE_BYTES, balanced_parts, small_batches
from lakelet.spark.source.given_options import chosen_columns
from lakelet.spark.stream.read.read_limit import default_read_limit
from lakelet.spark.stream.read.stream_lag import lag_report
from lakelet.spark.types import spark_schema
from lakelet.spark.workers import told_plainly
from lakelet.table.follow.admission import NO_LIMITS
from lakelet.table.follow.offset import StreamOffset

_TASK_BYTES = 8 << 20


class _Part(InputPartition):
    """What one task reads."""

    def __init__(self, read: PlannedRead, files: Sequence[ScanFile]) -> None:
        super().__init__(None)
        self.shared = read
        self.files = tuple(files)


class IcebergStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the appended rows of one branch of a table."""

    def __init__(self, options: IcebergSourceOptions, read: PlannedRead) -> None:
        self._options = options
        # What tasks get says how to read files, not which.
        self._read = replace(read, scan=replace(read.scan, plan=replace(read.scan.plan, files=())))
        self._settings = options.stream_settings()
        self._made: AppendSource | None = None
        self._to: int | None = None
        self._position: StreamOffset | None = None

    @staticmethod
    def of(options: IcebergSourceOptions, given: StructType) -> IcebergStreamReader:
        """A reader of the columns of the given schema."""
        for name in ("version", "timestamp", "tag"):
            if options.given.get(name) is not None:
                raise InvalidError(
                    f"option {name!r} names the version of a batch; a stream begins where scan.mode says"
                )
        read = options.planned()
        stored = spark_schema(spark_fields(read.fields))
        return IcebergStreamReader(options, replace(read, columns=chosen_columns(given, stored)))

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        with told_plainly():
            return self._source.start().encode()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch; `start` itself where there is nothing to read."""
        with told_plainly():
            limits = NO_LIMITS if isinstance(limit, ReadAllAvailable) else self._settings.limits
            position = StreamOffset.decode(start)
            end = self._source.next(position, limits, to=self._to)
            self._position = end
            return start if end == position else end.encode()

    def getDefaultReadLimit(self) -> ReadLimit:
        """One of the limits that are set; all of them hold."""
        return default_read_limit(self._settings.limits)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fixes the snapshot up to which a query with this trigger reads."""
        with told_plainly():
            self._to = self._source.newest().snapshot

    def reportLatestOffset(self) -> dict[str, Any]:
        """The newest snapshot and how far the last batch is behind it, for the query's progress."""
        with told_plainly():
            return lag_report(*self._source.behind(self._position))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        with told_plainly():
            files = list(self._source.files(StreamOffset.decode(start), StreamOffset.decode(end)))
            if not files:
                return []
            costs = [max(file.size, OPEN_FILE_BYTES) for file in files]
            return [_Part(self._read, part) for part in balanced_parts(files, costs, -(-sum(costs) // _TASK_BYTES))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task in batches that the JVM takes one at a time."""
        assert isinstance(partition, _Part)
        for file in partition.files:
            for batch in partition.shared.rows(file):
                yield from small_batches(batch)

    def commit(self, end: dict[str, Any]) -> None:
        """Iceberg tables know no consumers."""

    def stop(self) -> None:
        """Nothing is open between two calls."""

    @property
    def _source(self) -> AppendSource:
        if self._made is None:
            flags = [self._options.flag(f"streaming-skip-{kind}-snapshots") for kind in ("overwrite", "delete")]
            table, branch = self._options.open(), self._options.given.get("branch")
            self._made = AppendSource(table, branch, self._settings, Skipped(*flags))
        return self._made
