"""Verify a data file against its manifest entry: every row decoded, counted and compared, batch by batch.

rows        as many as the manifest says, and as many deletes
keys        ascending, the first and the last as the manifest says    files of primary-key tables, except those of waiting rows
sequences   inside the range that the manifest says
columns     as many NULLs as the statistics say, no value outside of their bounds; floating-point numbers are not compared
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import CorruptionError, LakeletError
from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.rows.binary_row_columns import decode_bounds, decode_rows
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND, file_fields
from lakelet.lsm.key_words import encode_keys
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.read.split_files import SplitFile, naming
from lakelet.storage.home import TableHome

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class FileCheck:
    """Checks data files of one table, each by itself; threads may share it."""

    home: TableHome
    schema_of: Callable[[int], TableSchema]

    def problem(self, file: SplitFile, bucket: int, *, quick: bool) -> str | None:
        """The problem with a file, None where there is none. A `quick` check looks only at its existence and size."""
        info = self.home.store.head(file.path)
        if info is None:
            return "is missing"
        if info.size != file.data.size:
            return f"has {info.size} bytes; its manifest says {file.data.size}"
        if quick:
            return None
        try:
            schema = self.schema_of(file.data.schema_id)
        except LakeletError:
            return f"cannot be read, for its schema {file.data.schema_id} cannot"
        try:
            return self._contents(file, schema, bucket)
        except CorruptionError as error:
            return f"cannot be read: {error}"

    def _contents(self, file: SplitFile, schema: TableSchema, bucket: int) -> str | None:
        stored = file_fields(schema, thin=True) if schema.primary_keys else schema.fields
        written = file.data.write_columns
        names = [one.name for one in stored if written is None or one.name in written or one.name not in schema.names]
        seen = _Seen(file, schema, is_sorted=bool(schema.primary_keys) and bucket != POSTPONE_BUCKET)
        with naming(self.home, [file]):
            batches = format_of_file(file.data.name).read(
                self.home.store, file.path, stored, names, batch_rows=_BATCH_ROWS
            )
            for batch in batches:
                problem = seen.take(batch)
                if problem is not None:
                    return problem
        return seen.finish()


@dataclass(slots=True)
class _Seen:
    """The running totals of a file's rows."""

    file: SplitFile
    schema: TableSchema
    is_sorted: bool
    rows: int = 0
    deletes: int = 0
    first: tuple[pa.Array, ...] = ()
    last: tuple[pa.Array, ...] = ()
    bounds: dict[str, tuple[pa.Array, pa.Array, int | None]] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        data = self.file.data
        names = data.value_stats_columns if data.value_stats_columns is not None else self.schema.names
        fields = [self.schema.field(name) for name in names if name in self.schema.names]
        if len(fields) != len(names) or data.value_stats.null_counts is None:
            return
        types = [one.type for one in fields]
        lows, highs = (
            decode_bounds(pa.array([row], pa.binary()), types)
            for row in (data.value_stats.min_values, data.value_stats.max_values)
        )
        for one, low, high, count in zip(fields, lows, highs, data.value_stats.null_counts, strict=False):
            self.bounds[one.name] = (low, high, count)

    def take(self, batch: pa.RecordBatch) -> str | None:
        """Add a batch to the totals; returns the problem with it, if it has one."""
        self.rows += batch.num_rows
        if not batch.num_rows:
            return None
        for name, (low, high, _) in self.bounds.items():
            if name in batch.schema.names:
                column = batch.column(name)
                self.nulls[name] = self.nulls.get(name, 0) + column.null_count
                if _is_outside(column, low, high):
                    return f"column {name!r} holds a value outside of its statistics"
        if not self.schema.primary_keys:
            return None
        self.deletes += int(np.isin(batch.column(VALUE_KIND).to_numpy(), (1, 3)).sum())
        sequences = pc.min_max(batch.column(SEQUENCE_NUMBER))
        data = self.file.data
        if self.is_sorted and not data.min_sequence <= sequences["min"].as_py() <= sequences["max"].as_py() <= (
            data.max_sequence
        ):
            return (
                f"holds sequence numbers {sequences['min']} to {sequences['max']}; its manifest says "
                f"{data.min_sequence} to {data.max_sequence}"
            )
        return self._take_keys(batch) if self.is_sorted else None

    def _take_keys(self, batch: pa.RecordBatch) -> str | None:
        fields = self.schema.trimmed_key_fields
        keys = tuple(batch.column(one.name) for one in fields)
        if any(column.null_count for column in keys):
            return "holds a key that is NULL"
        # The last key of the batch before goes first, so that the order is checked across batches.
        joined = [pa.concat_arrays(pair) for pair in zip(self.last, keys, strict=True)] if self.last else list(keys)
        if not _ascends(encode_keys([joined], [one.type for one in fields])[0]):
            return "is not in the order of its keys"
        self.first = self.first or tuple(column.slice(0, 1) for column in keys)
        self.last = tuple(column.slice(len(column) - 1) for column in keys)
        return None

    def finish(self) -> str | None:
        """The problem with the file as a whole."""
        data = self.file.data
        if self.rows != data.row_count:
            return f"holds {self.rows} rows; its manifest says {data.row_count}"
        if self.schema.primary_keys and data.delete_row_count is not None and self.deletes != data.delete_row_count:
            return f"holds {self.deletes} deletes; its manifest says {data.delete_row_count}"
        for name, (low, high, count) in self.bounds.items():
            is_known = low[0].is_valid or high[0].is_valid or count
            if is_known and count is not None and name in self.nulls and self.nulls[name] != count:
                return f"column {name!r} holds {self.nulls[name]} NULLs; its statistics say {count}"
        fields = self.schema.trimmed_key_fields if self.is_sorted and self.rows else ()
        for what, key, found in (("first", data.min_key, self.first), ("last", data.max_key, self.last)):
            if fields and not _is_key(key, fields, found):
                shown = ", ".join(str(column[0].as_py()) for column in found)
                return f"its {what} key is ({shown}), which is not what its manifest says"
        return None


def _ascends(words: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> bool:
    """Whether no row of words is less than the one before it."""
    before, after = words[:-1], words[1:]
    falls = np.zeros(len(before), bool)
    same = np.ones(len(before), bool)
    for place in range(words.shape[1]):
        falls |= same & (before[:, place] > after[:, place])
        same &= before[:, place] == after[:, place]
    return not falls.any()


def _is_key(row: bytes, fields: Sequence[Field], found: tuple[pa.Array, ...]) -> bool:
    try:
        said = decode_rows(pa.array([row], pa.binary()), [one.type for one in fields])
    except CorruptionError:
        return False
    return all(
        repr(told[0].as_py()) == repr(seen.cast(told.type)[0].as_py()) for told, seen in zip(said, found, strict=True)
    )


def _is_outside(column: pa.Array, low: pa.Array, high: pa.Array) -> bool:
    """Whether a value is less than the lower bound or greater than the upper one, where these are known and can be compared."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_floating(kind) or column.null_count == len(column):
        return False
    if low.type != kind or not (low[0].is_valid or high[0].is_valid):
        return False
    found = pc.min_max(column)
    below = low[0].is_valid and pc.less(found["min"], low[0]).as_py()
    above = high[0].is_valid and pc.greater(found["max"], high[0]).as_py()
    return bool(below or above)
