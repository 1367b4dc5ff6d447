"""Leave hidden rows out of what Spark's Parquet reader returns, by bitmaps that generated code looks up in two arrays.

    files    4 numbers for each slot of a hash table: size of the file │ its first word │ its number of words │ —
             the last of slot 0 is the shift, that of slot 1 the mask: (size << 2 >> shift) & mask is 4 x the file's slot
    words    the words of all files, one after the other

The shift and the mask are chosen so that no two files share a slot. A row of a file of another size, or beyond the file's words,
belongs to a file that is not the one its manifest describes: that is an error.

The arrays are literals of the plan: nothing is joined, no exchange or subquery is waited for. As Spark's own kind of array they
are a few bytes of the plan's text and of generated code, whatever is in them; only shift and mask, which are folded into numbers,
make code differ. Both arrays travel with every task. Where they are too large for that, and over Spark Connect, which cannot send
such an array, bitmaps are joined (`bitmap_filter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from py4j.java_gateway import JavaClass
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from lakelet.spark.read.bitmap_filter import BIT_MASK, CHANGED, ROW_INDEX, SIZE, WORD_SHIFT
from lakelet.spark.read.parquet_frame import jvm
from lakelet.spark.read.row_bitmaps import WORD_BITS, Words
from lakelet.spark.session import is_connect

FILES, WORDS = "__lakelet_files", "__lakelet_words"
# 4 MiB, the bitmaps of 32 million rows.
_MOST_WORDS = 1 << 19
_MOST_SLOTS = 1 << 12
_STRIDE = 4
_SHIFT_AT, _MASK_AT = 3, 7
_SHIFTS = 16
_SLOT = (
    f"CAST(shiftright(shiftleft({SIZE}, 2), CAST(get({FILES}, {_SHIFT_AT}) AS INT)) & get({FILES}, {_MASK_AT}) AS INT)"
)
_WORD_OF_FILE = f"shiftright({ROW_INDEX}, {WORD_SHIFT})"
_IS_KNOWN = f"get({FILES}, {_SLOT}) = {SIZE} AND {_WORD_OF_FILE} < get({FILES}, {_SLOT} + 2)"
_PLACE = f"CAST(if({_IS_KNOWN}, get({FILES}, {_SLOT} + 1) + {_WORD_OF_FILE}, NULL) AS INT)"
_BIT = f"shiftright(get({WORDS}, {_PLACE}), CAST({ROW_INDEX} & {BIT_MASK} AS INT)) & 1"
_IS_VISIBLE = f"coalesce({_BIT} = 0, CAST(raise_error('{CHANGED}') AS BOOLEAN))"


@dataclass(frozen=True, slots=True)
class PackedBitmaps:
    """The two arrays."""

    files: NDArray[np.int64]
    words: Words


def packed_bitmaps(words: Mapping[int, Words]) -> PackedBitmaps | None:
    """The bitmaps of files by their sizes; None where they are too large, or too many, to travel with every task."""
    counts = np.fromiter((len(one) for one in words.values()), np.int64, len(words))
    if counts.sum() > _MOST_WORDS:
        return None
    sizes = np.fromiter(words, np.int64, len(words))
    slots = max(2, 1 << (len(sizes) - 1).bit_length())
    while slots <= _MOST_SLOTS:
        for shift in range(_SHIFTS):
            mask = _STRIDE * (slots - 1)
            places = (sizes << 2 >> shift) & mask
            if len(np.unique(places)) == len(places):
                files = np.full(_STRIDE * slots, -1, np.int64)
                files[places], files[places + 1], files[places + 2] = sizes, np.cumsum(counts) - counts, counts
                files[_SHIFT_AT], files[_MASK_AT] = shift, mask
                return PackedBitmaps(files, np.concatenate(list(words.values())))
        slots *= 2
    return None


def without_looked_up(frame: DataFrame, arrays: ArrayLiterals, bitmaps: PackedBitmaps) -> DataFrame:
    """The rows of a Parquet frame with a row index whose bit is not set. Columns of the look-up are added."""
    size = frame.metadataColumn("_metadata").getField("file_size")
    files, words = arrays.literal(bitmaps.files), arrays.literal(bitmaps.words)
    return frame.withColumns({SIZE: size, FILES: files, WORDS: words}).where(_IS_VISIBLE)


@dataclass(frozen=True, slots=True)
class ArrayLiterals:
    """Makes literals of Spark's arrays of BIGINT from memory that is laid out as theirs:

    number of values, 64 bits ┬ a bit for each value, none set: it is not NULL ┬ the values, 64 bits each
    """

    array: Any
    literal_of: Any
    column_of: Any
    numbers: Any
    offset: int

    @staticmethod
    def of(spark: SparkSession) -> ArrayLiterals | None:
        """Those of a session; None where its JVM cannot be asked for such a thing."""
        if is_connect(spark):
            return None
        context = spark.sparkContext
        if context not in _of_context:
            _of_context[context] = _array_literals(spark)
        return _of_context[context]

    def literal(self, values: NDArray[np.int64]) -> Column:
        """The literal of an array."""
        nulls = np.zeros(-(-len(values) // WORD_BITS), np.int64)
        data = np.concatenate([np.array([len(values)], np.int64), nulls, values]).tobytes()
        array = self.array()
        array.pointTo(bytearray(data), self.offset, len(data))
        return ClassicColumn(self.column_of(self.literal_of(array, self.numbers)))


_of_context: WeakKeyDictionary[SparkContext, ArrayLiterals | None] = WeakKeyDictionary()


def _array_literals(spark: SparkSession) -> ArrayLiterals | None:
    java = jvm(spark)
    sql = java.org.apache.spark.sql
    expressions = sql.catalyst.expressions
    array, literal, columns = expressions.UnsafeArrayData, expressions.Literal, sql.classic.ExpressionUtils
    # A name that is not there is taken for that of a package.
    if not all(isinstance(one, JavaClass) for one in (array, literal, columns)):
        return None
    types = sql.types.DataTypes
    numbers = types.createArrayType(types.LongType, False)
    return ArrayLiterals(
        array, literal, columns.column, numbers, java.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET
    )
