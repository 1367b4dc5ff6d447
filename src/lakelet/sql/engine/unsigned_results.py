"""Give DuckDB's UHUGEINT to Arrow through HUGEINT.

Arrow has no integer of 128 bits. DuckDB exports both as a decimal of 128 bits, a UHUGEINT by its bits: 2^128 - 1 arrives as -1.
A cast to HUGEINT keeps the values below 2^127 and refuses the others.
"""

from __future__ import annotations

from typing import Any

import duckdb

from lakelet.sql.lexer.quotes import quoted


def exact_in_arrow(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The same rows, whose values are the same in Arrow; the relation itself if it has no UHUGEINT."""
    signed = [_signed(kind) for kind in relation.types]
    if not any(signed):
        return relation
    items = [
        f"{f'CAST(#{place} AS {kind})' if kind else f'#{place}'} AS {quoted(name)}"
        for place, (kind, name) in enumerate(zip(signed, relation.columns, strict=True), 1)
    ]
    return relation.project(", ".join(items))


def _signed(kind: Any) -> str | None:
    """A type with HUGEINT in the place of UHUGEINT, as SQL; None if it has none."""
    match str(kind.id):
        case "uhugeint":
            return "HUGEINT"
        case "list":
            element = _signed(kind.children[0][1])
            return f"{element}[]" if element else None
        case "array":
            element = _signed(kind.children[0][1])
            return f"{element}[{kind.children[1][1]}]" if element else None
        case "map" | "struct":
            inner = [(name, _signed(child), child) for name, child in kind.children]
            if not any(signed for _, signed, _ in inner):
                return None
            if str(kind.id) == "map":
                return f"MAP({', '.join(signed or str(child) for _, signed, child in inner)})"
            return f"STRUCT({', '.join(f'{quoted(name)} {signed or child}' for name, signed, child in inner)})"
        case _:
            return None
