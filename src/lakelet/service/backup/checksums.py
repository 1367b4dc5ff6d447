"""Sizes and SHA-256 of the files of a backup, kept in small JSON files beside the mirror.

    backup/checksums/<uuid>.json    {"files": {"dt=2026-01-31/bucket-0/data-….parquet": [4711, "9f86d0…"], …}}

Each pass adds a file, once what it tells of is durable and before a snapshot names it; files have one content for ever, so that
the order of these does not matter. When there are many, one that tells of the live files replaces them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakelet.errors import CorruptionError
from lakelet.service.backup.layout import kept_folder
from lakelet.storage.home import TableHome

_MOST_PARTS = 32


@dataclass(frozen=True, slots=True)
class Checksum:
    """The size of a file and the SHA-256 of its bytes in hexadecimal."""

    size: int
    sha256: str


class Checksums:
    """What is known of the files of one backup."""

    def __init__(self, home: TableHome) -> None:
        self._home = home
        self._folder = f"{kept_folder(home)}/checksums"
        self._parts = [info.path for info in home.store.list_folder(self._folder).files if info.path.endswith(".json")]
        self._known: dict[str, Checksum] = {}
        for part in self._parts:
            self._known.update(_decoded(home.store.get(part), home.where(part)))

    def __contains__(self, path: object) -> bool:
        return path in self._known

    def get(self, path: str) -> Checksum | None:
        """The checksum of a file, None where it is not known."""
        return self._known.get(path)

    def add(self, found: Mapping[str, Checksum]) -> None:
        """Keep the checksums of files that are durable."""
        new = {path: one for path, one in found.items() if self._known.get(path) != one}
        if new:
            self._put(new)
            self._known.update(new)

    @property
    def is_scattered(self) -> bool:
        """Whether there are so many parts that they are to be joined."""
        return len(self._parts) > _MOST_PARTS

    def __len__(self) -> int:
        return len(self._known)

    def join(self, live: Collection[str] | None) -> None:
        """Replace all parts by one: of the live files, or, for None, of all that are known."""
        old = list(self._parts)
        kept = {path: one for path, one in self._known.items() if live is None or path in live}
        self._put(kept)
        self._home.store.delete(old)
        self._parts = self._parts[len(old) :]
        self._known = kept

    def _put(self, files: Mapping[str, Checksum]) -> None:
        path = f"{self._folder}/{self._home.ids.uuid()}.json"
        data = json.dumps({"files": {name: [one.size, one.sha256] for name, one in files.items()}}, ensure_ascii=False)
        self._home.store.put(path, data.encode("utf-8", "surrogatepass"))
        self._parts.append(path)


def checksum_of(data: bytes) -> Checksum:
    """The checksum of bytes."""
    return Checksum(len(data), hashlib.sha256(data).hexdigest())


def _decoded(data: bytes, where: str) -> dict[str, Checksum]:
    try:
        files = json.loads(data.decode("utf-8", "surrogatepass"))["files"]
        return {str(path): Checksum(int(size), str(digest)) for path, (size, digest) in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{where}: expected checksums of a backup, found {data[:80]!r}") from error
