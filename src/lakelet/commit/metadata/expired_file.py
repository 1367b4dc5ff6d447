"""Tell whether a missing file is damage or expiry: readers hold a version, not its files, and expiry may delete both.

    file is missing ─ does any snapshot, tag or changelog of any branch still name it?
                        ├─ yes: it was removed by hand       MissingFileError, a corruption
                        └─ no: its version was expired       SnapshotExpiredError: look again on the newest one, or say so

There is no other way to distinguish them. Expiry removes the snapshot first, then data files, then what names them; the id may
be another snapshot's after a rollback; and a tag may keep a version whose snapshot is deleted. The check reads all metadata of
the table, and is made only after a file was not found.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.metadata_reader import MetadataReader
from lakelet.commit.metadata.missing_file import MissingFileError, SnapshotExpiredError
from lakelet.commit.retention.file_references import table_holders
from lakelet.commit.retention.unused_files import Held, held_files, held_names
from lakelet.errors import CorruptionError
from lakelet.storage.home import TableHome

_TRIES = 5


def is_named(home: TableHome, path: str) -> bool:
    """Whether any snapshot, tag or changelog of the table still names a file, which then ought to exist."""
    name = path.rsplit("/", 1)[-1]
    # The caller has relied on metadata that is older than the store's.
    home = home.uncached()
    for _ in range(_TRIES):
        reader = MetadataReader(home, only_files=pa.array([name], pa.string()))
        try:
            holders = table_holders(home)
            named = held_names(reader, Held(holders))
            if any(name in names for names in (named.lists, named.manifests, named.indexes, named.statistics)):
                return True
            return bool(pc.is_in(pa.scalar(name), value_set=held_files(reader, holders, extra=True)).as_py())
        except CorruptionError:
            # A holder may have been expired while it was read. One that is broken stays so: then the table is damaged.
            continue
    return True


def missing_file(home: TableHome, path: str, snapshot_id: int | None = None) -> MissingFileError | SnapshotExpiredError:
    """The error to raise for a missing file, which this snapshot or another one named."""
    if is_named(home, path):
        snapshot = "a snapshot" if snapshot_id is None else f"snapshot {snapshot_id}"
        return MissingFileError(f"{home.where(path)} is missing, although {snapshot} names it")
    snapshot = "the snapshot that named it" if snapshot_id is None else f"snapshot {snapshot_id}"
    return SnapshotExpiredError(f"{home.where(path)} is gone: {snapshot} was expired while it was read")
