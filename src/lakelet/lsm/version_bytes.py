"""Encode the columns of `sequence.field` as bytes that are the same in every call: of two rows of a key the greater ones win.

The context-free twin of `key_words.encode_versions`, as `key_bytes` is of its keys: for memtables, which compare rows of
different calls. The order is that of the merge: column by column, NULL loses to everything, ascending and descending.

    NULL      00
    value     01, the bytes of `key_bytes` (texts with their end), inverted for a descending order
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.types import Atomic, DataType, Kind

_FLAG = Atomic(Kind.BOOLEAN, nullable=False)
_NULL = pa.scalar(b"\x00", pa.large_binary())
_VALUE = pa.scalar(b"\x01", pa.large_binary())
_NOTHING = pa.scalar(b"", pa.large_binary())


def encode_version_bytes(columns: Sequence[pa.Array], types: Sequence[DataType], *, descending: bool) -> pa.Array:
    """The bytes of each row's sequence columns, as `large_binary`."""
    parts = [_encoded(column, data_type, descending) for column, data_type in zip(columns, types, strict=True)]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _NOTHING)


def _encoded(column: pa.Array, data_type: DataType, descending: bool) -> pa.Array:
    present = column.drop_null() if column.null_count else column
    # A column behind it has text end where it ends: none is the beginning of another.
    behind = pa.repeat(pa.scalar(False), len(present))
    found = encode_key_bytes([present, behind], [data_type, _FLAG]).cast(pa.large_binary())
    if descending:
        offsets = np.frombuffer(found.buffers()[1], np.int64, len(found) + 1, found.offset * 8)
        data = np.frombuffer(found.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(np.invert(data))]
        found = pa.Array.from_buffers(pa.large_binary(), len(found), buffers)
    found = pc.binary_join_element_wise(_VALUE, found, _NOTHING)
    if not column.null_count:
        return found
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return found.take(pa.array(np.cumsum(valid) - 1, mask=~valid)).fill_null(_NULL)
