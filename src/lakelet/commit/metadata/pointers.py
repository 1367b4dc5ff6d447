"""Pointers of a table with the bytes that they were read from: the newest snapshot and the newest schema, and their revalidation.

A known pointer is right if the store names the same id as the newest one and, read after that, the file of the id has the same
bytes: an id alone proves nothing, since a rollback or a recreated table reuses it. Which id is the newest is determined exactly
as for a reader without a cache (`commit/metadata/version_ids`); only the decoding is saved. Where each call of the store is a
round trip `pointer_check` confirms both pointers together.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from lakelet.commit.metadata.version_ids import latest_id, read_hint, schema_ids
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.metadata.schema_json import decode_schema
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class SnapshotPointer:
    """The newest snapshot and the bytes of its file."""

    snapshot: Snapshot
    data: bytes


@dataclass(frozen=True, slots=True)
class SchemaPointer:
    """The newest schema version and the bytes of its file; `line` is a digest of them."""

    schema: TableSchema
    data: bytes
    line: str


def newest_snapshot(home: TableHome, known: SnapshotPointer | None = None) -> SnapshotPointer | None:
    """The newest snapshot: `known` itself where it still is. None for a table without any."""
    if known is not None and _is_newest(home, known):
        return known
    while True:
        number = latest_id(home)
        if number is None:
            return None
        data = read_if_there(home, home.paths.snapshot(number))
        # Only a rollback or a drop between the two calls makes it vanish; then look again.
        if data is not None:
            return _snapshot_pointer(home, number, data, known)


def _is_newest(home: TableHome, known: SnapshotPointer) -> bool:
    """Whether `LATEST` leads to this snapshot as `latest_id` follows it; that its file exists is seen by reading it."""
    number, store, paths = known.snapshot.id, home.store, home.paths
    return (
        number > 1
        and read_hint(home, paths.latest_hint) == number
        and store.head(paths.snapshot(number - 1)) is not None
        and store.head(paths.snapshot(number + 1)) is None
        and read_if_there(home, paths.snapshot(number)) == known.data
    )


def newest_schema(home: TableHome, known: SchemaPointer | None = None) -> SchemaPointer:
    """The newest schema version: `known` itself where it still is; NotFoundError where there is no table."""
    before: list[int] | None = None
    while True:
        ids = schema_ids(home)
        if not ids:
            raise NotFoundError(f"{home.where(home.paths.branch_root)} is not a table: it has no schema")
        data = read_if_there(home, home.paths.schema(ids[-1]))
        if data is not None:
            return _schema_pointer(home, ids[-1], data, known)
        if ids == before:
            raise NotFoundError(f"{home.where(home.paths.schema(ids[-1]))} is listed and cannot be read")
        # It was dropped in between, or the branch recreated.
        before = ids


def stored_schema(home: TableHome, number: int, known: SchemaPointer | None = None) -> SchemaPointer:
    """A schema version as it is stored now: `known` itself where it has the same bytes."""
    path = home.paths.schema(number)
    return _schema_pointer(home, number, home.store.get(path), known)


def snapshot_pointer_of(data: bytes, number: int, where: str) -> SnapshotPointer:
    """The pointer to the snapshot of this id that these bytes are; CorruptionError where they are none."""
    found = decode_snapshot(data, path=where)
    if found.id != number:
        raise CorruptionError(f"{where}: expected snapshot {number}, found {found.id}")
    return SnapshotPointer(found, data)


def schema_pointer_of(data: bytes, number: int, where: str) -> SchemaPointer:
    """The pointer to the schema version of this id that these bytes are; CorruptionError where they are none."""
    found = decode_schema(data, path=where)
    if found.id != number:
        raise CorruptionError(f"{where}: expected schema {number}, found {found.id}")
    return SchemaPointer(found, data, _line(data))


def _snapshot_pointer(home: TableHome, number: int, data: bytes, known: SnapshotPointer | None) -> SnapshotPointer:
    if known is not None and known.snapshot.id == number and known.data == data:
        return known
    return SnapshotPointer(decode_snapshot(data, path=home.where(home.paths.snapshot(number))), data)


def _schema_pointer(home: TableHome, number: int, data: bytes, known: SchemaPointer | None) -> SchemaPointer:
    if known is not None and known.schema.id == number and known.data == data:
        return known
    schema = decode_schema(data, path=home.where(home.paths.schema(number)))
    return SchemaPointer(schema, data, _line(data))


def _line(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def read_if_there(home: TableHome, path: str) -> bytes | None:
    """The bytes of a file, None where there is none."""
    try:
        return home.store.get(path)
    except NotFoundError:
        return None
