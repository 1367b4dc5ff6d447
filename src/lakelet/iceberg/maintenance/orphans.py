"""Remove orphan files: those below a table's location that its metadata does not reference, left by crashed jobs and conflicts.

Candidates are listed before the metadata is read: a file that a commit names in between is known by then. Only files older than
an age of days are candidates, for a job that still runs has files that no snapshot has yet.

Never removed: anything that a snapshot, a metadata file that the table still lists, or its statistics reference; version hints;
hidden files; symbolic links and their targets; anything of another table whose folder is below this one, or is this one: a
table that is renamed keeps its folder, which the next table of that name gets too. Paths are compared without their scheme:
file:/x, file:///x and /x are one file, and so are s3://b/x, s3a://b/x and s3n://b/x.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from urllib.parse import urlparse
from uuid import UUID

import pyarrow.fs as pafs
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.metadata import TableMetadata

from lakelet.clock import Clock, SystemClock
from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.maintenance.expiry import check_files_may_go
from lakelet.iceberg.maintenance.reachable import files_of, manifests_of, metadata_files
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.trust.lake_files import LakeFileIO

DEFAULT_AGE = timedelta(days=3)
_BY_PATH_ALONE = ("file", "hdfs", "viewfs")
_METADATA = re.compile(r"^/metadata/[^/]*\.metadata\.json$")
_ROOT_MARKS = re.compile(
    r"^(?P<root>.*)/metadata/(?:[^/]*\.metadata\.json|[^/]*\.gz\.metadata\.json|version-hint\.text)$"
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that was found, by its normalised path."""

    path: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class RemovedOrphans:
    """The removed files, or with `dry_run` those that would be."""

    paths: tuple[str, ...]
    bytes: int


def remove_orphan_files(
    table: IcebergTable, *, older_than_ms: int | None = None, dry_run: bool = False, clock: Clock | None = None
) -> RemovedOrphans:
    """Removes orphan files last modified before a given time, by default three days ago."""
    clock = clock or SystemClock()
    now_ms = clock.now_ms()
    cutoff = older_than_ms if older_than_ms is not None else now_ms - DEFAULT_AGE // timedelta(milliseconds=1)
    if cutoff > now_ms:
        raise InvalidError(
            f"older_than: {cutoff} is in the future, and running jobs have files that no snapshot has yet"
        )
    with lakelet_errors(f"table {table.full_name}"):
        now = table.reloaded()
        check_files_may_go(now)
        files, root = _file_system(now)
        listed = files.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
        linked = _links(files, root)
        found = {
            one.path: Listed(normalised(one.path), one.mtime)
            for one in listed
            if one.type == pafs.FileType.File and not linked(one.path)
        }
        sizes = {one.path: one.size or 0 for one in listed}
        now = now.reloaded()
        known = _known(now.source.from_store(), now.library.io, now.metadata, now.library.metadata_location)
        known |= _known_to_others(now, [path.removeprefix(root) for path in found], known)
        before = datetime.fromtimestamp(cutoff / 1000, UTC)
        gone = orphans(normalised(root), list(found.values()), known, before)
        paths = [path for path, one in found.items() if one.path in gone]
        if not dry_run:
            for path in paths:
                # Concurrent removals, or a job that cleans up after itself, find the same files.
                with suppress(FileNotFoundError):
                    files.delete_file(path)
    return RemovedOrphans(tuple(sorted(paths)), sum(sizes[path] for path in paths))


def orphans(root: str, found: list[Listed], known: set[str], before: datetime) -> set[str]:
    """The files that nothing references. All paths are normalised."""
    others = _other_tables(root, found)
    return {
        one.path
        for one in found
        if one.path not in known
        and one.time is not None
        and one.time < before
        and not one.path.endswith("/version-hint.text")
        and not _hidden(one.path.removeprefix(root).strip("/"))
        and not any(one.path.startswith(f"{other}/") for other in others)
    }


def normalised(location: str) -> str:
    """The normal form of a path, by which files are compared."""
    parts = urlparse(location)
    if not parts.scheme or len(parts.scheme) == 1:
        path = location
    elif parts.scheme.lower() in _BY_PATH_ALONE:
        path = location.split(":", 1)[1]
        if path.startswith("//"):
            path = "/" + path[2:].partition("/")[2]
    else:
        path = location.split("://", 1)[-1]
    return re.sub(r"(?<!^)//+", "/", path).rstrip("/")


def _other_tables(root: str, found: list[Listed]) -> set[str]:
    """The folders of tables below this one: each has metadata files of its own."""
    roots = {match["root"] for one in found if (match := _ROOT_MARKS.match(one.path))}
    return {one for one in roots if one != root and one.startswith(f"{root}/")}


def _hidden(relative: str) -> bool:
    """Whether a file or a folder above it is hidden. A partition column may begin with an underscore."""
    return any(part.startswith((".", "_")) and "=" not in part for part in relative.split("/"))


def _file_system(table: IcebergTable) -> tuple[pafs.FileSystem, str]:
    io = table.library.io
    properties = io.properties
    if isinstance(io, LakeFileIO) and not io.may_remove(f"{table.location}/any"):
        raise InvalidError(
            f"table {table.full_name} is at {table.location}, outside of the lake's folder: no files are removed there"
        )
    opened = io if isinstance(io, PyArrowFileIO) else PyArrowFileIO(properties)
    scheme, netloc, path = PyArrowFileIO.parse_location(table.metadata.location, properties)
    return opened.fs_by_scheme(scheme, netloc), path.rstrip("/")


def _links(files: pafs.FileSystem, root: str) -> Callable[[str], bool]:
    """A predicate for paths below the root that are symbolic links, or behind one: their targets may belong to anyone."""
    if not isinstance(files, pafs.LocalFileSystem):
        return lambda _: False

    @cache
    def is_linked(path: str) -> bool:
        return len(path) > len(root) and (os.path.islink(path) or is_linked(path.rpartition("/")[0]))

    return is_linked


def _known_to_others(table: IcebergTable, found: list[str], known: set[str]) -> set[str]:
    """The files referenced by other tables with metadata in the same folder. `found` are paths below it."""
    io, root = table.library.io, table.metadata.location.rstrip("/")
    paths: set[str] = set()
    newest: dict[UUID, tuple[TableMetadata, str]] = {}
    for location in (f"{root}{path}" for path in found if _METADATA.match(path)):
        if normalised(location) in known:
            continue
        metadata = _metadata_at(table.source.from_store(), io, location)
        if metadata is None or metadata.table_uuid == table.metadata.table_uuid:
            continue
        paths.add(normalised(location))
        last = newest.get(metadata.table_uuid)
        if last is None or last[0].last_updated_ms <= metadata.last_updated_ms:
            newest[metadata.table_uuid] = (metadata, location)
    for metadata, location in newest.values():
        # Where its manifests are missing, that table is dropped.
        with suppress(FileNotFoundError):
            paths |= _known(table.source.from_store(), io, metadata, location)
    return paths


def _metadata_at(source: IcebergMetadataSource, io: FileIO, location: str) -> TableMetadata | None:
    """A table's metadata; None for a truncated file, or one removed meanwhile. InvalidError for an unknown format."""
    try:
        return source.metadata(io, location)
    except FileNotFoundError:
        return None
    except (ValueError, ValidationError) as error:
        try:
            with io.new_input(location).open() as stream:
                json.loads(stream.read())
        except (ValueError, FileNotFoundError):
            return None
        raise InvalidError(f"{location} is of a table that cannot be understood, and so is what it leads to") from error


def _known(source: IcebergMetadataSource, io: FileIO, metadata: TableMetadata, location: str) -> set[str]:
    manifests = manifests_of(source, io, metadata.snapshots)
    paths = metadata_files(metadata, location)
    paths.update(one.manifest_list for one in metadata.snapshots)
    paths.update(manifests)
    paths.update(files_of(source, io, manifests.values()))
    return {normalised(path) for path in paths}
