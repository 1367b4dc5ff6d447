"""Manifests, manifest lists and index manifests as Avro container files.

    manifest        {_VERSION 2, _KIND, _PARTITION, _BUCKET, _TOTAL_BUCKETS, _FILE {…}}   one per file added or removed
    manifest list   {_VERSION 2, _FILE_NAME, _FILE_SIZE, counts, _PARTITION_STATS, …}     one per manifest
    index manifest  {_VERSION 1, _KIND, _PARTITION, _BUCKET, _INDEX_TYPE, _FILE_NAME, …}  one per index file

The Avro schemas, names and defaults included, are those that Java Paimon writes; docs/spec shows them in full.
This file knows the schemas; the container and the codec are `format.avro`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.avro.decode import decode
from lakelet.format.avro.encode import encode
from lakelet.format.avro.few_rows import MOST_ROWS, FewRows
from lakelet.format.manifest.block_directory import Describer, decode_directory, encode_directory
from lakelet.format.manifest.manifest_columns import (
    ENTRY_SCHEMA,
    FILE_COLUMNS,
    LIST_SCHEMA,
    OWN_COLUMNS,
    STATS_TYPE,
    columns_to_manifests,
    conform,
    manifests_to_columns,
)
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.manifest import BlockFilter, ManifestEntry, ManifestFile

MANIFEST_VERSION = 2
INDEX_MANIFEST_VERSION = 1
_NAMESPACE = "org.apache.paimon.avro.generated"
_ROOT = "record"
# A block of a manifest with a directory holds some fifty entries, so that a plan of one partition decodes few others.
_BLOCK_BYTES = 1 << 14
# Every upsert reads the manifests of the commits since the last merge, each of a file or two. What is remembered by its bytes is
# never out of date.
_REMEMBERED = 256
_REMEMBERED_BYTES = 1 << 13


def _optional(kind: Any) -> dict[str, Any]:
    return {"type": ["null", kind], "default": None}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, **(kind if isinstance(kind, dict) and "default" in kind else {"type": kind})}


def _record(name: str, fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(*field) for field in fields]}


def _root_record(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The record of a whole row; those inside take their namespace from it."""
    return {"type": "record", "name": _ROOT, "namespace": _NAMESPACE, "fields": [_field(*field) for field in fields]}


def _stats_record(name: str) -> dict[str, Any]:
    counts = _optional({"type": "array", "items": ["null", "long"]})
    return _record(name, [("_MIN_VALUES", "bytes"), ("_MAX_VALUES", "bytes"), ("_NULL_COUNTS", counts)])


_STRINGS = {"type": "array", "items": "string"}
ENTRY_AVRO = _root_record(
    [
        ("_VERSION", "int"),
        ("_KIND", "int"),
        ("_PARTITION", "bytes"),
        ("_BUCKET", "int"),
        ("_TOTAL_BUCKETS", "int"),
        (
            "_FILE",
            _record(
                f"{_ROOT}__FILE",
                [
                    ("_FILE_NAME", "string"),
                    ("_FILE_SIZE", "long"),
                    ("_ROW_COUNT", "long"),
                    ("_MIN_KEY", "bytes"),
                    ("_MAX_KEY", "bytes"),
                    ("_KEY_STATS", _stats_record(f"{_ROOT}__FILE__KEY_STATS")),
                    ("_VALUE_STATS", _stats_record(f"{_ROOT}__FILE__VALUE_STATS")),
                    ("_MIN_SEQUENCE_NUMBER", "long"),
                    ("_MAX_SEQUENCE_NUMBER", "long"),
                    ("_SCHEMA_ID", "long"),
                    ("_LEVEL", "int"),
                    ("_EXTRA_FILES", _STRINGS),
                    ("_CREATION_TIME", _optional({"type": "long", "logicalType": "timestamp-millis"})),
                    ("_DELETE_ROW_COUNT", _optional("long")),
                    ("_EMBEDDED_FILE_INDEX", _optional("bytes")),
                    ("_FILE_SOURCE", _optional("int")),
                    ("_VALUE_STATS_COLS", _optional(_STRINGS)),
                    ("_EXTERNAL_PATH", _optional("string")),
                    ("_FIRST_ROW_ID", _optional("long")),
                    ("_WRITE_COLS", _optional(_STRINGS)),
                ],
            ),
        ),
    ],
)
LIST_AVRO = _root_record(
    [
        ("_VERSION", "int"),
        ("_FILE_NAME", "string"),
        ("_FILE_SIZE", "long"),
        ("_NUM_ADDED_FILES", "long"),
        ("_NUM_DELETED_FILES", "long"),
        ("_PARTITION_STATS", _stats_record(f"{_ROOT}__PARTITION_STATS")),
        ("_SCHEMA_ID", "long"),
        ("_MIN_BUCKET", _optional("int")),
        ("_MAX_BUCKET", _optional("int")),
        ("_MIN_LEVEL", _optional("int")),
        ("_MAX_LEVEL", _optional("int")),
        ("_MIN_ROW_ID", _optional("long")),
        ("_MAX_ROW_ID", _optional("long")),
    ],
)
_RANGE = _record(
    f"{_ROOT}__DELETIONS_VECTORS_RANGES",
    [("f0", "string"), ("f1", "int"), ("f2", "int"), ("_CARDINALITY", _optional("long"))],
)
_GLOBAL_INDEX = _record(
    f"{_ROOT}__GLOBAL_INDEX",
    [
        ("_ROW_RANGE_START", "long"),
        ("_ROW_RANGE_END", "long"),
        ("_INDEX_FIELD_ID", "int"),
        ("_EXTRA_FIELD_IDS", _optional({"type": "array", "items": "int"})),
        ("_INDEX_META", _optional("bytes")),
    ],
)
INDEX_AVRO = _root_record(
    [
        ("_VERSION", "int"),
        ("_KIND", "int"),
        ("_PARTITION", "bytes"),
        ("_BUCKET", "int"),
        ("_INDEX_TYPE", "string"),
        ("_FILE_NAME", "string"),
        ("_FILE_SIZE", "long"),
        ("_ROW_COUNT", "long"),
        ("_DELETIONS_VECTORS_RANGES", _optional({"type": "array", "items": ["null", _RANGE]})),
        ("_EXTERNAL_PATH", _optional("string")),
        ("_GLOBAL_INDEX", _optional(_GLOBAL_INDEX)),
    ],
)


_FEW_ENTRIES = FewRows(ENTRY_AVRO)
_FEW_MANIFESTS = FewRows(LIST_AVRO)
_STATS_PLACE = LIST_SCHEMA.get_field_index("_PARTITION_STATS")


def encode_entries(
    table: pa.Table, *, codec: str, sync: bytes | None = None, describe: Describer | None = None
) -> bytes:
    """A manifest file of these entries; `describe` gives the partition statistics of each block, for a directory of them."""
    if table.num_rows <= MOST_ROWS and describe is None:
        # A missing required value is reported by the column encoder below.
        with suppress(TypeError, AttributeError):
            return _FEW_ENTRIES.encode(_entry_rows(table), codec=codec, sync=sync)
    files = pa.StructArray.from_arrays(
        [_one_chunk(table.column(name)) for name, _ in FILE_COLUMNS], names=[name for name, _ in FILE_COLUMNS]
    )
    own = [_one_chunk(table.column(name)) for name, _ in OWN_COLUMNS]
    rows = pa.StructArray.from_arrays(
        [_version(table, MANIFEST_VERSION), *own, files],
        names=["_VERSION", *(name for name, _ in OWN_COLUMNS), "_FILE"],
    )
    if describe is None:
        return encode(rows, ENTRY_AVRO, codec=codec, sync=sync)

    def directory(counts: Sequence[int]) -> dict[str, bytes]:
        return encode_directory(table, counts, describe) if len(counts) > 1 else {}

    return encode(rows, ENTRY_AVRO, codec=codec, sync=sync, metadata=directory, block_bytes=_BLOCK_BYTES)


def encode_few_entries(entries: Sequence[ManifestEntry], *, codec: str, sync: bytes | None = None) -> bytes | None:
    """The same bytes for a few entries that are not in columns; None where they are too many or lack a required value.

    Laying one entry out in columns, and taking it out of them again, takes longer than all else about its manifest.
    """
    if len(entries) > MOST_ROWS:
        return None
    with suppress(TypeError, AttributeError):
        return _FEW_ENTRIES.encode([_entry_row(entry) for entry in entries], codec=codec, sync=sync)
    return None


def decode_entries(
    data: bytes, *, path: str, columns: Collection[str] | None = None, keep: BlockFilter | None = None
) -> pa.Table:
    """The entries of a manifest file, all columns or the named ones.

    `keep` says by the directory of its blocks which of them may hold wanted entries; a file without one is read whole.
    """
    few = _few_entries(data, columns, path)
    if few is not None:
        return few
    wanted = None
    if columns is not None:
        own = {name for name, _ in OWN_COLUMNS}
        wanted = ["_VERSION", *(name if name in own else f"_FILE.{name}" for name in columns)]

    def choose(metadata: Mapping[str, bytes]) -> Sequence[bool] | None:
        found = decode_directory(metadata, path=path)
        return None if found is None or keep is None else keep(found)

    rows = decode(data, path=path, columns=wanted, choose=None if keep is None else choose)
    _check_version(rows, MANIFEST_VERSION, path)
    arrays = {name: rows.field(name) for name in _field_names(rows)}
    files = arrays.pop("_FILE", None)
    if files is not None:
        arrays.update({name: files.field(name) for name in _field_names(files)})
    return conform(pa.table(arrays), ENTRY_SCHEMA, only=None if columns is None else list(columns))


def _few_entries(data: bytes, columns: Collection[str] | None, path: str) -> pa.Table | None:
    """The entries of a manifest that has few; None where it has many, or has to be read with care."""
    wanted = None if columns is None else frozenset(columns)
    if len(data) <= _REMEMBERED_BYTES:
        return _remembered_entries(data, wanted)
    few = _FEW_ENTRIES.decode(data, path=path)
    return None if few is None or any(row[0] > MANIFEST_VERSION for row in few) else _entry_columns(few, wanted)


@lru_cache(maxsize=_REMEMBERED)
def _remembered_entries(data: bytes, columns: frozenset[str] | None) -> pa.Table | None:
    few = _FEW_ENTRIES.decode(data, path="")
    return None if few is None or any(row[0] > MANIFEST_VERSION for row in few) else _entry_columns(few, columns)


def _entry_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Entries as rows of `ENTRY_AVRO`."""
    own = [table.column(name).to_pylist() for name, _ in OWN_COLUMNS]
    files = [_values(table.column(name)) for name, _ in FILE_COLUMNS]
    return [(MANIFEST_VERSION, *row[:-1], row[-1]) for row in zip(*own, zip(*files, strict=True), strict=True)]


def _entry_row(entry: ManifestEntry) -> tuple[Any, ...]:
    """An entry as a row of `ENTRY_AVRO`."""
    own = (int(entry.kind), entry.partition, entry.bucket, entry.total_buckets)
    return (MANIFEST_VERSION, *own, _file_row(entry.file))


def _file_row(file: DataFile) -> tuple[Any, ...]:
    # Numbers of numpy overflow where the encoder shifts them.
    return (
        file.name,
        int(file.size),
        int(file.row_count),
        file.min_key,
        file.max_key,
        _stats_row(file.key_stats),
        _stats_row(file.value_stats),
        int(file.min_sequence),
        int(file.max_sequence),
        int(file.schema_id),
        int(file.level),
        file.extra_files,
        _optional_int(file.creation_ms),
        _optional_int(file.delete_row_count),
        file.embedded_index,
        file.source,
        file.value_stats_columns,
        file.external_path,
        _optional_int(file.first_row_id),
        file.write_columns,
    )


def _optional_int(number: int | None) -> int | None:
    return None if number is None else int(number)


def _stats_row(stats: Stats) -> tuple[Any, ...]:
    return (stats.min_values, stats.max_values, stats.null_counts)


def _values(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    return (
        [None if value is None else tuple(value.values()) for value in values] if column.type == STATS_TYPE else values
    )


def _entry_columns(rows: Sequence[tuple[Any, ...]], columns: frozenset[str] | None) -> pa.Table:
    """The inverse of `_entry_rows`, all columns or the named ones."""
    places, schema, row_type = _layout(columns)
    own = len(OWN_COLUMNS)
    flat = [(*row[1 : own + 1], *row[own + 1]) for row in rows]
    if not places:
        return schema.empty_table()
    # One conversion for all columns takes a fraction of one for each.
    arrays = pa.array([tuple([row[place] for place in places]) for row in flat], row_type).flatten()
    return pa.Table.from_arrays(arrays, schema=schema)


@lru_cache(maxsize=64)
def _layout(columns: frozenset[str] | None) -> tuple[tuple[int, ...], pa.Schema, pa.StructType]:
    """The places of these columns in an entry, their schema, and the type of a row of them."""
    places = tuple(place for place, name in enumerate(ENTRY_SCHEMA.names) if columns is None or name in columns)
    fields = [ENTRY_SCHEMA.field(place) for place in places]
    return places, pa.schema(fields), pa.struct(fields)


def encode_manifests(manifests: Sequence[ManifestFile], *, codec: str, sync: bytes | None = None) -> bytes:
    """A manifest list of these manifests."""
    if len(manifests) > MOST_ROWS:
        return encode_list(manifests_to_columns(manifests), codec=codec, sync=sync)
    rows = [(MANIFEST_VERSION, *_manifest_row(manifest)) for manifest in manifests]
    return _FEW_MANIFESTS.encode(rows, codec=codec, sync=sync)


def decode_manifests(data: bytes, *, path: str) -> list[ManifestFile]:
    """The manifests of a manifest list."""
    few = _FEW_MANIFESTS.decode(data, path=path)
    if few is None or any(row[0] > MANIFEST_VERSION for row in few):
        return columns_to_manifests(decode_list(data, path=path))
    found: list[ManifestFile] = []
    for row in few:
        values = list(row[1:])
        values[_STATS_PLACE] = Stats(*values[_STATS_PLACE])
        found.append(ManifestFile(*values))
    return found


def _manifest_row(m: ManifestFile) -> tuple[Any, ...]:
    stats = _stats_row(m.partition_stats)
    buckets, levels, row_ids = (m.min_bucket, m.max_bucket), (m.min_level, m.max_level), (m.min_row_id, m.max_row_id)
    return (m.name, m.size, m.added_files, m.deleted_files, stats, m.schema_id, *buckets, *levels, *row_ids)


def encode_list(table: pa.Table, *, codec: str, sync: bytes | None = None) -> bytes:
    """A manifest list of these manifests."""
    names = LIST_SCHEMA.names
    arrays = [_version(table, MANIFEST_VERSION), *(_one_chunk(table.column(name)) for name in names)]
    return encode(pa.StructArray.from_arrays(arrays, names=["_VERSION", *names]), LIST_AVRO, codec=codec, sync=sync)


def decode_list(data: bytes, *, path: str) -> pa.Table:
    """The manifests of a manifest list."""
    rows = decode(data, path=path)
    _check_version(rows, MANIFEST_VERSION, path)
    return conform(pa.table({name: rows.field(name) for name in _field_names(rows)}), LIST_SCHEMA)


def _field_names(rows: pa.StructArray) -> list[str]:
    return [rows.type.field(i).name for i in range(rows.type.num_fields)]


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _version(table: pa.Table, version: int) -> pa.Array:
    return pa.array([version] * table.num_rows, pa.int32())


def _check_version(rows: pa.StructArray, newest: int, path: str) -> None:
    for found in rows.field("_VERSION").unique().to_pylist():
        if found is None or found > newest:
            raise CorruptionError(f"{path}: entry version {found} is newer than {newest}, the newest known here")
