"""Find columns with NaN from the statistics of files, before they are merged.

A footer has no ranges of such columns, which is decided before the rows are read. Otherwise a merged file would be closed at
the first NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import decode_bounds
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, Atomic


def known_nan_columns(
    files: Iterable[DataFile], schema: TableSchema, schema_of: Callable[[int], TableSchema]
) -> frozenset[str]:
    """The columns of `schema` whose greatest value is NaN in some file."""
    names = {
        field.id: field.name for field in schema.fields if isinstance(field.type, Atomic) and field.type.kind in FLOATS
    }
    found: set[str] = set()
    for file in files if names else ():
        told = file.value_stats_columns
        fields = [field for field in schema_of(file.schema_id).fields if told is None or field.name in told]
        if len(found) == len(names) or not any(field.id in names for field in fields):
            continue
        stored = pa.array([file.value_stats.max_values], pa.binary())
        greatest = decode_bounds(stored, [field.type for field in fields])
        found.update(
            names[field.id]
            for field, bound in zip(fields, greatest, strict=True)
            if field.id in names and pa.types.is_floating(bound.type) and pc.is_nan(bound)[0].as_py()
        )
    return frozenset(found)
