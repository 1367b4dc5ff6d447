"""Iceberg's bucket hash as Spark arithmetic: Murmur3 with seed 0, of eight bytes or of bytes of any length.

    numbers, dates, instants   hash(c, v) of Spark hashes the BIGINT v with the hash of c as its seed; for one c that hash is 0
    texts, bytes               the same over bytes padded with zeros to whole words, with its last steps undone and repeated

Spark and Murmur differ where bytes do not fill their last word: Murmur mixes the tail in at once, Spark byte by byte.
Padded with zeros the tail is a word like any other. What is done after it (rotation, product, sum, finishing for
that length) can be undone, and finished for the true length.

Every step uses the one before more than once. Written as one expression it would be so large that Spark no longer compiles it, so
`let` makes each step a column of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelet.spark.route.fixed_hash import (
    ADD,
    MIX1,
    MIX2,
    ROUND,
    STATE_ROTATION,
    WORD_BITS,
    inverse,
    key_with_hash,
    low,
    product,
    shifted_in,
)
from lakelet.spark.route.hash_expression import joined_bytes, zero_bytes

Let = Callable[[Column], Column]
_SEED_KEY = key_with_hash(0)
_WORD = 4
_LONG_BYTES = 8
_POSITIVE = 0x7FFFFFFF


def bucket_of_long(value: Column, buckets: int) -> Column:
    """The bucket of a BIGINT; NULL for NULL."""
    found = F.hash(F.lit(_SEED_KEY), value).cast("bigint")
    return _bucket(found, value, buckets)


def bucket_of_bytes(data: Column, buckets: int, let: Let) -> Column:
    """The bucket of a BINARY; NULL for NULL."""
    size = let(F.octet_length(data).cast("bigint"))
    room = let((size + (_WORD - 1)).bitwiseAND(_long(-_WORD)))
    found = let(low(F.hash(F.lit(_SEED_KEY), joined_bytes(data, zero_bytes(room - size))).cast("bigint")))
    # Murmur's last steps inverted; inverting a shift by 13 takes two of them.
    state = let(product(shifted_in(found, 16), inverse(MIX2)))
    state = let(product(state.bitwiseXOR(F.shiftright(state, 13)).bitwiseXOR(F.shiftright(state, 26)), inverse(MIX1)))
    state = let(product(low(shifted_in(state, 16).bitwiseXOR(room) - _long(ADD)), inverse(ROUND)))
    rest = F.shiftright(state, STATE_ROTATION)
    state = let(low(rest.bitwiseOR(F.shiftleft(state, WORD_BITS - STATE_ROTATION))).bitwiseXOR(size))
    # And forwards again.
    state = let(product(shifted_in(state, 16), MIX1))
    state = let(product(shifted_in(state, 13), MIX2))
    return _bucket(F.when(size == room, found).otherwise(shifted_in(state, 16)), size, buckets)


def bucket_of_unscaled(number: Column, buckets: int, let: Let) -> Column:
    """The bucket of a decimal by its unscaled BIGINT: that of its bytes, as few as hold it with its sign."""
    number = let(number)
    size = F.lit(1)
    for width in range(1, _LONG_BYTES):
        limit = 1 << 8 * width - 1
        size = size + ((number < _long(-limit)) | (number >= _long(limit))).cast("int")
    size = let(size)
    wide = F.unhex(F.lpad(F.hex(number), 2 * _LONG_BYTES, "0"))
    return bucket_of_bytes(let(wide.substr(F.lit(_LONG_BYTES + 1) - size, size)), buckets, let)


def _bucket(found: Column, value: Column, buckets: int) -> Column:
    # Spark's hash passes over NULL.
    return F.when(value.isNotNull(), found.bitwiseAND(_long(_POSITIVE)) % _long(buckets))


def _long(number: int) -> Column:
    return F.lit(number).cast("bigint")
