"""The stream reader of `spark.readStream.format("lakelet")`.

    planner     initialOffset ─ latestOffset, within limits ─ partitions: the units of a batch, packed into tasks
    executors   read: units to rows

Spark keeps one Python process per query that plans, logs every offset before its batch runs, and after a restart asks for exactly
the logged range of an unfinished batch. `commit` of a batch comes while the next one is built; the last of a run never does. So a
consumer lags by a batch, unless `consumer.mode` is at-least-once: then it follows the offset that Spark asks to go on from, which
is that of a finished batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StringType, StructField, StructType

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.predicate.row_filter import row_filter
from lakelet.spark.read.change_tasks import ChangeRead, change_parts
from lakelet.spark.source.given_options import chosen_columns
from lakelet.spark.source.options import SourceOptions
from lakelet.spark.stream.read.read_limit import default_read_limit
from lakelet.spark.stream.read.stream_lag import reported
from lakelet.spark.stream.read.stream_part import StreamPart
from lakelet.spark.types import spark_schema
from lakelet.spark.workers import told_plainly
from lakelet.table.follow.admission import NO_LIMITS
from lakelet.table.follow.change_source import ChangeSource
from lakelet.table.follow.consumer_progress import ConsumerProgress
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import StreamSettings
from lakelet.table.read.changes import ROW_KIND
from lakelet.table.read.point_read import chosen_columns as chosen_names


class LakeletStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the changes of one table; made in the planning process, and once more for the tasks, which only call `read`."""

    def __init__(self, read: ChangeRead, settings: StreamSettings) -> None:
        self._read = read
        self._settings = settings
        self._source_made: ChangeSource | None = None
        self._progress_made: ConsumerProgress | None = None
        self._to: int | None = None
        self._position: StreamOffset | None = None
        self._available_now = False
        self._moved_ms = read.home.clock.now_ms()

    @staticmethod
    def of(options: SourceOptions, given: StructType) -> LakeletStreamReader:
        """A reader by Spark's options, of the columns of the given schema."""
        settings, schema = stream_settings(options)
        opened = options.open_stream()
        stored = stream_schema(schema, settings)
        names = tuple(name for name in chosen_columns(given, stored) if name != ROW_KIND)
        if settings.changelog and given.fieldNames()[:1] != [ROW_KIND]:
            raise InvalidError(
                f"a stream with read.changelog has the column {ROW_KIND!r} first, which the schema does not"
            )
        scan = opened.scan(names, options.given.get("where"))
        fields = tuple(schema.field(name) for name in names)
        keep = row_filter(scan.where, schema.fields)
        return LakeletStreamReader(ChangeRead(opened.home, schema, fields, keep, settings.changelog), settings)

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins: at its consumer's progress, or where the scan mode says."""
        with told_plainly():
            found = self._source.start(self._progress)
            if self._progress is not None:
                self._progress.store(found)
            return found.encode()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch; `start` itself where there is nothing to read."""
        with told_plainly():
            position = StreamOffset.decode(start)
            self._confirm_asked(position)
            limits = NO_LIMITS if isinstance(limit, ReadAllAvailable) else self._settings.limits
            now = self._read.home.clock.now_ms()
            waited = None if self._available_now else now - self._moved_ms
            end = self._source.next(position, limits, waited_ms=waited, to=self._to)
            self._position = end
            if end == position:
                return start
            self._moved_ms = now
            return end.encode()

    def getDefaultReadLimit(self) -> ReadLimit:
        """One of the limits that are set, as Spark knows one at a time; all of them hold."""
        return default_read_limit(self._settings.limits)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fixes the snapshot up to which a query with this trigger reads."""
        with told_plainly():
            self._available_now = True
            self._to = self._source.newest().snapshot

    def reportLatestOffset(self) -> dict[str, Any]:
        """The newest snapshot and how far the last batch is behind it, for the query's progress."""
        with told_plainly():
            history, position = self._source.history, self._position
            read = None if position is None else history.snapshot(position.snapshot)
            return reported(history.newest(), position, read)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        with told_plainly():
            units = self._source.units(StreamOffset.decode(start), StreamOffset.decode(end))
            return [StreamPart(self._read, part) for part in change_parts(self._read.schema, units)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        assert isinstance(partition, StreamPart)
        return partition.rows()

    def commit(self, end: dict[str, Any]) -> None:
        """Everything up to this offset is processed."""
        with told_plainly():
            if self._progress is not None:
                self._progress.store(StreamOffset.decode(end))

    def stop(self) -> None:
        """Nothing is open between two calls."""

    def _confirm_asked(self, position: StreamOffset) -> None:
        consumer = self._settings.consumer
        if self._progress is not None and consumer is not None and consumer.at_least_once:
            self._progress.store(position)

    @property
    def _source(self) -> ChangeSource:
        if self._source_made is None:
            self._source_made = ChangeSource(self._read.home, self._read.schema, self._settings)
        return self._source_made

    @property
    def _progress(self) -> ConsumerProgress | None:
        if self._progress_made is None and self._settings.consumer is not None:
            self._progress_made = ConsumerProgress(self._read.home, self._settings.consumer)
        return self._progress_made


def stream_settings(options: SourceOptions) -> tuple[StreamSettings, TableSchema]:
    """The settings of a stream and the schema in which it reads."""
    given = options.given
    given.refuse_for_reading()
    wrong = next((name for name in ("version", "timestamp", "tag") if given.get(name) is not None), None)
    if wrong is not None:
        raise InvalidError(f"option {wrong!r} names the version of a batch; a stream begins where scan.mode says")
    schema = options.open_stream().schema()
    settings = StreamSettings.of(schema.options, options.stream, keyed=bool(schema.primary_keys))
    if settings.changelog and ROW_KIND in schema.names:
        raise InvalidError(f"the table has a column {ROW_KIND!r}, so that read.changelog cannot add one of that name")
    return settings, schema


def stream_schema(schema: TableSchema, settings: StreamSettings, columns: Sequence[str] | None = None) -> StructType:
    """The columns of a stream: those of the table, or the chosen ones, and `_row_kind` before them where it has row kinds."""
    kinds = [StructField(ROW_KIND, StringType())] if settings.changelog else []
    names = chosen_names(columns, schema)
    return StructType([*kinds, *spark_schema([schema.field(name) for name in names]).fields])
