"""Format values as the text that system tables show, whole columns at a time.

    {2024-01-01, 7}           a partition: values as SQL casts them to text
    [abc, 19723]              a key: values as Java prints what it holds in memory, a date as days since 1970
    {amount=1.5, id=null}     values by column, in the order of the names, printed as in keys

Text, whole numbers, booleans and dates are formatted by Arrow. Others are formatted in Python, once per distinct value.
Binaries in keys are hexadecimal, for what Java prints of them (an object address) is meaningless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.model.partition_path import partition_text
from lakelet.model.types import BINARIES, INTEGERS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

_MICRO = 6
_NULL = "null"


def value_texts(values: pa.Array, data_type: DataType, *, cast: bool) -> pa.Array:
    """The values as text, as SQL casts them or as Java prints them; NULL stays NULL."""
    if not isinstance(data_type, Atomic) or values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    kind = data_type.kind
    if kind in STRINGS or kind in INTEGERS or kind is Kind.BOOLEAN or (kind is Kind.DATE and cast):
        return values.cast(pa.string())
    if kind is Kind.DATE:
        return values.cast(pa.int32()).cast(pa.string())
    if kind in TIMESTAMPS and data_type.precision > _MICRO:
        values = values.cast(pa.int64())
    encoded = values.dictionary_encode()
    texts = [_text(value, data_type, cast=cast) for value in encoded.dictionary]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _text(scalar: pa.Scalar, data_type: Atomic, *, cast: bool) -> str | None:
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        # A timestamp beyond the year 9999, which other writers allow, is no Python value: it is shown as NULL.
        return None
    is_hex = data_type.kind in BINARIES and not cast
    return str(value.hex()) if is_hex else partition_text(data_type, value, legacy=not cast)


def partition_texts(columns: Sequence[pa.Array], types: Sequence[DataType], count: int) -> pa.Array:
    """`{value, value}` of each of `count` partitions."""
    texts = [value_texts(column, data_type, cast=True) for column, data_type in zip(columns, types, strict=True)]
    return _enclosed(texts, count, "{", "}")


def key_texts(columns: Sequence[pa.Array], types: Sequence[DataType], count: int) -> pa.Array:
    """`[value, value]` of each of `count` keys."""
    texts = [value_texts(column, data_type, cast=False) for column, data_type in zip(columns, types, strict=True)]
    return _enclosed(texts, count, "[", "]")


def named_texts(columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    """`{name=value, name=value}` of `count` rows; the values are text."""
    texts = [
        pc.binary_join_element_wise(f"{name}=", columns[name], "", null_handling="replace", null_replacement=_NULL)
        for name in sorted(columns)
    ]
    return _enclosed(texts, count, "{", "}")


def _enclosed(texts: Sequence[pa.Array], count: int, opening: str, closing: str) -> pa.Array:
    if not texts:
        return pa.repeat(pa.scalar(opening + closing), count)
    inside = pc.binary_join_element_wise(*texts, ", ", null_handling="replace", null_replacement=_NULL)
    return pc.binary_join_element_wise(opening, inside, closing, "")
