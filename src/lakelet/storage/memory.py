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
    """Objects in a dictionary, folders in a set; one lock around both."""

    def __init__(self, name: str | None = None, *, clock: Clock | None = None) -> None:
        self._name = name if name is not None else RandomIds().uuid()
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, int]] = {}
        self._folders: set[str] = set()
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
            self._objects[path] = (bytes(data), self._clock.now_ms())
            self._note_folders(path)

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        for path in paths:
            checked_path(path)

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        checked_path(path)
        with self._lock:
            if path in self._objects:
                return False
            self._objects[path] = (bytes(data), self._clock.now_ms())
            self._note_folders(path)
            return True

    def list(self, folder: str) -> Iterator[ObjectInfo]:
        checked_folder(folder)
        with self._lock:
            found = [
                ObjectInfo(path, len(data), modified_ms)
                for path, (data, modified_ms) in self._objects.items()
                if _is_below(path, folder) and not is_hidden(path, folder)
            ]
        return iter(sorted(found, key=lambda info: info.path))

    def list_folder(self, folder: str) -> Listing:
        checked_folder(folder)
        skip = len(folder) + 1 if folder else 0
        with self._lock:
            files = [
                ObjectInfo(path, len(data), modified_ms)
                for path, (data, modified_ms) in self._objects.items()
                if _is_below(path, folder) and "/" not in path[skip:] and not is_hidden(path, folder)
            ]
            folders = [
                path
                for path in self._folders
                if _is_below(path, folder) and "/" not in path[skip:] and not is_hidden(path, folder)
            ]
        return Listing(tuple(sorted(files, key=lambda info: info.path)), tuple(sorted(folders)))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            checked_path(path)
        with self._lock:
            for path in paths:
                self._objects.pop(path, None)

    def copy(self, source: str, target: str) -> None:
        self.put(target, self.get(source))

    def make_folder(self, path: str) -> None:
        checked_folder(path)
        with self._lock:
            self._note_folders(f"{path}/" if path else "")

    def delete_folder(self, path: str) -> None:
        checked_path(path)
        with self._lock:
            self._objects = {key: kept for key, kept in self._objects.items() if not _is_below(key, path)}
            self._folders = {key for key in self._folders if key != path and not _is_below(key, path)}

    def remove_empty_folder(self, path: str) -> bool:
        checked_path(path)
        with self._lock:
            if path not in self._folders or any(_is_below(key, path) for key in (*self._objects, *self._folders)):
                return False
            self._folders.discard(path)
            return True

    def remove_leftovers(
        self, folder: str, *, older_than_ms: int, keep: Collection[str] = (), dry_run: bool = False
    ) -> tuple[ObjectInfo, ...]:
        checked_folder(folder)
        return ()

    def folder_exists(self, path: str) -> bool:
        return checked_path(path) in self._folders

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
            if _is_below(target, source):
                raise InvalidError(f"{self.location}/{source} cannot be moved into itself, to {target}")

            def renamed(path: str) -> str:
                return target + path[len(source) :] if path == source or _is_below(path, source) else path

            self._objects = {renamed(path): kept for path, kept in self._objects.items()}
            self._folders = {renamed(path) for path in self._folders}
            self._note_folders(target)

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        return _MemoryOutput(self, checked_path(path), deferred)

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        return arrow_filesystem(self), checked_path(path)

    def _note_folders(self, path: str) -> None:
        end = path.rfind("/")
        while end > 0 and path[:end] not in self._folders:
            self._folders.add(path[:end])
            end = path.rfind("/", 0, end)

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


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(folder + "/")


_named: dict[str, MemoryStore] = {}
_named_lock = threading.Lock()
_live: "weakref.WeakValueDictionary[str, MemoryStore]" = weakref.WeakValueDictionary()


def _reopen(name: str) -> MemoryStore:
    store = _live.get(name)
    if store is None:
        raise InvalidError(f"memory://{name} lives in another process; use a path or s3:// to share a warehouse")
    return store
