"""The table's identity."""

import json

import pytest

from lakelet.errors import CorruptionError
from lakelet.format.metadata.table_metadata import TableMetadata, decode_metadata, encode_metadata


def test_round_trip_and_members() -> None:
    metadata = TableMetadata("u-1", 5, 6, 7, 8)
    data = encode_metadata(metadata)
    assert json.loads(data) == {"tableUuid": "u-1", "createTime": 5, "modifyTime": 6, "schemaId": 7, "snapshotId": 8}
    assert decode_metadata(data, path="m") == metadata


def test_members_that_may_be_absent() -> None:
    assert decode_metadata(b'{"tableUuid": "u", "createTime": 1, "modifyTime": 2}', path="m") == TableMetadata(
        "u", 1, 2, 0, -1
    )


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b'{"tableUuid": "u", "createTime": "x", "modifyTime": 2}', b"\xff"]
)
def test_broken_files_are_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="dir/metadata"):
        decode_metadata(data, path="dir/metadata")
