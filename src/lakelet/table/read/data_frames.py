"""Convert Arrow tables to data frames of optional libraries."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.errors import InvalidError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def pandas_frame(rows: pa.Table, **options: Any) -> pd.DataFrame:
    """Convert rows to a pandas frame without changing any value.

    Integers and booleans with NULLs are of pandas' nullable types, as in DuckDB's own frames: as floating-point numbers they
    would be rounded beyond 2^53. Inside of lists, maps and ROWs there are no such types: except lists of numbers without NULL,
    which are arrays of numpy, nested values are Python's lists and dicts, maps lists of pairs. `options` are those of Arrow's
    `to_pandas`.
    """
    import pandas  # noqa: PLC0415

    if options.get("types_mapper") is not None:
        plain: pd.DataFrame = rows.to_pandas(**options)
        return plain
    # By position, for a query may return two columns of one name.
    placed = rows.rename_columns([str(place) for place in range(rows.num_columns)])
    usual = [field.name for field, column in zip(placed.schema, placed.columns, strict=True) if not _is_special(column)]
    frame: pd.DataFrame = placed.select(usual).to_pandas(**options)
    columns = {
        name: frame[name]
        if name in frame.columns
        else _special_series(placed.column(name), frame.index if usual else None)
        for name in placed.column_names
    }
    made = pandas.DataFrame(columns, index=None if usual else range(rows.num_rows), copy=False)
    made.columns = pandas.Index(rows.column_names)
    return made


def _is_special(column: pa.ChunkedArray) -> bool:
    """Whether Arrow would change values of a column for pandas."""
    kind = column.type
    if _is_whole(kind):
        return bool(column.null_count)
    if not pa.types.is_nested(kind):
        return False
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list and (_is_whole(kind.value_type) or pa.types.is_floating(kind.value_type)):
        return any(chunk.flatten().null_count for chunk in column.chunks)
    return True


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _special_series(column: pa.ChunkedArray, index: pd.Index | None) -> pd.Series[Any]:
    import pandas  # noqa: PLC0415

    if not _is_whole(column.type):
        return pandas.Series(column.to_pylist(), dtype=object, index=index)
    name = "boolean" if pa.types.is_boolean(column.type) else str(column.type).replace("u", "U").replace("i", "I", 1)
    nullable: Any = pandas.api.types.pandas_dtype(name)
    return pandas.Series(nullable.__from_arrow__(column), index=index)


def polars_frame(rows: pa.Table) -> pl.DataFrame:
    """Convert rows to a polars frame."""
    import polars  # noqa: PLC0415

    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    return frame


def require(package: str, what: str) -> None:
    """InvalidError unless an optional package is installed."""
    if find_spec(package) is None:
        raise InvalidError(f"{what} needs the {package} package: pip install {package}")
