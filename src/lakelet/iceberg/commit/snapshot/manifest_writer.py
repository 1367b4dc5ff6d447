"""Writes manifests through pyiceberg, entries in large blocks and one manifest after another at the target size.

pyiceberg makes a block, compressed on its own, of every entry; blocks of many are a fraction of the size and of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from pyiceberg.io import OutputFile
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV1,
    ManifestWriterV2,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import TableVersion
from pyiceberg.types import IntegerType, ListType, NestedField, StructType

from lakelet.iceberg.library_internals import fields_by_id, wrap_entry_writer

_BLOCK_ENTRIES = 500
# How often the size of a manifest is checked.
_CHECKED_EVERY = 100
_EQUALITY_IDS = NestedField(135, "equality_ids", ListType(136, IntegerType(), element_required=True), required=False)


class _SpecifiedEntries(ManifestWriter):
    """Entries as the specification requires, where pyiceberg deviates. Partition values may be NULL, whatever their columns
    are: a partition field that was dropped has none, nor has a required member of a struct that is NULL. The ids of equality
    deletes are ints, and Java reads nothing else."""

    def _with_partition(self, format_version: TableVersion) -> Schema:
        fields = (
            field.model_copy(update={"required": False}) for field in self._spec.partition_type(self._schema).fields
        )
        file = data_file_with_partition(StructType(*fields), format_version)
        specified = StructType(
            *(_EQUALITY_IDS if one.field_id == _EQUALITY_IDS.field_id else one for one in file.fields)
        )
        return manifest_entry_schema_with_data_file(format_version, specified)


class _DataManifestV1(_SpecifiedEntries, ManifestWriterV1):
    """A manifest of data files in a table of version 1."""


class _DataManifest(_SpecifiedEntries, ManifestWriterV2):
    """A manifest of data files."""


class _DeleteManifest(_SpecifiedEntries, ManifestWriterV2):
    """A manifest of delete files; tables of version 1 have none."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _LargeBlocks:
    """An Avro file whose blocks have many entries each."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._held: list[ManifestEntry] = []
        self.output_file = file.output_file

    def write_block(self, entries: list[ManifestEntry]) -> None:
        self._held += entries
        if len(self._held) >= _BLOCK_ENTRIES:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._file.write_block(self._held)
            self._held = []

    def tell(self) -> int:
        return cast(int, self._file.tell())

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.flush()
        self._file.__exit__(kind, error, trace)


def rolling_manifests(
    metadata: TableMetadata,
    spec_id: int,
    entries: Iterable[ManifestEntry],
    *,
    open_output: Callable[[], OutputFile],
    snapshot_id: int,
    compression: str,
    target_bytes: int,
    content: ManifestContent = ManifestContent.DATA,
) -> list[ManifestFile]:
    """Manifests of one spec with these entries; none where there are no entries."""
    spec = metadata.specs()[spec_id]
    schema = schema_of_spec(metadata, spec)
    kind = _DeleteManifest if content == ManifestContent.DELETES else _kind(metadata.format_version)
    made: list[ManifestFile] = []
    waiting = iter(entries)
    entry = next(waiting, None)
    while entry is not None:
        writer = kind(spec, schema, open_output(), snapshot_id, cast(Any, compression))
        count = 0
        with writer:
            wrap_entry_writer(writer, _LargeBlocks)
            while entry is not None:
                writer.add_entry(entry)
                count += 1
                entry = next(waiting, None)
                if count % _CHECKED_EVERY == 0 and writer.tell() >= target_bytes:
                    break
        made.append(writer.to_manifest_file())
    return made


def _kind(version: int) -> type[ManifestWriter]:
    return _DataManifestV1 if version == 1 else _DataManifest


def schema_of_spec(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """The newest schema that has all columns of a spec: partition values have types of their own there, also where the column was
    dropped since."""
    wanted = {field.source_id for field in spec.fields}
    schemas = [metadata.schema(), *sorted(metadata.schemas, key=lambda one: -one.schema_id)]
    return next((one for one in schemas if wanted <= set(fields_by_id(one))), metadata.schema())
