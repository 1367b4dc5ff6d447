"""The arguments that define a table, in the forms in which callers give them: columns, key columns, options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from lakelet.catalog.frame_columns import frame_schema
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.model.arrow.given_type import TypeLike, as_type
from lakelet.model.text import check_text
from lakelet.model.types import Atomic, Field, Kind
from lakelet.options import Option, TableOptions

Columns: TypeAlias = pa.Schema | Sequence[tuple[str, TypeLike]] | Sequence[Field]


def option_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Options as the texts that a schema stores."""
    if not isinstance(options, Mapping):
        raise InvalidError(
            f"options: expected a mapping of names to values, found {options!r} of type {type(options).__name__}"
        )
    return {
        key: ("true" if value else "false") if isinstance(value, bool) else str(value) for key, value in options.items()
    }


def given_names(given: Sequence[str] | None) -> Sequence[str]:
    """Column names; one may be given by itself, and None are none."""
    if given is not None and not isinstance(given, (str, Sequence)):
        raise InvalidError(
            f"expected the name of a column or a list of names, found {given!r} of type {type(given).__name__}"
        )
    return (given,) if isinstance(given, str) else given or ()


def moved_keys(options: dict[str, str], option: Option[tuple[str, ...] | None], given: Sequence[str]) -> Sequence[str]:
    """Key columns given as an option; the option is removed."""
    named = TableOptions(options).get(option)
    if not named:
        return given
    if given and tuple(given) != named:
        raise InvalidError(f"option {option.name!r} names {', '.join(named)}, but {', '.join(given)} was given as well")
    del options[option.name]
    return named


def named_by_days(fields: Sequence[Field], partitioned_by: Sequence[str]) -> bool:
    """Whether partition folders would be named by internal numbers (of days and the like), where people expect
    `day=2026-01-03`.

    TIMESTAMP_LTZ is not among them: other engines spell it in the zone of their machine.
    """
    kinds = [field.type.kind for field in fields if field.name in partitioned_by and isinstance(field.type, Atomic)]
    return bool({Kind.DATE, Kind.TIME, Kind.TIMESTAMP} & set(kinds)) and Kind.TIMESTAMP_LTZ not in kinds


def given_fields(columns: Columns | Any) -> list[Field]:
    """The columns of a table in any of the forms in which they are given."""
    columns = frame_schema(columns) or columns
    if isinstance(columns, (Mapping, str)) or not isinstance(columns, (pa.Schema, Iterable)):
        raise InvalidError(
            f"columns: expected an Arrow schema or a list of (name, type) pairs, found a {type(columns).__name__}"
        )
    if isinstance(columns, pa.Schema):
        fields = []
        for column in columns:
            data_type = from_arrow(column.type, nullable=column.nullable, where=f"column {column.name!r}")
            comment = (column.metadata or {}).get(b"comment")
            fields.append(Field(-1, column.name, data_type, comment.decode() if comment else None))
        return fields
    return [column if isinstance(column, Field) else _pair(column) for column in columns]


def _pair(column: object) -> Field:
    if not isinstance(column, (tuple, list)) or len(column) != 2:
        raise InvalidError(f"column {column!r}: expected a pair of name and type, such as ('id', 'BIGINT')")
    name, data_type = column
    return Field(-1, check_text(name, "name of a column"), as_type(data_type, f"column {name!r}"))
