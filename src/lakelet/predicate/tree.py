"""The predicate tree of a `where=`, with bound columns and typed literals.

`where` makes them from SQL text, `pruning` asks which files may hold matching rows, and
`row_mask` decides row by row. This module owns the tree and its algebra; it never reads data.

A predicate follows SQL's three-valued logic: a comparison with NULL is unknown, and a row is kept only
when the whole is TRUE. Literals are Arrow scalars of exactly the column's Arrow type, so nobody below
this layer casts: a literal that the type cannot hold (`int_column > 1.5`) was replaced by an equivalent
condition (`int_column >= 2`) when it was parsed.

    a > 1 AND NOT (b IS NULL OR c IN ('x', 'y'))
    And((Comparison("a", ">", 1), Not(Or((IsNull("b"), InList("c", ["x", "y"]))))))

`normalise` brings a predicate into the form that the stages work on: no NOT, no NULL constant. With NOT
pushed down to the leaves the tree is monotone, so a leaf that is unknown may count as FALSE: it could
never have made the whole TRUE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

Operator = Literal["=", "<>", "<", "<=", ">", ">="]
_OPPOSITE: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column operator literal`; the literal has the column's Arrow type and is not NULL."""

    column: str
    operator: Operator
    literal: pa.Scalar


@dataclass(frozen=True, slots=True)
class InList:
    """`column [NOT] IN (values)`; the values are one Arrow array of the column's type, NULLs included."""

    column: str
    values: pa.Array
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS [NOT] NULL`; never unknown."""

    column: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like:
    """`column [NOT] LIKE pattern [ESCAPE escape]` on a string column; without `escape` nothing escapes."""

    column: str
    pattern: str
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """TRUE where every term is."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE where some term is."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE where the term is FALSE; unknown stays unknown."""

    term: Predicate


@dataclass(frozen=True, slots=True)
class Constant:
    """The same for every row; None is SQL's unknown."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else, as DuckDB SQL with quoted identifiers over `columns`."""

    sql: str
    columns: tuple[str, ...]


Predicate = Comparison | InList | IsNull | Like | And | Or | Not | Constant | Opaque
TRUE = Constant(True)
FALSE = Constant(False)


def columns(predicate: Predicate) -> tuple[str, ...]:
    """The top-level columns a predicate mentions, each once, in order of appearance."""
    match predicate:
        case And(terms) | Or(terms):
            return tuple(dict.fromkeys(name for term in terms for name in columns(term)))
        case Not(term):
            return columns(term)
        case Constant():
            return ()
        case Opaque(_, names):
            return tuple(dict.fromkeys(names))
        case _:
            return (predicate.column,)


def never(column: str) -> Predicate:
    """FALSE for every value of a column, unknown for NULL: `column = literal` with a literal outside the column's type."""
    return And((IsNull(column), Constant(None)))


def always(column: str) -> Predicate:
    """TRUE for every value of a column, unknown for NULL."""
    return Or((IsNull(column, negated=True), Constant(None)))


def conjunction(terms: Sequence[Predicate]) -> Predicate:
    """AND of the terms, flattened; TRUE when there is none. FALSE wins over anything."""
    flat = _flatten(terms, And)
    if any(term == FALSE for term in flat if isinstance(term, Constant)):
        return FALSE
    kept = [term for term in flat if term != TRUE] if any(isinstance(term, Constant) for term in flat) else flat
    return TRUE if not kept else kept[0] if len(kept) == 1 else And(tuple(kept))


def disjunction(terms: Sequence[Predicate]) -> Predicate:
    """OR of the terms, flattened; FALSE when there is none. TRUE wins over anything."""
    flat = _flatten(terms, Or)
    if any(isinstance(term, Constant) and term.value is True for term in flat):
        return TRUE
    kept = [term for term in flat if not (isinstance(term, Constant) and term.value is False)]
    return FALSE if not kept else kept[0] if len(kept) == 1 else Or(tuple(kept))


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The terms of the outermost AND; every one of them must be TRUE for a row to match."""
    return predicate.terms if isinstance(predicate, And) else (predicate,)


def needs_duckdb(predicate: Predicate) -> bool:
    """Whether some part of a predicate is SQL that only DuckDB can decide."""
    match predicate:
        case And(terms) | Or(terms):
            return any(needs_duckdb(term) for term in terms)
        case Not(term):
            return needs_duckdb(term)
    return isinstance(predicate, Opaque)


def normalise(predicate: Predicate) -> Predicate:
    """An equivalent filter without Not and without NULL: it is TRUE for exactly the same rows."""
    return _normalise(predicate, negated=False)


def _normalise(predicate: Predicate, *, negated: bool) -> Predicate:
    match predicate:
        case Not(term):
            return _normalise(term, negated=not negated)
        case And(terms) | Or(terms):
            inner = [_normalise(term, negated=negated) for term in terms]
            return conjunction(inner) if isinstance(predicate, And) != negated else disjunction(inner)
        case Constant(value):
            return FALSE if value is None else Constant(value != negated)
        case Comparison(_, operator, literal):
            if not literal.is_valid:
                return FALSE
            return replace(predicate, operator=_OPPOSITE[operator]) if negated else predicate
        case InList():
            return _normalise_in(predicate, negated=negated)
        case Opaque(sql, names):
            return Opaque(f"NOT CAST(({sql}) AS BOOLEAN)", names) if negated else predicate
        case _:
            return replace(predicate, negated=predicate.negated != negated)


def _normalise_in(predicate: InList, *, negated: bool) -> Predicate:
    """`x NOT IN (…, NULL)` is never TRUE, and a NULL never makes `x IN (…)` TRUE."""
    negated = predicate.negated != negated
    values = predicate.values
    if values.null_count:
        if negated:
            return FALSE
        values = values.drop_null()
    if not len(values):
        return IsNull(predicate.column, negated=True) if negated else FALSE
    return InList(predicate.column, values, negated)


def _flatten(terms: Sequence[Predicate], kind: type[And] | type[Or]) -> list[Predicate]:
    flat: list[Predicate] = []
    for term in terms:
        flat.extend(_flatten(term.terms, kind) if isinstance(term, kind) else [term])
    return flat
