"""Route one key to the files that can hold it, without arrays: the twin of `scan/key_plan` for low latency.

It serves keys that are encoded without Arrow (`lsm/plain_key`); everything else goes the long way and finds the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakelet.format.rows.binary_row import PREFIX, encode_row
from lakelet.format.rows.murmur import murmur3_32
from lakelet.lsm.plain_key import PlainKey, PlainKeys, plain_key, plain_keys
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import DataType, Kind
from lakelet.scan.live_files import LiveFiles

_ONE_BUCKET = frozenset({1})


@dataclass(frozen=True, slots=True)
class KeyRoute:
    """The key columns with their encoders, and what decides partition and bucket. Without `hashed` all buckets are looked at."""

    live: LiveFiles
    encoders: Mapping[str, PlainKey]
    trimmed: tuple[str, ...]
    partition: tuple[str, ...]
    partition_types: tuple[DataType, ...]
    hashed: tuple[str, ...] | None
    hashed_types: tuple[DataType, ...]
    # The one column of the key, and the files of every key, where nothing else decides.
    single: tuple[str, PlainKey] | None
    every: tuple[Split, ...] | None
    is_text: bool
    encode_many: PlainKeys | None

    @staticmethod
    def of(schema: TableSchema, live: LiveFiles) -> KeyRoute | None:
        """The route of a table's keys; None where they have to go the long way."""
        trimmed = schema.trimmed_primary_keys
        encoders: dict[str, PlainKey] = {}
        for name in schema.primary_keys:
            encoder = plain_key(schema.field(name).type, is_last=name == trimmed[-1])
            if encoder is None:
                return None
            encoders[name] = encoder
        if schema.crosses_partitions:
            return None
        hashed: tuple[str, ...] | None = schema.bucket_keys
        if bucket_mode(schema) is not BucketMode.HASH_FIXED or not set(schema.bucket_keys) <= set(schema.primary_keys):
            hashed = None
        return KeyRoute(
            live,
            encoders,
            trimmed,
            schema.partition_keys,
            tuple(schema.partition_types),
            hashed,
            tuple(schema.field(name).type for name in hashed or ()),
            next(iter(encoders.items())) if len(encoders) == 1 else None,
            _all_splits(schema, live, hashed),
            all(schema.field(name).type.kind is Kind.VARCHAR for name in encoders),  # type: ignore[union-attr]
            plain_keys(schema.field(next(iter(encoders))).type) if len(encoders) == 1 else None,
        )

    def find(self, key: Mapping[str, Any]) -> tuple[bytes, Sequence[Split]] | None:
        """The key in bytes, and all files of the buckets that can hold it; None where the key has to go the long way."""
        if len(key) != len(self.encoders):
            return None
        if self.single is not None:
            name, encode = self.single
            encoded = encode(key.get(name))
        else:
            encoded = self._encoded(key)
        if encoded is None:
            return None
        return encoded, self._splits(key) if self.every is None else self.every

    def find_bytes(self, key: bytes) -> Sequence[Split]:
        """The files of the buckets that can hold a key whose one column has these bytes, text or not."""
        if self.every is not None:
            return self.every
        (name,) = self.encoders
        try:
            return self._splits({name: key.decode() if self.is_text else key})
        except UnicodeDecodeError:
            # No text has such bytes.
            return ()

    def find_values(self, keys: object) -> tuple[Split, list[Any]] | None:
        """The bucket of all keys in a list of dicts, and their values; None where they have to go the long way."""
        if type(keys) is not list or self.single is None or self.every is None or len(self.every) != 1:
            return None
        if set(map(type, keys)) != {dict} or set(map(len, keys)) != {1}:
            return None
        try:
            return self.every[0], list(map(itemgetter(self.single[0]), keys))
        except KeyError:
            return None

    def encode_each(self, values: Sequence[Any]) -> list[bytes] | None:
        """The bytes of the keys with these values; None where one has to go the long way."""
        assert self.single is not None, "keys of several columns have no values"
        encoded = list(map(self.single[1], values))
        return None if None in encoded else encoded  # type: ignore[return-value]

    def find_many(self, values: list[Any]) -> tuple[tuple[bytes, NDArray[np.int64]], dict[str, list[Any]]] | None:
        """The bytes of the keys with these values, with where each begins and the last ends, and the keys by column; None where
        they have to go the long way."""
        if self.encode_many is None or self.single is None:
            return None
        encoded = self.encode_many(values)
        return None if encoded is None else (encoded, {self.single[0]: values})

    def _encoded(self, key: Mapping[str, Any]) -> bytes | None:
        parts: dict[str, bytes] = {}
        for name, encode in self.encoders.items():
            part = encode(key.get(name))
            if part is None:
                return None
            parts[name] = part
        return b"".join([parts[name] for name in self.trimmed])

    def _splits(self, key: Mapping[str, Any]) -> Sequence[Split]:
        partitions = self.live.partitions
        if self.partition:
            partitions = [encode_row([key[name] for name in self.partition], self.partition_types)]
        splits: list[Split] = []
        for partition in partitions:
            for bucket in self._buckets(partition, key):
                split = self.live.split(partition, bucket)
                if split is not None:
                    splits.append(split)
        return splits

    def _buckets(self, partition: bytes, key: Mapping[str, Any]) -> Sequence[int]:
        totals = self.live.totals(partition)
        if self.hashed is None or any(total < 1 for total in totals):
            return self.live.buckets(partition)
        if totals == _ONE_BUCKET:
            return (0,)
        own = abs(murmur3_32(encode_row([key[name] for name in self.hashed], self.hashed_types)[PREFIX:]))
        # After a rescale a partition can hold files of both numbers of buckets.
        return list(dict.fromkeys(own % total for total in sorted(totals)))


def _all_splits(schema: TableSchema, live: LiveFiles, hashed: Sequence[str] | None) -> tuple[Split, ...] | None:
    """The files of all buckets, where every key can be in each of them; None where the key decides."""
    if schema.partition_keys:
        return None
    found: list[Split] = []
    for partition in live.partitions:
        totals = live.totals(partition)
        if hashed is not None and totals != _ONE_BUCKET and all(total >= 1 for total in totals):
            return None
        splits = (live.split(partition, bucket) for bucket in live.buckets(partition))
        found += [split for split in splits if split is not None]
    return tuple(found)
