"""Parse a column's type as callers give it: text, an Arrow type, or the type itself."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType

TypeLike: TypeAlias = str | pa.DataType | DataType


def as_type(data_type: TypeLike, where: str) -> DataType:
    """A logical type from its text, an Arrow type or itself."""
    if isinstance(data_type, str):
        return parse_type(data_type)
    if isinstance(data_type, pa.DataType):
        return from_arrow(data_type, where=where)
    if isinstance(data_type, DataType):
        return data_type
    raise InvalidError(f"{where}: expected a type such as 'BIGINT' or pyarrow.int64(), found {data_type!r}")
