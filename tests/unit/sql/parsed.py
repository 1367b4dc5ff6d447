"""Queries parsed by DuckDB, for tests of what is read out of their trees."""

from __future__ import annotations

from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sql.engine.duckdb_engine import Engine
from lakelet.sql.query.parse_tree import Node, Reference, references

FIELDS = (
    Field(0, "id", parse_type("INT")),
    Field(1, "v", parse_type("STRING")),
    Field(2, "n", parse_type("DECIMAL(10, 2)")),
    Field(3, "day", parse_type("DATE")),
    Field(4, "ts", parse_type("TIMESTAMP(6)")),
)


def parsed(text: str) -> Node:
    """The tree of a query."""
    engine = Engine()
    with engine.space() as space:
        tree = space.tree(text)
    engine.close()
    return tree


def uses_of(text: str, table: str = "t") -> list[Reference]:
    """Where a query names a table."""
    return [one for one in references(parsed(text)) if one.parts[-1].lower() == table]
