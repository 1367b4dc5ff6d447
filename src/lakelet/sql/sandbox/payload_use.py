"""Find which payload fields a query names, where it uses payloads field by field alone.

A field that no name in the query can mean is left out of the view of its table: DuckDB reads whole structs where one of their
fields has to be converted, and takes three times as long for it. Should a use be overlooked here, the query fails to bind; rows
that lack a field are never returned, for a query that may use a payload, or a row, as a whole gets all of it.
"""

from __future__ import annotations

from dataclasses import replace

from lakelet.model.types import Field, Row
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.sandbox.allow_list import nodes
from lakelet.sql.sandbox.sandbox_table import PAYLOAD


def named_parts(tree: Node) -> frozenset[str] | None:
    """All parts of the names of columns in a query, in lower case; None where it may use a payload as a whole."""
    wholes = {PAYLOAD}
    parts: set[str] = set()
    lasts: set[str] = set()
    for node in nodes(tree):
        if node.get("class") in ("STAR", "POSITIONAL_REFERENCE") or node.get("type") == "PIVOT":
            return None
        if node.get("class") == "COLUMN_REF":
            names = [str(name).lower() for name in node.get("column_names", ())]
            parts.update(names)
            lasts.update(names[-1:])
        elif node.get("type") == "BASE_TABLE":
            if node.get("column_name_alias"):
                return None
            # A table's name is a value, too: its whole row.
            path = node.get("qualified_name", {}).get("path", ())
            wholes.update(str(name).lower() for name in (node.get("alias"), *path) if name)
        elif node.get("ref_type") == "NATURAL" or PAYLOAD in _lowered(node.get("using_columns")):
            return None
    return None if wholes & lasts else frozenset(parts)


def narrowed(payload: Field, parts: frozenset[str]) -> Field | None:
    """The payload with the fields alone that a query names; None where it names none, or where names differ in case alone."""
    if not isinstance(payload.type, Row):
        return None
    names = [field.name.lower() for field in payload.type.fields]
    used = tuple(field for field in payload.type.fields if field.name.lower() in parts)
    if not used or len(set(names)) < len(names):
        return None
    return replace(payload, type=replace(payload.type, fields=used))


def _lowered(names: object) -> list[str]:
    return [str(name).lower() for name in names] if isinstance(names, list) else []
