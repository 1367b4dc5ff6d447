"""Iceberg manifests and manifest lists as Avro files, in Arrow columns.

    manifest       {status, snapshot_id, sequence_number, file_sequence_number, data_file {…}}    one per data file or vector
    manifest list  {manifest_path, manifest_length, content, counts, partitions [{bounds}], …}    one per manifest

Version 3 adds to `data_file` where a deletion vector lies and whose it is, and to both the number of their first row: rows of a
manifest are numbered from that of its record in the list, in the order of its files, unless files have numbers of their own.

Field ids are those of the Iceberg specification, by which readers find the columns; the schemas carry them as `field-id`.
Java Paimon finds them by name, so that partition values are called as in the table, unless Avro has no such name.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.callbacks.iceberg.published_schema import FIRST_PARTITION_ID, iceberg_schema, partition_spec
from lakelet.format.avro.decode import decode
from lakelet.format.avro.encode import encode
from lakelet.model.schema import TableSchema
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Kind

ADDED, EXISTING, DELETED = 1, 0, 2
DATA, DELETES = 0, 1
# The version from which on rows have numbers, and deletion vectors are written.
ROWS_NUMBERED = 3
FIRST_ROW_ID = "first_row_id"
_CONTENTS = {DATA: b"data", DELETES: b"deletes"}
_AVRO = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "int",
    Kind.SMALLINT: "int",
    Kind.INT: "int",
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: {"type": "int", "logicalType": "date"},
    Kind.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    Kind.TIMESTAMP_LTZ: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}
_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BOUNDED = {"int": "<i", "long": "<q"}


@dataclass(frozen=True, slots=True)
class PublishedManifest:
    """A manifest as a manifest list describes it: the record of the list, by its names."""

    record: dict[str, Any]

    @property
    def path(self) -> str:
        """Where it is, with its store."""
        return str(self.record["manifest_path"])

    @property
    def length(self) -> int:
        """Its bytes."""
        return int(self.record["manifest_length"])

    @property
    def content(self) -> int:
        """Whether its files are data files or deletion vectors."""
        return int(self.record["content"])

    @property
    def first_row_id(self) -> int | None:
        """The number of its first row; None where it has none yet, and of version 2."""
        found = self.record.get("first_row_id")
        return None if found is None else int(found)

    def numbered(self, first_row_id: int) -> PublishedManifest:
        """The manifest with its rows numbered from here on."""
        return PublishedManifest({**self.record, "first_row_id": first_row_id})


class ManifestCodec:
    """The manifests of one table: they depend on its partition columns and on the format's version."""

    def __init__(self, schema: TableSchema, *, version: int, compression: str, legacy: bool) -> None:
        self._schema = schema
        self._version = str(version).encode()
        self._compression = {"zstd": "zstandard"}.get(compression, compression)
        self._partition = [_avro_type(field.type) for field in schema.partition_fields]
        self._entry = _entry_schema(partition_names(schema), self._partition, version)
        self._list = _list_schema(version, legacy=legacy)
        self._legacy = legacy
        self.entry_type = pa.struct([_arrow_field(field) for field in self._entry["fields"]])

    def entries(self, rows: Sequence[dict[str, Any]]) -> pa.StructArray:
        """Manifest rows in columns."""
        return pa.array(rows, self.entry_type)

    def encode_entries(self, entries: pa.StructArray, content: int) -> bytes:
        """A manifest file."""
        about = {
            "schema": json.dumps(iceberg_schema(self._schema)).encode(),
            "schema-id": str(self._schema.id).encode(),
            "partition-spec": json.dumps(partition_spec(self._schema)).encode(),
            "partition-spec-id": b"0",
            "format-version": self._version,
            "content": _CONTENTS[content],
        }
        return encode(entries, self._entry, codec=self._compression, metadata=about)

    def decode_entries(self, data: bytes, *, path: str) -> pa.StructArray:
        """The rows of a manifest."""
        return decode(data, path=path)

    def decode_paths(self, data: bytes, *, path: str) -> tuple[pa.Array, pa.Array]:
        """The status and the path of each row of a manifest; nothing else is decoded."""
        found = decode(data, path=path, columns=["status", "data_file.file_path"])
        return found.field("status"), found.field("data_file").field("file_path")

    def encode_list(self, manifests: Sequence[PublishedManifest], *, snapshot_id: int, parent: int | None) -> bytes:
        """A manifest list."""
        about = {
            "snapshot-id": str(snapshot_id).encode(),
            "parent-snapshot-id": (b"null" if parent is None else str(parent).encode()),
            "sequence-number": str(snapshot_id).encode(),
            "format-version": self._version,
        }
        names = {field["name"] for field in self._list["fields"]}
        other = {_count_name(kind, not self._legacy): _count_name(kind, self._legacy) for kind in _COUNTED}
        records = [
            {name: value for key, value in one.record.items() if (name := other.get(key, key)) in names}
            for one in manifests
        ]
        rows = pa.array(records, pa.struct([_arrow_field(field) for field in self._list["fields"]]))
        return encode(rows, self._list, codec=self._compression, metadata=about)

    def decode_list(self, data: bytes, *, path: str) -> list[PublishedManifest]:
        """The manifests of a list."""
        return [PublishedManifest(record) for record in decode(data, path=path).to_pylist()]

    def described(
        self, entries: pa.StructArray, content: int, *, path: str, length: int, snapshot_id: int
    ) -> PublishedManifest:
        """What the list says of a manifest of these rows."""
        status = entries.field("status")
        rows = entries.field("data_file").field("record_count")
        record: dict[str, Any] = {
            "manifest_path": path,
            "manifest_length": length,
            "partition_spec_id": 0,
            "content": content,
            "sequence_number": snapshot_id,
            "min_sequence_number": pc.min(entries.field("sequence_number")).as_py(),
            "added_snapshot_id": snapshot_id,
        }
        for kind, number in zip(_COUNTED, (ADDED, EXISTING, DELETED), strict=True):
            mask = pc.equal(status, number)
            record[_count_name(kind, self._legacy)] = int(pc.sum(mask).as_py() or 0)
            record[f"{kind}_rows_count"] = int(pc.sum(rows.filter(mask)).as_py() or 0)
        partition = entries.field("data_file").field("partition")
        record["partitions"] = [_summary(partition.field(place), avro) for place, avro in enumerate(self._partition)]
        return PublishedManifest(record)


_COUNTED = ("added", "existing", "deleted")
_LIVE = ("added", "existing")


def live_counts(manifests: Sequence[PublishedManifest], content: int = DATA) -> tuple[int, int]:
    """The live files and rows of these manifests that are of a content."""
    files = rows = 0
    for one in manifests:
        if one.content == content:
            for kind in _LIVE:
                found = one.record.get(_count_name(kind, False), one.record.get(_count_name(kind, True)))
                files += int(found or 0)
            rows += sum(row_counts(one))
    return files, rows


def row_counts(manifest: PublishedManifest) -> tuple[int, int]:
    """The rows of the files that a manifest adds, and of those that it keeps."""
    added, existing = (int(manifest.record[f"{kind}_rows_count"]) for kind in _LIVE)
    return added, existing


def is_empty(manifest: PublishedManifest) -> bool:
    """Whether no file of the manifest is live."""
    return live_counts([manifest], manifest.content)[0] == 0


def _count_name(kind: str, legacy: bool) -> str:
    return f"{kind}_data_files_count" if legacy else f"{kind}_files_count"


def _summary(values: pa.Array, avro: Any) -> dict[str, Any]:
    low = high = None
    if avro == "string" or _plain(avro) in _BOUNDED:
        ends = pc.min_max(values).as_py()
        if ends["min"] is not None:
            low, high = _bound(ends["min"], avro), _bound(ends["max"], avro)
    return {
        "contains_null": values.null_count > 0,
        "contains_nan": False,
        "lower_bound": low,
        "upper_bound": high,
    }


def _bound(value: Any, avro: Any) -> bytes:
    return value.encode() if isinstance(value, str) else struct.pack(_BOUNDED[_plain(avro)], value)


def _plain(avro: Any) -> str:
    return str(avro["type"]) if isinstance(avro, dict) else str(avro)


def _avro_type(data_type: DataType) -> Any:
    if not isinstance(data_type, Atomic):
        raise TypeError(f"a partition column is never {data_type}")
    if data_type.kind in STRINGS:
        return "string"
    if data_type.kind in BINARIES:
        return "bytes"
    if data_type.kind is Kind.DECIMAL:
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": data_type.precision,
            "scale": data_type.scale,
        }
    return _AVRO[data_type.kind]


def _required(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _optional(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _id_map(number: int, name: str, key: int, value: int, kind: str) -> dict[str, Any]:
    pair = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_required(key, "key", "int"), _required(value, "value", kind)],
    }
    return _optional(number, name, {"type": "array", "items": pair, "logicalType": "map"})


def partition_names(schema: TableSchema) -> list[str]:
    """The names of partition values in manifests: those of the columns, or `p0`, `p1`, … where one of them is no name in Avro."""
    names = list(schema.partition_keys)
    return names if all(map(_NAME.fullmatch, names)) else [f"p{place}" for place in range(len(names))]


def _entry_schema(names: Sequence[str], partition: Sequence[Any], version: int) -> dict[str, Any]:
    values = [
        _optional(FIRST_PARTITION_ID + place, name, kind)
        for place, (name, kind) in enumerate(zip(names, partition, strict=True))
    ]
    file = [
        _required(134, "content", "int"),
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", {"type": "record", "name": "r102", "fields": values}),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
        _id_map(110, "null_value_counts", 121, 122, "long"),
        _id_map(125, "lower_bounds", 126, 127, "bytes"),
        _id_map(128, "upper_bounds", 129, 130, "bytes"),
    ]
    if version >= ROWS_NUMBERED:
        file += [
            _optional(142, FIRST_ROW_ID, "long"),
            _optional(143, "referenced_data_file", "string"),
            _optional(144, "content_offset", "long"),
            _optional(145, "content_size_in_bytes", "long"),
        ]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _required(0, "status", "int"),
            _optional(1, "snapshot_id", "long"),
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
            _required(2, "data_file", {"type": "record", "name": "r2", "fields": file}),
        ],
    }


def _list_schema(version: int, *, legacy: bool) -> dict[str, Any]:
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _required(509, "contains_null", "boolean"),
            _optional(518, "contains_nan", "boolean"),
            _optional(510, "lower_bound", "bytes"),
            _optional(511, "upper_bound", "bytes"),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            _required(500, "manifest_path", "string"),
            _required(501, "manifest_length", "long"),
            _required(502, "partition_spec_id", "int"),
            _required(517, "content", "int"),
            _required(515, "sequence_number", "long"),
            _required(516, "min_sequence_number", "long"),
            _required(503, "added_snapshot_id", "long"),
            *(_required(504 + place, _count_name(kind, legacy), "int") for place, kind in enumerate(_COUNTED)),
            *(_required(512 + place, f"{kind}_rows_count", "long") for place, kind in enumerate(_COUNTED)),
            _optional(507, "partitions", {"type": "array", "items": summary, "element-id": 508}),
            *([_optional(520, FIRST_ROW_ID, "long")] if version >= ROWS_NUMBERED else []),
        ],
    }


def _arrow_field(field: dict[str, Any]) -> pa.Field:
    kind = field["type"]
    optional = isinstance(kind, list)
    return pa.field(field["name"], _arrow_type(kind[1] if optional else kind), nullable=optional)


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    if kind["type"] == "record":
        return pa.struct([_arrow_field(field) for field in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field("item", _arrow_type(kind["items"]), nullable=False))
    return _ARROW[kind["type"]]
