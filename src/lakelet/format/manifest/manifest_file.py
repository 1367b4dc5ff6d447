"""Encode and decode manifests and manifest lists, in Avro or JSON.

A file is written in the table's `manifest.format` and read by its first bytes, so that the option can be changed on a live
table, which then has manifests of both formats.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.manifest import manifest_avro, manifest_json
from lakelet.format.manifest.block_directory import Describer
from lakelet.format.manifest.manifest_columns import columns_to_manifests, manifests_to_columns
from lakelet.format.manifest.recent_lists import RecentLists
from lakelet.model.manifest import BlockFilter, ManifestEntry, ManifestFile

ManifestFormat = Literal["avro", "json"]
_AVRO_MAGIC = b"Obj\x01"
# Paimon's names of compressions, and Avro's.
_CODECS = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "deflate": "deflate",
    "null": "null",
    "none": "null",
}

_recent = RecentLists()


def avro_codec(compression: str) -> str:
    """The Avro codec for `manifest.compression` or an Avro data file; an unknown one falls back to zstandard."""
    return _CODECS.get(compression.lower(), "zstandard")


def encode_manifest(
    entries: pa.Table, *, manifest_format: ManifestFormat, compression: str, describe: Describer | None = None
) -> bytes:
    """A manifest file of these entries (columns of `manifest_columns.ENTRY_SCHEMA`).

    `describe` gives the partition statistics of groups of entries; Avro manifests then carry a directory of their blocks.
    """
    if manifest_format == "json":
        return manifest_json.encode_entries(entries)
    return manifest_avro.encode_entries(entries, codec=avro_codec(compression), describe=describe)


def encode_few_entries(
    entries: Sequence[ManifestEntry], *, manifest_format: ManifestFormat, compression: str
) -> bytes | None:
    """A manifest file of a few entries that are not in columns; None where only columns can be encoded."""
    if manifest_format == "json":
        return None
    return manifest_avro.encode_few_entries(entries, codec=avro_codec(compression))


def decode_manifest(
    data: bytes, *, path: str, columns: Collection[str] | None = None, keep: BlockFilter | None = None
) -> pa.Table:
    """The entries of a manifest, all columns or the named ones; where its blocks are described, of those to `keep`."""
    if _is_json(data, path):
        return manifest_json.decode_entries(data, path=path, columns=columns)
    return manifest_avro.decode_entries(data, path=path, columns=columns, keep=keep)


def encode_manifest_list(
    manifests: Sequence[ManifestFile], *, manifest_format: ManifestFormat, compression: str
) -> bytes:
    """A manifest list of these manifests."""
    if manifest_format == "json":
        return manifest_json.encode_list(manifests_to_columns(manifests))
    data = manifest_avro.encode_manifests(manifests, codec=avro_codec(compression))
    _recent.put(data, manifests)
    return data


def decode_manifest_list(data: bytes, *, path: str) -> list[ManifestFile]:
    """The manifests of a manifest list."""
    recent = _recent.get(data)
    if recent is not None:
        return list(recent)
    if _is_json(data, path):
        return columns_to_manifests(manifest_json.decode_list(data, path=path))
    found = manifest_avro.decode_manifests(data, path=path)
    _recent.put(data, found)
    return found


def _is_json(data: bytes, path: str) -> bool:
    if data.startswith(_AVRO_MAGIC):
        return False
    if data[:1] == b"{":
        return True
    raise CorruptionError(f"{path}: neither an Avro nor a JSON manifest; it begins with {data[:8]!r}")
