"""Deleted rows taken out of what Spark's Parquet reader gives.

A row is known by its file and its place there. Both make one LONG, and a broadcast anti-join on one LONG is the fastest
look-up that Spark has:

    crc32(file name) << 31 | row index

Row indexes of deletion vectors stay below 2^31. The checksums of the files are compared on the driver: files that share one
are read by our reader, so that the number is exact. So are files with odd names, which Spark shows re-encoded, and
files of which so many rows are gone that a look-up costs more than reading them ourselves.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.errors import NotFoundError
from lakelet.format.deletion_vectors import MAX_POSITION
from lakelet.read.split_files import SplitFile, deleted_positions, naming
from lakelet.storage.home import TableHome

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_INDEX_BITS = 31
_KEY = "__lakelet_deleted"
# A look-up table of this many rows takes some 100 MB in every executor.
_MOST_POSITIONS = 2_000_000
_MOST_SHARE = 0.2


def looked_up(files: Sequence[SplitFile]) -> frozenset[str]:
    """Of files with deletion vectors the paths of those that Spark is to read, with a look-up."""
    sums = Counter(_checksum(file) for file in files)
    found: set[str] = set()
    positions = 0
    for file in files:
        assert file.vector is not None
        gone = file.vector.place.cardinality
        plain = _PLAIN_NAME.fullmatch(file.data.name) is not None and sums[_checksum(file)] == 1
        if not plain or gone is None or file.data.row_count > MAX_POSITION:
            continue
        if gone <= _MOST_SHARE * file.data.row_count and positions + gone <= _MOST_POSITIONS:
            positions += gone
            found.add(file.path)
    return frozenset(found)


def without_deleted(spark: SparkSession, home: TableHome, frame: DataFrame, files: Sequence[SplitFile]) -> DataFrame:
    """The rows of a frame over these files that their deletion vectors leave; the columns stay as they are."""
    keys = np.concatenate([_keys(home, file) for file in files])
    gone = spark.createDataFrame(pa.table({_KEY: pa.array(keys, pa.int64())}))
    return frame.join(F.broadcast(gone), _row_key(frame) == gone[_KEY], "left_anti")


def _keys(home: TableHome, file: SplitFile) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    with naming(home, [file]):
        positions = deleted_positions(home, file)
    if positions is None:
        raise NotFoundError(f"{home.where(file.path)} has no deletion vector")
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = positions + (_checksum(file) << _INDEX_BITS)
    return found


def _checksum(file: SplitFile) -> int:
    return zlib.crc32(file.data.name.encode())


def _row_key(frame: DataFrame) -> Column:
    place = frame.metadataColumn("_metadata")
    checksum = F.crc32(place.getField("file_name").cast("binary"))
    return F.shiftleft(checksum, _INDEX_BITS).bitwiseOR(place.getField("row_index"))
