"""Leave hidden rows out of what Spark's Parquet reader returns, by one bitmap per file.

A frame of two columns holds the bitmaps: the size of a file and its words (`row_bitmaps`). It is broadcast and joined by the
size, which Spark knows without looking at rows, where a name would be hashed again for each row; the files of one frame all
differ in size. The row index chooses the word and the bit. So the look-up table has one entry per file, and the cost does not
depend on how many rows are hidden. A row without a bit belongs to a file that is not the one its manifest describes: that is
an error.

Few bitmaps are found on the driver and are part of the plan; many are found by tasks, when the frame is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.model.split import Split
from lakelet.spark.read.found_bitmaps import Found, found_bitmaps
from lakelet.spark.read.merge_scan import balanced_parts, packed, task_frame, unpacked
from lakelet.spark.read.row_bitmaps import WORD_BITS, RowBitmaps, Words, no_bits
from lakelet.spark.session import default_parallelism
from lakelet.table.read.table_scan import TableScan

SIZE, BITS = "__lakelet_size", "__lakelet_bits"
# The name under which Spark's Parquet reader fills in the place of each row in its file. Asked for as a column it costs nothing
# else; as a field of `_metadata` it is put into a struct for every row, and taken out again.
ROW_INDEX = "_tmp_metadata_row_index"
RESERVED = frozenset({SIZE, BITS, ROW_INDEX})
WORD_SHIFT, BIT_MASK = 6, WORD_BITS - 1
# Their bitmaps take 16 MiB of the driver's cache.
_MOST_KEPT_ROWS = 1 << 27
_SCHEMA = T.StructType([T.StructField(SIZE, T.LongType()), T.StructField(BITS, T.ArrayType(T.LongType(), False))])
CHANGED = "a data file of the table is not the one that its manifest describes: its size or its number of rows differs"
_WORD = f"get({BITS}, CAST(shiftright({ROW_INDEX}, {WORD_SHIFT}) AS INT))"
_BIT = f"shiftright({_WORD}, CAST({ROW_INDEX} & {BIT_MASK} AS INT)) & 1"
_IS_VISIBLE = f"coalesce({_BIT} = 0, CAST(raise_error('{CHANGED}') AS BOOLEAN))"


@dataclass(frozen=True, slots=True)
class BitmapTasks:
    """Task number n finds the bitmaps of the n-th part of the splits; files without hidden rows get an empty bitmap. Those of
    merged splits are `kept` by the driver."""

    scan: bytes
    parts: tuple[bytes, ...]
    kept: Found | None

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        bitmaps = RowBitmaps.of(unpacked(self.scan))
        for split in unpacked(self.parts[number]):
            found = bitmaps.find(split)
            if self.kept is not None and split.needs_merge:
                self.kept.add({bitmaps.key(split): found})
            for path, file in zip(split.paths, split.files, strict=True):
                words = found.get(path)
                yield from _table({file.size: no_bits(file.row_count) if words is None else words}).to_batches()


def local_bitmaps(spark: SparkSession, words: Mapping[int, Words]) -> DataFrame:
    """Bitmaps by the size of their file, as a part of the plan."""
    return spark.createDataFrame(_table(words))


def task_bitmaps(spark: SparkSession, scan: TableScan, splits: Sequence[Split], costs: Sequence[int]) -> DataFrame:
    """The bitmaps of all files of these splits, found by tasks."""
    parts = balanced_parts(splits, costs, default_parallelism(spark))
    rows = sum(split.row_count for split in splits)
    kept = found_bitmaps(spark) if rows <= _MOST_KEPT_ROWS else None
    tasks = BitmapTasks(packed(scan), tuple(packed(part) for part in parts), kept)
    return task_frame(spark, tasks, len(parts), _SCHEMA)


def without_hidden(frame: DataFrame, bitmaps: DataFrame) -> DataFrame:
    """The rows of a Parquet frame with a row index whose bit is not set. Columns of the bitmaps are added."""
    size = frame.metadataColumn("_metadata").getField("file_size")
    return frame.join(F.broadcast(bitmaps), size == bitmaps[SIZE], "left_outer").where(_IS_VISIBLE)


def _table(words: Mapping[int, Words]) -> pa.Table:
    ends = np.cumsum([0, *(len(one) for one in words.values())], dtype=np.int64)
    bits = pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()), pa.array(np.concatenate([*words.values(), np.empty(0, np.int64)]))
    )
    return pa.table([pa.array(list(words), pa.int64()), bits], names=[SIZE, BITS])
