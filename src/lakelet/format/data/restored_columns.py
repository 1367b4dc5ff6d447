"""Restore the table's types of columns that a file format returned.

No format knows all of a type: Avro has no TINYINT, ORC has no NOT NULL and no units of time, Parquet has timestamps of
two kinds, and each names the inside of lists in its own way. What is stored alike is relabelled without copying, numbers are cast
only where every value fits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.format.data.parquet_int96 import INT96_BYTES, decode_int96

_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_time,
    lambda data_type: pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type),
)
"""Types that hold the same values; anything else in a file is damage."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def restore_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema` out of a batch that has them all; ArrowInvalid where a value does not fit."""
    if not schema.names:
        return batch.select([])
    arrays = []
    for field in schema:
        try:
            arrays.append(_restore(batch.column(field.name), field.type))
        except InvalidError as error:
            raise InvalidError(f"column {field.name!r}: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _restore(array: pa.Array, target: pa.DataType) -> pa.Array:
    types = pa.types
    if array.type == target and not types.is_nested(target):
        return array
    length, nulls, offset = len(array), array.null_count, array.offset
    if types.is_struct(target) and types.is_struct(array.type) and _names(array.type) == _names(target):
        # `field` has applied the offset to the children, so the validity must not be shifted a second time.
        if offset and nulls:
            array = pa.concat_arrays([array])
        children = [_restore(array.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.Array.from_buffers(target, length, array.buffers()[:1] if nulls else [None], nulls, 0, children)
    if types.is_map(target) and types.is_map(array.type):
        keys, items = _restore(array.keys, target.key_type), _restore(array.items, target.item_type)
        entry = pa.struct([target.key_field, target.item_field])
        entries = pa.Array.from_buffers(entry, len(keys), [None], 0, 0, [keys, items])
        return pa.Array.from_buffers(target, length, array.buffers()[:2], nulls, offset, [entries])
    if types.is_list(target) and types.is_list(array.type):
        values = _restore(array.values, target.value_type)
        return pa.Array.from_buffers(target, length, array.buffers()[:2], nulls, offset, [values])
    if types.is_timestamp(target) and types.is_timestamp(array.type):
        return _in_unit(array.cast(pa.timestamp(array.type.unit, target.tz)), target)
    if types.is_timestamp(target) and array.type == pa.binary(INT96_BYTES):
        return decode_int96(array, target)
    if not any(of_kind(array.type) and of_kind(target) for of_kind in _KINDS) and not (
        types.is_int32(array.type) and types.is_time32(target)
    ):
        raise pa.ArrowInvalid(f"expected {target}, found {array.type}")
    return array.cast(target)


def _in_unit(array: pa.Array, target: pa.TimestampType) -> pa.Array:
    """Timestamps in another unit. Digits beyond it are cut off downwards, before 1970 too, as in Java, whose writer lets them
    through; Arrow cuts them off towards 1970."""
    finer = _PER_SECOND[array.type.unit] // _PER_SECOND[target.unit]
    if finer <= 1:
        return array.cast(target, safe=False)
    numbers = array.cast(pa.int64()).fill_null(0).to_numpy()
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(numbers, finer), pa.int64(), mask=missing).cast(target)


def _names(struct: pa.DataType) -> list[str]:
    return [struct.field(i).name for i in range(struct.num_fields)]
