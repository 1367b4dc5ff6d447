"""Name the fields of unnamed rows, for columns of type ROW: values are matched by position.

    (7, 'w') and ROW(7, 'w') into ROW<x INT, y STRING>     {'x': 7, 'y': 'w'}

DuckDB returns such a row to Arrow as a struct of `element1`, `element2`, … Names are matched without regard to case, and the
target's are written.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.model.types import Array, Map, Row
from lakelet.model.types import DataType as TableType
from lakelet.sql.lexer.quotes import quoted

_UNNAMED = "element{}"


def with_names(expression: str, given: pa.DataType, wanted: TableType, depth: int = 0) -> tuple[str, pa.DataType]:
    """SQL for the same value with the field names of the target, and its type; unchanged if it has names."""
    if isinstance(wanted, Array) and (pa.types.is_list(given) or pa.types.is_large_list(given)):
        item = f"x{depth}"
        inner, kind = with_names(item, given.value_type, wanted.element, depth + 1)
        return (
            (expression, given)
            if inner == item
            else (f"list_transform({expression}, lambda {item}: {inner})", pa.list_(kind))
        )
    if isinstance(wanted, Map) and pa.types.is_map(given):
        return _map_with_names(expression, given, wanted, depth)
    if not isinstance(wanted, Row) or not pa.types.is_struct(given):
        return expression, given
    fields = list(wanted.fields)
    if _is_positional(given, wanted):
        pairs = list(zip(given, fields, strict=True))
    else:
        exact, known = {one.name: one for one in fields}, {one.name.lower(): one for one in fields}
        if any(inner.name.lower() not in known for inner in given):
            return expression, given
        pairs = [(inner, exact.get(inner.name) or known[inner.name.lower()]) for inner in given]
    items, kinds, changed = [], [], False
    for place, (inner, field) in enumerate(pairs, 1):
        part = f"struct_extract_at({expression}, {place})"
        value, kind = with_names(part, inner.type, field.type, depth)
        # Also where the case alone differs: to a cast of DuckDB both are one type, and the given names stay.
        changed = changed or value != part or inner.name != field.name
        items.append(f"{quoted(field.name)} := {value}")
        kinds.append(pa.field(field.name, kind))
    if not changed:
        return expression, given
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE struct_pack({', '.join(items)}) END", pa.struct(kinds)


def _map_with_names(expression: str, given: pa.MapType, wanted: Map, depth: int) -> tuple[str, pa.DataType]:
    """The same for the keys and values of a map."""
    item = f"x{depth}"
    parts = f"{item}.key", f"{item}.value"
    key, key_kind = with_names(parts[0], given.key_type, wanted.key, depth + 1)
    value, value_kind = with_names(parts[1], given.item_type, wanted.value, depth + 1)
    if (key, value) == parts:
        return expression, given
    entries = f"list_transform(map_entries({expression}), lambda {item}: struct_pack(key := {key}, value := {value}))"
    named = f"CASE WHEN {expression} IS NULL THEN NULL ELSE map_from_entries({entries}) END"
    return named, pa.map_(key_kind, value_kind)


def _is_positional(given: pa.StructType, wanted: Row) -> bool:
    unnamed = [_UNNAMED.format(place) for place in range(1, given.num_fields + 1)]
    names = [inner.name for inner in given]
    has_names = any(one.name.lower() in unnamed for one in wanted.fields)
    return names == unnamed and given.num_fields == len(wanted.fields) and not has_names
