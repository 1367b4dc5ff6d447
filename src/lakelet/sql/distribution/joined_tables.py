"""Which of the joined tables of a query may be split: those of which each joined row has exactly one row.

    a JOIN b      either                 a LEFT JOIN b, a SEMI JOIN b, a ANTI JOIN b     a
    a, b          either                 a RIGHT JOIN b     b                            a FULL JOIN b     none

With the shares of such a table, and all rows of the others, the joined rows of all shares are those of the whole.
"""

from __future__ import annotations

from lakelet.sql.distribution.row_expressions import Columns, NotSplitError, check_row_expression
from lakelet.sql.query.parse_tree import Node

_PLACES = ("type", "query_location", "query_location_length", "alias")
_TABLE = frozenset((*_PLACES, "schema_name", "table_name", "qualified_name"))
_JOIN = frozenset((*_PLACES, "left", "right", "condition", "join_type", "ref_type", "using_columns", "is_implicit"))
_SIDES = {"INNER": ("left", "right"), "LEFT": ("left",), "SEMI": ("left",), "ANTI": ("left",), "RIGHT": ("right",)}


def splittable(source: Node, columns: Columns | None) -> list[Node]:
    """The references to tables that may be split; NotSplitError for what is not understood. Without columns, conditions are not
    looked at."""
    if source.get("type") == "BASE_TABLE":
        if set(source) - _TABLE:
            raise NotSplitError
        return [source]
    if source.get("type") != "JOIN" or set(source) - _JOIN or source.get("alias"):
        raise NotSplitError
    if source.get("ref_type", "REGULAR") not in ("REGULAR", "CROSS"):
        raise NotSplitError
    found = {side: splittable(source[side], columns) for side in ("left", "right")}
    if "condition" in source and columns is not None:
        check_row_expression(source["condition"], columns)
    sides = _SIDES.get(source.get("join_type", "INNER"), ())
    return [one for side in sides for one in found[side]]
