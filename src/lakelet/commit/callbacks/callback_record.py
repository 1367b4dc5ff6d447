"""The record of the snapshots a commit callback was called for, stored in the table so that a crash cannot lose it.

    callback/commit/<package.module.Class>      one JSON object per class and branch

    {"version": 1, "settled": [{"snapshotId": 41, "deltaManifestList": "manifest-list-…-1"}, …]}

The entries are the last settled snapshots, those without a pending call, oldest first, each with its delta manifest list: a
rollback frees ids, and a snapshot made later under an old id is another one. The last entry is how far the callback has got;
the ones before it show how far a rollback went. An entry for id 0 means before the first snapshot; a list of "" a snapshot
that had been expired.

The file is replaced as a whole. Of two concurrent writers one prevails, and both have called the callback for
everything that theirs records, so that no snapshot is skipped whichever it is. An unreadable file is treated as missing:
then snapshots are called again, which callbacks must tolerate anyway.
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
# Up to this many snapshots may be rolled back before a callback is called again for all that exist.
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Settled:
    """A snapshot without a pending call."""

    snapshot_id: int
    delta_manifest_list: str

    @staticmethod
    def of(snapshot: Snapshot) -> Settled:
        """The entry of a snapshot."""
        return Settled(snapshot.id, snapshot.delta_manifest_list)

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether the entry is that of the snapshot."""
        return self == Settled.of(snapshot)


Record = tuple[Settled, ...]


def extended(record: Record, settled: Iterable[Settled]) -> Record:
    """The record after more snapshots, in ascending order; its entries of their ids or later ones were rolled back."""
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
    """The inverse; raises any of the errors of malformed JSON."""
    value = load_json(data)
    if value["version"] != _VERSION:
        raise KeyError(f"version {value['version']}, expected {_VERSION}")
    return tuple(Settled(int(entry["snapshotId"]), str(entry["deltaManifestList"])) for entry in value["settled"])
