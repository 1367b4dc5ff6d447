"""Filter deleted rows out of what Spark's Parquet reader returns, by an anti-join with the deletion vectors.

A row is identified by its file and its row index. Both are packed into one LONG, for a broadcast anti-join on one LONG is the
fastest look-up that Spark has:

    size of the file << 31 | row index

Spark knows a file's size without looking at its rows, where a hash of the name would be computed again for each row. Row
indexes of deletion vectors stay below 2^31, sizes below 2^32. The driver checks the sizes: of files that share
one all but the first are read by our reader, so that the number is unique. So are files with so many deleted rows that a
look-up costs more than reading them ourselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.index.deletion_vectors import MAX_POSITION, Positions
from lakelet.read.split_files import SplitFile, deleted_positions, naming
from lakelet.spark.read.merge_scan import packed, task_frame, unpacked
from lakelet.storage.home import TableHome

_THREADS = 16
_INDEX_BITS = 31
_MOST_BYTES = (1 << 32) - 1
_KEY = "__lakelet_deleted"
# A look-up table of this many rows takes some 100 MB in every executor.
_MOST_POSITIONS = 2_000_000
_MOST_SHARE = 0.02
# Up to this number of positions they are a local relation of the plan rather than the result of a task.
_FEW_POSITIONS = 20_000


@dataclass(frozen=True, slots=True)
class _Keys:
    """The task that yields the packed numbers of deleted rows."""

    data: bytes

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([pa.array(unpacked(self.data), pa.int64())], names=[_KEY])


def looked_up(files: Sequence[SplitFile]) -> frozenset[str]:
    """Of files with deletion vectors, the paths of those that Spark is to read with an anti-join."""
    found: set[str] = set()
    sizes: set[int] = set()
    positions = 0
    for file in files:
        assert file.vector is not None
        gone, size = file.vector.place.cardinality, file.data.size
        if gone is None or size in sizes or size > _MOST_BYTES or file.data.row_count > MAX_POSITION:
            continue
        if gone <= _MOST_SHARE * file.data.row_count and positions + gone <= _MOST_POSITIONS:
            positions += gone
            sizes.add(size)
            found.add(file.path)
    return frozenset(found)


def without_deleted(spark: SparkSession, home: TableHome, frame: DataFrame, files: Sequence[SplitFile]) -> DataFrame:
    """The rows of a frame over these files without their deleted rows; the columns are unchanged."""
    with ThreadPoolExecutor(_THREADS) as pool:
        keys = np.concatenate(list(pool.map(lambda file: _keys(home, file), files)))
    gone = _gone(spark, keys)
    return frame.join(F.broadcast(gone), _row_key(frame) == gone[_KEY], "left_anti")


def _gone(spark: SparkSession, keys: Positions) -> DataFrame:
    if len(keys) <= _FEW_POSITIONS:
        return spark.createDataFrame(pa.table({_KEY: pa.array(keys, pa.int64())}))
    return task_frame(spark, _Keys(packed(keys)), 1, T.StructType([T.StructField(_KEY, T.LongType())]))


def _keys(home: TableHome, file: SplitFile) -> Positions:
    with naming(home, [file]):
        info = home.store.head(file.path)
        positions = deleted_positions(home, file)
        if info is None or positions is None:
            raise NotFoundError(f"{home.where(file.path)} is not there")
    if info.size != file.data.size:
        raise CorruptionError(f"{home.where(file.path)} has {info.size} bytes; its manifest says {file.data.size}")
    found: Positions = positions + (file.data.size << _INDEX_BITS)
    return found


def _row_key(frame: DataFrame) -> Column:
    place = frame.metadataColumn("_metadata")
    return F.shiftleft(place.getField("file_size"), _INDEX_BITS).bitwiseOR(place.getField("row_index"))
