"""Default expressions of columns as a schema stores them: one option for each column.

    fields.created.default-expression = current_timestamp

The `defaultValue` of a column is literal text to every engine of the format, and would be stored as that very text.
"""

from __future__ import annotations

from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import FIELD_DEFAULT_EXPRESSION, TableOptions


def default_expression_key(column: str) -> str:
    """The option that holds the expression of a column."""
    return FIELD_DEFAULT_EXPRESSION.name.replace("<column>", column)


def default_expressions(schema: TableSchema) -> dict[str, str]:
    """The expressions by column. A literal default takes precedence: another engine set it later, since Lakelet removes the
    expression when it sets a literal."""
    found = TableOptions(schema.options).get_family(FIELD_DEFAULT_EXPRESSION)
    if not found:
        return {}
    literal = {field.name for field in schema.fields if field.default is not None}
    return {name: str(found[name]) for name in schema.names if name in found and name not in literal}


def default_of(column: Field, schema: TableSchema) -> str | None:
    """The default of a column of a schema as text, for people: a literal or an expression."""
    return column.default if column.default is not None else default_expressions(schema).get(column.name)


def misplaced_expression(schema: TableSchema) -> str | None:
    """The error text for an expression of a column that does not exist or has a literal default as well; None without one."""
    for name in TableOptions(schema.options).get_family(FIELD_DEFAULT_EXPRESSION):
        key = default_expression_key(name)
        if name not in schema.names:
            return f"option {key!r}: the table has no column {name!r}; its columns are {', '.join(schema.names)}"
        if schema.field(name).default is not None:
            return (
                f"option {key!r}: column {name!r} has the literal {schema.field(name).default!r} as its default as well"
            )
    return None
