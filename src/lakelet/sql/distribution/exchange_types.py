"""How values travel between nodes as Arrow, so that they arrive as they were: which types do, and the SQL on both sides.

Arrow has no integer of 128 bits: those travel as text. A query with a column of a type that is not listed stays on one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_AS_ARROW = frozenset(
    (
        *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
        *("float", "double", "decimal", "varchar", "blob", "date", "timestamp", "timestamp with time zone"),
    )
)
_AS_TEXT = frozenset(("hugeint", "uhugeint"))


def sent(names: Sequence[str], types: Sequence[Any]) -> str | None:
    """The items of a SELECT that sends columns; None where one of them does not travel."""
    items = []
    for name, kind in zip(names, types, strict=True):
        if str(kind.id) in _AS_TEXT:
            items.append(f"CAST({name} AS VARCHAR) AS {name}")
        elif _travels(kind):
            items.append(name)
        else:
            return None
    return ", ".join(items)


def received(names: Sequence[str], types: Sequence[Any], shown: Sequence[str] | None = None) -> str:
    """The items of a SELECT that makes columns of their types from those that arrived; `shown` are their names there."""
    found = zip(names, types, names if shown is None else shown, strict=True)
    return ", ".join(f"CAST({name} AS {kind}) AS {other}" for name, kind, other in found)


def is_plain(kind: Any) -> bool:
    """Whether values of a type are the same as text and back."""
    return str(kind.id) in _AS_TEXT or (str(kind.id) not in ("list", "struct") and _travels(kind))


def _travels(kind: Any) -> bool:
    match str(kind.id):
        case "list":
            return _travels(kind.children[0][1])
        case "struct":
            return all(_travels(child) for _, child in kind.children)
        case found:
            # A type of an extension, such as JSON, is a VARCHAR under a name of its own.
            return found in _AS_ARROW and (found != "varchar" or str(kind) == "VARCHAR")
