"""Arrow tables as data frames of optional libraries."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.errors import InvalidError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def pandas_frame(rows: pa.Table, **options: Any) -> pd.DataFrame:
    """Rows as a pandas frame."""
    frame: pd.DataFrame = rows.to_pandas(**options)
    return frame


def polars_frame(rows: pa.Table) -> pl.DataFrame:
    """Rows as a polars frame."""
    import polars  # noqa: PLC0415

    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    return frame


def require(package: str, what: str) -> None:
    """InvalidError unless an optional package is installed."""
    if find_spec(package) is None:
        raise InvalidError(f"{what} needs the {package} package: pip install {package}")
