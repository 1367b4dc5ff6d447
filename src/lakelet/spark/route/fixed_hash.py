"""Murmur3 of a BinaryRow with one slot as Spark arithmetic; `hash_expression` says why it is cheap.

Every intermediate number is a BIGINT that holds an unsigned 32-bit number. Spark computes an expression that occurs
more than once only once per row, so the trees are written as if they were shared.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

MASK = 0xFFFFFFFF
WORD_BITS = 32
_SEED = 42
_C1 = 0xCC9E2D51
_C2 = 0x1B873593
ADD = 0xE6546B64
MIX1 = 0x85EBCA6B
MIX2 = 0xC2B2AE35
ROUND = 5
_WORD_ROTATION, STATE_ROTATION = 15, 13
_INT_BYTES, _LONG_BYTES, _ROW_BYTES = 4, 8, 16


def hash_of_slot(slot: Column) -> Column:
    """The hash of rows with an empty header and this BIGINT as their only slot, as INT; NULL for NULL."""
    state = low(F.hash(F.lit(_HEADER_KEY), slot).cast("bigint"))
    state = shifted_in(state, 16)
    state = product(state, inverse(MIX2))
    # Inverting a shift by 13 takes two of them.
    state = state.bitwiseXOR(F.shiftright(state, 13)).bitwiseXOR(F.shiftright(state, 26))
    # Between this product and the next, the shift by 16 undone and the one done anew cancel out; the lengths remain.
    state = product(state, inverse(MIX1)).bitwiseXOR(F.lit(_LONG_BYTES ^ _ROW_BYTES).cast("bigint"))
    state = product(state, MIX1)
    state = product(shifted_in(state, 13), MIX2)
    state = shifted_in(state, 16)
    # Spark's hash passes over NULL; the zero that is NULL where the slot is brings it back.
    state = state.bitwiseOR(slot.bitwiseAND(F.lit(0).cast("bigint")))
    # The upper half is filled with the sign, so that the cast has nothing to cut off.
    return F.shiftright(F.shiftleft(state, WORD_BITS), WORD_BITS).cast("int")


def low(value: Column) -> Column:
    """The low 32 bits of a BIGINT, as an unsigned number."""
    return value.bitwiseAND(F.lit(MASK).cast("bigint"))


def shifted_in(value: Column, bits: int) -> Column:
    """A number with its upper bits mixed into the lower ones."""
    return value.bitwiseXOR(F.shiftright(value, bits))


def product(value: Column, factor: int) -> Column:
    """The low 32 bits of a product; the factor is taken as signed, so that 64 bits hold all of it."""
    return low(value * F.lit(_signed(factor)).cast("bigint"))


def _signed(number: int) -> int:
    return number - (1 << WORD_BITS) if number >> WORD_BITS - 1 else number


def inverse(factor: int) -> int:
    """The multiplicative inverse of a factor modulo 2^32."""
    return pow(factor, -1, 1 << WORD_BITS)


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> WORD_BITS - bits) & MASK


def key_with_hash(state: int) -> int:
    """The INT whose hash in Spark is the given number: all steps of hashing one word with seed 42, backwards."""
    state ^= state >> 16
    state = state * inverse(MIX2) & MASK
    state ^= state >> 13 ^ state >> 26
    state = state * inverse(MIX1) & MASK
    state ^= state >> 16
    state ^= _INT_BYTES
    state = (state - ADD) * inverse(ROUND) & MASK
    word = _rotated(state, WORD_BITS - STATE_ROTATION) ^ _SEED
    word = word * inverse(_C2) & MASK
    word = _rotated(word, WORD_BITS - _WORD_ROTATION)
    return _signed(word * inverse(_C1) & MASK)


def _state_after_header() -> int:
    """Murmur's state after the eight zero bytes of a header without NULLs: a zero word mixes in nothing."""
    state = _SEED
    for _ in range(_LONG_BYTES // _INT_BYTES):
        state = _rotated(state, STATE_ROTATION) * ROUND + ADD & MASK
    return state


_HEADER_KEY = key_with_hash(_state_after_header())
