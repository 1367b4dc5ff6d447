"""Snapshot files: `snapshot/snapshot-N` and `tag/tag-NAME`, one JSON object each.

    {"version": 3, "id": N, "schemaId": 0, "baseManifestList": "manifest-list-…-0", "baseManifestListSize": 1006,
     "deltaManifestList": "manifest-list-…-1", "deltaManifestListSize": 1123, "commitUser": "…", "commitIdentifier": …,
     "commitKind": "APPEND", "timeMillis": …, "totalRecordCount": 1, "deltaRecordCount": 1, "nextRowId": 0, …}

Members that are not set are left out. Unknown members are ignored on reading; a tag adds `tagCreateTime` and
`tagTimeRetained`, which readers of snapshots do not need.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lakelet.errors import CorruptionError, InternalError, InvalidError
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.snapshot import SNAPSHOT_VERSION, CommitKind, Snapshot

_MEMBERS = (
    ("version", "version"),
    ("id", "id"),
    ("schemaId", "schema_id"),
    ("baseManifestList", "base_manifest_list"),
    ("baseManifestListSize", "base_manifest_list_size"),
    ("deltaManifestList", "delta_manifest_list"),
    ("deltaManifestListSize", "delta_manifest_list_size"),
    ("changelogManifestList", "changelog_manifest_list"),
    ("changelogManifestListSize", "changelog_manifest_list_size"),
    ("indexManifest", "index_manifest"),
    ("commitUser", "commit_user"),
    ("commitIdentifier", "commit_identifier"),
    ("commitKind", "commit_kind"),
    ("timeMillis", "time_ms"),
    ("totalRecordCount", "total_record_count"),
    ("deltaRecordCount", "delta_record_count"),
    ("changelogRecordCount", "changelog_record_count"),
    ("watermark", "watermark"),
    ("statistics", "statistics"),
    ("properties", "properties"),
    ("nextRowId", "next_row_id"),
)
_REQUIRED = (
    "id",
    "schemaId",
    "baseManifestList",
    "deltaManifestList",
    "commitUser",
    "commitIdentifier",
    "commitKind",
    "timeMillis",
)
# A commit reads its predecessor, and then its own snapshot's again, and decodes what it encodes. Snapshots are values: what is
# remembered by its bytes is never out of date.
_REMEMBERED = 64
_REMEMBERED_BYTES = 1 << 14
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_TEXT = ("baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest", "commitUser", "statistics")


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot file, which are sure to decode: a snapshot that cannot be read makes the table unusable."""
    value: dict[str, Any] = {}
    for member, attribute in _MEMBERS:
        found = getattr(snapshot, attribute)
        if found is not None:
            value[member] = found.value if isinstance(found, CommitKind) else found
    data = _dump(value).encode()
    if decode_snapshot(data, path=f"snapshot {snapshot.id}") != snapshot:
        raise InternalError(f"snapshot {snapshot.id} would not be read as it was written: {snapshot}")
    return data


def _dump(value: dict[str, Any]) -> str:
    """The JSON text, indented by two. The indenting encoder of `json` is written in Python: most members go without it."""
    if "properties" in value:
        return json.dumps(value, indent=2, ensure_ascii=False)
    members = (f'  "{member}": {_ENCODER.encode(found)}' for member, found in value.items())
    return "{\n" + ",\n".join(members) + "\n}"


def decode_snapshot(data: bytes, *, path: str) -> Snapshot:
    """The snapshot in `data`; errors name `path`."""
    try:
        found = _remembered(data) if len(data) <= _REMEMBERED_BYTES else _decode(data)
    except (InvalidError, CorruptionError) as error:
        raise type(error)(f"{path}: {error}") from error
    # Whoever has it may change its properties.
    return found if found.properties is None else replace(found, properties=dict(found.properties))


def _decode(data: bytes) -> Snapshot:
    try:
        value = load_json(data)
        version = int(value.get("version") or 1)
        if version > SNAPSHOT_VERSION:
            raise InvalidError(
                f"snapshot format version {version} is newer than {SNAPSHOT_VERSION}, the newest known here"
            )
        missing = [member for member in _REQUIRED if value.get(member) is None]
        if missing:
            raise CorruptionError(f"not a snapshot file (without {', '.join(missing)})")
        members: dict[str, Any] = {}
        for member, attribute in _MEMBERS:
            found = value.get(member)
            if found is None or member == "version":
                members[attribute] = version if member == "version" else None
            elif member in _TEXT:
                members[attribute] = str(found)
            elif member == "commitKind":
                members[attribute] = CommitKind(found)
            elif member == "properties":
                members[attribute] = {str(key): str(text) for key, text in found.items()}
            else:
                members[attribute] = int(found)
        return Snapshot(**members)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"not a snapshot file ({type(error).__name__}: {error})") from error


_remembered = lru_cache(maxsize=_REMEMBERED)(_decode)
