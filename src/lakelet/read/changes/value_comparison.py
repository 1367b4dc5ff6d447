"""SQL expressions by which DuckDB tells values apart exactly as a table does.

value            DuckDB                         here
0.0 and -0.0     equal                          different, also inside of lists, structs and maps
a map            its entries as they are stored its entries in whatever order they are stored
NaN, NULL        equal to themselves            the same
"""

from __future__ import annotations

import pyarrow as pa


def differs(arrow: pa.DataType, left: str, right: str) -> str:
    """A condition that holds where two values are different ones."""
    found = f"{comparable(arrow, left)} IS DISTINCT FROM {comparable(arrow, right)}"
    if pa.types.is_floating(arrow):
        return f"{found} OR {is_negative(left)} <> {is_negative(right)}"
    return found


def is_negative(number: str) -> str:
    """Whether a number has a sign, which is what tells two zeros apart."""
    return f"coalesce(NOT isnan({number}) AND signbit({number}), false)"


def comparable(arrow: pa.DataType, value: str, depth: int = 0) -> str:
    """An expression that is the same for equal values: nested numbers carry their sign, and entries of maps are put into the
    order of their keys. A number that is not nested is itself."""
    if not has_map(arrow) and not (pa.types.is_nested(arrow) and has_float(arrow)):
        return value
    item = f"e{depth}"
    if pa.types.is_map(arrow):
        inner = [("key", arrow.key_type), ("value", arrow.item_type)]
        entry = ", ".join(f"'{name}': {_member(part, f'{item}.{name}', depth + 1)}" for name, part in inner)
        return f"list_sort(list_transform(map_entries({value}), lambda {item}: {{{entry}}}))"
    if pa.types.is_struct(arrow):
        fields = [arrow.field(number) for number in range(arrow.num_fields)]
        members = [
            f"m{number} := {_member(field.type, f'{value}.{_quoted(field.name)}', depth)}"
            for number, field in enumerate(fields)
        ]
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({', '.join(members)}) END"
    return f"list_transform({value}, lambda {item}: {_member(arrow.value_type, item, depth + 1)})"


def has_map(arrow: pa.DataType) -> bool:
    """Whether values of a type are maps, or have some in them."""
    return pa.types.is_map(arrow) or any(map(has_map, _parts(arrow)))


def has_float(arrow: pa.DataType) -> bool:
    """Whether values of a type are floating-point numbers, or have some in them."""
    return pa.types.is_floating(arrow) or any(map(has_float, _parts(arrow)))


def _member(arrow: pa.DataType, value: str, depth: int) -> str:
    if pa.types.is_floating(arrow):
        return f"{{'number': {value}, 'is_negative': {is_negative(value)}}}"
    return comparable(arrow, value, depth)


def _parts(arrow: pa.DataType) -> list[pa.DataType]:
    return [arrow.field(number).type for number in range(arrow.num_fields)] if pa.types.is_nested(arrow) else []


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
