"""Encode rows as JSON objects, a batch at a time: columns become JSON texts, which are joined row by row in Arrow."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.sql.files.cell_values import json_text, json_values, text_array

_CONTROL = "[\x00-\x1f]"


def json_objects(batch: pa.RecordBatch, between: str) -> str:
    """The rows of a batch, each as an object, with a separator between them."""
    if not batch.num_columns:
        return between.join(["{}"] * batch.num_rows)
    parts: list[object] = []
    for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [f"{', ' if place else '{'}{json_text(name)}: ", json_texts(column)]
    return _joined(pc.binary_join_element_wise(*parts, "}", ""), between)


def json_texts(array: pa.Array) -> pa.Array:
    """The values as JSON; NULL is null. They are those of `json_values`."""
    kind = array.type
    types = pa.types
    if types.is_integer(kind) or types.is_boolean(kind):
        texts = array.cast(pa.string())
    elif types.is_floating(kind):
        # As an integer a zero would lose its sign.
        numbers = pc.replace_substring_regex(array.cast(pa.string()), "^-0$", "-0.0")
        texts = pc.if_else(pc.is_finite(array), numbers, _in_quotes(numbers))
    elif types.is_string(kind):
        texts = _quoted(array)
    elif any(is_kind(kind) for is_kind in (types.is_decimal, types.is_date, types.is_time, types.is_timestamp)):
        texts = _in_quotes(text_array(array))
    else:
        texts = pa.array([None if value is None else json_text(value) for value in json_values(array)], pa.string())
    return pc.fill_null(texts, "null")


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings."""
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(escaped, _CONTROL)).as_py():
        for letter in sorted(set(re.findall(_CONTROL, _joined(escaped.drop_null(), "")))):
            escaped = pc.replace_substring(escaped, letter, json_text(letter)[1:-1])
    return _in_quotes(escaped)


def _in_quotes(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _joined(texts: pa.Array, between: str) -> str:
    """Concatenate texts, none of them NULL."""
    found: str = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), between)[0].as_py()
    return found
