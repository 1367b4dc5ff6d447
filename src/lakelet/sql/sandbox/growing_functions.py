"""Functions that make gigabytes of a few bytes, which no limit of DuckDB counts and no interrupt stops: refused, or bounded.

    repeat, list_resize, array_resize, bar     refused
    lpad, rpad, bitstring                      to a length that is written as a number up to 10,000
    printf, format                             with a form that is written out, without widths above 10,000 or from arguments
    range, generate_series                     of small numbers and lengths of what is there; behind FROM of anything: their rows
                                               are made as they are read

What is made in many steps, such as by a list in a list in a list, is bounded by the time of a query alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakelet.sql.query.parse_tree import Node

GROWING = frozenset(("repeat", "list_resize", "array_resize", "bar"))
_PADDING = frozenset(("lpad", "rpad", "bitstring"))
_FORMS = frozenset(("printf", "format"))
_SERIES = frozenset(("range", "generate_series"))
_LENGTHS = frozenset(("len", "length", "array_length", "list_count", "cardinality", "json_array_length", "strlen"))
_MOST_LETTERS, _MOST_ELEMENTS = 10_000, 1_000_000
_NUMBER = re.compile(r"\d+", re.ASCII)


def growth_of(node: Node, *, is_source: bool) -> str | None:
    """What a function is refused for, None where it is bounded; `is_source` says that it stands behind FROM."""
    name = str(node.get("function_name", "")).lower()
    if name in _PADDING and not _is_short(node, 1):
        return f"{name}() to a length that is no number up to {_MOST_LETTERS}"
    if name in _FORMS and not _is_plain_form(node):
        return f"{name}() with a form that is not written out, or a width above {_MOST_LETTERS} or of an argument,"
    if name in _SERIES and not is_source and not all(map(_is_small, _arguments(node))):
        return (
            f"{name}() of other values than numbers up to {_MOST_ELEMENTS} and lengths, unless it stands behind FROM,"
        )
    return None


def _arguments(node: Node) -> Iterator[Node]:
    return (one.get("expression", {}) for one in node.get("arguments", ()))


def _literal(expression: Node, kind: str) -> str | None:
    found = expression.get("literal", {})
    return str(found.get("text", "")) if found.get("kind") == kind else None


def _is_short(padding: Node, place: int) -> bool:
    """Whether an argument is written as a small number; it may be missing."""
    arguments = list(_arguments(padding))
    if len(arguments) <= place:
        return str(padding.get("function_name", "")).lower() == "bitstring"
    text = _literal(arguments[place], "INTEGER") or ""
    return text.isdigit() and int(text) <= _MOST_LETTERS


def _is_plain_form(node: Node) -> bool:
    text = _literal(next(_arguments(node), {}), "STRING")
    if text is None:
        return False
    # Of printf a star, of format braces inside of braces take a width from an argument.
    taken = "*" in text if str(node["function_name"]).lower() == "printf" else re.search(r"\{[^{}]*\{", text)
    return not taken and all(len(one) < 6 and int(one) <= _MOST_LETTERS for one in _NUMBER.findall(text))


def _is_small(expression: Node) -> bool:
    """Whether an expression is a small number, the length of something, or their sum."""
    name = str(expression.get("function_name", "")).lower()
    if name in ("+", "-"):
        return all(map(_is_small, _arguments(expression)))
    text = (_literal(expression, "INTEGER") or "").removeprefix("-")
    return name in _LENGTHS or (text.isdigit() and len(text) < 8 and int(text) <= _MOST_ELEMENTS)
