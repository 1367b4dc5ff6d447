"""Check the `where=` argument of scans and deletes, and parse it against a schema."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.scan.plan import Where

Condition: TypeAlias = "str | pc.Expression"


def check_condition(where: object) -> None:
    """InvalidError for what is neither SQL text nor a pyarrow expression."""
    if where is not None and not isinstance(where, (str, pc.Expression)):
        raise InvalidError(f"where: expected SQL text or a pyarrow expression, found {type(where).__name__}")


def parsed_condition(where: Condition | None, schema: TableSchema) -> Where:
    """Parse a condition into a predicate on the columns of a schema."""
    if where is None or isinstance(where, pc.Expression):
        return where
    from lakelet.predicate.where import parse_where  # noqa: PLC0415 - the parser takes half a second to load.

    return parse_where(where, schema.fields)
