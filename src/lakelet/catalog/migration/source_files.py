"""The Parquet files of a folder to be migrated, and the partitions that their folders name.

    events/part-0.parquet                      no partition
    events/dt=2026-01-01/h=7/part-0.parquet    dt, h in this order; values are unescaped, text as it is

Names that begin with a dot or an underscore are not data files (`_SUCCESS`, `_temporary`), as in Hive and Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from pyarrow.fs import FileType

from lakelet.errors import InvalidError, NotFoundError
from lakelet.storage.open import open_store
from lakelet.storage.store import ObjectStore

_SHOWN = 10
_NULLS = ("__HIVE_DEFAULT_PARTITION__", "__DEFAULT_PARTITION__")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file below the folder: its path there, its size, and the partition its folders name; None is NULL."""

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The partition columns, outermost first."""
        return tuple(name for name, _ in self.partition)


def open_folder(folder: str, connection: Mapping[str, str]) -> ObjectStore:
    """The folder as a store; NotFoundError where there is none."""
    store = open_store(folder, connection)
    filesystem, below = store.arrow_path("x")
    if filesystem.get_file_info(below.rpartition("/")[0]).type is not FileType.Directory:
        raise NotFoundError(f"{store.location} is no folder")
    return store


def source_files(store: ObjectStore) -> tuple[SourceFile, ...]:
    """The files of a folder; all must have the same partition columns."""
    found = []
    for info in store.list(""):
        parts = info.path.split("/")
        if not any(part.startswith(("_", ".")) for part in parts):
            found.append(SourceFile(info.path, info.size, tuple(_partition(store, info.path, parts[:-1]))))
    keys = {file.keys: file.path for file in found}
    if len(keys) > 1:
        shown = "; ".join(f"{path} has {', '.join(names) or 'none'}" for names, path in list(keys.items())[:_SHOWN])
        raise InvalidError(f"{store.location}: files differ in their partition columns: {shown}")
    return tuple(found)


def _partition(store: ObjectStore, path: str, folders: list[str]) -> list[tuple[str, str | None]]:
    partition: list[tuple[str, str | None]] = []
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not equals or not name:
            raise InvalidError(
                f"{store.location}/{path}: the folder {folder!r} names no partition; expected files right in the folder, "
                "or below folders like dt=2026-01-01"
            )
        partition.append((unquote(name), None if value in _NULLS else unquote(value)))
    return partition
