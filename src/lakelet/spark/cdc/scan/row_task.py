"""The task that reads the rows in packs of events: what tells an event, the values of its row, and whether it is unsure.

JSON of rows and the bytes of events go on only where a row is unsure, because expressions read it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from lakelet.spark.cdc.scan.event_packs import PACKED, unpacked_events
from lakelet.spark.cdc.scan.row_cells import RowReader

LEAN = ("raw", "message_key", "image", "old")
_SPARK = {
    pa.binary(): T.BinaryType(),
    pa.string(): T.StringType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.timestamp("us", "UTC"): T.TimestampType(),
}
# The columns of PACKED, which are the first of a task's.
ROW_COLUMNS = [T.StructField(one.name, _SPARK[one.type]) for one in PACKED]


@dataclass(frozen=True, slots=True)
class RowTask:
    """Reads rows by a reader; without one all rows are unsure. Unless `lean`, rows may become unsure later, and all keep what
    they are read from."""

    reader: RowReader | None
    lean: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in unpacked_events(batches):
            yield self._rows(batch)

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.reader is None:
            cells, unsure = [], pa.array(np.ones(batch.num_rows, np.bool_))
        else:
            read = self.reader.read(*(batch.column(name) for name in ("image", "old", "operation")))
            *cells, unsure = read.flatten()
        given = [
            _where(unsure, column) if self.lean and name in LEAN else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        names = [*batch.schema.names, *(f"v{place}" for place in range(len(cells))), "unsure"]
        return pa.RecordBatch.from_arrays([*given, *cells, unsure], names=names)


def _where(chosen: pa.BooleanArray, column: pa.Array) -> pa.Array:
    """A column's values where a row is chosen, NULL elsewhere."""
    if not chosen.true_count:
        return pa.nulls(len(column), column.type)
    return pc.if_else(chosen, column, pa.scalar(None, column.type))
