"""The places of a backup: a table of its own, and beside its folders what is kept of the source.

    <db>.db/<table>/schema, snapshot, manifest, index, [k=v/…]bucket-N     the mirror: a table, readable where it is
    <db>.db/<table>/backup/checksums/<uuid>.json                           size and SHA-256 of files (`checksums`)
                           users/<manifest list>.json                      the last commit of each user in that snapshot (`users`)
                           manifest/…, snapshot/snapshot-N                 the source's own metadata of the mirrored snapshot

A path is named as it is below the table's folder in the source. Data, index and statistics files have the same path in the
mirror. Manifests and snapshots do not, for the mirror has its own: the source's are below `backup`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.storage.home import TableHome

BACKUP_USER = "lakelet-backup"
RECOVERY_USER = "lakelet-recovery"
SOURCE_SNAPSHOT = "lakelet.backup.source-snapshot"
SOURCE_DELTA = "lakelet.backup.source-manifest-list"
COMPLETE = "lakelet.backup.complete"
_OF_THE_SOURCE = ("manifest/", "snapshot/")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a snapshot names: its path below the table's folder, and its size where the metadata says it."""

    path: str
    size: int | None = None


def own_path(home: TableHome, path: str) -> str:
    """The path in the store of a file of the table itself."""
    return f"{home.paths.root}/{path}"


def kept_path(home: TableHome, path: str) -> str:
    """The path in the backup store of the copy of a source's file."""
    return f"{kept_folder(home)}/{path}" if path.startswith(_OF_THE_SOURCE) else f"{home.paths.root}/{path}"


def kept_folder(home: TableHome) -> str:
    """The folder of what is kept beside the mirror."""
    return f"{home.paths.root}/backup"


def restoring_path(home: TableHome) -> str:
    """The mark of a table that is being restored as a whole."""
    return f"{home.paths.root}/restoring/RESTORING"
