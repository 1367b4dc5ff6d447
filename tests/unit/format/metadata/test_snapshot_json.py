"""Snapshot files."""

import json
from dataclasses import fields, replace

import pytest

from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.format.metadata.snapshot_json import decode_snapshot, encode_snapshot
from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot

SNAPSHOT = Snapshot(3, 1, "base", "delta", "user", BATCH_COMMIT_IDENTIFIER, CommitKind.APPEND, 5, 10, -2)
FULL = replace(
    SNAPSHOT,
    commit_kind=CommitKind.OVERWRITE,
    base_manifest_list_size=1,
    delta_manifest_list_size=2,
    changelog_manifest_list="changes",
    changelog_manifest_list_size=3,
    changelog_record_count=4,
    index_manifest="index",
    watermark=-(2**63),
    statistics="stat",
    properties={"k": "é"},
    next_row_id=0,
)


@pytest.mark.parametrize("snapshot", [SNAPSHOT, FULL])
def test_round_trip(snapshot: Snapshot) -> None:
    assert decode_snapshot(encode_snapshot(snapshot), path="s") == snapshot


@pytest.mark.parametrize(
    "snapshot", [SNAPSHOT, FULL, replace(FULL, properties=None), replace(SNAPSHOT, commit_user='"\n é')]
)
def test_the_text_is_indented_json(snapshot: Snapshot) -> None:
    data = encode_snapshot(snapshot)
    assert data == json.dumps(json.loads(data), indent=2, ensure_ascii=False).encode()


def test_what_is_remembered_cannot_be_changed_by_whoever_has_it() -> None:
    data = encode_snapshot(FULL)
    decode_snapshot(data, path="s").properties["k"] = "other"  # type: ignore[index]
    assert decode_snapshot(data, path="s") == FULL


def test_the_same_bytes_at_two_paths_are_told_by_their_own() -> None:
    newer = json.dumps({**json.loads(encode_snapshot(SNAPSHOT)), "version": 4}).encode()
    for data in (newer, b"{}"):
        for path in ("one/snapshot-1", "two/snapshot-1"):
            with pytest.raises((InvalidError, CorruptionError), match=f"^{path}: "):
                decode_snapshot(data, path=path)


def test_members_that_are_not_set_are_left_out() -> None:
    value = json.loads(encode_snapshot(SNAPSHOT))
    assert value == {
        "version": 3,
        "id": 3,
        "schemaId": 1,
        "baseManifestList": "base",
        "deltaManifestList": "delta",
        "commitUser": "user",
        "commitIdentifier": 2**63 - 1,
        "commitKind": "APPEND",
        "timeMillis": 5,
        "totalRecordCount": 10,
        "deltaRecordCount": -2,
    }
    assert len(json.loads(encode_snapshot(FULL))) == len(fields(Snapshot))


def test_unknown_members_are_passed_over_and_nulls_are_absent() -> None:
    value = {
        **json.loads(encode_snapshot(SNAPSHOT)),
        "uuid": "x",
        "operation": {"a": 1},
        "watermark": None,
        "logOffsets": {},
    }
    assert decode_snapshot(json.dumps(value).encode(), path="s") == SNAPSHOT
    del value["version"]
    assert decode_snapshot(json.dumps(value).encode(), path="s").version == 1


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(InvalidError, match="dir/snapshot-1: snapshot format version 4 is newer than 3"):
        decode_snapshot(
            json.dumps({**json.loads(encode_snapshot(SNAPSHOT)), "version": 4}).encode(), path="dir/snapshot-1"
        )


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"{}", b"\xff", b'{"version": "x"}'])
def test_broken_files_are_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="dir/snapshot-1"):
        decode_snapshot(data, path="dir/snapshot-1")


@pytest.mark.parametrize(
    "member",
    [
        "id",
        "schemaId",
        "baseManifestList",
        "deltaManifestList",
        "commitUser",
        "commitIdentifier",
        "commitKind",
        "timeMillis",
    ],
)
def test_a_member_that_must_be_there(member: str) -> None:
    value = json.loads(encode_snapshot(SNAPSHOT))
    del value[member]
    with pytest.raises(CorruptionError, match=member):
        decode_snapshot(json.dumps(value).encode(), path="s")
    value[member] = {"no": "such"}
    if member in ("id", "schemaId", "commitIdentifier", "commitKind", "timeMillis"):
        with pytest.raises(CorruptionError, match="not a snapshot file"):
            decode_snapshot(json.dumps(value).encode(), path="s")


def test_a_snapshot_that_would_not_decode_is_not_encoded() -> None:
    good = decode_snapshot(encode_snapshot(SNAPSHOT), path="")
    with pytest.raises(LakeletError):
        encode_snapshot(replace(good, watermark="x"))  # type: ignore[arg-type]
    with pytest.raises(LakeletError):
        encode_snapshot(replace(good, watermark=1.5))  # type: ignore[arg-type]
    with pytest.raises(LakeletError):
        encode_snapshot(replace(good, properties={"a": 1}))  # type: ignore[dict-item]
