"""Find columns that hold a NaN: their ranges must not be written to a file's footer."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def nan_columns(rows: pa.Table | pa.RecordBatch) -> frozenset[str]:
    """The floating-point columns that hold a NaN."""
    floats = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
    return frozenset(name for name in floats if pc.any(pc.is_nan(rows.column(name))).as_py())
