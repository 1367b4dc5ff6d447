"""Default values, filled in when rows are written without the column."""

from __future__ import annotations

import pyarrow as pa

from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.literals import parse_literal
from lakelet.model.types import Field


def default_array(field: Field, rows: int) -> pa.Array:
    """The column's default for every row, NULL where it has none."""
    if field.default is None:
        return pa.nulls(rows, to_arrow(field.type))
    return pa.repeat(parse_literal(field.default, field.type, f"default of column {field.name!r}"), rows)
