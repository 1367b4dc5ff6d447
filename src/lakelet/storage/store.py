"""The object store: the only way Lakelet touches bytes that outlive a process.

Place in the data path: below everything that reads or writes a file (format, commit, scan, read),
above the operating system and the S3 client. A store is a folder ("root") of named byte strings:

    store.put("shop.db/orders/schema/schema-0", b"{...}")
    store.put_if_absent("shop.db/orders/snapshot/snapshot-1", b"{...}")    # True: we made it
    store.put_if_absent("shop.db/orders/snapshot/snapshot-1", b"{...}")    # False: it is there
    [info.path for info in store.list("shop.db/orders")]

This file owns the protocol and the rules for paths. It never does I/O and knows no backend.

Rules every backend keeps; tests/unit/storage/contract.py holds each of them to these:

- A path is relative to the root, '/'-separated, without empty, '.' or '..' segments, backslashes or control
  characters (NUL among them). The root itself is the folder "".
- An object is seen whole or not at all. Everything is durable when its call returns: what `put`, a True `put_if_absent`
  and `OutputFile.close` wrote survives a crash of the machine.
- The one exception is explicit: a `deferred` write is visible at once, by every process, and is durable only after `sync` was
  given its path. A crash of the machine before that may leave the object absent, empty, torn or as it was before, and its
  folder absent. So only files that nothing references yet are written deferred, by a process that syncs them before it
  creates what references them; and hints, which readers check, and which are never synced.
- `put_if_absent` creates atomically: of any number of racing callers one gets True.
- A name that begins with a dot is hidden: it can be read by name but no listing shows it, nor anything
  in a folder of such a name. Temporaries and folder markers carry such names.
- Errors are the kinds of `lakelet.errors`; the message names the location and the path.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow.fs

from lakelet.errors import InvalidError


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One stored object; `path` is relative to the store's root."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Listing:
    """One level of a folder: full paths from the store's root, sorted. `links` are those of both that are symbolic links."""

    files: tuple[ObjectInfo, ...]
    folders: tuple[str, ...]
    links: tuple[str, ...] = ()


@runtime_checkable
class OutputFile(Protocol):
    """A file being written; it appears under its path, whole and (unless deferred) durable, when `close` returns.

    File-like enough to be the sink of `pyarrow.parquet.ParquetWriter`. `close` and `abort` may be called
    again and then do nothing; leaving a `with` block by an exception aborts.
    """

    @property
    def closed(self) -> bool: ...
    def write(self, data: bytes) -> int: ...
    def flush(self) -> None: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def readable(self) -> bool: ...
    def writable(self) -> bool: ...
    def seekable(self) -> bool: ...
    def __enter__(self) -> "OutputFile": ...
    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None: ...


class FolderWatch(Protocol):
    """Whether anything in some folders has changed since a moment. For any number of threads; who asked for it closes it."""

    @property
    def is_lost(self) -> bool:
        """Whether one of the paths may lead elsewhere, so that another watch is needed."""
        ...

    def moment(self) -> int:
        """A name for this moment."""
        ...

    def is_unchanged(self, moment: int) -> bool:
        """Whether no change of the folders, by any process, was finished between that moment and this call."""
        ...

    def close(self) -> None:
        """End the watch; once is enough."""
        ...


@runtime_checkable
class ObjectStore(Protocol):
    """A root folder of objects. Stores are picklable: clients are opened again where they arrive."""

    @property
    def location(self) -> str:
        """The root, for messages and for opening it again: "/abs/dir", "s3://bucket/prefix", "memory://name"."""
        ...

    def get(self, path: str) -> bytes:
        """The whole object; NotFoundError when absent."""
        ...

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Exactly `length` bytes from `start`; CorruptionError when the object ends before that."""
        ...

    def head(self, path: str) -> ObjectInfo | None:
        """Size and time of the object, None when absent. A folder is not an object."""
        ...

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        """Write or replace the object, atomically; durably unless `deferred`."""
        ...

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        """Make deferred writes of this store durable; objects that are so already cost nothing.

        `creating` are the path and the bytes that the next `put_if_absent` is given: a store that waits for a disk writes these
        bytes along with the others, under a hidden name, so that creating the object waits for its name alone.

        After an error nothing may rely on any of these objects, and `sync` is not retried: a system that
        failed to write a page may have dropped it, and then answers a second fsync with success.
        """
        ...

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        """True: created. False: something is there. UnavailableError: the outcome is unknown.

        Of a `deferred` one the name alone waits for `sync`: its bytes are durable first, so that no crash leaves it torn.
        """
        ...

    def list(self, folder: str) -> Iterator[ObjectInfo]:
        """Every object below the folder, at any depth, sorted by path; nothing when the folder is absent."""
        ...

    def list_folder(self, folder: str) -> Listing:
        """The objects and folders directly inside the folder; empty when the folder is absent."""
        ...

    def delete(self, paths: Sequence[str]) -> None:
        """Remove objects; those absent are fine. Folders stay. BehindLinkError, after all others are deleted, for those that a
        symbolic link inside a table leads to: they stay."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Write the source's bytes under the target, replacing it; NotFoundError when the source is absent."""
        ...

    def make_folder(self, path: str) -> None:
        """Make the folder and its parents; fine when it exists."""
        ...

    def delete_folder(self, path: str) -> None:
        """Remove the folder and its contents, hidden names too; fine when absent. A symbolic link is removed, not followed."""
        ...

    def remove_empty_folder(self, path: str) -> bool:
        """Remove the folder if nothing is in it, hidden names neither; whether it was removed.

        Object stores have no folders without objects and always answer False.
        """
        ...

    def remove_leftovers(
        self, folder: str, *, older_than_ms: int, keep: Collection[str] = (), dry_run: bool = False
    ) -> tuple[ObjectInfo, ...]:
        """Remove what interrupted writes left under hidden names before that time (ms since 1970), at any depth, and say what.

        Names in `keep` stay. With `dry_run` nothing is removed.
        """
        ...

    def folder_exists(self, path: str) -> bool:
        """Whether the folder is there; always True where folders are only parts of names. Cheap: no request is made for it."""
        ...

    def watch(self, folders: Sequence[str]) -> FolderWatch | None:
        """A watch of folders that are there; None where changes are not told, and have to be looked for."""
        ...

    def is_linked(self, path: str) -> bool:
        """Whether the path is a symbolic link, or one inside its table leads to it: then what is there is not deleted."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether every call waits for a network, so that several at the same time take little longer than one."""
        ...

    @property
    def moves_atomically(self) -> bool:
        """Whether `move_folder` happens at once; where it does not, a crash can leave both folders."""
        ...

    def move_folder(self, source: str, target: str) -> None:
        """Rename the folder; AlreadyExistsError when the target exists, NotFoundError when the source does not.

        Atomic on a local disk. Object stores copy, then delete: a crash leaves both, the source complete
        until every copy is made.
        """
        ...

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        """Write a large object as a stream; it replaces what is there when closed, durably unless `deferred`."""
        ...

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """A pyarrow file system and the object's path in it, for pyarrow's own readers."""
        ...


# Fast path: most paths are valid, have no hidden segments, and are checked many times in a commit. Others are checked in detail.
_PLAIN_SEGMENT = r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*+"
_is_plain = re.compile(rf"{_PLAIN_SEGMENT}(?:/{_PLAIN_SEGMENT})*+").fullmatch


def checked_path(path: str) -> str:
    """The path itself when it may name an object; InvalidError otherwise."""
    if _is_plain(path):
        return path
    if not path:
        raise InvalidError("a storage path is empty; expected segments separated by '/'")
    return checked_folder(path)


def checked_folder(path: str) -> str:
    """Like `checked_path`, and "" names the root."""
    if not path or _is_plain(path):
        return path
    # Some S3 servers and clients refuse control characters, and some take a backslash for a separator.
    if "\\" in path or any(character < " " or character == "\x7f" for character in path):
        raise InvalidError(f"storage path {path!r} contains a backslash or a control character")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise InvalidError(
                f"storage path {path!r} has the segment {segment!r}; "
                "expected a relative path without empty, '.' or '..' segments"
            )
    return path


def is_hidden(path: str, folder: str) -> bool:
    """Whether a listing of `folder` leaves `path` out: a segment below the folder begins with a dot."""
    below = path[len(folder) + 1 :] if folder else path
    return below.startswith(".") or "/." in below
