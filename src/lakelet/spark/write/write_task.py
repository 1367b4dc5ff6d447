"""The executor task that writes the rows of its buckets into files and returns commit messages to the driver.

It runs on an executor and writes through the same sink as local writes. It never commits. After an error its files are
removed; those of an attempt that is killed are the driver's to remove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.request import Overwrite
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.sink.bucket.placers import RowPlacer
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.refused_rows import SHOWN, null_keys, repeated_keys
from lakelet.sink.rows.row_kinds import kinds_of
from lakelet.sink.write.key_value_writer import ignored_kinds
from lakelet.spark.task_outcome import outcome_batches
from lakelet.spark.types import check_text, from_spark_arrow
from lakelet.storage.home import TableHome
from lakelet.table.write.table_write import TableWrite
from lakelet.table.write.writer import PinnedVersion, WriterSettings


@dataclass(frozen=True, slots=True)
class Written:
    """What one task wrote."""

    messages: tuple[CommitMessage, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes the rows of one task. Where rows come `in_key_order`, duplicates of a key are found as neighbours.
    `placer_of` makes the placer of rows that carry their bucket in the column `carried`. `now_ms` is the current time of default
    values, the same for all tasks."""

    home: TableHome
    schema: TableSchema
    replaces: Overwrite | None
    base: PinnedVersion
    kinds: str | None = None
    missing: str | None = None
    one_row_per_key: bool = False
    in_key_order: bool = False
    carried: str | None = None
    placer_of: Callable[[], RowPlacer] | None = None
    now_ms: int | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of a task and yields its outcome as a single row."""
        yield from outcome_batches(lambda: self._written(batches))

    def _written(self, batches: Iterable[pa.RecordBatch]) -> Written:
        settings = WriterSettings(None if self.placer_of is None else self.placer_of(), self.one_row_per_key)
        nulls = NullRows(self.schema)
        repeats = RepeatedRows(self.schema) if self.one_row_per_key and self.in_key_order else None
        write = TableWrite(
            self.home,
            self.schema,
            replaces=self.replaces,
            base=self.base,
            settings=settings,
            carried=self.carried,
            missing=self.missing,
            now_ms=self.now_ms,
        )
        rows = 0
        try:
            for batch in batches:
                rows += batch.num_rows
                taken = from_spark_arrow(batch, self.schema.fields)
                check_text(taken)
                if nulls.found_in(taken) or nulls.count:
                    continue
                if repeats is not None:
                    repeats.look_at(taken, self.kinds)
                write.write(taken, self.kinds)
            nulls.check()
            if repeats is not None:
                repeats.check()
            return Written(write.prepare_commit(), rows)
        except BaseException:
            write.discard()
            raise


class NullRows:
    """Counts rows that have NULL where the table allows none, and keeps a few to show."""

    def __init__(self, schema: TableSchema) -> None:
        self._names = [field.name for field in schema.fields if not field.type.nullable]
        self._shown = list(schema.primary_keys) or self._names
        self._examples: list[str] = []
        self.count = 0

    def found_in(self, batch: pa.RecordBatch) -> bool:
        """Whether a batch has such rows."""
        wrong = [name for name in self._names if name in batch.schema.names and batch.column(name).null_count]
        if not wrong:
            return False
        mask = batch.column(wrong[0]).is_null()
        for name in wrong[1:]:
            mask = pc.or_(mask, batch.column(name).is_null())
        rows = batch.filter(mask)
        self.count += rows.num_rows
        shown = rows.select([name for name in self._shown if name in batch.schema.names])
        self._examples += [str(row) for row in shown.slice(0, SHOWN - len(self._examples)).to_pylist()]
        return True

    def check(self) -> None:
        """Raises if there were any."""
        if self.count:
            raise null_keys(self._names, self.count, self._examples)


class RepeatedRows:
    """Finds duplicate keys in batches that are sorted by key, for postponed rows, which are not merged on write."""

    def __init__(self, schema: TableSchema) -> None:
        self._fields = [schema.field(name) for name in schema.primary_keys]
        self._caster = RowCaster(self._fields)
        options = TableOptions(schema.options)
        self._ignored = ignored_kinds(options)
        self._kind_column = options.get(ROWKIND_FIELD)
        self._last: bytes | None = None
        self._count = 0
        self._examples: list[str] = []

    def look_at(self, batch: pa.RecordBatch, kinds: str | None) -> None:
        """Counts the rows of a batch that have the key of the row before, without rows of ignored kinds."""
        column = kinds or self._kind_column
        if self._ignored and column is not None:
            batch = batch.filter(pa.array(~np.isin(kinds_of(batch.column(column)), self._ignored)))
        if not batch.num_rows:
            return
        columns = self._caster.cast(batch.select([field.name for field in self._fields]))
        keys = encode_rows(columns.columns, [field.type for field in self._fields])
        same = np.zeros(len(keys), bool)
        same[0] = keys[0].as_py() == self._last
        same[1:] = pc.equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
        self._last = keys[-1].as_py()
        found = np.flatnonzero(same)
        self._count += len(found)
        shown = columns.take(pa.array(found[: SHOWN - len(self._examples)]))
        self._examples += [str(row) for row in shown.to_pylist()]

    def check(self) -> None:
        """Raises if there were any."""
        if self._count:
            raise repeated_keys(self._count, self._examples)
