"""The table's sort order inside a file: transformed columns, each up or down, NULL first or last.

NaN comes after every number and -0.0 before 0.0, as Iceberg compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortOrder

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms import transform_of
from lakelet.iceberg.write.partition_groups import PartitionColumn, place_of

_TYPES = pa.types


@dataclass(frozen=True, slots=True)
class _SortColumn:
    column: PartitionColumn
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How the rows of a file are sorted; `order_id` is how manifests name it."""

    order_id: int
    columns: tuple[_SortColumn, ...]

    def sorted(self, rows: pa.Table) -> pa.Table:
        """The rows in order; equal ones stay as they are."""
        keys: dict[str, pa.Array] = {}
        directions = []
        for number, column in enumerate(self.columns):
            values = column.column.apply(rows)
            if values.null_count:
                keys[f"n{number}"] = values.is_null().cast(pa.int8())
                directions.append((f"n{number}", "descending" if column.nulls_first else "ascending"))
            keys[f"v{number}"] = _comparable(values)
            directions.append((f"v{number}", "descending" if column.descending else "ascending"))
        return rows.take(pc.sort_indices(pa.table(keys), sort_keys=directions))


def row_order(order: SortOrder, schema: Schema) -> RowOrder | None:
    """The order of a table's rows; None where it has none. InvalidError for one that rows cannot be sorted by."""
    if order.is_unsorted:
        return None
    columns = []
    for field in order.fields:
        place = place_of(schema, field.source_id)
        if place is None:
            raise InvalidError(f"sort order {order.order_id}: its column {field.source_id} is not in the table")
        transform = transform_of(field, schema.find_type(field.source_id))
        columns.append(
            _SortColumn(
                PartitionColumn(place, transform),
                field.direction == SortDirection.DESC,
                field.null_order == NullOrder.NULLS_FIRST,
            )
        )
    return RowOrder(order.order_id, tuple(columns))


def _comparable(array: pa.Array) -> pa.Array:
    """The values in a form that Arrow sorts as Iceberg does."""
    if _TYPES.is_null(array.type):
        return pa.array(np.zeros(len(array), np.int8))
    if _TYPES.is_boolean(array.type):
        return array.cast(pa.int8())
    if not _TYPES.is_floating(array.type):
        return array
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    values = np.array(array.fill_null(0).to_numpy(zero_copy_only=False), np.float64)
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    # The bits of negative numbers ascend as the numbers descend.
    bits = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    return pa.array(bits, mask=mask)
