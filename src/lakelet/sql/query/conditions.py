"""Predicate pushdown: extract the conditions of a query on one of its tables, for pruning partitions and files.

    SELECT … FROM shop.orders o JOIN c ON … WHERE o.dt = '2026-01-01' AND c.x > 1     about orders:  "dt" = '2026-01-01'

DuckDB applies the whole condition itself, so whatever is not understood here is left out. Kept are the terms of the outermost
AND that compare columns of this table with constants. Conditions above an outer join are not pushed to its nullable side, and
the join's own condition is not pushed to the side that it preserves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from lakelet.errors import InvalidError
from lakelet.model.types import TIMESTAMPS, Atomic, Field
from lakelet.predicate.tree import Predicate, disjunction
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.query.parse_tree import Node, Reference
from lakelet.sql.statement import Params

_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_CONSTANTS = ("INTEGER", "NUMERIC", "STRING", "BOOLEAN")
_CASTS = ("DATE", "TIMESTAMP", "TIME")
# Joins that match rows by more than a condition.
_ALIGNED = ("POSITIONAL", "ASOF")


class _Unknown(Exception):
    """A part of a condition that is left to DuckDB."""


def pruning_texts(uses: Sequence[Reference], fields: Sequence[Field], params: Params) -> tuple[str, ...]:
    """The pruning conditions on a table, one per use in the query, as SQL over its columns: rows that satisfy none of them are
    not needed. Empty if some use has no condition."""
    found = [condition_text(use, fields, params) for use in uses]
    return tuple(text for text in found if text is not None) if None not in found else ()


def pruning_predicate(texts: Sequence[str], fields: Sequence[Field]) -> Predicate | None:
    """The disjunction of these conditions as a predicate; None where nothing can be pruned."""
    if not texts:
        return None
    from lakelet.predicate.where import parse_where  # noqa: PLC0415 - it takes a while to load.

    try:
        return disjunction([parse_where(text, fields) for text in texts])
    except (InvalidError, RecursionError):
        # DuckDB reports the error, unless the condition was merely too deep.
        return None


def condition_text(use: Reference, fields: Sequence[Field], params: Params) -> str | None:
    """The condition on one use of a table as SQL over its columns; None where there is none."""
    select = use.select
    if select is None or use.node.get("column_name_alias") or use.node.get("sample"):
        return None
    source = select.get("from_table")
    if select.get("sample") or source is None:
        return None
    reader = _Reader(use.alias, {field.name.lower(): field for field in fields}, params)
    joined, is_whole = _decided(source, use.node)
    terms = [*(_terms(select.get("where_clause")) if is_whole else ()), *joined]
    kept = [text for text in (reader.optional(term) for term in terms) if text is not None]
    return " AND ".join(kept) if kept else None


def whole_condition(use: Reference, fields: Sequence[Field], params: Params) -> str | None:
    """The WHERE of a query of one table as SQL over its columns, if all of it is understood; None otherwise."""
    assert use.select is not None
    reader = _Reader(use.alias, {field.name.lower(): field for field in fields}, params)
    try:
        return reader.text(use.select["where_clause"])
    except _Unknown:
        return None


def _terms(condition: Node | None) -> Iterable[Node]:
    if condition is None:
        return
    if condition.get("type") == "CONJUNCTION_AND":
        for child in condition["children"]:
            yield from _terms(child)
    else:
        yield condition


def _holds(source: Node, table: Node) -> bool:
    """Whether a table is one of the joined sources, outside of subqueries."""
    if source is table:
        return True
    return source.get("type") == "JOIN" and any(_holds(source[side], table) for side in ("left", "right"))


def _decided(source: Node, table: Node) -> tuple[list[Node], bool]:
    """The join conditions that rows of a table must satisfy, and whether every joined row contains a row of the table, so that
    conditions above the join can be pushed to it."""
    if source is table:
        return [], True
    if source.get("type") != "JOIN" or not _holds(source, table):
        return [], False
    side = "left" if _holds(source["left"], table) else "right"
    found, is_whole = _decided(source[side], table)
    kind = source.get("join_type", "INNER")
    if not is_whole or source.get("ref_type") in _ALIGNED:
        return found, False
    if kind == "INNER":
        return [*found, *_terms(source.get("condition"))], True
    if kind not in ("LEFT", "RIGHT") or source.get("using_columns") or source.get("ref_type") == "NATURAL":
        # A column that both sides share may refer to either.
        return found, False
    if kind == side.upper():
        # This side is preserved: all of its rows are in the result, whatever the join condition.
        return found, True
    return [*found, *_terms(source.get("condition"))], False


class _Reader:
    """Translates parse tree nodes into SQL conditions on one table."""

    def __init__(self, alias: str, columns: Mapping[str, Field], params: Params) -> None:
        self._alias = alias.lower()
        self._columns = columns
        self._params = params

    def optional(self, node: Node) -> str | None:
        try:
            return self.text(node)
        except _Unknown:
            return None

    def text(self, node: Node) -> str:
        kind = node.get("type", "")
        children = node.get("children", ())
        if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
            word = " AND " if kind == "CONJUNCTION_AND" else " OR "
            return f"({word.join(self.text(child) for child in children)})"
        if kind == "OPERATOR_NOT":
            return f"(NOT {self.text(children[0])})"
        if kind in _COMPARISONS:
            return self._comparison(kind, node["left"], node["right"])
        if kind == "COMPARE_BETWEEN":
            column = self._column(node["input"])
            lower, upper = self._constants((node["lower"], node["upper"]), column)
            return f"({quoted(column.name)} BETWEEN {lower} AND {upper})"
        if kind == "COMPARE_IN":
            column = self._column(children[0])
            values = ", ".join(self._constants(children[1:], column))
            return f"({quoted(column.name)} IN ({values}))"
        if kind == "OPERATOR_IS_NULL":
            return f"({quoted(self._column(children[0]).name)} IS NULL)"
        if kind == "OPERATOR_IS_NOT_NULL":
            return f"({quoted(self._column(children[0]).name)} IS NOT NULL)"
        if kind == "FUNCTION" and node.get("function_name") == "~~":
            matched, pattern = (argument["expression"] for argument in node["arguments"])
            return f"({quoted(self._column(matched).name)} LIKE {self._constant(pattern)})"
        raise _Unknown

    def _comparison(self, kind: str, left: Node, right: Node) -> str:
        sign = _COMPARISONS[kind]
        if left.get("type") == "COLUMN_REF":
            column = self._column(left)
            return f"({quoted(column.name)} {sign} {_against(column, self._constant(right))})"
        column = self._column(right)
        return f"({_against(column, self._constant(left))} {sign} {quoted(column.name)})"

    def _column(self, node: Node) -> Field:
        names = node.get("column_names", ())
        if node.get("type") != "COLUMN_REF" or not 1 <= len(names) <= 2:
            raise _Unknown
        if len(names) == 2 and names[0].lower() != self._alias:
            raise _Unknown
        found = self._columns.get(names[-1].lower())
        if found is None:
            raise _Unknown
        return found

    def _constants(self, nodes: Sequence[Node], column: Field) -> list[str]:
        """Constants that a column is compared with together: DuckDB finds one common type for them and the column, so that
        1e0 turns the others into floating-point numbers."""
        found = [self._constant(node) for node in nodes]
        if len({_kind(constant) for constant in found}) > 1:
            raise _Unknown
        return [_against(column, constant) for constant in found]

    def _constant(self, node: Node) -> str:
        kind = node.get("type", "")
        if kind == "VALUE_CONSTANT":
            value = node.get("literal", {})
            if value.get("kind") not in _CONSTANTS:
                raise _Unknown
            # DuckDB omits an empty text from the tree.
            text = str(value.get("text", ""))
            return literal(text) if value["kind"] == "STRING" else text
        if kind == "OPERATOR_CAST":
            target = node.get("type_expr", {})
            name = str(target.get("type_name", "")).upper()
            inner = node["child"]
            plain = not target.get("children") and not target.get("arguments") and not node.get("try_cast")
            if name not in _CASTS or not plain or inner.get("literal", {}).get("kind") != "STRING":
                raise _Unknown
            return f"CAST({literal(str(inner['literal'].get('text', '')))} AS {name})"
        if kind == "VALUE_PARAMETER":
            return _value_text(self._parameter(str(node.get("identifier"))))
        raise _Unknown

    def _parameter(self, name: str) -> object:
        if isinstance(self._params, Mapping):
            if name in self._params:
                return self._params[name]
        elif self._params is not None and name.isdigit() and 0 < int(name) <= len(self._params):
            return self._params[int(name) - 1]
        raise _Unknown


def _against(column: Field, constant: str) -> str:
    """A constant in the type to which DuckDB casts it in a comparison with a column: queries see coarser timestamps in
    microseconds, and a text is parsed as such."""
    moment = column.type
    if not constant.startswith("'") or not isinstance(moment, Atomic) or moment.kind not in TIMESTAMPS:
        return constant
    return f"CAST({constant} AS {duck_type(moment)})"


def _kind(constant: str) -> str:
    """The kind of a constant: those of one kind compare with a column together as they do one by one."""
    if constant.startswith("'"):
        return "text"
    if constant.startswith("CAST("):
        return constant.rsplit(" ", 1)[-1]
    if constant.lower() in ("true", "false"):
        return "boolean"
    return "floating point" if "e" in constant.lower() else "number"


def _value_text(value: object) -> str:
    """A parameter's value as a SQL literal of the type that DuckDB gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise _Unknown
        return f"CAST('{value.isoformat(' ')}' AS TIMESTAMP)"
    if isinstance(value, date):
        return f"CAST('{value.isoformat()}' AS DATE)"
    raise _Unknown
