"""Index manifests: which index files (deletion vectors, hash indexes) belong to a snapshot.

    {_VERSION 1, _KIND 0, _PARTITION, _BUCKET, _INDEX_TYPE "HASH" | "DELETION_VECTORS", _FILE_NAME, _FILE_SIZE, _ROW_COUNT,
     _DELETIONS_VECTORS_RANGES [{f0 data file, f1 offset, f2 length, _CARDINALITY}], _EXTERNAL_PATH, _GLOBAL_INDEX}

Unlike data manifests an index manifest is whole: it names every live index file, and a commit that changes one
writes a new index manifest. Global indexes are ignored, since nothing here searches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.avro.decode import decode
from lakelet.format.avro.encode import encode
from lakelet.format.manifest.manifest_avro import INDEX_AVRO, INDEX_MANIFEST_VERSION
from lakelet.model.data_file import DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry

_RANGE_TYPE = pa.struct([("f0", pa.string()), ("f1", pa.int32()), ("f2", pa.int32()), ("_CARDINALITY", pa.int64())])
_GLOBAL_TYPE = pa.struct(
    [
        ("_ROW_RANGE_START", pa.int64()),
        ("_ROW_RANGE_END", pa.int64()),
        ("_INDEX_FIELD_ID", pa.int32()),
        ("_EXTRA_FIELD_IDS", pa.list_(pa.int32())),
        ("_INDEX_META", pa.binary()),
    ]
)
_SCHEMA = pa.schema(
    [
        ("_VERSION", pa.int32()),
        ("_KIND", pa.int32()),
        ("_PARTITION", pa.binary()),
        ("_BUCKET", pa.int32()),
        ("_INDEX_TYPE", pa.string()),
        ("_FILE_NAME", pa.string()),
        ("_FILE_SIZE", pa.int64()),
        ("_ROW_COUNT", pa.int64()),
        ("_DELETIONS_VECTORS_RANGES", pa.list_(_RANGE_TYPE)),
        ("_EXTERNAL_PATH", pa.string()),
        ("_GLOBAL_INDEX", _GLOBAL_TYPE),
    ]
)


def encode_index_manifest(entries: Sequence[IndexManifestEntry], *, codec: str, sync: bytes | None = None) -> bytes:
    """An index manifest of these entries."""
    rows = [_row(entry) for entry in entries]
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in _SCHEMA]
    return encode(pa.StructArray.from_arrays(arrays, names=_SCHEMA.names), INDEX_AVRO, codec=codec, sync=sync)


def decode_index_manifest(data: bytes, *, path: str) -> list[IndexManifestEntry]:
    """The entries of an index manifest."""
    entries = []
    for row in decode(data, path=path).to_pylist():
        if row["_VERSION"] > INDEX_MANIFEST_VERSION:
            raise CorruptionError(f"{path}: entry version {row['_VERSION']} is newer than {INDEX_MANIFEST_VERSION}")
        ranges = row.get("_DELETIONS_VECTORS_RANGES")
        file = IndexFile(
            row["_INDEX_TYPE"],
            row["_FILE_NAME"],
            row["_FILE_SIZE"],
            row["_ROW_COUNT"],
            None if ranges is None else tuple(_range(value) for value in ranges if value is not None),
            row.get("_EXTERNAL_PATH"),
        )
        entries.append(IndexManifestEntry(EntryKind(row["_KIND"]), row["_PARTITION"], row["_BUCKET"], file))
    return entries


def _range(value: dict[str, Any]) -> DeletionVectorRange:
    return DeletionVectorRange(value["f0"], value["f1"], value["f2"], value.get("_CARDINALITY"))


def _row(entry: IndexManifestEntry) -> dict[str, Any]:
    ranges = entry.file.deletion_vectors
    return {
        "_VERSION": INDEX_MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.file.index_type,
        "_FILE_NAME": entry.file.name,
        "_FILE_SIZE": entry.file.size,
        "_ROW_COUNT": entry.file.row_count,
        "_DELETIONS_VECTORS_RANGES": None
        if ranges is None
        else [{"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges],
        "_EXTERNAL_PATH": entry.file.external_path,
        "_GLOBAL_INDEX": None,
    }
