"""A store in the memory of one process: for tests, scratch work and `memory://NAME` warehouses.

Place in the data path: the fastest backend, with the same contract as the durable ones. It owns the
process-wide table of named stores, so that opening `memory://NAME` twice gives the same objects. It
never outlives the process; a pickled store opens again only where its objects live.
"""

import io
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow.fs

from lakelet.clock import Clock, SystemClock
from lakelet.errors import AlreadyExistsError, CorruptionError, InvalidError, NotFoundError
from lakelet.ids import RandomIds
from lakelet.storage.arrow_files import arrow_filesystem
from lakelet.storage.store import Listing, ObjectInfo, OutputFile, checked_folder, checked_path, is_hidden


class MemoryStore:
    """Objects by path, and per folder the paths right below it, so that a listing costs what it lists; one lock around all."""

    def __init__(self, name: str | None = None, *, clock: Clock | None = None) -> None:
        self._name = name if name is not None else RandomIds().uuid()
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, int]] = {}
        self._files: dict[str, set[str]] = {"": set()}
        self._folders: dict[str, set[str]] = {"": set()}
        _live[self._name] = self

    @staticmethod
    def named(name: str) -> "MemoryStore":
        """The process's store of that name, made at first use and kept until the process ends."""
        with _named_lock:
            if name not in _named:
                _named[name] = MemoryStore(name)
            return _named[name]

    def __reduce__(self) -> tuple[Callable[[str], "MemoryStore"], tuple[str]]:
        return _reopen, (self._name,)

    @property
    def location(self) -> str:
        return f"memory://{self._name}"

    def get(self, path: str) -> bytes:
        checked_path(path)
        with self._lock:
            found = self._objects.get(path)
        if found is None:
            raise self._absent(path)
        return found[0]

    def get_range(self, path: str, start: int, length: int) -> bytes:
        data = self.get(path)
        if start < 0 or length < 0 or start + length > len(data):
            raise CorruptionError(
                f"{self.location}/{path} has {len(data)} bytes; expected {length} bytes from offset {start}"
            )
        return data[start : start + length]

    def head(self, path: str) -> ObjectInfo | None:
        checked_path(path)
        with self._lock:
            found = self._objects.get(path)
        return None if found is None else ObjectInfo(path, len(found[0]), found[1])

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        checked_path(path)
        with self._lock:
            self._add(path, (bytes(data), self._clock.now_ms()))

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        for path in paths:
            checked_path(path)

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        checked_path(path)
        with self._lock:
            if path in self._objects:
                return False
            self._add(path, (bytes(data), self._clock.now_ms()))
            return True

    def list(self, folder: str) -> Iterator[ObjectInfo]:
        checked_folder(folder)
        with self._lock:
            below = [path for one in self._tree(folder) for path in self._files[one] if not is_hidden(path, folder)]
            return iter([self._info(path) for path in sorted(below)])

    def list_folder(self, folder: str) -> Listing:
        checked_folder(folder)
        with self._lock:
            files = sorted(path for path in self._files.get(folder, ()) if not is_hidden(path, folder))
            folders = sorted(path for path in self._folders.get(folder, ()) if not is_hidden(path, folder))
            return Listing(tuple(self._info(path) for path in files), tuple(folders))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            checked_path(path)
        with self._lock:
            for path in paths:
                if self._objects.pop(path, None) is not None:
                    self._files[_parent(path)].discard(path)

    def copy(self, source: str, target: str) -> None:
        self.put(target, self.get(source))

    def make_folder(self, path: str) -> None:
        checked_folder(path)
        with self._lock:
            self._add_folder(path)

    def delete_folder(self, path: str) -> None:
        checked_path(path)
        with self._lock:
            self._take(path)

    def remove_empty_folder(self, path: str) -> bool:
        checked_path(path)
        with self._lock:
            if path not in self._folders or self._files[path] or self._folders[path]:
                return False
            self._take(path)
            return True

    def remove_leftovers(
        self, folder: str, *, older_than_ms: int, keep: Collection[str] = (), dry_run: bool = False
    ) -> tuple[ObjectInfo, ...]:
        checked_folder(folder)
        return ()

    def folder_exists(self, path: str) -> bool:
        return checked_path(path) in self._folders

    def watch(self, folders: Sequence[str]) -> None:
        return None

    def is_linked(self, path: str) -> bool:
        checked_path(path)
        return False

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def moves_atomically(self) -> bool:
        return True

    def move_folder(self, source: str, target: str) -> None:
        checked_path(source)
        checked_path(target)
        with self._lock:
            if source not in self._folders:
                raise self._absent(source)
            if target in self._folders or target in self._objects:
                raise AlreadyExistsError(f"{self.location}/{target} exists; cannot move {source} there")
            if target.startswith(f"{source}/"):
                raise InvalidError(f"{self.location}/{source} cannot be moved into itself, to {target}")
            folders, objects = self._take(source)
            for path in folders:
                self._add_folder(target + path[len(source) :])
            for path, kept in objects.items():
                self._add(target + path[len(source) :], kept)

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        return _MemoryOutput(self, checked_path(path), deferred)

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        return arrow_filesystem(self), checked_path(path)

    def _info(self, path: str) -> ObjectInfo:
        data, modified_ms = self._objects[path]
        return ObjectInfo(path, len(data), modified_ms)

    def _add(self, path: str, kept: tuple[bytes, int]) -> None:
        self._objects[path] = kept
        folder = _parent(path)
        self._add_folder(folder)
        self._files[folder].add(path)

    def _add_folder(self, path: str) -> None:
        """Adds a folder and those that it is in, as far as there are none."""
        if path not in self._folders:
            parent = _parent(path)
            self._add_folder(parent)
            self._folders[parent].add(path)
            self._files[path], self._folders[path] = set(), set()

    def _tree(self, folder: str) -> tuple[str, ...]:
        """The folder and all below it; none where it does not exist."""
        found = [folder] if folder in self._folders else []
        for one in found:
            found.extend(self._folders[one])
        return tuple(found)

    def _take(self, folder: str) -> tuple[tuple[str, ...], dict[str, tuple[bytes, int]]]:
        """Removes a folder with everything below it, which is returned."""
        folders = self._tree(folder)
        objects = {path: self._objects.pop(path) for one in folders for path in self._files[one]}
        for one in folders:
            del self._files[one], self._folders[one]
        if folders:
            self._folders[_parent(folder)].discard(folder)
        return folders, objects

    def _absent(self, path: str) -> NotFoundError:
        return NotFoundError(f"{self.location}/{path} does not exist")


class _MemoryOutput(io.BytesIO):
    """Collects the bytes; `close` stores them."""

    def __init__(self, store: MemoryStore, path: str, deferred: bool) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._deferred = deferred

    def close(self) -> None:
        if not self.closed:
            self._store.put(self._path, self.getvalue(), deferred=self._deferred)
            super().close()

    def abort(self) -> None:
        super().close()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.abort() if kind is not None else self.close()

    def __del__(self) -> None:
        # io.IOBase closes a file when it is garbage-collected, which here would publish an unfinished one.
        self.abort()


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


_named: dict[str, MemoryStore] = {}
_named_lock = threading.Lock()
_live: "weakref.WeakValueDictionary[str, MemoryStore]" = weakref.WeakValueDictionary()


def _reopen(name: str) -> MemoryStore:
    store = _live.get(name)
    if store is None:
        raise InvalidError(f"memory://{name} lives in another process; use a path or s3:// to share a warehouse")
    return store
