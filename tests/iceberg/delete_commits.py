"""Delete files as other engines write them, and snapshots that bring them into a table: pyiceberg writes none itself."""

from __future__ import annotations

import itertools
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap

from lakelet.format.avro import write_table

_names = itertools.count(1)
_PATH, _POSITION = 2147483546, 2147483545
_POSITIONS = Schema(
    NestedField(_PATH, "file_path", StringType(), required=True),
    NestedField(_POSITION, "pos", LongType(), required=True),
)
_STATISTICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_V3 = 3
_VECTOR_MAGIC = 1681511377


class _DeleteManifest(ManifestWriterV2):
    """A manifest of delete files, with the fields that version 3 has for vectors."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=self._with_partition(_V3),
            record_schema=self._with_partition(_V3),
            schema_name="manifest_entry",
            metadata={**self._meta, "content": "deletes"},
        )


def data_paths(table: Table) -> list[str]:
    """The data files of the newest snapshot, oldest first."""
    entries = table.inspect.entries().sort_by([("sequence_number", "ascending")]).to_pylist()
    return [one["data_file"]["file_path"] for one in entries if one["data_file"]["content"] == 0 and one["status"] != 2]


def position_deletes(
    table: Table,
    positions: Mapping[str, Sequence[int]],
    *,
    partition: Record | None = None,
    spec_id: int | None = None,
    bounds: bool = False,
    file_format: str = "PARQUET",
) -> DataFile:
    """A delete file that lists positions; with `bounds` it says of which paths it is."""
    paths = [path for path, rows in positions.items() for _ in rows]
    rows = pa.table(
        {"file_path": paths, "pos": [row for rows in positions.values() for row in rows]},
        schema=schema_to_pyarrow(_POSITIONS),
    )
    lowest, highest = (min(paths).encode(), max(paths).encode()) if paths else (b"", b"")
    known: dict[str, Any] = {}
    if bounds:
        known = {"lower_bounds": {_PATH: lowest}, "upper_bounds": {_PATH: highest}}
    return _written(
        table, rows, DataFileContent.POSITION_DELETES, partition, file_format=file_format, spec_id=spec_id, **known
    )


def equality_deletes(
    table: Table, rows: pa.Table, *, partition: Record | None = None, spec_id: int | None = None
) -> DataFile:
    """A delete file of values; the columns of `rows` are columns of the table."""
    schema = table.schema().select(*rows.column_names)
    ids = [schema.find_field(name).field_id for name in rows.column_names]
    fitted = pa.table(rows.columns, schema=schema_to_pyarrow(Schema(*(table.schema().find_field(one) for one in ids))))
    return _written(table, fitted, DataFileContent.EQUALITY_DELETES, partition, equality_ids=ids, spec_id=spec_id)


def vector(table: Table, path: str, positions: Sequence[int], *, partition: Record | None = None) -> DataFile:
    """A deletion vector in a Puffin file of its own."""
    bitmap = BitMap(positions).serialize()
    payload = struct.pack("<I", _VECTOR_MAGIC) + struct.pack("<QI", 1, 0) + bitmap
    blob = struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
    footer = json.dumps({"blobs": []}).encode()
    puffin = b"PFA1" + blob + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    location = f"{table.location()}/data/deletes-{next(_names)}.puffin"
    with table.io.new_output(location).create(overwrite=True) as sink:
        sink.write(puffin)
    return _entry(
        location,
        DataFileContent.POSITION_DELETES,
        FileFormat.PUFFIN,
        table.spec().spec_id,
        record_count=len(positions),
        file_size_in_bytes=len(puffin),
        partition=partition or Record(),
        referenced_data_file=path,
        content_offset=4,
        content_size_in_bytes=len(blob),
    )


def commit_deletes(table: Table, *files: DataFile) -> Table:
    """The table with one more snapshot, which has these delete files."""
    parent = table.current_snapshot()
    assert parent is not None
    number = parent.snapshot_id + next(_names)
    sequence = table.metadata.last_sequence_number + 1
    manifests = list(parent.manifests(table.io))
    for spec_id in dict.fromkeys(file.spec_id for file in files):
        output = table.io.new_output(f"{table.location()}/metadata/deletes-{number}-{spec_id}.avro")
        writer = _DeleteManifest(table.specs()[spec_id], table.schema(), output, number, "deflate")
        with writer:
            for file in files:
                if file.spec_id == spec_id:
                    writer.add_entry(
                        ManifestEntry.from_args(
                            _table_format_version=_V3,
                            status=ManifestEntryStatus.ADDED,
                            snapshot_id=number,
                            sequence_number=None,
                            file_sequence_number=None,
                            data_file=file,
                        )
                    )
        manifests.append(writer.to_manifest_file())
    listed = f"{table.location()}/metadata/snap-{number}.avro"
    with write_manifest_list(
        2, table.io.new_output(listed), number, parent.snapshot_id, sequence, "deflate"
    ) as writer_:
        writer_.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent.snapshot_id,
        manifest_list=listed,
        sequence_number=sequence,
        summary=Summary(Operation.DELETE),
        schema_id=table.schema().schema_id,
    )
    with table.transaction() as change:
        change._apply(
            (
                AddSnapshotUpdate(snapshot=snapshot),
                SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=number),
            )
        )
    return table.refresh()


def _written(
    table: Table,
    rows: pa.Table,
    content: DataFileContent,
    partition: Record | None,
    *,
    file_format: str = "PARQUET",
    spec_id: int | None = None,
    **more: Any,
) -> DataFile:
    location = f"{table.location()}/data/deletes-{next(_names)}.{file_format.lower()}"
    output = table.io.new_output(location)
    with output.create(overwrite=True) as sink:
        match file_format:
            case "PARQUET":
                pq.write_table(rows, sink)
            case "ORC":
                orc.write_table(_bare(rows), sink)
            case "AVRO":
                sink.write(write_table(_bare(rows)))
    return _entry(
        location,
        content,
        FileFormat[file_format],
        table.spec().spec_id if spec_id is None else spec_id,
        record_count=rows.num_rows,
        file_size_in_bytes=len(output),
        partition=partition or Record(),
        **more,
    )


def _bare(rows: pa.Table) -> pa.Table:
    """Rows without ids, which these formats have no place for."""
    return pa.table({"file_path": rows.column(0).cast(pa.string()), "pos": rows.column(1)})


def _entry(path: str, content: DataFileContent, file_format: FileFormat, spec_id: int, **more: Any) -> DataFile:
    given = {
        "content": content,
        "file_path": path,
        "file_format": file_format,
        "key_metadata": None,
        "split_offsets": None,
        "equality_ids": None,
        "sort_order_id": None,
        "first_row_id": None,
        "referenced_data_file": None,
        "content_offset": None,
        "content_size_in_bytes": None,
        **{name: {} for name in _STATISTICS},
        **more,
    }
    made = DataFile.from_args(_table_format_version=_V3, **given)
    made.spec_id = spec_id
    return made
