"""Merge a column's type with that of incoming rows, without narrowing anything."""

from __future__ import annotations

from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.model.schema_change.widening import check_widening
from lakelet.model.types import (
    BINARIES,
    FLOATS,
    INTEGERS,
    STRINGS,
    TIMESTAMPS,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Row,
    with_nullable,
)

_MOST_DIGITS = 38
_FAMILIES = (INTEGERS, FLOATS, STRINGS, BINARIES, TIMESTAMPS)


def merged_type(old: DataType, new: DataType, *, widens: bool) -> DataType:
    """The old type with the fields that ROWs of the new one have besides, and, if it `widens`, with wider types of one family:
    integers, floating-point numbers, decimals, text, bytes, timestamps. What has no common type stays."""
    match old, new:
        case Row(fields), Row(others):
            return replace(old, fields=_merged_fields(fields, others, widens=widens))
        case Array(element), Array(other):
            return replace(old, element=merged_type(element, other, widens=widens))
        case Map(_, value), Map(_, other):
            return replace(old, value=merged_type(value, other, widens=widens))
        case Atomic(), Atomic() if widens:
            return with_nullable(_wider(old, new), old.nullable)
        case _:
            return old


def nullable_type(data_type: DataType) -> DataType:
    """A type that may be NULL, and the fields inside it too."""
    if isinstance(data_type, Row):
        fields = tuple(replace(field, type=nullable_type(field.type)) for field in data_type.fields)
        return replace(data_type, fields=fields, nullable=True)
    return with_nullable(data_type, True)


def _merged_fields(fields: tuple[Field, ...], others: tuple[Field, ...], *, widens: bool) -> tuple[Field, ...]:
    incoming = {field.name: field for field in others}
    kept = [
        replace(field, type=merged_type(field.type, incoming[field.name].type, widens=widens))
        if field.name in incoming
        else field
        for field in fields
    ]
    known = {field.name for field in fields}
    added = [Field(-1, one.name, nullable_type(one.type)) for one in others if one.name not in known]
    return (*kept, *added)


def _wider(old: Atomic, new: Atomic) -> Atomic:
    if old.kind is Kind.DECIMAL and new.kind is Kind.DECIMAL:
        scale = max(old.scale, new.scale)
        precision = max(old.precision - old.scale, new.precision - new.scale) + scale
        return replace(old, precision=precision, scale=scale) if precision <= _MOST_DIGITS else old
    if not any(old.kind in family and new.kind in family for family in _FAMILIES):
        return old
    try:
        check_widening(old, new, "")
    except InvalidError:
        return old
    return new
