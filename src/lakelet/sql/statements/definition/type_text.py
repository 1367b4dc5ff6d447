"""Generate CREATE TABLE text from schemas: types, names and literals that `type_words` and the other parsers read back unchanged.

Names are in backticks, so that other engines that support the format can parse the text too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from lakelet.errors import InvalidError
from lakelet.model.default_expressions import default_expression_key, default_expressions
from lakelet.model.schema import TableSchema
from lakelet.model.types import (
    FLOATS,
    INTEGERS,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
    with_nullable,
)
from lakelet.predicate.default_expression import DefaultExpression

# An expression that needs no parentheses around it.
_PLAIN = re.compile(r"[A-Za-z_]+(\(\))?")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def quoted_name(name: str) -> str:
    """A quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """A text literal."""
    return "'" + text.replace("'", "''") + "'"


def type_text(data_type: DataType) -> str:
    """A type with its nested types and their comments."""
    match data_type:
        case Atomic():
            return str(data_type)
        case Array(element):
            text = f"ARRAY<{type_text(element)}>"
        case Multiset(element):
            text = f"MULTISET<{type_text(element)}>"
        case Map(key, value):
            text = f"MAP<{type_text(key)}, {type_text(value)}>"
        case Row(fields):
            text = f"ROW<{', '.join(_member(field) for field in fields)}>"
    return text if data_type.nullable else f"{text} NOT NULL"


def bare_type_text(data_type: DataType) -> str:
    """A type without its own NOT NULL."""
    return type_text(with_nullable(data_type, True))


def create_text(name: str, schema: TableSchema) -> str:
    """The CREATE TABLE statement that makes a table of that name (its parts quoted) with this schema."""
    expressions = written_expressions(schema)
    lines = [column_text(field, expressions) for field in schema.fields]
    if schema.primary_keys:
        lines.append(f"PRIMARY KEY ({_names(schema.primary_keys)}) NOT ENFORCED")
    text = f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + "\n)"
    if schema.comment is not None:
        text += f" COMMENT {quoted_text(schema.comment)}"
    if schema.partition_keys:
        text += f"\nPARTITIONED BY ({_names(schema.partition_keys)})"
    said = {default_expression_key(name) for name in expressions}
    options = [f"{quoted_text(key)} = {quoted_text(value)}" for key, value in schema.options.items() if key not in said]
    if options:
        text += "\nWITH (\n  " + ",\n  ".join(options) + "\n)"
    return text


def written_expressions(schema: TableSchema) -> dict[str, str]:
    """The default expressions of columns, as SQL. A text stored by others that is no valid expression could inject more than an
    expression into a statement, and is left out."""
    found = {}
    for name, text in default_expressions(schema).items():
        with suppress(InvalidError):
            DefaultExpression.parse(name, text)
            end = "\n" if "--" in text else ""
            found[name] = text if _PLAIN.fullmatch(text) else f"({text}{end})"
    return found


def default_text(field: Field, expressions: Mapping[str, str]) -> str | None:
    """A column's default: a literal, or one of the expressions."""
    if field.default is None:
        return expressions.get(field.name)
    numeric = isinstance(field.type, Atomic) and field.type.kind in (*INTEGERS, *FLOATS, Kind.DECIMAL)
    return field.default if numeric and _NUMBER.fullmatch(field.default) else quoted_text(field.default)


def column_text(field: Field, expressions: Mapping[str, str] | None = None) -> str:
    """A column's definition."""
    default = default_text(field, expressions or {})
    return _member(field) + ("" if default is None else f" DEFAULT {default}")


def _member(field: Field) -> str:
    comment = "" if field.description is None else f" COMMENT {quoted_text(field.description)}"
    return f"{quoted_name(field.name)} {type_text(field.type)}{comment}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted_name, names))
