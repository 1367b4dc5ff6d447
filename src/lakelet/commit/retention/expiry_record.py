"""A record of the snapshots being expired, kept until their files are removed.

    expiring/snapshot-<first id>-<last id>      {"snapshots": [<snapshot file>, …]}
    expiring/changelog-<first id>-<last id>     the same, of long-lived changelogs

Snapshots are deleted before their files, and with them the only list of these files. The note keeps it: an interrupted expiry
is finished by the next one. It says what may have been deleted, not what must be; a snapshot that still exists is
judged anew. Java ignores the folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.metadata.snapshot_json import decode_snapshot, encode_snapshot
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome


def write_expiring(home: TableHome, snapshots: Sequence[Snapshot], *, kind: str = "snapshot") -> str:
    """Record that these snapshots, or the changelogs left of them, are about to be deleted; returns the note's path."""
    path = f"{home.paths.expiring_folder}/{kind}-{snapshots[0].id}-{snapshots[-1].id}"
    value = {"snapshots": [json.loads(encode_snapshot(snapshot)) for snapshot in snapshots]}
    home.store.put(path, json.dumps(value, ensure_ascii=False).encode())
    return path


def expiring_notes(home: TableHome, *, before_ms: int | None = None) -> list[str]:
    """The paths of the notes that interrupted expiries have left, of all or of those made before that time."""
    found = home.store.list_folder(home.paths.expiring_folder).files
    return [info.path for info in found if before_ms is None or info.modified_ms < before_ms]


def read_expiring(home: TableHome, path: str) -> list[Snapshot]:
    """The snapshots of a note, none if it is deleted by now."""
    try:
        data = home.store.get(path)
    except NotFoundError:
        return []
    try:
        values = load_json(data)["snapshots"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(
            f"{home.where(path)}: not a note of an expiry ({type(error).__name__}: {error})"
        ) from error
    return [decode_snapshot(json.dumps(value).encode(), path=home.where(path)) for value in values]
