"""A store in an S3 bucket: AWS, MinIO, SeaweedFS and whatever else honours conditional PUT.

Place in the data path: a warehouse named `s3://bucket/prefix`. It owns the S3 client (obstore), the options
`s3.*` and the translation of S3's answers into our errors. Reads of data files go through pyarrow's own S3
client (`arrow_path`), which fetches in parallel without Python.

    put_if_absent   one PUT with `If-None-Match: *`, sent once: a second PUT after a lost answer would find
                    the object of the first and report it as somebody else's
    open_output     one PUT below 8 MiB, a multipart upload above; a crash leaves invisible parts, which a
                    lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes
    make_folder     a small object `.folder` inside, for buckets know only objects
    move_folder     copies every object, then deletes the source; not atomic

It never trusts that a store honours the condition: `probe.py` races it first.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

import obstore
import obstore.exceptions as s3_errors
import pyarrow.fs
from obstore.store import S3Store as S3Client

from lakelet.errors import (
    AlreadyExistsError,
    CorruptionError,
    InternalError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from lakelet.storage.s3.s3_options import S3Options
from lakelet.storage.sequential_output import SequentialOutput
from lakelet.storage.store import Listing, ObjectInfo, OutputFile, checked_folder, checked_path, is_hidden

_FOLDER_MARKER = ".folder"
_PART_BYTES = 8 * 1024 * 1024
_PARTS_IN_FLIGHT = 4
_DELETES_PER_CALL = 1000
_STATUS = re.compile(r"status code: (\d{3})")


class S3Store:
    """Objects below `s3://bucket/prefix`."""

    def __init__(self, bucket: str, prefix: str, options: S3Options) -> None:
        if not bucket:
            raise InvalidError("an S3 location has no bucket; expected s3://bucket/prefix")
        self._bucket = bucket
        self._prefix = checked_folder(prefix)
        self._options = options
        self._open_clients: dict[str, S3Client] = {}
        self._arrow: pyarrow.fs.FileSystem | None = None

    def __reduce__(self) -> tuple[type["S3Store"], tuple[str, str, S3Options]]:
        return S3Store, (self._bucket, self._prefix, self._options)

    @property
    def location(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}" if self._prefix else f"s3://{self._bucket}"

    @property
    def bucket_identity(self) -> tuple[str, str]:
        """Endpoint and bucket: what a probe of conditional PUT holds for."""
        return self._options.endpoint or "aws", self._bucket

    def get(self, path: str) -> bytes:
        key = self._key(path)
        with self._errors(path):
            return obstore.get(self._client, key).bytes().to_bytes()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        key = self._key(path)
        if start < 0 or length < 0:
            raise CorruptionError(f"{self._name(path)}: asked for {length} bytes from offset {start}")
        if length == 0:
            return self._empty_range(path, start)
        with self._errors(path):
            try:
                data = obstore.get_range(self._client, key, start=start, length=length).to_bytes()
            except s3_errors.GenericError as error:
                if _status(error) != 416:
                    raise
                raise CorruptionError(
                    f"{self._name(path)} ends before offset {start}; expected {length} bytes there"
                ) from error
        if len(data) != length:
            raise CorruptionError(
                f"{self._name(path)} has {start + len(data)} bytes; expected {length} bytes from offset {start}"
            )
        return data

    def head(self, path: str) -> ObjectInfo | None:
        key = self._key(path)
        with self._errors(path):
            try:
                found = obstore.head(self._client, key)
            except FileNotFoundError:
                return None
        return self._info(found)

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        key = self._key(path)
        with self._errors(path):
            obstore.put(
                self._client, key, data, use_multipart=len(data) > _PART_BYTES, max_concurrency=_PARTS_IN_FLIGHT
            )

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        """Nothing is left to do: what S3 has answered is durable, deferred or not."""

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        key = self._key(path)
        with self._errors(path):
            try:
                obstore.put(self._client_without_retries, key, data, mode="create")
            except s3_errors.AlreadyExistsError as error:
                # 409: a concurrent request was in flight. The object may or may not exist afterwards.
                if _status(error) == 409 and self.head(path) is None:
                    raise UnavailableError(
                        f"{self._name(path)}: the store answered 409 to a conditional PUT and no object is there"
                    ) from error
                return False
        return True

    def list(self, folder: str) -> Iterator[ObjectInfo]:
        return iter([info for info in self._objects(folder) if not is_hidden(info.path, folder)])

    def list_folder(self, folder: str) -> Listing:
        prefix = self._folder_key(folder)
        with self._errors(folder):
            result = obstore.list_with_delimiter(self._client, prefix)
        found = (info for info in map(self._info, result["objects"]) if info.path != folder)
        files = [info for info in found if not is_hidden(info.path, folder)]
        folders = [path for path in map(self._path, result["common_prefixes"]) if not is_hidden(path, folder)]
        return Listing(tuple(sorted(files, key=lambda info: info.path)), tuple(sorted(folders)))

    def delete(self, paths: Sequence[str]) -> None:
        keys = [self._key(path) for path in paths]
        for start in range(0, len(keys), _DELETES_PER_CALL):
            with self._errors(paths[start]), suppress(FileNotFoundError):
                obstore.delete(self._client, keys[start : start + _DELETES_PER_CALL])

    def copy(self, source: str, target: str) -> None:
        source_key, target_key = self._key(source), self._key(target)
        with self._errors(source):
            obstore.copy(self._client, source_key, target_key)

    def make_folder(self, path: str) -> None:
        if checked_folder(path):
            self.put(f"{path}/{_FOLDER_MARKER}", b"folder")

    def delete_folder(self, path: str) -> None:
        checked_path(path)
        deleted = [info.path for info in self._objects(path)]
        self.delete(deleted)
        self._sweep_empty_folders(path, deleted)

    def remove_empty_folder(self, path: str) -> bool:
        checked_path(path)
        return False

    def remove_leftovers(
        self, folder: str, *, older_than_ms: int, keep: Collection[str] = (), dry_run: bool = False
    ) -> tuple[ObjectInfo, ...]:
        # An upload that was not finished is no object; buckets drop its parts by a rule of their own.
        checked_folder(folder)
        return ()

    def folder_exists(self, path: str) -> bool:
        checked_path(path)
        return True

    def watch(self, folders: Sequence[str]) -> None:
        return None

    def is_linked(self, path: str) -> bool:
        checked_path(path)
        return False

    @property
    def is_remote(self) -> bool:
        return True

    @property
    def moves_atomically(self) -> bool:
        return False

    def move_folder(self, source: str, target: str) -> None:
        checked_path(source)
        checked_path(target)
        if target.startswith(source + "/"):
            raise InvalidError(f"{self._name(source)} cannot be moved into itself, to {target}")
        moved = [info.path for info in self._objects(source)]
        if not moved:
            raise NotFoundError(f"{self._name(source)} does not exist; cannot move it to {target}")
        if self.head(target) is not None or self._objects(target):
            raise AlreadyExistsError(f"{self._name(target)} exists; cannot move {source} there")
        copied: list[str] = []
        try:
            for path in moved:
                copied.append(target + path[len(source) :])
                self.copy(path, copied[-1])
        except Exception:
            # The source is complete: the partial target is removed, so that the move can be retried.
            with suppress(UnavailableError, PermissionDeniedError):
                self.delete(copied)
            raise
        self.delete(moved)
        self._sweep_empty_folders(source, moved)

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        return _S3Output(self, path, self._key(path))

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        if self._arrow is None:
            self._arrow = self._options.arrow_filesystem()
        return self._arrow, f"{self._bucket}/{self._key(path)}"

    @property
    def _client(self) -> S3Client:
        return self._opened("retrying", retries=3)

    @property
    def _client_without_retries(self) -> S3Client:
        return self._opened("once", retries=0)

    def _opened(self, kind: str, *, retries: int) -> S3Client:
        client = self._open_clients.get(kind)
        if client is None:
            client = S3Client(
                self._bucket,
                retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=60)},
                client_options={"allow_http": self._options.allow_http, "timeout": timedelta(seconds=120)},
                config=self._options.client_config(self._bucket),
            )
            self._open_clients[kind] = client
        return client

    def _objects(self, folder: str) -> tuple[ObjectInfo, ...]:
        """Every object below the folder, hidden names too, by path: not every server lists in order.

        Other tools mark folders by empty objects named "folder/", which the client shows without the slash. A
        HEAD of that name tells them from empty objects, of which Lakelet writes none.
        """
        prefix = self._folder_key(folder)
        found: dict[str, ObjectInfo] = {}
        with self._errors(folder):
            for chunk in obstore.list(self._client, prefix, chunk_size=1000):
                found.update((info.path, info) for info in map(self._info, chunk) if info.path != folder)
        kept = (info for info in found.values() if info.size > 0 or self.head(info.path) is not None)
        return tuple(sorted(kept, key=lambda info: info.path))

    def _sweep_empty_folders(self, folder: str, deleted: Sequence[str]) -> None:
        """Remove a deleted folder that something besides its objects keeps visible.

        That is a marker "folder/" of another tool, or a server with real folders (SeaweedFS), which removes
        an empty one when its marker is written and deleted. Only pyarrow's client can name such markers.
        """
        if folder not in self.list_folder(folder.rpartition("/")[0]).folders:
            return
        folders = {folder}
        for path in deleted:
            inside = path.rpartition("/")[0]
            while inside not in folders:
                folders.add(inside)
                inside = inside.rpartition("/")[0]
        # A folder that stays is empty and harmless.
        with suppress(OSError):
            for empty in sorted(folders, reverse=True):
                filesystem, arrow_path = self.arrow_path(empty)
                filesystem.create_dir(arrow_path, recursive=False)
                filesystem.delete_dir(arrow_path)

    def _empty_range(self, path: str, start: int) -> bytes:
        info = self.head(path)
        if info is None:
            raise NotFoundError(f"{self._name(path)} does not exist")
        if start > info.size:
            raise CorruptionError(f"{self._name(path)} has {info.size} bytes; expected an offset of {start}")
        return b""

    def _key(self, path: str) -> str:
        checked_path(path)
        return f"{self._prefix}/{path}" if self._prefix else path

    def _folder_key(self, folder: str) -> str | None:
        return self._key(folder) if folder else self._prefix or None

    def _path(self, key: str) -> str:
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def _info(self, found: "obstore.ObjectMeta") -> ObjectInfo:
        return ObjectInfo(self._path(found["path"]), found["size"], int(found["last_modified"].timestamp() * 1000))

    def _name(self, path: str) -> str:
        return f"{self.location}/{path}" if path else self.location

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """Raise the client's errors as ours, with the path."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise NotFoundError(f"{self._name(path)}: the bucket {self._bucket} does not exist") from error
            raise NotFoundError(f"{self._name(path)} does not exist") from error
        except (s3_errors.PermissionDeniedError, s3_errors.UnauthenticatedError) as error:
            raise PermissionDeniedError(f"{self._name(path)}: {_summary(error)}") from error
        except s3_errors.BaseError as error:
            # Listings report every status as a generic error.
            status = _status(error)
            if status in (401, 403):
                raise PermissionDeniedError(f"{self._name(path)}: {_summary(error)}") from error
            if status == 404:
                raise NotFoundError(f"{self._name(path)}: {_summary(error)}") from error
            raise UnavailableError(f"{self._name(path)}: {_summary(error)}") from error
        except (ValueError, OSError) as error:
            raise InvalidError(f"{self._name(path)}: {_summary(error)}") from error


class _S3Output(SequentialOutput):
    """A multipart upload fed by `write`; the object appears when `close` completes it."""

    def __init__(self, store: S3Store, path: str, key: str) -> None:
        self._store = store
        self._path = path
        self._position = 0
        with store._errors(path):
            self._writer: obstore.WritableFile | None = obstore.open_writer(
                store._client, key, buffer_size=_PART_BYTES, max_concurrency=_PARTS_IN_FLIGHT
            )

    @property
    def closed(self) -> bool:
        return self._writer is None

    def write(self, data: bytes) -> int:
        if self._writer is None:
            raise InternalError(f"{self._store.location}/{self._path}: write to a closed file")
        view = memoryview(data).cast("B")
        with self._store._errors(self._path):
            self._writer.write(view)
        self._position += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Nothing: parts are sent when they are full, and the last at `close`."""

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with self._store._errors(self._path):
                writer.close()

    def abort(self) -> None:
        # A writer that is dropped before `close` never completes its upload.
        self._writer = None


def _status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found.group(1)) if found else None


def _summary(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()
