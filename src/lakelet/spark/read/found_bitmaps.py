"""Bring the bitmaps that tasks find back to the driver, which keeps them: the next frame of the same files needs no such tasks.

An accumulator carries them, one for each context, since Spark never forgets one. It holds nothing itself: what a task adds is put
into the cache of bitmaps as it arrives. An attempt that is repeated brings the same bitmaps again, one that fails brings none.
Spark Connect has no accumulators, so that tasks find the rows each time there.
"""

from __future__ import annotations

from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from lakelet.spark.read.row_bitmaps import FoundBitmaps, keep_found
from lakelet.spark.session import is_connect

Found: TypeAlias = "Accumulator[FoundBitmaps | None]"

_of_context: WeakKeyDictionary[SparkContext, Found] = WeakKeyDictionary()


class _IntoCache(AccumulatorParam["FoundBitmaps | None"]):
    """A task's value is what it found; the driver's is None."""

    def zero(self, value: FoundBitmaps | None) -> FoundBitmaps | None:
        """What a task begins with."""
        return {}

    def addInPlace(self, value1: FoundBitmaps | None, value2: FoundBitmaps | None) -> FoundBitmaps | None:
        """Adds to what a task found; on the driver, to the cache."""
        found = value2 or {}
        if value1 is None:
            keep_found(found)
            return None
        return value1 | found


def found_bitmaps(spark: SparkSession) -> Found | None:
    """The accumulator to which tasks of this session add; None where there is none."""
    if is_connect(spark):
        return None
    context = spark.sparkContext
    if context not in _of_context:
        _of_context[context] = context.accumulator(None, _IntoCache())
    return _of_context[context]
