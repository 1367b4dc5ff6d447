"""Channel selection of the shuffle: which writer or assigner each row is sent to, for every distributed engine.

    writers      (|hash(partition)| % n + bucket) % n      buckets of a partition on neighbouring channels, partitions staggered
                 bucket % n                                where partitions are ignored
    assigners    (|hash(partition) % n| + |hash(key) % a|) % n      a key has one assigner, a partition at most `a` of them

The arithmetic is that of 32-bit numbers in Java, whose remainder takes the sign of the dividend. |-2^31| is no such
number; that one hash counts as 2^31 - 1. A hash is that of the BinaryRow's body.

    transform(by_bucket, buckets_of)     channels of rows in one shape, computed as for another that they are converted to
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import PREFIX
from lakelet.format.rows.murmur import hash_words

Ints = NDArray[np.int32]
_LEAST = np.int32(-(2**31))
_GREATEST = np.int32(2**31 - 1)
_WORD = 4


Rows = TypeVar("Rows")
Rows_contra = TypeVar("Rows_contra", contravariant=True)
Converted = TypeVar("Converted")


class ChannelComputer(Protocol[Rows_contra]):
    """Computes the channel of each row of a batch."""

    def __call__(self, rows: Rows_contra, channels: int, /) -> Ints: ...


@dataclass(frozen=True, slots=True)
class TransformedChannels(Generic[Rows, Converted]):
    """A channel computer for batches that are converted first. Picklable where both of its parts are."""

    computer: ChannelComputer[Converted]
    converter: Callable[[Rows], Converted]

    def __call__(self, rows: Rows, channels: int, /) -> Ints:
        return self.computer(self.converter(rows), channels)


def transform(
    computer: ChannelComputer[Converted], converter: Callable[[Rows], Converted]
) -> TransformedChannels[Rows, Converted]:
    """Adapt a channel computer to rows of another shape: it sees each batch after the converter."""
    return TransformedChannels(computer, converter)


def partition_hashes(partitions: Sequence[bytes]) -> Ints:
    """The hash of each partition, given as BinaryRow bytes."""
    bodies = [partition[PREFIX:] for partition in partitions]
    counts = np.array([len(body) // _WORD for body in bodies], np.int64)
    words = np.frombuffer(b"".join(bodies), np.dtype("<u4")).astype(np.uint32)
    return hash_words(words, np.cumsum(counts) - counts, counts)


def start_channels(hashes: Ints, channels: int) -> Ints:
    """The channel of bucket 0 of partitions with these hashes."""
    _check(channels, "channels")
    hashes = np.where(hashes == _LEAST, _GREATEST, hashes)
    return (np.abs(hashes) % np.int32(channels)).astype(np.int32)


def select_channels(hashes: Ints, buckets: Ints, channels: int) -> Ints:
    """The channel of each row by the hash of its partition and its bucket."""
    with np.errstate(over="ignore"):
        places = start_channels(hashes, channels) + np.asarray(buckets, np.int32)
    return np.fmod(places, np.int32(channels)).astype(np.int32)


def select_channels_by_bucket(buckets: Ints, channels: int) -> Ints:
    """The channel of each row by its bucket alone."""
    _check(channels, "channels")
    return np.fmod(np.asarray(buckets, np.int32), np.int32(channels)).astype(np.int32)


def select_assigners(hashes: Ints, key_hashes: Ints, *, channels: int, assigners: int) -> Ints:
    """The channel that assigns each row its bucket, by the hashes of its partition and its key."""
    _check(channels, "channels")
    _check(assigners, "assigners")
    # A remainder is always shorter than what it was divided by, so that its absolute value exists.
    starts = np.abs(np.fmod(hashes, np.int32(channels)))
    own = np.abs(np.fmod(key_hashes, np.int32(assigners)))
    return np.fmod(starts.astype(np.int64) + own, channels).astype(np.int32)


def _check(number: int, what: str) -> None:
    if not 1 <= number < 2**31:
        raise InvalidError(f"{what}: expected a number from 1 to 2^31 - 1, found {number}")
