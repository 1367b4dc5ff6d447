"""Compare rows pair by pair: the same comparison as between two versions, without looking for the pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelet.model.row_arrays import Mask
from lakelet.predicate.instance import open_instance
from lakelet.read.changes.value_comparison import differs


def changed_values(before: pa.RecordBatch, after: pa.RecordBatch) -> Mask:
    """In which places the rows of two batches of the same columns and the same length differ."""
    changed = np.zeros(before.num_rows, np.bool_)
    if not before.num_rows or not before.num_columns:
        return changed
    # Columns are named by number, for DuckDB's names are case-insensitive.
    sides = {"b": before, "a": after}
    arrays = {f"{side}{place}": column for side, rows in sides.items() for place, column in enumerate(rows.columns)}
    pairs = pa.table({**arrays, "place": pa.array(np.arange(before.num_rows))})
    connection = open_instance(":memory:", {})
    try:
        connection.register("pairs", pairs)
        condition = " OR ".join(
            differs(field.type, f"b{place}", f"a{place}") for place, field in enumerate(before.schema)
        )
        found = connection.sql(f"SELECT place FROM pairs WHERE {condition}").to_arrow_table()
    finally:
        connection.close()
    changed[found.column("place").to_numpy()] = True
    return changed
