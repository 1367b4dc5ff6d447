"""Convert Arrow columns to texts and JSON values, for every type of a query result."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Up to this scale Arrow's text of a decimal has no exponent, which DuckDB does not parse for every DECIMAL.
PLAIN_SCALE = 6
_WHOLE_SECONDS = r"\.0+(Z?)$"


def text_array(array: pa.Array) -> pa.Array:
    """The values as texts; NULL stays NULL."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        return array.cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pc.replace_substring_regex(array.cast(pa.string()), _WHOLE_SECONDS, r"\1")
    if pa.types.is_decimal(kind) and kind.scale > PLAIN_SCALE:
        return _plain_decimals(array)
    if _is_arrow_text(kind):
        return array.cast(pa.string())
    if pa.types.is_nested(kind):
        return pa.array([None if value is None else json_text(value) for value in json_values(array)], pa.string())
    return pa.array([None if value is None else str(value) for value in json_values(array)], pa.string())


def _plain_decimals(array: pa.Array) -> pa.Array:
    """Decimals without an exponent."""
    texts = array.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return pa.array([None if value is None else format(value, "f") for value in array.to_pylist()], pa.string())


def json_values(array: pa.Array) -> list[Any]:
    """The values as JSON types. Decimals, times and bytes (as hex digits) are texts, and so are NaN and the infinities; rows
    and maps are objects."""
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_null(kind):
        return _listed(array)
    if pa.types.is_floating(kind):
        return [value if value is None or math.isfinite(value) else str(value) for value in array.to_pylist()]
    if pa.types.is_struct(kind):
        fields = [json_values(array.field(place)) for place in range(kind.num_fields)]
        names = [kind.field(place).name for place in range(kind.num_fields)]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*fields, strict=True)] if fields else []
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        # An array taken as a whole has no offset, so that its entries are those of its keys and items.
        whole = pa.concat_arrays([array]) if array.offset else array
        entries = pa.ListArray.from_arrays(
            whole.offsets, pa.StructArray.from_arrays([whole.keys, whole.items], ["k", "v"])
        )
        pairs = _lists(entries, whole.is_valid().to_pylist())
        return [None if row is None else {_key(pair["k"]): pair["v"] for pair in row} for row in pairs]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(array, array.is_valid().to_pylist())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or _is_arrow_text(kind):
        return _listed(text_array(array))
    return [None if value is None else str(value) for value in array.to_pylist()]


def json_text(value: object) -> str:
    """A value of `json_values` as JSON."""
    return json.dumps(value, ensure_ascii=False)


def rows_of(batch: pa.RecordBatch, values: Callable[[pa.Array], list[Any]]) -> list[tuple[Any, ...]]:
    """The rows of a batch, its columns converted to lists by `values`."""
    return list(zip(*(values(column) for column in batch.columns), strict=True))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column is right-aligned."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_arrow_text(kind: pa.DataType) -> bool:
    """Whether Arrow's own text of a value is the one to show."""
    simple = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_date)
    return any(is_kind(kind) for is_kind in (*simple, pa.types.is_large_string, pa.types.is_string_view))


def _lists(array: pa.Array, valid: list[bool]) -> list[Any]:
    values = json_values(array.flatten())
    found: list[Any] = []
    place = 0
    lengths = pc.list_value_length(array).to_pylist()
    for length, is_there in zip(lengths, valid, strict=True):
        size = length or 0
        found.append(values[place : place + size] if is_there else None)
        # Arrow leaves out the items of NULL lists when it flattens them.
        place += size if is_there else 0
    return found


def _key(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _listed(array: pa.Array) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found
