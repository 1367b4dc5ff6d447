"""Schema evolution on read: convert columns of an old file to the table's current schema.

Fields are matched by id, at every depth, so that a renamed column keeps its values, a dropped and re-added one does not get
them back, and one added later is NULL in older files. Types widen as the schema did.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.schema_change.widening import casts_as_paimon
from lakelet.model.types import Array, Atomic, DataType, Field, Kind, Map, Multiset, Row


def same_layout(stored: DataType, wanted: DataType) -> bool:
    """Whether values need no conversion: same types and the same fields in the same order under the same names."""
    match stored, wanted:
        case Row(old), Row(new):
            return len(old) == len(new) and all(
                a.id == b.id and a.name == b.name and same_layout(a.type, b.type) for a, b in zip(old, new, strict=True)
            )
        case (Array(old), Array(new)) | (Multiset(old), Multiset(new)):
            return same_layout(old, new)
        case Map(old_key, old_value), Map(new_key, new_value):
            return same_layout(old_key, new_key) and same_layout(old_value, new_value)
        case Atomic(), Atomic():
            return bool(to_arrow(stored) == to_arrow(wanted)) and casts_as_paimon(stored, wanted)
        case _:
            return False


def evolve_batch(batch: pa.RecordBatch, stored: Sequence[Field], wanted: Sequence[Field]) -> pa.RecordBatch:
    """A batch of the `stored` columns (some of them, under their old names) as the `wanted` ones."""
    by_id = {field.id: field for field in stored if field.name in batch.schema.names}
    arrays = []
    for field in wanted:
        old = by_id.get(field.id)
        if old is None:
            arrays.append(pa.nulls(batch.num_rows, to_arrow(field.type)))
        else:
            arrays.append(evolve_array(batch.column(old.name), old.type, field.type, field.name))
    schema = arrow_schema(wanted)
    # A NOT NULL column that older files lack reads as NULL there.
    schema = pa.schema([field.with_nullable(True) for field in schema])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def evolve_array(array: pa.Array, stored: DataType, wanted: DataType, where: str) -> pa.Array:
    """Values of the stored type as the wanted one."""
    target = to_arrow(wanted)
    if same_layout(stored, wanted):
        return array if array.type == target else array.cast(target)
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    match stored, wanted:
        case Row(old), Row(new):
            return _evolve_row(array, old, new, target, where)
        case Array(old_element), Array(new_element):
            values = evolve_array(array.values, old_element, new_element, f"{where}.element")
            return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=_mask(array))
        case Map(old_key, old_value), Map(new_key, new_value):
            keys = evolve_array(array.keys, old_key, new_key, f"{where}.key")
            items = evolve_array(array.items, old_value, new_value, f"{where}.value")
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=_mask(array))
        case Atomic(), Atomic():
            return _cast(array, stored, wanted, target, where)
        case _:
            raise InvalidError(
                f"column {where!r} is {wanted}, but an older file holds {stored}, which does not convert"
            )


def _evolve_row(
    array: pa.StructArray, old: Sequence[Field], new: Sequence[Field], target: pa.StructType, where: str
) -> pa.Array:
    places = {field.id: index for index, field in enumerate(old)}
    children = []
    for field in new:
        index = places.get(field.id)
        if index is None:
            children.append(pa.nulls(len(array), to_arrow(field.type)))
        else:
            children.append(evolve_array(array.field(index), old[index].type, field.type, f"{where}.{field.name}"))
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(array))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _cast(array: pa.Array, stored: Atomic, wanted: Atomic, target: pa.DataType, where: str) -> pa.Array:
    if not casts_as_paimon(stored, wanted):
        raise InvalidError(
            f"column {where!r} was changed from {stored} to {wanted}, and an older file still holds {stored}; "
            "this conversion loses values and is not supported here: let Paimon compact the table first"
        )
    try:
        if stored.kind is Kind.TIMESTAMP and wanted.kind is Kind.TIMESTAMP_LTZ:
            return array.cast(pa.timestamp(array.type.unit, tz="UTC")).cast(target)
        # A wider decimal or timestamp may still be too small: nanoseconds end in 2262.
        if pa.types.is_decimal(target) or pa.types.is_binary(array.type) or pa.types.is_timestamp(target):
            return array.cast(target)
        return array.cast(target, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"column {where!r} is {wanted}; a value of an older file, stored as {stored}, does not convert ({error})"
        ) from error


def deleted_mask(positions: np.ndarray[tuple[int], np.dtype[np.int64]], start: int, count: int) -> pa.Array:
    """True for the rows of a batch, `count` from `start` on, that are not among the deleted positions."""
    keep = np.ones(count, bool)
    low, high = np.searchsorted(positions, [start, start + count])
    keep[positions[low:high] - start] = False
    return pa.array(keep)
