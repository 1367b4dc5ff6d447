"""Which snapshots a commit callback was called for, kept in the table so that a crash cannot lose it.

    callback/commit/<package.module.Class>      one JSON object per class and branch

    {"version": 1, "settled": [{"snapshotId": 41, "deltaManifestList": "manifest-list-…-1"}, …]}

The entries are the last snapshots that nothing is owed for, oldest first, each with its delta manifest list: a rollback
frees ids, and a snapshot made later under an old id is another one. The last entry is where the callback stands; the
ones before it tell how far a rollback went. An entry for id 0 stands for the time before the first snapshot; a list of ""
for a snapshot that had been expired.

The file is replaced as a whole. Of two writers that do so at once one prevails, and both have called the callback for
everything that theirs says, so that no snapshot is passed over whichever it is. A file that cannot be read counts as none:
then snapshots are called again, which callbacks must bear anyway.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from lakelet.errors import NotFoundError
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_VERSION = 1
# As many snapshots may be rolled back before a callback is called again for everything that there is.
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Settled:
    """A snapshot that nothing is owed for."""

    snapshot_id: int
    delta_manifest_list: str

    @staticmethod
    def of(snapshot: Snapshot) -> Settled:
        """The entry of a snapshot."""
        return Settled(snapshot.id, snapshot.delta_manifest_list)

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether that snapshot is meant."""
        return self == Settled.of(snapshot)


Record = tuple[Settled, ...]


def extended(record: Record, settled: Iterable[Settled]) -> Record:
    """The record after more snapshots, in rising order; what it said of their ids or later ones was rolled back."""
    added = tuple(settled)
    if not added:
        return record
    kept = tuple(entry for entry in record if entry.snapshot_id < added[0].snapshot_id)
    return (*kept, *added)[-_LONGEST:]


def read_record(home: TableHome, name: str) -> Record:
    """The record of a callback class; empty where there is none."""
    path = home.paths.callback_record(name)
    try:
        return decode_record(home.store.get(path))
    except NotFoundError:
        return ()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        _LOG.warning(
            "%s is no record of a callback (%s: %s): it is called again for the snapshots that there are",
            home.where(path),
            type(error).__name__,
            error,
        )
        return ()


def write_record(home: TableHome, name: str, record: Record) -> None:
    """Replaces the record of a callback class."""
    home.store.put(home.paths.callback_record(name), encode_record(record))


def encode_record(record: Record) -> bytes:
    """The bytes of a record."""
    settled = [{"snapshotId": entry.snapshot_id, "deltaManifestList": entry.delta_manifest_list} for entry in record]
    return json.dumps({"version": _VERSION, "settled": settled}, indent=1).encode()


def decode_record(data: bytes) -> Record:
    """The inverse; any of the errors that JSON of another form gives."""
    value = load_json(data)
    if value["version"] != _VERSION:
        raise KeyError(f"version {value['version']}, expected {_VERSION}")
    return tuple(Settled(int(entry["snapshotId"]), str(entry["deltaManifestList"])) for entry in value["settled"])
