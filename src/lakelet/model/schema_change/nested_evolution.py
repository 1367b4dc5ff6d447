"""Evolution of nested types: what may change inside ARRAY, MAP and ROW while every old file stays readable.

    ROW<a INT, b STRING>  ->  ROW<a BIGINT, c DATE, b STRING>     a is wider, c is new: NULL in rows written before
    ARRAY<INT>            ->  ARRAY<BIGINT>
    MAP<STRING, INT>      ->  MAP<STRING, BIGINT>                 keys stay as they are

Fields of a ROW are the same ones if they have the same name, and keep their ids and their order; new ones get ids that were
never used. Leaving a field out does not drop it: `drop_column` does. Pure functions on types, used by `evolution`.
"""

from __future__ import annotations

from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.model.schema_change.widening import check_widening
from lakelet.model.types import Array, Atomic, DataType, Field, Map, Row, renumber


def evolved_type(old: DataType, new: DataType, where: str, next_id: int) -> tuple[DataType, int]:
    """The new type with the ids of the old one where a field stays, others counted from `next_id`; and the next free id.

    InvalidError unless every old value can be read as one of the new type.
    """
    match old, new:
        case Array(was), Array(becomes):
            element, next_id = _inner(was, becomes, f"{where}.element", next_id)
            return replace(new, element=element), next_id
        case Map(key, was), Map(new_key, becomes):
            if _plain(key) != _plain(new_key):
                raise InvalidError(
                    f"column {where!r} cannot change from {old} to {new}: the type of its keys must stay"
                )
            value, next_id = _inner(was, becomes, f"{where}.value", next_id)
            return replace(new, key=key, value=value), next_id
        case Row(), Row():
            return _evolved_row(old, new, where, next_id)
        case Atomic(), Atomic():
            check_widening(old, new, where)
            return new, next_id
        case _:
            if _plain(old) == _plain(new):
                return replace(old, nullable=new.nullable), next_id
            raise InvalidError(
                f"column {where!r} cannot change from {old} to {new}: only a type that holds every {old} value is accepted"
            )


def _inner(old: DataType, new: DataType, where: str, next_id: int) -> tuple[DataType, int]:
    if old.nullable and not new.nullable:
        raise InvalidError(f"column {where!r} is nullable and cannot become NOT NULL: rows may hold NULL")
    return evolved_type(old, new, where, next_id)


def _evolved_row(old: Row, new: Row, where: str, next_id: int) -> tuple[Row, int]:
    before = {field.name: field for field in old.fields}
    after = [field.name for field in new.fields]
    lost = [name for name in before if name not in after]
    if lost:
        raise InvalidError(
            f"column {where!r} cannot change from {old} to {new}: only a type that holds every {old} value is accepted, and "
            f"field {lost[0]!r} is left out; drop {f'{where}.{lost[0]}'!r} if that is meant"
        )
    if list(before) != [name for name in after if name in before]:
        raise InvalidError(f"column {where!r}: the fields that stay ({', '.join(before)}) must keep their order")
    fields: list[Field] = []
    for field in new.fields:
        path = f"{where}.{field.name}"
        was = before.get(field.name)
        if was is not None:
            data_type, next_id = _inner(was.type, field.type, path, next_id)
            comment = was.description if field.description is None else field.description
            fields.append(replace(was, type=data_type, description=comment))
            continue
        if not field.type.nullable:
            raise InvalidError(
                f"column {path!r}: a column added to a table must be nullable, for rows written before have NULL in it"
            )
        own = next_id
        data_type, next_id = renumber(field.type, own + 1)
        fields.append(replace(field, id=own, type=data_type))
    return replace(new, fields=tuple(fields)), next_id


def _plain(data_type: DataType) -> str:
    """A type's text without its own NOT NULL; ids and comments are no part of it."""
    return str(data_type).removesuffix(" NOT NULL")
