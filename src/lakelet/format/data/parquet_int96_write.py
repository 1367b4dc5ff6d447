"""Write INT96 timestamps to Parquet files, for nanosecond columns only.

Below `parquet_file`. Arrow's writer makes all timestamps of a file INT96 or none; but Java looks for TIMESTAMP(0) to (6) as
INT64 when it filters, and most readers take INT96 for nanoseconds, which hold fewer years. So nanoseconds go to Arrow as
FIXED_LEN_BYTE_ARRAY(12) with the bytes of INT96 (drawn in `parquet_int96`; the nanoseconds of the day are never below
zero), and when the file is closed the footer calls these columns INT96. Pages of the two types have the same bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelet.format.data.parquet_int96 import EPOCH_DAY, INT96_BYTES, footer_with_int96
from lakelet.storage.store import OutputFile

_DAY_NS = 86_400_000_000_000
_RAW = pa.binary(INT96_BYTES)
_CELL = np.dtype([("nanos", "<i8"), ("day", "<i4")])


def raw_int96_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with nanosecond timestamps, at any depth, as the raw bytes of INT96."""
    return pa.schema([_raw_field(field) for field in schema])


def _raw_field(field: pa.Field) -> pa.Field:
    return field.with_type(_raw_type(field.type))


def _raw_type(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow):
        return pa.struct([_raw_field(arrow.field(i)) for i in range(arrow.num_fields)])
    if pa.types.is_map(arrow):
        return pa.map_(_raw_field(arrow.key_field), _raw_field(arrow.item_field))
    if pa.types.is_list(arrow):
        return pa.list_(_raw_field(arrow.value_field))
    return _RAW if pa.types.is_timestamp(arrow) and arrow.unit == "ns" else arrow


def encode_int96(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in its `raw_int96_schema`."""
    columns = [
        pa.chunked_array([_encode(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _encode(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target and not pa.types.is_nested(target):
        return array
    if array.offset:
        array = pa.concat_arrays([array])
    length, nulls, buffers = len(array), array.null_count, array.buffers()
    if pa.types.is_struct(target):
        children = [_encode(array.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.Array.from_buffers(target, length, buffers[:1], nulls, 0, children)
    if pa.types.is_map(target):
        keys, items = _encode(array.keys, target.key_type), _encode(array.items, target.item_type)
        entry = pa.struct([target.key_field, target.item_field])
        entries = pa.Array.from_buffers(entry, len(keys), [None], 0, 0, [keys, items])
        return pa.Array.from_buffers(target, length, buffers[:2], nulls, 0, [entries])
    if pa.types.is_list(target):
        return pa.Array.from_buffers(target, length, buffers[:2], nulls, 0, [_encode(array.values, target.value_type)])
    cells = np.empty(length, _CELL)
    # Values below a NULL are encoded too, and masked by the validity again.
    days, nanos = np.divmod(np.frombuffer(buffers[1] or b"", np.int64)[:length], _DAY_NS)
    cells["nanos"], cells["day"] = nanos, days + EPOCH_DAY
    return pa.Array.from_buffers(_RAW, length, [buffers[0], pa.py_buffer(cells.tobytes())], nulls)


class Int96Output:
    """An output that, from `hold` on, keeps the end of a file back until `release` has put INT96 into its footer."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self._held: bytearray | None = None

    def hold(self) -> None:
        """Keeps back what is written from now on."""
        self._held = bytearray()

    def release(self) -> None:
        """Writes what was kept back, its footer changed."""
        assert self._held is not None
        held, self._held = bytes(self._held), None
        self._output.write(footer_with_int96(held))

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: bytes) -> int:
        if self._held is None:
            return self._output.write(data)
        self._held += data
        return len(data)

    def tell(self) -> int:
        return self._output.tell() + len(self._held or b"")

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """The output is closed by its owner."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
