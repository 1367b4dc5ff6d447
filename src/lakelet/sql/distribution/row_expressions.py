"""Expressions that give the same value for a row wherever it is evaluated: constants, columns and pure functions of them.

Functions of the clock, of chance, of a setting or of other rows are not on the list, nor is what has a collation: the order and
the equality of such texts would be lost on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakelet.sql.query.parse_tree import Node


class NotSplitError(Exception):
    """A query that is not certainly one of those that can be split."""


# Aggregates whose values are the same whatever the order of the rows: no sums, which may be of floating-point numbers.
_STEADY = frozenset(
    (
        *("count", "count_star", "count_if", "countif", "min", "max", "bool_and", "bool_or"),
        *("bit_and", "bit_or", "bit_xor"),
    )
)
AGGREGATES = _STEADY | {"sum", "avg", "mean"}
_OPERATORS = "!~~ !~~* % & * ** + - / // < << > >> @ ^ ^@ | || ~ ~~ ~~* ~~~ -> ->>"
_FUNCTIONS = """
    abs acos acosh array_extract array_length ascii asin asinh atan atan2 atanh base64 bit_count bit_length cbrt ceil ceiling
    century char_length character_length chr coalesce concat concat_ws constant_or_null contains cos cosh cot date_add
    date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
    days_in_month decade degrees divide editdist3 element_at ends_with epoch epoch_ms epoch_ns epoch_us era even exp
    factorial fdiv floor fmod from_base64 from_hex gcd greatest hash hex hour if ifnull instr isfinite isinf isnan isodow
    isoyear json_extract json_extract_path json_extract_path_text json_extract_string json_value julian last_day lcase lcm
    least left len length levenshtein list_contains list_element list_extract ln log log10 log2 lower lpad ltrim make_date
    make_time make_timestamp map_extract map_extract_value md5 microsecond millennium millisecond minute mod month
    monthname multiply nullif octet_length ord pi position pow power prefix quarter radians regexp_extract
    regexp_full_match regexp_matches regexp_replace replace reverse right round row rpad rtrim second sha256 sign signbit
    sin sinh split_part sqrt starts_with strftime strip_accents strlen strpos strptime struct_extract substr substring
    subtract suffix tan tanh time_bucket timezone to_base64 to_days to_hex to_hours to_microseconds to_milliseconds
    to_minutes to_months to_seconds to_timestamp to_weeks to_years translate trim trunc try_strptime ucase unicode upper
    week weekday weekofyear xor year yearweek
"""
PURE = frozenset((*_OPERATORS.split(), *_FUNCTIONS.split()))
_PLACES = ("class", "type", "alias", "query_location", "query_location_length")
# The keys of each class of nodes; a node with any other is not split.
_KEYS = {
    "CONSTANT": ("literal",),
    "COLUMN_REF": ("column_names",),
    "COMPARISON": ("left", "right"),
    "CONJUNCTION": ("children",),
    "OPERATOR": ("children",),
    "BETWEEN": ("input", "lower", "upper"),
    "CASE": ("case_checks", "else_expr"),
    "CAST": ("child", "type_expr", "try_cast"),
    "FUNCTION": ("function_name", "order_bys", "arguments", "qualified_name", "is_operator"),
}
_OPERATOR_TYPES = frozenset(
    (
        *("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "OPERATOR_NULLIF"),
        *("COMPARE_IN", "COMPARE_NOT_IN", "ARRAY_EXTRACT", "STRUCT_EXTRACT"),
    )
)
_CASE = frozenset(("when_expr", "then_expr"))


class Columns:
    """The columns of the tables of a query, by the aliases of the tables."""

    def __init__(
        self,
        tables: Mapping[str, Sequence[str]],
        outer: Columns | None = None,
        check_subquery: Callable[[Node, Columns], None] | None = None,
    ) -> None:
        """`outer` has those of the query around it; `check_subquery` raises NotSplitError for a query in an expression that may
        not be there."""
        self.tables = {alias: tuple(names) for alias, names in tables.items()}
        self._tables = {alias: frozenset(name.lower() for name in names) for alias, names in tables.items()}
        self._outer = outer
        self._check_subquery = check_subquery

    def check_subquery(self, node: Node) -> None:
        """NotSplitError for a query in an expression that is not the same for a row everywhere."""
        if self._check_subquery is None:
            raise NotSplitError
        self._check_subquery(node, self)

    def has(self, name: str) -> bool:
        """Whether a name is that of a column."""
        return any(name in names for names in self._tables.values())

    def is_just(self, node: Node, name: str) -> bool:
        """Whether an expression is the column of a name, and nothing else."""
        return node.get("class") == "COLUMN_REF" and self.resolved(node)[1:] == (name,)

    def resolved(self, node: Node) -> tuple[str, ...]:
        """The table, the column and the fields that a reference means; NotSplitError where that is not certain. The table is
        empty where a join has the column of several."""
        parts = [str(part).lower() for part in node.get("column_names", ())]
        if not parts:
            raise NotSplitError
        owners = [alias for alias, names in self._tables.items() if parts[0] in names]
        if parts[0] in self._tables and len(parts) > 1:
            if owners or parts[1] not in self._tables[parts[0]]:
                # A table and a column of one name, or a name that only DuckDB understands.
                raise NotSplitError
            return tuple(parts)
        if not owners:
            if self._outer is None:
                raise NotSplitError
            return ("", "outer", *self._outer.resolved(node))
        return (owners[0] if len(owners) == 1 else "", *parts)


def is_aggregate(node: object) -> bool:
    """Whether an expression has a function of several rows, as far as they are known here."""
    if isinstance(node, list):
        return any(is_aggregate(one) for one in node)
    if not isinstance(node, dict) or node.get("class") == "SUBQUERY":
        return False
    if node.get("class") == "FUNCTION" and str(node.get("function_name", "")).lower() in AGGREGATES:
        return True
    return any(is_aggregate(value) for key, value in node.items() if key != "literal")


def check_row_expression(node: Node, columns: Columns, *, has_aggregates: bool = False) -> None:
    """NotSplitError for an expression that is not known to give the same value everywhere; with `has_aggregates`, of all rows."""
    if node.get("class") == "SUBQUERY":
        columns.check_subquery(node)
        return
    name = str(node.get("function_name", "")).lower()
    if has_aggregates and node.get("class") == "FUNCTION" and name in _STEADY:
        children = [*arguments_of(node, _STEADY), *([node["filter"]] if "filter" in node else [])]
        has_aggregates = False
    else:
        children = checked_children(node, columns)
    for child in children:
        check_row_expression(child, columns, has_aggregates=has_aggregates)


def checked_children(node: Node, columns: Columns, functions: frozenset[str] = PURE) -> list[Node]:
    """The expressions in a node, which is checked itself."""
    kind = str(node.get("class"))
    if kind not in _KEYS or set(node) - {*_KEYS[kind], *_PLACES}:
        raise NotSplitError
    if kind == "COLUMN_REF":
        columns.resolved(node)
        return []
    if kind == "CONSTANT":
        return []
    if kind == "COMPARISON":
        return [node["left"], node["right"]]
    if kind == "OPERATOR" and node.get("type") not in _OPERATOR_TYPES:
        raise NotSplitError
    if kind in ("CONJUNCTION", "OPERATOR"):
        return list(node.get("children", ()))
    if kind == "BETWEEN":
        return [node["input"], node["lower"], node["upper"]]
    if kind == "CASE":
        return _case_parts(node)
    if kind == "CAST":
        return [node["child"]]
    return arguments_of(node, functions)


def arguments_of(node: Node, functions: frozenset[str]) -> list[Node]:
    """The arguments of a call without modifiers of a function that is on a list."""
    name = str(node.get("function_name", "")).lower()
    path = [str(part).lower() for part in node.get("qualified_name", {}).get("path", ())]
    if name not in functions or path not in ([], [name]) or node.get("order_bys", {}).get("orders"):
        raise NotSplitError
    found = []
    for argument in node.get("arguments", ()):
        if set(argument) != {"expression"}:
            raise NotSplitError
        found.append(argument["expression"])
    return found


def _case_parts(node: Node) -> list[Node]:
    found: list[Node] = []
    for check in node.get("case_checks", ()):
        if set(check) != _CASE:
            raise NotSplitError
        found += [check["when_expr"], check["then_expr"]]
    return [*found, node["else_expr"]] if "else_expr" in node else found
