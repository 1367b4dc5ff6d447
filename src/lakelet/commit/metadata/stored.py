"""The raw bytes of metadata files, always from the store: for callers that copy, compare or rewrite them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakelet.errors import NotFoundError
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.format.metadata.tag_json import decode_tag, tagged_snapshot_bytes
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.storage.home import TableHome

_READERS = 16


@dataclass(frozen=True, slots=True)
class Version:
    """A snapshot that can be named, with the bytes of its file."""

    snapshot: Snapshot
    data: bytes


def stored_snapshot(home: TableHome, number: int) -> Version:
    """The snapshot of that id as it is stored; NotFoundError where there is none."""
    path = home.paths.snapshot(number)
    data = home.store.get(path)
    return Version(decode_snapshot(data, path=home.where(path)), data)


def stored_schema(home: TableHome, number: int) -> bytes:
    """The bytes of a schema version; NotFoundError where there is none."""
    return home.store.get(home.paths.schema(number))


def stored_snapshots(home: TableHome, paths: Sequence[str]) -> list[Snapshot]:
    """The snapshots in these files, be they tags or changelogs, read several at a time; missing files are left out."""

    def read(path: str) -> Snapshot | None:
        try:
            return decode_snapshot(home.store.get(path), path=home.where(path))
        except NotFoundError:
            return None

    if not paths:
        return []
    with ThreadPoolExecutor(_READERS) as pool:
        return [snapshot for snapshot in pool.map(read, paths) if snapshot is not None]


def schema_bytes(home: TableHome, number: int) -> bytes:
    """A schema version as it is stored."""
    return home.store.get(home.paths.schema(number))


def tag_bytes(home: TableHome, name: str) -> bytes:
    """A tag as it is stored."""
    return home.store.get(home.paths.tag(name))


def tag_of(home: TableHome, name: str, data: bytes) -> Tag:
    """Decode a tag from `data`."""
    return decode_tag(data, name=name, path=home.where(home.paths.tag(name)))


def tagged_bytes(home: TableHome, name: str) -> bytes:
    """The bytes that the snapshot file of a tagged snapshot has or had."""
    return tagged_snapshot_bytes(tag_bytes(home, name))


def manifest_bytes(home: TableHome, name: str) -> bytes:
    """A manifest, manifest list or index manifest as it is stored."""
    return home.store.get(home.paths.manifest(name))
