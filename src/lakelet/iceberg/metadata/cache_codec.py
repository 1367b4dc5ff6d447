"""The codec of Iceberg tables' cached metadata: the decoded entries of manifests.

    kind        name                                                             bytes
    manifest    path, sequence number, partition spec, the statistics in it      a record batch as an Arrow stream

Columns are named by Iceberg's field ids. Which version is the newest is the catalog's to say, and manifest lists are read from
the store. Only manifests with a uuid in their names are kept, which are never written twice; of one table up to 64 MB of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import DerivedCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.upkeep.persisted_file import Piece
from lakelet.errors import CorruptionError
from lakelet.iceberg.metadata.cached import MANIFEST, entries_bytes
from lakelet.iceberg.metadata.manifests import Entries
from lakelet.iceberg.metadata.table_pointer import has_unique_name

_SEQUENCE = "sequence numbers"
# While they are written they are in memory twice.
_MOST_BYTES = 64 << 20


class IcebergCodec:
    """Encodes from and restores into a cache, which it must not keep alive: the cache owns its codecs."""

    def __init__(self, cache: Callable[[], TieredCacheCoordinator | None]) -> None:
        self._cache = cache

    def encode(self, table: TableCacheKey) -> list[Piece]:
        """The manifests of a table."""
        cache = self._cache()
        if cache is None:
            return []
        tier = cache.tiers[CacheLevel.PARTITION]
        pieces: list[Piece] = []
        room = _MOST_BYTES
        for key in tier.live_keys(table):
            if not isinstance(key, DerivedCacheKey) or key.name[0] != MANIFEST or not has_unique_name(str(key.name[1])):
                continue
            entries = tier.peek(key)
            if isinstance(entries, Entries) and entries_bytes(entries) <= room:
                pieces.append(_piece(key.name, entries))
                room -= entries_bytes(entries)
        return pieces

    def restore(self, table: TableCacheKey, pieces: Sequence[Piece]) -> None:
        """Put the manifests back. All are decoded before the first is put."""
        cache = self._cache()
        if cache is None:
            return
        try:
            found = [_entries(piece) for piece in pieces]
        except (ValueError, KeyError, IndexError, pa.ArrowException, OSError) as error:
            raise CorruptionError(str(error)) from error
        for name, entries in found:
            cache.tiers[CacheLevel.PARTITION].put(DerivedCacheKey(table, name), entries, entries_bytes(entries))


def _piece(name: tuple[Any, ...], entries: Entries) -> Piece:
    _, path, (sequence_number, spec_id), statistics = name
    names = [_SEQUENCE, *(str(field_id) for field_id in entries.columns)]
    arrays = [pa.array(entries.sequence_numbers), *entries.columns.values()]
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    said = (path, str(sequence_number), str(spec_id), *(str(one) for one in statistics))
    return Piece(MANIFEST, said, sink.getvalue().to_pybytes())


def _entries(piece: Piece) -> tuple[tuple[object, ...], Entries]:
    if piece.kind != MANIFEST:
        raise CorruptionError(f"a piece of an unknown kind {piece.kind!r}")
    path, sequence_number, spec_id, *statistics = piece.name
    with pa.ipc.open_stream(piece.data) as reader:
        (batch,) = reader
    batch.validate(full=True)
    columns = {int(name): batch.column(name) for name in batch.schema.names if name != _SEQUENCE}
    sequences = batch.column(_SEQUENCE).to_numpy(zero_copy_only=False).astype(np.int64)
    inherited = (None if sequence_number == str(None) else int(sequence_number), int(spec_id))
    name = (MANIFEST, path, inherited, tuple(int(one) for one in statistics))
    return name, Entries(path, int(spec_id), sequences, columns)
