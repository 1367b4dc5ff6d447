"""Check whether the hash of a key alone determines the writer of its bucket.

It does where every key in the hash indexes is in a bucket of the group of its hash: in tables that were written
with as many groups, or with a multiple of them. Then nothing needs to be looked up before rows are shuffled. All indexes are
read to find out, on the driver or, where there is much to read, in tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.model.bucket_mode import Place
from lakelet.sink.bucket.dynamic_buckets import is_aligned
from lakelet.sink.bucket.hash_indexes import HashIndexes
from lakelet.spark.read.merge_scan import task_frame

# Four bytes a key.
MOST_KEYS_ON_DRIVER = 1 << 24
_THREADS = 4
_SAMPLE = 256
_FITTING = T.StructType([T.StructField("groups", T.IntegerType())])


def fitting_groups(
    spark: SparkSession, indexes: Callable[[], HashIndexes], counts: Mapping[Place, int], candidates: Sequence[int]
) -> int | None:
    """The first number of groups by which all buckets are aligned."""
    places = sorted(counts)
    if sum(counts.values()) <= MOST_KEYS_ON_DRIVER:
        found = _fitting(indexes(), places, candidates)
    else:
        parts = tuple(spread(counts, MOST_KEYS_ON_DRIVER))
        rows = task_frame(spark, _FittingTask(indexes, parts, tuple(candidates)), len(parts), _FITTING).collect()
        numbers = [row[0] for row in rows]
        found = [groups for groups in candidates if numbers.count(groups) == len(parts)]
    return next(iter(found), None)


def spread(counts: Mapping[Place, int], most: int) -> list[tuple[Place, ...]]:
    """The buckets in parts of about this many keys."""
    parts: list[list[Place]] = [[]]
    size = 0
    for place, count in sorted(counts.items()):
        if size and size + count > most:
            parts.append([])
            size = 0
        parts[-1].append(place)
        size += count
    return [tuple(part) for part in parts]


def _fitting(indexes: HashIndexes, places: Sequence[Place], candidates: Sequence[int]) -> list[int]:
    refuted: set[int] = set()

    def check(place: Place) -> None:
        hashes = indexes.load_bucket(*place)
        for part in (hashes[:_SAMPLE], hashes):
            refuted.update(
                groups for groups in candidates if groups not in refuted and not is_aligned(*place, part, groups)
            )

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(check, places))
    return [groups for groups in candidates if groups not in refuted]


@dataclass(frozen=True, slots=True)
class _FittingTask:
    """Finds the candidate group numbers by which some buckets are aligned."""

    indexes: Callable[[], HashIndexes]
    parts: tuple[tuple[Place, ...], ...]
    candidates: tuple[int, ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        found = _fitting(self.indexes(), self.parts[number], self.candidates)
        yield pa.RecordBatch.from_arrays([pa.array(found, pa.int32())], ["groups"])
