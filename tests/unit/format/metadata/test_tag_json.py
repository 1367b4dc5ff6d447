"""Tag files: their bytes, and those that others wrote."""

import json
from datetime import datetime, timedelta

import pytest

from lakelet.errors import CorruptionError
from lakelet.format.metadata.tag_json import decode_tag, encode_tag, tagged_snapshot_bytes

SNAPSHOT = {
    "version": 3,
    "id": 2,
    "schemaId": 0,
    "baseManifestList": "manifest-list-a",
    "deltaManifestList": "manifest-list-b",
    "commitUser": "u",
    "commitIdentifier": 1,
    "commitKind": "APPEND",
    "timeMillis": 5,
    "fromTheFuture": {"é": [1]},
}
DATA = json.dumps(SNAPSHOT).encode()


def test_a_tag_without_retention_is_the_snapshot() -> None:
    assert json.loads(encode_tag(DATA)) == SNAPSHOT
    tag = decode_tag(encode_tag(DATA), name="x", path="tag-x")
    assert (tag.name, tag.snapshot_id, tag.time_ms, tag.create_time, tag.time_retained) == ("x", 2, 5, None, None)
    assert not tag.is_expired(datetime(9999, 1, 1))


@pytest.mark.parametrize(
    ("moment", "numbers"),
    [
        (datetime(2026, 11, 15, 19, 44, 58, 418540), "[2026, 11, 15, 19, 44, 58, 418540000]"),
        (datetime(2026, 11, 15, 19, 44, 58), "[2026, 11, 15, 19, 44, 58]"),
        (datetime(2026, 11, 15, 19, 44), "[2026, 11, 15, 19, 44]"),
        (datetime(2026, 1, 2, 0, 0, 0, 5), "[2026, 1, 2, 0, 0, 0, 5000]"),
    ],
)
def test_times_are_spelled_as_java_spells_them(moment: datetime, numbers: str) -> None:
    data = encode_tag(DATA, moment, timedelta(hours=26, milliseconds=500))
    text = data.decode()
    assert text.endswith(f',\n  "tagCreateTime": {numbers},\n  "tagTimeRetained": 93600.500000000\n}}')
    tag = decode_tag(data, name="x", path="tag-x")
    assert (tag.create_time, tag.time_retained) == (moment, timedelta(hours=26, milliseconds=500))
    assert json.loads(tagged_snapshot_bytes(data)) == SNAPSHOT
    assert not tag.is_expired(moment + timedelta(hours=26))
    assert tag.is_expired(moment + timedelta(hours=26, seconds=1))


def test_what_is_no_tag_is_named() -> None:
    with pytest.raises(CorruptionError, match="tag-x: not a tag file"):
        decode_tag(json.dumps(SNAPSHOT | {"tagCreateTime": [2026]}).encode(), name="x", path="tag-x")
