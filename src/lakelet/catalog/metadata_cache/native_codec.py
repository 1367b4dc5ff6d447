"""The codec of native tables' cached metadata.

    kind                 name                        bytes
    snapshot pointer     branch                      the snapshot's file
    schema pointer       branch, id                  the schema's file
    manifest list        name                        an Avro manifest list
    manifest             name, columns or nothing    the decoded entries as an Arrow stream

Pointers keep the bytes that prove them. Manifests and their lists have random names and never change; of one table up to 64 MB of
them are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import DerivedCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.upkeep.persisted_file import Piece
from lakelet.catalog.metadata_cache.native_source import SCHEMA, SNAPSHOT, derived_bytes
from lakelet.commit.metadata.pointers import SchemaPointer, SnapshotPointer, schema_pointer_of, snapshot_pointer_of
from lakelet.errors import CorruptionError, LakeletError
from lakelet.format.manifest.manifest_file import decode_manifest_list, encode_manifest_list

_SNAPSHOT_KIND = "snapshot pointer"
_SCHEMA_KIND = "schema pointer"
_LIST = "manifest list"
_MANIFEST = "manifest"
_ALL = "all"
_SOME = "some"
Put = Callable[[], None]
# While they are written they are in memory twice.
_MOST_BYTES = 64 << 20


class NativeCodec:
    """Encodes from and restores into a cache, which it must not keep alive: the cache owns its codecs."""

    def __init__(self, cache: Callable[[], TieredCacheCoordinator | None]) -> None:
        self._cache = cache

    def encode(self, table: TableCacheKey) -> list[Piece]:
        """The pointers of a table and its branches, its manifest lists and manifests."""
        cache = self._cache()
        if cache is None:
            return []
        pieces: list[Piece] = []
        room = _MOST_BYTES
        for one in cache.tiers[CacheLevel.TABLE_METADATA].tables():
            if one.on_branch(table.branch) != table:
                continue
            snapshot: SnapshotPointer | None = cache.pointers.known(one, SNAPSHOT)
            schema: SchemaPointer | None = cache.pointers.known(one, SCHEMA)
            if snapshot is not None:
                pieces.append(Piece(_SNAPSHOT_KIND, (one.branch, str(snapshot.snapshot.id)), snapshot.data))
            if schema is not None:
                pieces.append(Piece(_SCHEMA_KIND, (one.branch, str(schema.schema.id)), schema.data))
        for level, kind in ((CacheLevel.SNAPSHOT, _LIST), (CacheLevel.PARTITION, _MANIFEST)):
            for key in cache.tiers[level].live_keys(table):
                if isinstance(key, DerivedCacheKey) and key.name[0] == kind:
                    value = cache.tiers[level].peek(key)
                    if value is not None and derived_bytes(value) <= room:
                        pieces.append(_piece(key.name, value))
                        room -= derived_bytes(value)
        return pieces

    def restore(self, table: TableCacheKey, pieces: Sequence[Piece]) -> None:
        """Put the values back that are not cached; pointers as unchecked. All are decoded before the first is put."""
        cache = self._cache()
        if cache is None:
            return
        try:
            puts = [_put(cache, table, piece) for piece in pieces]
        except (LakeletError, ValueError, pa.ArrowException, OSError) as error:
            raise CorruptionError(str(error)) from error
        for put in puts:
            put()


def _piece(name: tuple[object, ...], value: Any) -> Piece:
    if name[0] == _LIST:
        data = encode_manifest_list(value, manifest_format="avro", compression="zstd")
        return Piece(_LIST, (str(name[1]),), data)
    columns = name[2]
    wanted = (_ALL,) if columns is None else (_SOME, *(str(one) for one in columns))  # type: ignore[attr-defined]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, value.schema) as writer:
        writer.write_table(value)
    return Piece(_MANIFEST, (str(name[1]), *wanted), sink.getvalue().to_pybytes())


def _put(cache: TieredCacheCoordinator, table: TableCacheKey, piece: Piece) -> Put:
    """A function that puts the value of a piece, which is decoded already."""
    where = f"what is persisted of {table}"
    if piece.kind in (_SNAPSHOT_KIND, _SCHEMA_KIND):
        branch, number = piece.name
        key = table.on_branch(branch)
        is_snapshot = piece.kind == _SNAPSHOT_KIND
        pointer: SnapshotPointer | SchemaPointer
        pointer = (
            snapshot_pointer_of(piece.data, int(number), where)
            if is_snapshot
            else schema_pointer_of(piece.data, int(number), where)
        )
        name = SNAPSHOT if is_snapshot else SCHEMA
        return lambda: cache.pointers.offer(key, name, pointer, derived_bytes(pointer))
    if piece.kind == _LIST:
        manifests = tuple(decode_manifest_list(piece.data, path=where))
        derived = DerivedCacheKey(table, (_LIST, *piece.name))
        return lambda: cache.tiers[CacheLevel.SNAPSHOT].put(derived, manifests, derived_bytes(manifests))
    if piece.kind == _MANIFEST:
        file, kind, *columns = piece.name
        with pa.ipc.open_stream(piece.data) as reader:
            entries = reader.read_all()
        entries.validate(full=True)
        wanted = None if kind == _ALL else tuple(columns)
        derived = DerivedCacheKey(table, (_MANIFEST, file, wanted))
        return lambda: cache.tiers[CacheLevel.PARTITION].put(derived, entries, derived_bytes(entries))
    raise CorruptionError(f"a piece of an unknown kind {piece.kind!r}")
