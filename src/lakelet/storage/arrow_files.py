"""A read-only pyarrow file system over an object store without a C++ file system.

Place in the data path: `arrow_path` of the memory store and of every decorator that must see each read.
It owns the translation of pyarrow's read calls into `head`, `get_range` and the listings of a store. It
never writes: data files are written through `open_output`.
"""

import io
from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa
import pyarrow.fs

from lakelet.storage.store import ObjectStore


def arrow_filesystem(store: ObjectStore) -> pyarrow.fs.FileSystem:
    """A read-only pyarrow file system whose every read is a call of `store`."""
    return pyarrow.fs.PyFileSystem(_StoreHandler(store))


class _RangeFile(io.RawIOBase):
    """A seekable file over `head` and `get_range`."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__()
        info = store.head(path)
        if info is None:
            raise FileNotFoundError(f"{store.location}/{path} does not exist")
        self._store = store
        self._path = path
        self._size = info.size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        remaining = max(0, self._size - self._position)
        length = remaining if size is None or size < 0 else min(size, remaining)
        if length == 0:
            return b""
        data = self._store.get_range(self._path, self._position, length)
        self._position += length
        return data


class _StoreHandler(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]
    """Answers pyarrow's file system calls from a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _StoreHandler) and other._store is self._store

    def __hash__(self) -> int:
        return id(self._store)

    def get_type_name(self) -> str:
        return "lakelet"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pyarrow.fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pyarrow.fs.FileSelector) -> list[pyarrow.fs.FileInfo]:
        if selector.recursive:
            return [_file_info(info.path, info.size) for info in self._store.list(selector.base_dir)]
        listing = self._store.list_folder(selector.base_dir)
        folders = [pyarrow.fs.FileInfo(path, pyarrow.fs.FileType.Directory) for path in listing.folders]
        return folders + [_file_info(info.path, info.size) for info in listing.files]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_RangeFile(self._store, path), mode="r")

    def create_dir(self, path: str, recursive: bool) -> NoReturn:
        raise _read_only(path)

    def delete_dir(self, path: str) -> NoReturn:
        raise _read_only(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> NoReturn:
        raise _read_only(path)

    def delete_root_dir_contents(self) -> NoReturn:
        raise _read_only("")

    def delete_file(self, path: str) -> NoReturn:
        raise _read_only(path)

    def move(self, src: str, dest: str) -> NoReturn:
        raise _read_only(src)

    def copy_file(self, src: str, dest: str) -> NoReturn:
        raise _read_only(src)

    def open_output_stream(self, path: str, metadata: object) -> NoReturn:
        raise _read_only(path)

    def open_append_stream(self, path: str, metadata: object) -> NoReturn:
        raise _read_only(path)

    def _info(self, path: str) -> pyarrow.fs.FileInfo:
        info = self._store.head(path)
        if info is None:
            return pyarrow.fs.FileInfo(path, pyarrow.fs.FileType.NotFound)
        return _file_info(path, info.size)


def _file_info(path: str, size: int) -> pyarrow.fs.FileInfo:
    return pyarrow.fs.FileInfo(path, pyarrow.fs.FileType.File, size=size)


def _read_only(path: str) -> NotImplementedError:
    return NotImplementedError(f"{path}: Lakelet's pyarrow file system only reads; write through the store")
