"""The table's identity: `metadata`, one JSON object written when the table is created.

    {"tableUuid": "…", "createTime": ms, "modifyTime": ms, "schemaId": 0, "snapshotId": -1}

It distinguishes a recreated table from an earlier one at the same path. Paimon does not write it, so it is optional for
readers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from lakelet.errors import CorruptionError
from lakelet.format.metadata.stored_json import load_json

# A commit reads it twice. What is remembered by its bytes is never out of date.
_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The table's UUID, and when it was created and last altered."""

    table_uuid: str
    create_time_ms: int
    modify_time_ms: int
    schema_id: int = 0
    snapshot_id: int = -1


def encode_metadata(metadata: TableMetadata) -> bytes:
    """The bytes of a metadata file."""
    value = {
        "tableUuid": metadata.table_uuid,
        "createTime": metadata.create_time_ms,
        "modifyTime": metadata.modify_time_ms,
        "schemaId": metadata.schema_id,
        "snapshotId": metadata.snapshot_id,
    }
    return json.dumps(value, indent=2).encode()


@lru_cache(maxsize=_REMEMBERED)
def decode_metadata(data: bytes, *, path: str) -> TableMetadata:
    """The metadata in `data`; errors name `path`."""
    try:
        value = load_json(data)
        return TableMetadata(
            str(value["tableUuid"]),
            int(value["createTime"]),
            int(value["modifyTime"]),
            int(value.get("schemaId", 0)),
            int(value.get("snapshotId", -1)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{path}: not a table metadata file ({type(error).__name__}: {error})") from error
