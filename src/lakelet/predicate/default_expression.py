"""Default expressions of columns: parsed, checked against an allow-list, and evaluated for the rows of one write.

    current_timestamp + INTERVAL 1 DAY     the moment of the write, the same for all its rows
    uuid()                                 another value for every row

The text is stored in a table, and anybody may have written it: so it may only contain constants, operators and the
functions below, and references no columns and no settings. Functions of the current time give the caller's, in UTC.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.predicate import duck
from lakelet.predicate.default_functions import PURE, VOLATILE
from lakelet.predicate.stored_sql import Grammar, Node, check_nodes

MOST_CHARACTERS = 4000
_MILLIS = 3
# Functions of the current time, as a name or as a call without arguments, and their result types.
_TIMES = {
    "current_timestamp": "TIMESTAMPTZ",
    "now": "TIMESTAMPTZ",
    "transaction_timestamp": "TIMESTAMPTZ",
    "get_current_timestamp": "TIMESTAMPTZ",
    "current_date": "DATE",
    "today": "DATE",
    "current_time": "TIMETZ",
    "get_current_time": "TIMETZ",
    "localtime": "TIME",
    "current_localtime": "TIME",
    "localtimestamp": "TIMESTAMP",
    "current_localtimestamp": "TIMESTAMP",
}
_SHOWN: dict[str, Callable[[datetime], str]] = {
    "TIMESTAMPTZ": lambda moment: moment.isoformat(sep=" ", timespec="microseconds"),
    "TIMESTAMP": lambda moment: moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds"),
    "DATE": lambda moment: moment.date().isoformat(),
    "TIMETZ": lambda moment: moment.timetz().isoformat(timespec="microseconds"),
    "TIME": lambda moment: moment.time().isoformat(timespec="microseconds"),
}
_GRAMMAR = Grammar(
    noun="a default",
    reach="it is made of constants, of current_timestamp and the like, uuid(), random(), and functions of values alone",
    expressions=frozenset(
        (
            *("BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
            *("OPERATOR", "TYPE"),
        )
    ),
    # The order of a call without one is empty.
    parts=frozenset(("SELECT_NODE", "EMPTY", "ORDER_MODIFIER")),
    functions=PURE | VOLATILE | _TIMES.keys(),
)


@dataclass(frozen=True, slots=True)
class DefaultExpression:
    """A checked expression. It is `volatile` where rows get different values, `constant` where every row ever gets the same."""

    column: str
    text: str
    volatile: bool
    constant: bool
    _node: str

    @classmethod
    def parse(cls, column: str, text: str) -> DefaultExpression:
        """Parse and check an expression; InvalidError unless it is one expression over values with allowed functions."""
        return _parsed(column, text)

    def bound(self, now_ms: int, digits: int = _MILLIS) -> str:
        """SQL of the expression with the current time bound to `now_ms`, with `digits` digits of a second."""
        return _bound(self, now_ms, min(digits, _MILLIS))


def evaluated(sql: str, rows: int, where: str) -> pa.Array:
    """The values of a bound expression for a number of rows, in the Arrow type that DuckDB gives them."""
    try:
        found = duck.calculate(f"SELECT ({sql}) AS value FROM range({rows})").column(0).combine_chunks()
    except InvalidError as error:
        raise InvalidError(f"{where}: {error}") from error
    if len(found) != rows:
        raise InvalidError(f"{where}: expected a value for each row, found {len(found)} values for {rows} rows")
    return found


@lru_cache(maxsize=512)
def _parsed(column: str, text: str) -> DefaultExpression:
    where = f"default of column {column!r}"
    if len(text) > MOST_CHARACTERS:
        raise InvalidError(
            f"{where}: expected an expression of at most {MOST_CHARACTERS} characters, found {len(text)}"
        )
    try:
        node = _checked_node(f"SELECT ({text}\n)", where)
        called = {name for name in map(_called, _nodes(node)) if name is not None}
        written = json.dumps(node)
    except RecursionError as error:
        raise InvalidError(f"{where}: the expression is nested too deeply") from error
    is_volatile = bool(called & VOLATILE)
    return DefaultExpression(column, text, is_volatile, not is_volatile and not called & _TIMES.keys(), written)


def _checked_node(query: str, where: str) -> Node:
    """The one expression that is selected."""
    tree = _tree(query)
    if tree.get("error"):
        raise InvalidError(f"{where}: expected an expression: {tree.get('error_message')}")
    statements = tree.get("statements", ())
    if len(statements) != 1:
        raise InvalidError(f"{where}: expected one expression, found {len(statements)} statements")
    check_nodes(statements[0], _GRAMMAR, where)
    selected = statements[0]["node"]
    others = {key: value for key, value in selected.items() if key != "select_list"}
    if len(selected["select_list"]) != 1 or others != _empty_select():
        raise InvalidError(f"{where}: expected one expression and nothing else")
    node: Node = selected["select_list"][0]
    for one in _nodes(node):
        if one.get("class") == "COLUMN_REF" and _called(one) not in _TIMES:
            raise InvalidError(f"{where}: a default names no columns, found {'.'.join(one['column_names'])}")
        if one.get("class") == "FUNCTION" and _called(one) in _TIMES and one.get("arguments"):
            raise InvalidError(f"{where}: {_called(one)}() takes no arguments")
    return node


@lru_cache(maxsize=512)
def _bound(expression: DefaultExpression, now_ms: int, digits: int) -> str:
    """The expression with the current time replaced by constants, deparsed by DuckDB and checked once more."""
    where = f"default of column {expression.column!r}"
    step = 10 ** (_MILLIS - digits)
    moment = datetime.fromtimestamp(now_ms // step * step / 1000, UTC)
    selected = copy.deepcopy(_tree("SELECT (1)"))
    select = selected["statements"][0]["node"]
    select["select_list"] = [_at(json.loads(expression._node), moment)]
    written = str(duck.calculate("SELECT json_deserialize_sql($1) AS text", [json.dumps(selected)]).column(0)[0])
    _checked_node(written, where)
    return written.removeprefix("SELECT ").rstrip()


def _at(node: Any, moment: datetime) -> Any:
    if isinstance(node, list):
        return [_at(child, moment) for child in node]
    if not isinstance(node, dict):
        return node
    kind = _TIMES.get(_called(node) or "")
    if kind is not None:
        return _constant(kind, _SHOWN[kind](moment))
    return {key: child if key == "literal" else _at(child, moment) for key, child in node.items()}


def _constant(kind: str, text: str) -> Node:
    tree = _tree(f"SELECT CAST('{text}' AS {kind})")
    node: Node = tree["statements"][0]["node"]["select_list"][0]
    return node


def _called(node: Node) -> str | None:
    """The function that a node calls, or the name that it is."""
    if node.get("class") == "FUNCTION":
        return str(node.get("function_name")).lower()
    if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
        return str(node["column_names"][0]).lower()
    return None


def _nodes(node: object) -> list[Node]:
    """A node and all below it."""
    found: list[Node] = []
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            found.append(one)
            pending += [child for key, child in one.items() if key != "literal"]
    return found


def _empty_select() -> Node:
    selected: Node = _tree("SELECT (1)")["statements"][0]["node"]
    return {key: value for key, value in selected.items() if key != "select_list"}


@lru_cache(maxsize=64)
def _tree(query: str) -> Node:
    found: Node = json.loads(duck.calculate("SELECT json_serialize_sql($1) AS tree", [query]).column(0)[0].as_py())
    return found
