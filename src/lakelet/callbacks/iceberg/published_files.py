"""Describe data files as Iceberg does: path, partition, counts and bounds of their columns.

Bounds come from the statistics in Paimon's manifests, in the bytes that Iceberg gives single values, by the newest type of the
column. There are none of floating-point columns, of which Iceberg's bounds say other things about NaN and -0.0, and none of
binary and nested ones. A statistic that cannot be decoded, or says nothing, is left out: it is unknown.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lakelet.callbacks.iceberg.manifest_files import partition_names
from lakelet.callbacks.iceberg.published_schema import unreadable_column
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, STRINGS, Atomic, Field, Kind
from lakelet.storage.home import TableHome

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.date().toordinal()
_MICRO = dt.timedelta(microseconds=1)
_SUFFIX = ".parquet"


class FileDescriber:
    """Describes the data files of one table under its newest schema."""

    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        self._home = home
        self._schema = schema
        self._versions = SchemaVersions(home, {schema.id: schema})
        self._folders = PartitionFolders(home.paths, schema)
        self._partition_names = partition_names(schema)
        self._partitions: dict[bytes, dict[str, Any]] = {}
        self._readable = {schema.id}
        self._now = {field.id: field for field in schema.fields}

    def path(self, entry: ManifestEntry) -> str:
        """Where the file is, with its store."""
        if entry.file.external_path is not None:
            return entry.file.external_path
        return self.location(entry.partition, entry.bucket, entry.file.name)

    def location(self, partition: bytes, bucket: int, name: str) -> str:
        """Where a file of the table's own folders is, with its store."""
        return self._home.where(f"{self._folders.bucket_folder(partition, bucket)}/{name}")

    def rows(self, entries: Iterable[ManifestEntry], snapshot_id: int) -> list[dict[str, Any]]:
        """Manifest rows that add these files."""
        return [
            {
                "status": 1,
                "snapshot_id": snapshot_id,
                "sequence_number": snapshot_id,
                "file_sequence_number": snapshot_id,
                "data_file": self._described(entry),
            }
            for entry in entries
        ]

    def _described(self, entry: ManifestEntry) -> dict[str, Any]:
        file, path = entry.file, self.path(entry)
        if not file.name.endswith(_SUFFIX):
            raise InvalidError(f"{path} cannot be published as a file of an Iceberg table: expected a Parquet file")
        if self._schema.primary_keys and file.delete_row_count:
            raise InvalidError(
                f"{path} cannot be published as a file of an Iceberg table: {file.delete_row_count} of its rows are deletes; "
                "compact the table fully"
            )
        nulls, lower, upper = self._bounds(file, path)
        return {
            "content": 0,
            "file_path": path,
            "file_format": "PARQUET",
            "partition": self.partition(entry.partition),
            "record_count": file.row_count,
            "file_size_in_bytes": file.size,
            "null_value_counts": nulls,
            "lower_bounds": lower,
            "upper_bounds": upper,
        }

    def partition(self, partition: bytes) -> dict[str, Any]:
        """The values of a partition, as manifests have them."""
        found = self._partitions.get(partition)
        if found is None:
            fields = self._schema.partition_fields
            values = decode_row(partition, [field.type for field in fields]) if fields else ()
            found = {name: stored_value(value) for name, value in zip(self._partition_names, values, strict=True)}
            self._partitions[partition] = found
        return found

    def _bounds(
        self, file: DataFile, path: str
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        columns = self._stats_columns(file, path)
        types = [field.type for field in columns]
        stats = file.value_stats
        try:
            least, most = decode_row(stats.min_values, types), decode_row(stats.max_values, types)
        except (CorruptionError, InvalidError):
            return [], [], []
        counts: Sequence[int | None] = stats.null_counts or [None] * len(columns)
        nulls, lower, upper = [], [], []
        for field, low, high, count in zip(columns, least, most, counts, strict=False):
            now = self._now.get(field.id)
            if now is None:
                continue
            if count is not None and (count > 0 or low is not None):
                nulls.append({"key": field.id, "value": count})
            bounds = bound_bytes(low, now), bound_bytes(high, now)
            if bounds[0] is not None and bounds[1] is not None:
                lower.append({"key": field.id, "value": bounds[0]})
                upper.append({"key": field.id, "value": bounds[1]})
        return nulls, lower, upper

    def _stats_columns(self, file: DataFile, path: str) -> Sequence[Field]:
        schema = self._versions(file.schema_id)
        if schema.id not in self._readable:
            unreadable = unreadable_column(schema, self._schema)
            if unreadable is not None:
                raise InvalidError(
                    f"{path}: {unreadable}, which Iceberg's readers cannot do: compact the table fully to publish it"
                )
            self._readable.add(schema.id)
        if file.value_stats_columns is None:
            return schema.fields
        by_name: Mapping[str, Field] = {field.name: field for field in schema.fields}
        return [by_name[name] for name in file.value_stats_columns if name in by_name]


def bound_bytes(value: object, field: Field) -> bytes | None:
    """A value as Iceberg writes it into bounds; None where it bounds nothing."""
    data_type = field.type
    if value is None or not isinstance(data_type, Atomic) or data_type.kind in FLOATS:
        return None
    if data_type.kind in STRINGS:
        return str(value).encode()
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, bytes):
        return None
    plain = stored_value(value)
    if isinstance(plain, bytes):
        return plain
    if data_type.kind in (Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ):
        return struct.pack("<q", plain)
    return struct.pack("<i", plain)


def stored_value(value: object) -> Any:
    """A value as Avro stores it: days, microseconds, and the unscaled bytes of a decimal."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // _MICRO
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        number = int("".join(map(str, digits)))
        number = -number if sign else number
        return number.to_bytes(max(1, (number + (number < 0)).bit_length() // 8 + 1), "big", signed=True)
    return value
