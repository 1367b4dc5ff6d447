"""Rows with a precomputed bucket, in a column beside the table's own.

    bucket          the row goes there
    -1              the key is new: a bucket with room, one of those assigned to this writer
    -2              another row of the same key is in the write, and none of them is the last: refused
    -3 - bucket     no row, but the delete of one that moves to another partition; the partition columns are the old ones

Where engines change values of partition columns, the column is a struct of that bucket and of the BinaryRow of the row's
partition, NULL where its partition columns are exact.

The shuffle has looked keys up in one snapshot, and sent all rows of a bucket, and all new keys that may be assigned to it,
to one writer. Buckets of new keys are assigned here, where their rows are written: an attempt that is retried assigns
all of them again, and only one attempt is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.sink.bucket.dynamic_buckets import DynamicBucketAssigner
from lakelet.sink.bucket.extractors import extractor_for
from lakelet.sink.bucket.placers import Placed
from lakelet.sink.rows.refused_rows import SHOWN, repeated_keys

NEW = -1
REPEATED = -2
FIRST_DELETE = -3
BUCKET, PARTITION = "bucket", "partition"


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The snapshot (0: none) in which keys were looked up over all partitions, and the write that did so; None and None where
    the write replaces everything in the table."""

    at: int | None
    assigner: str | None


class AssignedRows:
    """Reads the buckets of rows from the column `carried`. `new_keys` assigns buckets to new keys, and adds the hash indexes
    to the messages, unless keys were `looked_up` in the rows of the table."""

    def __init__(
        self, schema: TableSchema, carried: str, new_keys: DynamicBucketAssigner, looked_up: LookedUp | None = None
    ) -> None:
        self._extractor = extractor_for(schema)
        self._schema = schema
        self._keys = list(schema.primary_keys)
        self._carried = carried
        self._new_keys = new_keys
        self._looked_up = looked_up
        self._repeated = 0
        self._examples: list[str] = []

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets."""
        return self._extractor.total_buckets

    def place(self, batch: pa.RecordBatch, kinds: Kinds | None) -> Iterator[Placed]:
        """The rows with their places, without the bucket column."""
        told = batch.column(self._carried)
        rows = batch.drop_columns([self._carried])
        if pa.types.is_struct(told.type):
            rows = self._in_partitions(rows, told.field(PARTITION))
            told = told.field(BUCKET)
        carried = told.to_numpy()
        self._count_repeated(rows, carried)
        if self._repeated:
            return
        deletes = carried <= FIRST_DELETE
        if deletes.any():
            kinds = np.zeros(len(carried), np.int8) if kinds is None else kinds
            kinds = np.where(deletes, np.int8(RowKind.DELETE), kinds)
        buckets = np.where(deletes, FIRST_DELETE - carried, carried).astype(np.int32)
        new = carried == NEW
        if new.all():
            yield Placed(rows, kinds, self._new_keys.assign(self._extractor.extract(rows)))
            return
        if new.any():
            assigned = self._new_keys.assign(self._extractor.extract(rows.filter(pa.array(new))))
            buckets[new] = assigned.buckets
        yield Placed(rows, kinds, self._extractor.extract(rows).assigned(buckets))

    def complete(self, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
        """The messages with what the assignment of buckets depends on."""
        if self._repeated:
            raise repeated_keys(self._repeated, self._examples)
        if self._looked_up is None:
            return self._new_keys.complete(messages)
        at, name = self._looked_up.at, self._looked_up.assigner
        return tuple(replace(message, assigned_at=at, assigner=name) for message in messages)

    def abort(self) -> None:
        """Removes the indexes written."""
        self._new_keys.abort()

    def _in_partitions(self, rows: pa.RecordBatch, partitions: pa.Array) -> pa.RecordBatch:
        """The rows with the partition columns of these BinaryRows; rows without one keep their own."""
        if partitions.null_count == len(partitions):
            return rows
        encoded, is_told = partitions.dictionary_encode(), partitions.is_valid()
        values = decode_rows(encoded.dictionary.cast(pa.binary()), self._schema.partition_types)
        for name, column in zip(self._schema.partition_keys, values, strict=True):
            index = rows.schema.get_field_index(name)
            field = rows.schema.field(index)
            told = column.cast(field.type).take(encoded.indices)
            rows = rows.set_column(index, field, pc.if_else(is_told, told, rows.column(index)))
        return rows

    def _count_repeated(self, rows: pa.RecordBatch, carried: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        found = np.flatnonzero(carried == REPEATED)
        if len(found):
            self._repeated += len(found)
            shown = rows.select(self._keys).take(pa.array(found[: SHOWN - len(self._examples)]))
            self._examples += [str(row) for row in shown.to_pylist()]
