"""Adopt a file of another folder as a data file: under a new name, with its entry for the manifest.

On a disk the file gets a second name (a hard link); an object store copies it, without its bytes passing through here. The
old name is removed only after the commit, so that nothing is lost wherever a migration stops.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from lakelet.catalog.migration.parquet_footers import Footer, Range
from lakelet.errors import CorruptionError, InvalidError, NotFoundError, PermissionDeniedError, UnavailableError
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.schema import TableSchema
from lakelet.model.types import BINARIES, Atomic
from lakelet.storage.home import TableHome
from lakelet.storage.store import ObjectStore

BUCKET = 0
_REFUSED = (errno.EPERM, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Adoption:
    """One file being adopted: its path below the source, its new name and its partition."""

    path: str
    size: int
    name: str
    partition: bytes
    values: Mapping[str, object]


def adopted_path(home: TableHome, schema: TableSchema, adoption: Adoption) -> str:
    """The path of the file in the table."""
    folder = PartitionFolders(home.paths, schema).bucket_folder(adoption.partition, BUCKET)
    return f"{folder}/{adoption.name}"


def place_file(source: ObjectStore, home: TableHome, schema: TableSchema, adoption: Adoption) -> None:
    """Give the file its name in the table; idempotent."""
    target = adopted_path(home, schema, adoption)
    there = home.store.head(target)
    if there is None:
        _give_name(source, adoption.path, home.store, target)
        there = home.store.head(target)
    if there is None or there.size != adoption.size:
        found = "nothing" if there is None else f"{there.size} bytes"
        raise CorruptionError(f"{home.where(target)}: expected {adoption.size} bytes, found {found}")


def data_file(home: TableHome, schema: TableSchema, adoption: Adoption, footer: Footer) -> DataFile:
    """The metadata of the file for the manifest."""
    stats, columns = _statistics(schema, footer, adoption.values)
    present = set(footer.schema.names)
    stored = tuple(field.name for field in schema.fields if field.name in present)
    return DataFile(
        name=adoption.name,
        size=adoption.size,
        row_count=footer.rows,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=NO_STATS,
        value_stats=stats,
        min_sequence=0,
        max_sequence=footer.rows - 1,
        schema_id=schema.id,
        level=0,
        creation_ms=home.clock.now_ms(),
        delete_row_count=0,
        value_stats_columns=columns,
        write_columns=stored if len(stored) < len(schema.fields) else None,
    )


def _statistics(
    schema: TableSchema, footer: Footer, values: Mapping[str, object]
) -> tuple[Stats, tuple[str, ...] | None]:
    """The statistics that the table's options ask for, as far as the footer has them."""
    collector = FileSettings.of(schema).collector(schema.fields)
    arrays, nulls = [], {}
    for field in schema.fields:
        known = footer.ranges.get(field.name, Range(None, None, None))
        if field.name in values:
            value = values[field.name]
            known = Range(value, value, footer.rows if value is None else 0)
        arrow = to_arrow(field.type)
        if isinstance(field.type, Atomic) and field.type.kind not in BINARIES and known.low is not None:
            arrays.append(pa.array([known.low, known.high], arrow))
        else:
            arrays.append(pa.nulls(2, arrow))
        nulls[field.name] = known.nulls
    collector.update(pa.RecordBatch.from_arrays(arrays, names=list(schema.names)))
    stats, columns = collector.finish()
    if stats.null_counts is not None:
        # The collector counted NULLs among bounds; those of the file are in its footer.
        counts = (
            None if counted is None else nulls[name]
            for name, counted in zip(columns or schema.names, stats.null_counts, strict=True)
        )
        stats = replace(stats, null_counts=tuple(counts))
    return stats, columns


def _give_name(source: ObjectStore, path: str, target_store: ObjectStore, target: str) -> None:
    from_system, from_path = source.arrow_path(path)
    to_system, to_path = target_store.arrow_path(target)
    if type(from_system) is not type(to_system):
        raise InvalidError(
            f"{source.location} and {target_store.location} are different stores: files can be adopted within one only; "
            "write their rows anew, as bulk_load and INSERT … SELECT do"
        )
    if not isinstance(to_system, LocalFileSystem):
        try:
            to_system.copy_file(from_path, to_path)
        except FileNotFoundError as error:
            raise NotFoundError(f"{source.location}/{path} does not exist") from error
        except OSError as error:
            raise UnavailableError(f"copying {source.location}/{path} to {to_path} failed: {error}") from error
        return
    target_store.make_folder(target.rpartition("/")[0])
    _link(from_path, to_path)


def _link(path: str, target: str) -> None:
    try:
        os.link(path, target)
        # A file that looks old and is in no snapshot yet would be removed as an orphan.
        os.utime(target)
        for settled in (target, os.path.dirname(target)):
            descriptor = os.open(settled, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except FileExistsError:
        return
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise InvalidError(
                f"{path} and {target} are on different file systems: files can be adopted within one only; "
                "write their rows anew, as bulk_load and INSERT … SELECT do"
            ) from error
        if error.errno in _REFUSED:
            raise PermissionDeniedError(f"{target}: no second name for {path} ({error.strerror})") from error
        raise UnavailableError(f"{target}: {error.strerror or error}") from error
