"""Encode deletion vectors of 64 bits as an Iceberg Puffin file, in which every reader of Iceberg finds them.

"PFA1"
blobs        one vector after the other, as an index file has them (`deletion_vectors`, 64 bits)
"PFA1"
payload      JSON: for each blob its type, place, data file and number of positions
size         bytes of the payload, i32 little-endian
flags        4 bytes, 0: the payload is not compressed
"PFA1"
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

MAGIC = b"PFA1"
_TYPE = "deletion-vector-v1"
# The field id of a row's position, which the blobs are about.
_POSITION_FIELD = 2147483645
# A vector belongs to no snapshot of its own: which ones have it is said by manifests.
_INHERITED = -1


@dataclass(frozen=True, slots=True)
class VectorBlob:
    """The vector of a data file, and the number of its positions."""

    data: bytes
    data_file: str
    cardinality: int


def blob_offsets(blobs: Sequence[VectorBlob]) -> list[int]:
    """Where in the file of these blobs each begins."""
    return list(accumulate((len(blob.data) for blob in blobs), initial=len(MAGIC)))[: len(blobs)]


def encode_puffin(blobs: Sequence[VectorBlob]) -> bytes:
    """A Puffin file of these vectors."""
    about = [
        {
            "type": _TYPE,
            "fields": [_POSITION_FIELD],
            "snapshot-id": _INHERITED,
            "sequence-number": _INHERITED,
            "offset": offset,
            "length": len(blob.data),
            "properties": {"referenced-data-file": blob.data_file, "cardinality": str(blob.cardinality)},
        }
        for blob, offset in zip(blobs, blob_offsets(blobs), strict=True)
    ]
    payload = json.dumps({"blobs": about, "properties": {}}, ensure_ascii=False).encode()
    return b"".join([MAGIC, *(blob.data for blob in blobs), MAGIC, payload, struct.pack("<i4x", len(payload)), MAGIC])
