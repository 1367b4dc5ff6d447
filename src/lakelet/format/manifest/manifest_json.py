"""Manifests and manifest lists as JSON: `manifest.format = json`, for people who want to read them.

    list      {"manifestFiles": ["manifest/manifest-…", …],
               "manifests": [{"size": 1, "addedFiles": 1, "deletedFiles": 0, "partitionStats": S, "schemaId": 0, …}, …]}
    manifest  {"entries": [{"kind": "ADD", "file": "data-….parquet", "level": 0, "minKey": B, "maxKey": B, "rowCount": 1000,
               "partition": B, "bucket": 0, "totalBuckets": 1, "fileSize": …, "valueStats": S, …}, …]}

B is base64 of BinaryRow bytes; S is {"min": B, "max": B, "nullCounts": […]}. `manifests` runs parallel to `manifestFiles`.
Lakelet alone reads these; a table switched back to Avro becomes readable elsewhere once its manifests are rewritten.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA, LIST_SCHEMA, conform
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.manifest import EntryKind

_FOLDER = "manifest/"
_ENTRY_MEMBERS = {
    "kind": "_KIND",
    "file": "_FILE_NAME",
    "level": "_LEVEL",
    "minKey": "_MIN_KEY",
    "maxKey": "_MAX_KEY",
    "rowCount": "_ROW_COUNT",
    "partition": "_PARTITION",
    "bucket": "_BUCKET",
    "totalBuckets": "_TOTAL_BUCKETS",
    "fileSize": "_FILE_SIZE",
    "keyStats": "_KEY_STATS",
    "valueStats": "_VALUE_STATS",
    "minSequenceNumber": "_MIN_SEQUENCE_NUMBER",
    "maxSequenceNumber": "_MAX_SEQUENCE_NUMBER",
    "schemaId": "_SCHEMA_ID",
    "extraFiles": "_EXTRA_FILES",
    "creationTime": "_CREATION_TIME",
    "deleteRowCount": "_DELETE_ROW_COUNT",
    "embeddedFileIndex": "_EMBEDDED_FILE_INDEX",
    "fileSource": "_FILE_SOURCE",
    "valueStatsColumns": "_VALUE_STATS_COLS",
    "externalPath": "_EXTERNAL_PATH",
    "firstRowId": "_FIRST_ROW_ID",
    "writeColumns": "_WRITE_COLS",
}
_LIST_MEMBERS = {
    "size": "_FILE_SIZE",
    "addedFiles": "_NUM_ADDED_FILES",
    "deletedFiles": "_NUM_DELETED_FILES",
    "partitionStats": "_PARTITION_STATS",
    "schemaId": "_SCHEMA_ID",
    "minBucket": "_MIN_BUCKET",
    "maxBucket": "_MAX_BUCKET",
    "minLevel": "_MIN_LEVEL",
    "maxLevel": "_MAX_LEVEL",
    "minRowId": "_MIN_ROW_ID",
    "maxRowId": "_MAX_ROW_ID",
}


def encode_entries(table: pa.Table) -> bytes:
    """A JSON manifest of these entries."""
    entries = []
    for row in table.to_pylist():
        entry = {member: _to_json(row[column]) for member, column in _ENTRY_MEMBERS.items() if row[column] is not None}
        entry["kind"] = EntryKind(row["_KIND"]).name
        entries.append(entry)
    return json.dumps({"entries": entries}, indent=1).encode()


def decode_entries(data: bytes, *, path: str, columns: Collection[str] | None = None) -> pa.Table:
    """The entries of a JSON manifest."""
    try:
        entries = load_json(data)["entries"]
        rows: dict[str, list[Any]] = {}
        for member, column in _ENTRY_MEMBERS.items():
            kind = ENTRY_SCHEMA.field(column).type
            if member == "kind":
                rows[column] = [int(EntryKind[entry["kind"]]) for entry in entries]
            else:
                rows[column] = [_from_json(entry.get(member), kind) for entry in entries]
        table = pa.table({name: pa.array(values, ENTRY_SCHEMA.field(name).type) for name, values in rows.items()})
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise CorruptionError(f"{path}: not a JSON manifest ({type(error).__name__}: {error})") from error
    return conform(table, ENTRY_SCHEMA, only=None if columns is None else list(columns))


def encode_list(table: pa.Table) -> bytes:
    """A JSON manifest list of these manifests."""
    rows = table.to_pylist()
    manifests = [
        {member: _to_json(row[column]) for member, column in _LIST_MEMBERS.items() if row[column] is not None}
        for row in rows
    ]
    return json.dumps(
        {"manifestFiles": [_FOLDER + row["_FILE_NAME"] for row in rows], "manifests": manifests}, indent=1
    ).encode()


def decode_list(data: bytes, *, path: str) -> pa.Table:
    """The manifests of a JSON manifest list."""
    try:
        value = load_json(data)
        names, manifests = value["manifestFiles"], value["manifests"]
        if len(names) != len(manifests):
            raise CorruptionError(f"{path}: {len(names)} manifestFiles but {len(manifests)} manifests")
        columns = {"_FILE_NAME": pa.array([name.removeprefix(_FOLDER) for name in names], pa.string())}
        for member, column in _LIST_MEMBERS.items():
            kind = LIST_SCHEMA.field(column).type
            columns[column] = pa.array([_from_json(manifest.get(member), kind) for manifest in manifests], kind)
        return conform(pa.table(columns), LIST_SCHEMA)
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise CorruptionError(f"{path}: not a JSON manifest list ({type(error).__name__}: {error})") from error


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {
            "min": _to_json(value["_MIN_VALUES"]),
            "max": _to_json(value["_MAX_VALUES"]),
            "nullCounts": value["_NULL_COUNTS"],
        }
    return value


def _from_json(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_binary(kind):
        return base64.b64decode(value, validate=True)
    if pa.types.is_struct(kind):
        return {
            "_MIN_VALUES": base64.b64decode(value["min"], validate=True),
            "_MAX_VALUES": base64.b64decode(value["max"], validate=True),
            "_NULL_COUNTS": value["nullCounts"],
        }
    return value
