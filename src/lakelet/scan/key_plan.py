"""Plan lookups: find the buckets that can hold given keys.

    keys ─ their partitions ─ their buckets, by hash where buckets are fixed, else all of the partition ─ all live files of those

Files and row groups within a bucket are selected by the reader, from their key ranges.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import bucket_of, decode_rows, encode_rows, hash_rows
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.scan.live_files import LiveFiles

Places = npt.NDArray[np.int64]
Lookup = tuple[Split, Places]


def lookups(live: LiveFiles, schema: TableSchema, keys: pa.Table) -> tuple[Lookup, ...]:
    """The buckets that can hold some of the keys, as splits of all their files, each with the positions of those keys."""
    hashes = _bucket_hashes(schema, keys)
    found: list[Lookup] = []
    for partition, places in _by_partition(live, schema, keys):
        for bucket, at in _by_bucket(live, partition, places, hashes):
            split = live.split(partition, bucket)
            if split is not None:
                found.append((split, at))
    return tuple(found)


def _bucket_hashes(schema: TableSchema, keys: pa.Table) -> npt.NDArray[np.int32] | None:
    """The hashes that decide the bucket, where the key alone gives them."""
    names = schema.bucket_keys
    if bucket_mode(schema) is not BucketMode.HASH_FIXED or not set(names) <= set(schema.primary_keys):
        return None
    return hash_rows([keys.column(name) for name in names], [schema.field(name).type for name in names])


def _by_partition(live: LiveFiles, schema: TableSchema, keys: pa.Table) -> Iterator[tuple[bytes, Places]]:
    every = np.arange(keys.num_rows)
    if not schema.partition_keys:
        for partition in live.partitions:
            yield partition, every
    elif schema.crosses_partitions:
        yield from _across_partitions(live, schema, keys)
    else:
        columns = [keys.column(name) for name in schema.partition_keys]
        encoded = encode_rows(columns, schema.partition_types).dictionary_encode()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            yield encoded.dictionary[int(codes[rows[0]])].as_py(), rows


def _across_partitions(live: LiveFiles, schema: TableSchema, keys: pa.Table) -> Iterator[tuple[bytes, Places]]:
    """Every partition, with the keys that agree with it in the partition columns they have."""
    every = np.arange(keys.num_rows)
    shared = [name for name in schema.partition_keys if name in schema.primary_keys]
    if not shared or not live.partitions:
        for partition in live.partitions:
            yield partition, every
        return
    types = [schema.field(name).type for name in shared]
    columns = dict(
        zip(
            schema.partition_keys,
            decode_rows(pa.array(list(live.partitions), pa.binary()), schema.partition_types),
            strict=True,
        )
    )
    own = encode_rows([columns[name] for name in shared], types).to_pylist()
    wanted = encode_rows([keys.column(name) for name in shared], types)
    for partition, values in zip(live.partitions, own, strict=True):
        places = np.flatnonzero(pc.equal(wanted, pa.scalar(values, pa.binary())).to_numpy(zero_copy_only=False))
        if len(places):
            yield partition, places


def _by_bucket(
    live: LiveFiles, partition: bytes, places: Places, hashes: npt.NDArray[np.int32] | None
) -> Iterator[tuple[int, Places]]:
    totals = live.totals(partition)
    if hashes is None or any(total < 1 for total in totals):
        for bucket in live.buckets(partition):
            yield bucket, places
        return
    if len(places) == 1:
        # The twin of `bucket_of` for a single hash.
        own = abs(int(hashes[places[0]]))
        for bucket in dict.fromkeys(own % total for total in sorted(totals)):
            yield bucket, places
        return
    # After a rescale a partition can hold files of both numbers of buckets; a key is looked for by each.
    wanted: dict[int, list[Places]] = {}
    for total in sorted(totals):
        buckets = bucket_of(hashes[places], total)
        order = np.argsort(buckets, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
            wanted.setdefault(int(buckets[rows[0]]), []).append(places[rows])
    for bucket, parts in wanted.items():
        yield bucket, parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
