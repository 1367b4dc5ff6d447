"""Records in the warehouse: which copy of a table's write-ahead logs counts, and who commits its rows.

    service/replicas/{origin}/{folder of the table's logs}/{generation}.json
    {"holder": "node-3f2a…", "token": "7-91ac…", "table": "default.orders", "state": "copied"}

    7 copied     the node `origin` acknowledges what is durable in its own log and in the copy of that token at `holder`
    8 adopting   the origin is taken for dead: the holder of copy 7 commits its rows, and takes none any longer
    8 adopted    they are committed

The newest generation counts. Each is created if absent: of an origin that moves to another holder, and a holder that adopts, one
goes first, and the other notices. Before an origin creates a generation, all that it has acknowledged and not committed is in
the new copy, and it acknowledges nothing meanwhile; so what counts has every acknowledged row, and an older copy is never needed.
Records are written when copies begin and end, not with rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.storage.store import ObjectStore

COPIED, ADOPTING, ADOPTED = "copied", "adopting", "adopted"
_FOLDER, _END = "service/replicas", ".json"
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """A generation of the copies of one table's logs of one node."""

    origin: str
    folder: str
    generation: int
    holder: str
    token: str
    table: str
    state: str = COPIED


class ReplicaRecords:
    """The records of a warehouse; for threads."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def newest(self, origin: str, folder: str) -> ReplicaRecord | None:
        """The record that counts for the logs of a table."""
        while True:
            generations = self._generations(origin, folder)
            if not generations:
                return None
            try:
                return self._read(origin, folder, generations[-1])
            except NotFoundError:
                # Its node has left, or has gone on and deleted it.
                continue

    def of_origin(self, origin: str) -> list[ReplicaRecord]:
        """The records that count for all tables of a node."""
        folders = self.store.list_folder(f"{_FOLDER}/{origin}").folders
        found = [self.newest(origin, folder.rpartition("/")[2]) for folder in folders]
        return [one for one in found if one is not None]

    def claim(self, record: ReplicaRecord) -> bool:
        """Create the next generation, durably; False where another one is there. UnavailableError where nobody can tell."""
        path = _path(record.origin, record.folder, record.generation)
        # What is there may be what this call has created, though the store did not say so.
        if not self.store.put_if_absent(path, _encoded(record)) and self._found(record) != record:
            return False
        # A generation that was deleted, since a newer one counts, could be created once more.
        if self._generations(record.origin, record.folder)[-1:] == [record.generation]:
            return True
        self.store.delete([path])
        return False

    def adopt(self, origin: str, folder: str, token: str) -> ReplicaRecord | None:
        """Have the copy of a token be the one whose rows are committed; None where it does not count. Once more after a crash."""
        known = self.newest(origin, folder)
        if known is None or known.token != token:
            return None
        if known.state != COPIED:
            return known
        claimed = replace(known, generation=known.generation + 1, state=ADOPTING)
        return claimed if self.claim(claimed) else None

    def is_over(self, origin: str) -> bool:
        """Whether the rows of all copies of a node are committed."""
        return all(one.state == ADOPTED for one in self.of_origin(origin))

    def forget(self, origin: str) -> None:
        """Delete all records of a node that will not return."""
        for one in self.of_origin(origin):
            self.delete(origin, one.folder)

    def end_adoption(self, record: ReplicaRecord) -> None:
        """Say that the rows of an adopted copy are committed."""
        path = _path(record.origin, record.folder, record.generation)
        self.store.put(path, _encoded(replace(record, state=ADOPTED)))

    def delete_before(self, record: ReplicaRecord) -> None:
        """Delete the generations before the one that counts."""
        found = self._generations(record.origin, record.folder)
        older = [_path(record.origin, record.folder, one) for one in found if one < record.generation]
        if older:
            self.store.delete(older)

    def delete(self, origin: str, folder: str) -> None:
        """Delete all records of a table's logs, whose rows are committed."""
        paths = [_path(origin, folder, one) for one in self._generations(origin, folder)]
        if paths:
            self.store.delete(paths)

    def _generations(self, origin: str, folder: str) -> list[int]:
        names = [one.path.rpartition("/")[2] for one in self.store.list_folder(f"{_FOLDER}/{origin}/{folder}").files]
        texts = [name.removesuffix(_END) for name in names if name.endswith(_END)]
        return sorted(int(text) for text in texts if text.isdecimal())

    def _found(self, record: ReplicaRecord) -> ReplicaRecord | None:
        try:
            return self._read(record.origin, record.folder, record.generation)
        except NotFoundError:
            return None

    def _read(self, origin: str, folder: str, generation: int) -> ReplicaRecord:
        path = _path(origin, folder, generation)
        data = self.store.get(path)
        try:
            found = json.loads(data)
            texts = [str(found[name]) for name in ("holder", "token", "table", "state")]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptionError(f"{path}: expected a record of a copy of logs, found {error!r}") from None
        return ReplicaRecord(origin, folder, generation, *texts)


def _path(origin: str, folder: str, generation: int) -> str:
    return f"{_FOLDER}/{origin}/{folder}/{generation:0{_DIGITS}}{_END}"


def _encoded(record: ReplicaRecord) -> bytes:
    return json.dumps(
        {"holder": record.holder, "token": record.token, "table": record.table, "state": record.state}
    ).encode()
