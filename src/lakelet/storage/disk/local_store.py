"""A store on a local (or POSIX network) file system.

Place in the data path: a warehouse named by a plain path or file://. It owns the order of system calls
that makes an object appear whole and stay after a power cut. It never overwrites a file in place.

    put             write .tmp-<uuid> · fsync it · rename over <name> · fsync the folder
    put_if_absent   write .tmp-<uuid> · fsync it · link(2) to <name>  · fsync the folder · unlink .tmp-<uuid>
    open_output     the same as put, the first write streamed by the caller
    deferred        the same without the fsyncs, in folders made without them; put_if_absent keeps that of its bytes
    sync            fsync the files, their folders and the parents of new folders, all at once, and with them the temporary of
                    the object that is created next
    delete_folder   rename to .deleted-<uuid> beside it · fsync the parent · remove the tree

link(2) fails when the name exists, which makes the create atomic; opening the final name with O_EXCL would
show an empty file first, and rename(2) replaces silently. A deferred write is renamed all the same: while the
machine runs, nobody sees half a file under a name. After a power cut its name may be there without its bytes, which is why
nothing may name it before `sync` has returned; `sync` itself needs no order among its fsyncs, for none of them makes
anything visible. A crash leaves at most hidden .tmp- and .deleted- names, which no listing shows; `remove_leftovers` clears
those of a given age. Deletions follow no symbolic links: see `storage/disk/links`.
"""

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext, suppress

import pyarrow as pa
import pyarrow.fs

from lakelet.errors import (
    AlreadyExistsError,
    CorruptionError,
    InvalidError,
    NotFoundError,
)
from lakelet.ids import RandomIds
from lakelet.storage.disk.leftovers import DELETED, TEMPORARY, find_leftovers, remove_leftover
from lakelet.storage.disk.links import BehindLinkError, deletable, link_above
from lakelet.storage.disk.parallel_sync import run_parallel
from lakelet.storage.disk.system_errors import SystemErrors
from lakelet.storage.disk.system_files import (
    fsync_path,
    link_if_absent,
    make_folders,
    read_file,
    unlink_quietly,
    write_new_file,
)
from lakelet.storage.store import FolderWatch, Listing, ObjectInfo, OutputFile, checked_folder, checked_path

_ids = RandomIds()


class LocalStore:
    """Objects are files below a root folder, which is made at the first write."""

    def __init__(self, root: str | os.PathLike[str], *, durable: bool = True) -> None:
        """`durable=False` leaves out every fsync: for tests, never for data that matters."""
        self._root = os.path.abspath(os.fspath(root))
        self._prefix = self._root.rstrip(os.sep) + os.sep
        self._durable = durable
        # Folders whose own entries this process has fsynced, up to the root.
        self._settled: set[str] = set()
        # Files that were written deferred and not synced since, and whether their bytes are to be fsynced too.
        self._unsynced: dict[str, bool] = {}
        # Fsynced temporaries of objects that are to be created with these bytes.
        self._staged: dict[tuple[str, bytes], str] = {}

    def __getstate__(self) -> dict[str, object]:
        kept = {name: self.__dict__[name] for name in ("_root", "_prefix", "_durable")}
        return {**kept, "_settled": set(), "_unsynced": {}, "_staged": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    @property
    def location(self) -> str:
        return self._root

    def get(self, path: str) -> bytes:
        full = self._full(path)
        with SystemErrors(full):
            return read_file(full)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        full = self._full(path)
        with SystemErrors(full), open(full, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if start < 0 or length < 0 or start + length > size:
                raise CorruptionError(f"{full} has {size} bytes; expected {length} bytes from offset {start}")
            parts = []
            while length > 0:
                part = os.pread(file.fileno(), length, start)
                if not part:
                    raise CorruptionError(f"{full} ended at offset {start}; expected {length} bytes more")
                parts.append(part)
                start += len(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)

    def head(self, path: str) -> ObjectInfo | None:
        full = self._full(path)
        with SystemErrors(full):
            try:
                status = os.stat(full)
            except (FileNotFoundError, NotADirectoryError):
                return None
        if stat.S_ISDIR(status.st_mode):
            return None
        return ObjectInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        full = self._full(path)
        with SystemErrors(full):
            temporary = self._write_temporary(full, data, deferred=deferred, synced=not deferred)
            try:
                self._name(temporary, full, deferred=deferred)
            except BaseException:
                unlink_quietly(temporary)
                raise

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        files = [full for path in paths if (full := self._full(path)) in self._unsynced]
        if self._durable:
            unsettled = {folder for full in files for folder in self._unsettled(os.path.dirname(full))}
            folders = {os.path.dirname(name) for name in (*files, *unsettled)}
            own = [full for full in files if self._unsynced[full]]
            staged = [] if creating is None else [self._stage(*creating)]
            try:
                run_parallel(self._fsync, [*own, *staged, *sorted(folders)])
            except BaseException:
                self._unstage(creating)
                raise
            self._settled.update(unsettled)
        for full in files:
            self._unsynced.pop(full, None)

    def _stage(self, path: str, data: bytes) -> str:
        """Write the temporary of an object that is created next; the caller fsyncs it."""
        full = self._full(path)
        with SystemErrors(full):
            temporary = self._write_temporary(full, data, deferred=False, synced=False)
        self._staged[full, data] = temporary
        return temporary

    def _unstage(self, creating: tuple[str, bytes] | None) -> None:
        if creating is not None and (temporary := self._staged.pop((self._full(creating[0]), creating[1]), None)):
            unlink_quietly(temporary)

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        full = self._full(path)
        with SystemErrors(full):
            temporary = self._staged.pop((full, data), "")
            try:
                made = self._link_staged(temporary, full) if temporary else None
                if made is None:
                    if os.path.lexists(full):
                        return False
                    temporary = self._write_temporary(full, data, deferred=deferred, synced=True)
                    made = link_if_absent(temporary, full)
                if not made:
                    return False
                if deferred:
                    self._unsynced[full] = False
                else:
                    self._sync_folder(os.path.dirname(full))
                return True
            finally:
                if temporary:
                    unlink_quietly(temporary)

    def _link_staged(self, temporary: str, full: str) -> bool | None:
        """Whether the name was free for the temporary; None where that is gone: whoever clears old ones may have taken it."""
        try:
            return link_if_absent(temporary, full)
        except FileNotFoundError:
            return None

    def list(self, folder: str) -> Iterator[ObjectInfo]:
        full = self._full_folder(folder)
        for entry, info, _ in self._entries(full, folder):
            if info is not None:
                yield info
            else:
                yield from self.list(f"{folder}/{entry}" if folder else entry)

    def list_folder(self, folder: str) -> Listing:
        full = self._full_folder(folder)
        files, folders, links = [], [], []
        for entry, info, is_link in self._entries(full, folder):
            path = f"{folder}/{entry}" if folder else entry
            if info is not None:
                files.append(info)
            else:
                folders.append(path)
            if is_link:
                links.append(path)
        return Listing(tuple(files), tuple(sorted(folders)), tuple(links))

    def delete(self, paths: Sequence[str]) -> None:
        fulls, behind = deletable(self._root, [checked_path(path) for path in paths])
        touched = set()
        for full in fulls:
            self._unsynced.pop(full, None)
            with SystemErrors(full), suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                os.unlink(full)
                touched.add(os.path.dirname(full))
        for folder in sorted(touched):
            with SystemErrors(folder), suppress(FileNotFoundError):
                self._sync_folder(folder)
        if behind is not None:
            raise behind

    def copy(self, source: str, target: str) -> None:
        full_source, full = self._full(source), self._full(target)
        with SystemErrors(full_source):
            os.stat(full_source)
        with SystemErrors(full):
            temporary = self._temporary_for(full, deferred=False)
            try:
                shutil.copyfile(full_source, temporary)
                self._publish(temporary, full, deferred=False)
            except BaseException:
                unlink_quietly(temporary)
                raise

    def make_folder(self, path: str) -> None:
        full = self._full_folder(path)
        with SystemErrors(full):
            self._settle(full)

    def delete_folder(self, path: str) -> None:
        full = self._full(path)
        doomed = os.path.join(os.path.dirname(full), DELETED + _ids.uuid())
        with SystemErrors(full):
            link = link_above(self._root, path)
            if link is not None:
                raise BehindLinkError.of([full], link)
            if os.path.islink(full):
                self.delete([path])
                self._forget(full)
                return
            try:
                os.rename(full, doomed)
            except (FileNotFoundError, NotADirectoryError):
                return
            self._forget(full)
            self._sync_folder(os.path.dirname(full))
            shutil.rmtree(doomed)

    def remove_empty_folder(self, path: str) -> bool:
        full = self._full(path)
        with SystemErrors(full):
            if link_above(self._root, path) is not None:
                return False
            try:
                os.rmdir(full)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
            self._forget(full)
            return True

    def folder_exists(self, path: str) -> bool:
        return os.path.isdir(self._full(path))

    def watch(self, folders: Sequence[str]) -> FolderWatch | None:
        from lakelet.storage.disk.folder_watch import watch_folders  # noqa: PLC0415 - few ask, and it loads the C library.

        return watch_folders([self._full_folder(folder) for folder in folders])

    def is_linked(self, path: str) -> bool:
        return os.path.islink(self._full(path)) or link_above(self._root, path) is not None

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def moves_atomically(self) -> bool:
        return True

    def move_folder(self, source: str, target: str) -> None:
        full_source, full = self._full(source), self._full(target)
        if not os.path.isdir(full_source):
            raise NotFoundError(f"{full_source} does not exist; cannot move it to {full}")
        if full.startswith(full_source + os.sep):
            raise InvalidError(f"{full_source} cannot be moved into itself, to {full}")
        if os.path.lexists(full):
            raise AlreadyExistsError(f"{full} exists; cannot move {full_source} there")
        with SystemErrors(full):
            self._settle(os.path.dirname(full))
            try:
                os.rename(full_source, full)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise AlreadyExistsError(f"{full} exists; cannot move {full_source} there") from error
                raise
            self._forget(full_source)
            self._sync_folder(os.path.dirname(full))
            self._sync_folder(os.path.dirname(full_source))

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        full = self._full(path)
        with SystemErrors(full):
            return _LocalOutput(self, self._temporary_for(full, deferred=deferred), full, deferred)

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        return pyarrow.fs.LocalFileSystem(), self._full(path)

    def remove_leftovers(
        self, folder: str, *, older_than_ms: int, keep: Collection[str] = (), dry_run: bool = False
    ) -> tuple[ObjectInfo, ...]:
        full = self._full_folder(folder)
        with SystemErrors(full):
            found = tuple(find_leftovers(full, folder, older_than_ms=older_than_ms, keep=keep))
            for info in found if not dry_run else ():
                remove_leftover(self._full(info.path))
        return found

    def _full(self, path: str) -> str:
        return self._prefix + checked_path(path)

    def _full_folder(self, folder: str) -> str:
        return self._prefix + checked_folder(folder) if folder else self._root

    def _entries(self, full: str, folder: str) -> tuple[tuple[str, ObjectInfo | None, bool], ...]:
        """Visible names with their sizes (None: a folder) and whether they are links, ordered by full path."""
        entries: list[tuple[str, ObjectInfo | None, bool]] = []
        with SystemErrors(full):
            try:
                scanned = os.scandir(full)
            except (FileNotFoundError, NotADirectoryError):
                return ()
            with scanned:
                for entry in scanned:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        entries.append((entry.name, None, entry.is_symlink()))
                        continue
                    # A file can be deleted between the scan and its stat.
                    with suppress(FileNotFoundError):
                        status = entry.stat()
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        info = ObjectInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)
                        entries.append((entry.name, info, entry.is_symlink()))
        # The objects of folder "a" sort by "a/...", which comes after the file "a.b".
        entries.sort(key=lambda one: one[0] + "/" if one[1] is None else one[0])
        return tuple(entries)

    def _write_temporary(self, full: str, data: bytes, *, deferred: bool, synced: bool) -> str:
        """A temporary beside the final name, fsynced if requested; its folder is durable unless deferred."""
        parent = full.rpartition(os.sep)[0]
        is_ready = deferred or parent in self._settled
        temporary = _temporary_in(parent) if is_ready else self._temporary_for(full, deferred=deferred)
        try:
            try:
                write_new_file(temporary, data, synced=self._durable and synced)
            except (FileNotFoundError, NotADirectoryError):
                # The folder is not there, or no longer.
                temporary = self._temporary_for(full, deferred=deferred)
                write_new_file(temporary, data, synced=self._durable and synced)
        except BaseException:
            unlink_quietly(temporary)
            raise
        return temporary

    def _temporary_for(self, full: str, *, deferred: bool) -> str:
        parent = os.path.dirname(full)
        if not os.path.isdir(parent):
            self._forget_missing(parent)
            if deferred:
                self._settle(self._root)
                make_folders(parent)
        if not deferred and parent not in self._settled:
            self._settle(parent)
        return _temporary_in(parent)

    def _publish(self, temporary: str, full: str, *, deferred: bool) -> None:
        """Move a finished temporary over its final name, durably unless deferred."""
        if self._durable and not deferred:
            fsync_path(temporary)
        self._name(temporary, full, deferred=deferred)

    def _name(self, temporary: str, full: str, *, deferred: bool) -> None:
        """Give a written temporary its final name."""
        if deferred:
            # Recorded first, so that no other thread can find the file and take it for a durable one.
            self._unsynced[full] = True
        os.replace(temporary, full)
        if not deferred:
            self._sync_folder(os.path.dirname(full))
            self._unsynced.pop(full, None)

    def _settle(self, folder: str) -> None:
        """Make the folder and its parents, and fsync the entry of each, whichever process made it.

        A folder that another process has just made may not be durable yet; a file acknowledged inside it
        would be lost with it.
        """
        if os.path.isdir(folder) and (folder in self._settled or self._is_above_root(folder)):
            return
        parent = os.path.dirname(folder)
        self._settle(parent)
        with suppress(FileExistsError):
            os.mkdir(folder)
        if not os.path.isdir(folder):
            raise AlreadyExistsError(f"{folder} is a file; expected a folder")
        # Above the root there may be folders that we may pass through and not open.
        with suppress(PermissionError) if self._is_above_root(parent) else nullcontext():
            self._sync_folder(parent)
        self._settled.add(folder)

    def _unsettled(self, folder: str) -> Iterator[str]:
        """The folder and those above it, up to the root, whose entries this process has not fsynced."""
        while folder not in self._settled and not self._is_above_root(folder):
            yield folder
            folder = os.path.dirname(folder)

    def _fsync(self, full: str) -> None:
        with SystemErrors(full):
            try:
                fsync_path(full)
            except PermissionError:
                if not self._is_above_root(full):
                    raise

    def _is_above_root(self, folder: str) -> bool:
        return folder != self._root and not folder.startswith(self._prefix)

    def _forget_missing(self, folder: str) -> None:
        """Forget a folder that is gone, and those above it that are gone with it: made again, their entries are new."""
        while not self._is_above_root(parent := os.path.dirname(folder)) and not os.path.isdir(parent):
            folder = parent
        self._forget(folder)

    def _forget(self, folder: str) -> None:
        # Other threads add folders concurrently, so that the set is copied before it is iterated, and never replaced.
        for known in self._settled.copy():
            if known == folder or known.startswith(folder + os.sep):
                self._settled.discard(known)

    def _sync_folder(self, folder: str) -> None:
        if self._durable:
            fsync_path(folder)


def _temporary_in(folder: str) -> str:
    """A fresh name for a temporary."""
    return f"{folder}{os.sep}{TEMPORARY}{_ids.uuid()}"


class _LocalOutput(pa.OSFile):  # type: ignore[misc]
    """A native pyarrow file on the temporary, so that Parquet is written without passing through Python."""

    def __new__(cls, store: LocalStore, temporary: str, full: str, deferred: bool) -> "_LocalOutput":
        # pyarrow opens the file in the constructor of the C type, which sees these arguments.
        output: _LocalOutput = super().__new__(cls, temporary, "wb")
        return output

    def __init__(self, store: LocalStore, temporary: str, full: str, deferred: bool) -> None:
        self._store = store
        self._temporary = temporary
        self._full = full
        self._deferred = deferred

    def close(self) -> None:
        if self.closed:
            return
        with SystemErrors(self._full):
            try:
                super().close()
                self._store._publish(self._temporary, self._full, deferred=self._deferred)
            except BaseException:
                unlink_quietly(self._temporary)
                raise

    def abort(self) -> None:
        if not self.closed:
            super().close()
            unlink_quietly(self._temporary)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.abort() if kind is not None else self.close()
