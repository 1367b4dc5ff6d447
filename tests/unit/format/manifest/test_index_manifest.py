"""Index manifests."""

import pytest

from lakelet.errors import CorruptionError
from lakelet.format.manifest.index_manifest import decode_index_manifest, encode_index_manifest
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.model.data_file import DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry

RANGES = (DeletionVectorRange("data-0.parquet", 1, 22, 3), DeletionVectorRange("data-1.parquet", 31, 22, None))
ENTRIES = [
    IndexManifestEntry(EntryKind.ADD, EMPTY_ROW, 0, IndexFile("DELETION_VECTORS", "index-0", 61, 2, RANGES)),
    IndexManifestEntry(
        EntryKind.ADD,
        b"\x00\x00\x00\x01" + bytes(16),
        3,
        IndexFile("HASH", "index-1", 400, 100, None, "s3://elsewhere/x"),
    ),
]


@pytest.mark.parametrize("codec", ["zstandard", "null", "deflate"])
def test_round_trip(codec: str) -> None:
    assert decode_index_manifest(encode_index_manifest(ENTRIES, codec=codec), path="m") == ENTRIES
    assert decode_index_manifest(encode_index_manifest([], codec=codec), path="m") == []


def test_the_sync_marker_can_be_chosen() -> None:
    first, second = (encode_index_manifest(ENTRIES, codec="null", sync=b"s" * 16) for _ in range(2))
    assert first == second
    assert first.endswith(b"s" * 16)


def test_a_newer_entry_version_is_refused() -> None:
    data = encode_index_manifest(ENTRIES[:1], codec="null", sync=b"s" * 16)
    newer = data.replace(b"\x02\x00\x18" + EMPTY_ROW, b"\x04\x00\x18" + EMPTY_ROW)
    assert newer != data
    with pytest.raises(CorruptionError, match="dir/m: entry version 2 is newer than 1"):
        decode_index_manifest(newer, path="dir/m")


@pytest.mark.parametrize("data", [b"", b"{}", b"Obj\x01", b"x" * 100])
def test_broken_files_are_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="dir/m"):
        decode_index_manifest(data, path="dir/m")
