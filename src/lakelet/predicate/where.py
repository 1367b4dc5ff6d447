"""The parser and binder of `where=`: SQL text to a predicate, `dt = '2026-01-01' AND amount > 1.5`.

First stage of a scan: it knows the columns, not the data. It owns the grammar (DuckDB's, by sqlglot, with
backticks allowed around identifiers too), the matching of column names, and the choice between the simple
forms that pruning understands and `Opaque`, which only DuckDB decides. It never guesses: whatever does not
parse, bind or convert is an InvalidError that says where.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_field, to_arrow
from lakelet.model.types import Atomic, Field
from lakelet.predicate import duck, literal
from lakelet.predicate.tree import (
    And,
    Comparison,
    Constant,
    IsNull,
    Like,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    normalise,
)


class _Where(DuckDB):
    """DuckDB's SQL with backticks as identifier quotes and X'…' as bytes."""

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - how sqlglot's dialects are declared.
        HEX_STRINGS = [("X'", "'"), ("x'", "'")]  # noqa: RUF012


_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONSTANT_PARTS: tuple[type[exp.Expr], ...] = (
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Neg,
    exp.Paren,
    exp.Cast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Interval,
    exp.Var,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.HexString,
    exp.ByteString,
)
_FOLDED_PARTS: tuple[type[exp.Expr], ...] = (*_CONSTANT_PARTS, *_OPERATORS)
_FORBIDDEN: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.Exists, "a subquery"),
    (exp.AggFunc, "an aggregate function"),
    (exp.Window, "a window function"),
    (exp.Placeholder, "a parameter"),
    (exp.Parameter, "a parameter"),
)


def parse_where(text: str, fields: Sequence[Field]) -> Predicate:
    """The predicate that `text` means for a table with these columns, or an InvalidError with the position."""
    if not text.strip():
        raise InvalidError("where: the condition is empty")
    try:
        return _parsed(text, fields)
    except RecursionError as error:
        raise InvalidError(f"where: the condition is nested too deeply: {text[:60]!r}…") from error


def _parsed(text: str, fields: Sequence[Field]) -> Predicate:
    try:
        dialect = _Where()
        found = dialect.tokenize(text)
        tokens = [(token.text, token.start) for token in found]
        statements = dialect.parser().parse(found, text)
    except SqlglotError as error:
        raise _syntax_error(text, error) from error
    if len(statements) != 1 or statements[0] is None or any(token == ";" for token, _ in tokens):
        raise InvalidError(f"where: expected one condition, found {text!r}")
    return normalise(_Reader(text, tokens, fields).predicate(statements[0]))


@dataclass(frozen=True, slots=True)
class _Constant:
    """A folded literal and the node it came from."""

    value: pa.Scalar
    node: exp.Expr


class _Reader:
    def __init__(self, text: str, tokens: Sequence[tuple[str, int]], fields: Sequence[Field]) -> None:
        self.text = text
        self.tokens = tokens
        self.fields = {field.name: field for field in fields}

    def predicate(self, node: exp.Expr) -> Predicate:
        found = node.find(*(kind for kind, _ in _FORBIDDEN))
        if found is not None:
            name = next(name for kind, name in _FORBIDDEN if isinstance(found, kind))
            raise self.error(found, f"{name} cannot be used in a condition: {found.sql(dialect=_Where)}")
        return self.read(node)

    def read(self, node: exp.Expr) -> Predicate:
        """The simple form of a node, or the node as DuckDB's SQL."""
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return And(tuple(self.read(term) for term in node.flatten()))
            case exp.Or():
                return Or(tuple(self.read(term) for term in node.flatten()))
            case exp.Not():
                return Not(self.read(node.this))
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Null():
                return Constant(None)
            case exp.Column():
                field = self.atomic(node)
                if field is not None and to_arrow(field.type) == pa.bool_():
                    return Comparison(field.name, "=", pa.scalar(True))
        if all(isinstance(part, _FOLDED_PARTS) for part in node.walk()):
            return self.folded(node)
        simple = self.simple(node)
        return self.opaque(node) if simple is None else simple

    def folded(self, node: exp.Expr) -> Constant:
        """`1 = 1` and the like, which tools put in front of generated conditions."""
        try:
            sql = node.sql(dialect=_Where)
            value = duck.fold([sql])[0]
            duck.check_condition(value.type, sql)
        except InvalidError as error:
            raise self.error(node, str(error)) from error
        return Constant(value.as_py())

    def simple(self, node: exp.Expr) -> Predicate | None:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self.comparison(node.this, _OPERATORS[type(node)], node.expression)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self.distinct(node)
            case exp.Between() if not node.args.get("symmetric"):
                if self.mixes_floats(node):
                    return None
                low = self.comparison(node.this, ">=", node.args["low"])
                high = self.comparison(node.this, "<=", node.args["high"])
                return None if low is None or high is None else And((low, high))
            case exp.In():
                return self.membership(node)
            case exp.Is():
                return self.is_form(node)
            case exp.Like():
                return self.like(node, escape=None)
            case exp.Escape() if isinstance(node.this, exp.Like):
                return self.like(node.this, escape=node.expression)
        return None

    def mixes_floats(self, node: exp.Between) -> bool:
        """Whether both ends are decided in a type of their own."""
        field = self.atomic(node.this)
        ends = [self.constant(node.args[name]) for name in ("low", "high")]
        values = [end.value for end in ends if end is not None]
        return field is not None and literal.mixes_floats(to_arrow(field.type), values)

    def comparison(self, left: exp.Expr, operator: Operator, right: exp.Expr) -> Predicate | None:
        if self.column(left) is None and self.column(right) is not None:
            left, operator, right = right, _FLIPPED[operator], left
        field = self.atomic(left)
        constant = self.constant(right)
        if field is None or constant is None:
            return None
        arrow = to_arrow(field.type)
        value = self.keep_nanoseconds(constant, arrow)
        return self.converted(field, constant.node, partial(literal.comparison, field.name, arrow, operator, value))

    def distinct(self, node: exp.Expr) -> Predicate | None:
        equal = isinstance(node, exp.NullSafeEQ)
        left, right = node.this, node.expression
        if self.column(left) is None:
            left, right = right, left
        field, constant = self.atomic(left), self.constant(right)
        if field is None or constant is None:
            return None
        if not constant.value.is_valid:
            return IsNull(field.name, negated=not equal)
        term = self.comparison(left, "=" if equal else "<>", right)
        if term is None:
            return None
        return And((term, IsNull(field.name, negated=True))) if equal else Or((term, IsNull(field.name)))

    def membership(self, node: exp.In) -> Predicate | None:
        field = self.atomic(node.this)
        if field is None or not node.expressions or set(node.args) - {"this", "expressions"} - _empty_args(node):
            return None
        constants = self.constants(node.expressions)
        if constants is None:
            return None
        arrow = to_arrow(field.type)
        values = [self.keep_nanoseconds(constant, arrow) for constant in constants]
        try:
            return literal.membership(field.name, arrow, values)
        except InvalidError:
            for constant, value in zip(constants, values, strict=True):
                # The failing one among many raises again here, with its own position.
                self.converted(field, constant.node, partial(literal.comparison, field.name, arrow, "=", value))
            raise

    def is_form(self, node: exp.Is) -> Predicate | None:
        column = self.column(node.this)
        if column is None:
            return None
        if isinstance(node.expression, exp.Null):
            return IsNull(column.name)
        field = self.atomic(node.this)
        if field is None or to_arrow(field.type) != pa.bool_() or not isinstance(node.expression, exp.Boolean):
            return None
        equal = Comparison(field.name, "=", pa.scalar(bool(node.expression.this)))
        return And((equal, IsNull(field.name, negated=True)))

    def like(self, node: exp.Like, escape: exp.Expr | None) -> Predicate | None:
        field = self.atomic(node.this)
        pattern = self.constant(node.expression)
        if field is None or pattern is None or to_arrow(field.type) != pa.string():
            return None
        mark = None
        if escape is not None:
            if not escape.is_string or len(escape.this) > 1:
                raise self.error(escape, "ESCAPE takes one character")
            mark = escape.this or None
        if not pattern.value.is_valid:
            return Constant(None)
        text = pattern.value.as_py()
        if not isinstance(text, str):
            return None
        if mark is not None and (text.replace(mark * 2, "")).endswith(mark):
            raise self.error(node.expression, "a LIKE pattern cannot end with its escape character")
        return Like(field.name, text, mark, bool(node.args.get("negate")))

    def column(self, node: exp.Expr) -> Field | None:
        """The column a bare reference names; None for anything else, such as a member of a ROW."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or node.args.get("table") or not isinstance(node.this, exp.Identifier):
            return None
        return self.resolve(node.this)

    def atomic(self, node: exp.Expr) -> Field | None:
        field = self.column(node)
        return field if field is not None and isinstance(field.type, Atomic) else None

    def resolve(self, identifier: exp.Identifier) -> Field:
        name = identifier.this
        if name in self.fields:
            return self.fields[name]
        folded = [field for field in self.fields.values() if field.name.casefold() == name.casefold()]
        if len(folded) == 1:
            return folded[0]
        if folded:
            choices = ", ".join(repr(field.name) for field in folded)
            raise self.error(identifier, f"column {name!r} is ambiguous: it may be {choices}")
        near = difflib.get_close_matches(name.casefold(), [known.casefold() for known in self.fields], n=1)
        known = next((known for known in self.fields if near and known.casefold() == near[0]), None)
        raise self.error(identifier, f"unknown column {name!r}" + (f"; did you mean {known!r}?" if known else ""))

    def constant(self, node: exp.Expr) -> _Constant | None:
        found = self.constants([node])
        return None if found is None else found[0]

    def constants(self, nodes: Sequence[exp.Expr]) -> list[_Constant] | None:
        """The values of literals and of what is built of literals only; None if any node is neither."""
        values = [_plain(node) for node in nodes]
        folded = [index for index, value in enumerate(values) if value is None]
        if any(not isinstance(part, _CONSTANT_PARTS) for index in folded for part in nodes[index].walk()):
            return None
        if folded:
            try:
                scalars = duck.fold([nodes[index].sql(dialect=_Where) for index in folded])
            except InvalidError as error:
                raise self.error(nodes[folded[0]], str(error)) from error
            for index, scalar in zip(folded, scalars, strict=True):
                values[index] = scalar
        return [_Constant(value, node) for value, node in zip(values, nodes, strict=True) if value is not None]

    def keep_nanoseconds(self, constant: _Constant, arrow: pa.DataType) -> pa.Scalar:
        """TIMESTAMP '…' is microseconds in DuckDB; against a TIMESTAMP(9) its text keeps all nine digits."""
        node = constant.node
        typed = isinstance(node, exp.Cast) and node.to.this in _MICROSECOND_TYPES and node.this.is_string
        if not typed or not pa.types.is_timestamp(arrow) or arrow.unit != "ns":
            return constant.value
        zone = constant.value.type.tz
        try:
            return duck.cast(pa.array([node.this.this]), pa.timestamp("ns", zone))[0]
        except InvalidError:
            # A time that microseconds reach and nanoseconds do not (before 1677, after 2262).
            return constant.value

    def converted(self, field: Field, node: exp.Expr, convert: Callable[[], Predicate | None]) -> Predicate | None:
        try:
            return convert()
        except InvalidError as error:
            raise self.error(node, f"against column {field.name!r} {field.type}: {error}") from error

    def opaque(self, node: exp.Expr) -> Opaque:
        copy = node.copy()
        used: dict[str, Field] = {}
        for column in list(copy.find_all(exp.Column)):
            identifier = next(part for part in column.parts if isinstance(part, exp.Identifier))
            field = self.resolve(identifier)
            used[field.name] = field
            identifier.replace(exp.to_identifier(field.name, quoted=True))
        if len({name.lower() for name in used}) < len(used):
            # DuckDB takes them for one column, whatever the quotes.
            raise self.error(node, f"columns that differ only in case in one expression: {', '.join(used)}")
        sql = copy.sql(dialect=_Where, identify=True, comments=False)
        try:
            duck.check(sql, pa.schema([arrow_field(field) for field in used.values()]))
        except InvalidError as error:
            raise self.error(node, str(error)) from error
        return Opaque(sql, tuple(used))

    def error(self, node: exp.Expr, message: str) -> InvalidError:
        """The message with the place of the first token of `node` that the text contains."""
        leaf = next((part for part in node.walk() if isinstance(part, exp.Literal | exp.Identifier)), None)
        wanted = None if leaf is None else str(leaf.this)
        at = next((start for token, start in self.tokens if token == wanted), None)
        place = "" if at is None else f" at {_place(self.text, at)}"
        return InvalidError(f"where{place}: {message}")


_MICROSECOND_TYPES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ)


def _plain(node: exp.Expr) -> pa.Scalar | None:
    """The common literals without asking DuckDB; None for others."""
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if isinstance(inner, exp.Literal) and not inner.is_string and str(inner.this).isdigit():
        value = -int(inner.this) if negative else int(inner.this)
        if abs(value) < 2**63:
            return pa.scalar(value, pa.int64())
        return pa.scalar(Decimal(value)) if abs(value) < 10**38 else None
    if isinstance(node, exp.Literal) and node.is_string:
        return pa.scalar(node.this, pa.string())
    if isinstance(node, exp.HexString):
        return pa.scalar(bytes.fromhex(node.this), pa.binary())
    if isinstance(node, exp.Boolean):
        return pa.scalar(bool(node.this))
    return pa.scalar(None) if isinstance(node, exp.Null) else None


def _empty_args(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if not value}


def _place(text: str, at: int) -> str:
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    return f"line {line}, column {column}"


def _syntax_error(text: str, error: SqlglotError) -> InvalidError:
    details = getattr(error, "errors", None)
    if not details:
        return InvalidError(f"where: cannot read {text!r}: {error}")
    first = details[0]
    # sqlglot names its own classes when an operand is missing; that says nothing to whoever wrote the SQL.
    missing = first["description"].startswith("Required keyword")
    reason = "an operand is missing" if missing else first["description"]
    return InvalidError(f"where at line {first['line']}, column {first['col']}: {reason}, near {first['highlight']!r}")
