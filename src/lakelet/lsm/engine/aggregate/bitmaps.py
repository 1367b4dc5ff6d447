"""`rbm32` and `rbm64`: unions of roaring bitmaps, in the bytes that Java Paimon writes.

Those of 32-bit numbers are in the portable format, those of 64-bit numbers in the one of Java's Roaring64Bitmap
(`format/index/radix_bitmap`), which other libraries do not write. Java unites two values at a time, and the bytes of a 64-bit
bitmap follow from the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.index import radix_bitmap
from lakelet.format.index.deletion_vectors import decode_bitmap, encode_bitmap
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule


def united_bitmaps(values: Sequence[bytes], rule: ColumnRule) -> bytes:
    """The union of bitmaps of 32-bit numbers."""
    try:
        parts = [decode_bitmap(bitmap, path=f"column {rule.column!r}") for bitmap in values]
    except CorruptionError as error:
        raise InvalidError(f"column {rule.column!r} is aggregated with '{rule.function}': {error}") from error
    return encode_bitmap(np.unique(np.concatenate(parts)))


def united_wide_bitmaps(values: Sequence[bytes], rule: ColumnRule) -> bytes:
    """The union of bitmaps of 64-bit numbers, oldest first."""
    result = values[0]
    for value in values[1:]:
        try:
            result = radix_bitmap.united(result, value)
        except CorruptionError as error:
            raise InvalidError(
                f"column {rule.column!r} is aggregated with '{rule.function}', and a value is no such bitmap: {error}"
            ) from error
    return result
