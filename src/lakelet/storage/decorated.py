"""The base of store decorators: forwards every call to another store.

Place in the data path: between the stages and a backend. It owns the forwarding of every protocol call
through one method, `_around`, which a decorator overrides to retry, count or fail. It never changes a result.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import pyarrow.fs

from lakelet.storage.store import FolderWatch, Listing, ObjectInfo, ObjectStore, OutputFile

T = TypeVar("T")


class DecoratedStore:
    """Forwards every call; `_around(call, path, action)` sees each one."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        return action()

    @property
    def inner(self) -> ObjectStore:
        """The decorated store."""
        return self._store

    @property
    def location(self) -> str:
        return self._store.location

    def get(self, path: str) -> bytes:
        return self._around("get", path, lambda: self._store.get(path))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self._around("get_range", path, lambda: self._store.get_range(path, start, length))

    def head(self, path: str) -> ObjectInfo | None:
        return self._around("head", path, lambda: self._store.head(path))

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        self._around("put", path, lambda: self._store.put(path, data, deferred=deferred))

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        if paths:
            self._around("sync", ", ".join(paths[:3]), lambda: self._store.sync(paths, creating))

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        return self._around("put_if_absent", path, lambda: self._store.put_if_absent(path, data, deferred=deferred))

    def list(self, folder: str) -> Iterator[ObjectInfo]:
        # Collected inside, so that a failure half-way is part of the call and not of the loop over it.
        return iter(self._around("list", folder, lambda: tuple(self._store.list(folder))))

    def list_folder(self, folder: str) -> Listing:
        return self._around("list_folder", folder, lambda: self._store.list_folder(folder))

    def delete(self, paths: Sequence[str]) -> None:
        self._around("delete", ", ".join(paths[:3]), lambda: self._store.delete(paths))

    def copy(self, source: str, target: str) -> None:
        self._around("copy", target, lambda: self._store.copy(source, target))

    def make_folder(self, path: str) -> None:
        self._around("make_folder", path, lambda: self._store.make_folder(path))

    def delete_folder(self, path: str) -> None:
        self._around("delete_folder", path, lambda: self._store.delete_folder(path))

    def remove_empty_folder(self, path: str) -> bool:
        return self._around("remove_empty_folder", path, lambda: self._store.remove_empty_folder(path))

    def remove_leftovers(
        self, folder: str, *, older_than_ms: int, keep: Collection[str] = (), dry_run: bool = False
    ) -> tuple[ObjectInfo, ...]:
        def remove() -> tuple[ObjectInfo, ...]:
            return self._store.remove_leftovers(folder, older_than_ms=older_than_ms, keep=keep, dry_run=dry_run)

        return self._around("remove_leftovers", folder, remove)

    def folder_exists(self, path: str) -> bool:
        return self._store.folder_exists(path)

    def watch(self, folders: Sequence[str]) -> FolderWatch | None:
        return self._store.watch(folders)

    def is_linked(self, path: str) -> bool:
        return self._store.is_linked(path)

    @property
    def is_remote(self) -> bool:
        return self._store.is_remote

    @property
    def moves_atomically(self) -> bool:
        return self._store.moves_atomically

    def move_folder(self, source: str, target: str) -> None:
        self._around("move_folder", target, lambda: self._store.move_folder(source, target))

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        return self._around("open_output", path, lambda: self._store.open_output(path, deferred=deferred))

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        return self._store.arrow_path(path)
