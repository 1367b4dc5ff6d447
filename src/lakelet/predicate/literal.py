"""Convert comparisons with literals to equivalent ones in the column's own type.

`where` has the literal as DuckDB typed it; everything below works on literals of exactly the
column's Arrow type. This module owns that conversion, which is lossless: numbers and
instants are compared in an exact domain (fractions; nanoseconds in UTC), and what the column cannot hold
turns into the nearest bound it can.

    i INT:            i > 1.5          ->  i >= 2
                      i = 3000000000   ->  never (unknown for NULL)
    t TIMESTAMP(3):   t <= '…00.0005'  ->  t <= '…00.000'
    f FLOAT:          f < 1e-1         ->  f <= the greatest FLOAT below 0.1

Pairs of types for which DuckDB compares in a lossy type (BIGINT against DOUBLE beyond 2^53) give None: the
condition stays SQL and is left to DuckDB.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from lakelet.predicate import duck
from lakelet.predicate.tree import Comparison, InList, Operator, Predicate, always, never

_EXACT_DOUBLE = 2**53
_WIDE = Context(prec=100)
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY_NANOS = 86_400 * 10**9


def comparison(column: str, arrow: pa.DataType, operator: Operator, literal: pa.Scalar) -> Predicate | None:
    """`column operator literal` for a column of type `arrow`, or None where only DuckDB can decide."""
    if pa.types.is_null(literal.type) or not literal.is_valid:
        return Comparison(column, operator, pa.scalar(None, arrow))
    literal = _from_text(literal, arrow)
    if literal.type == arrow:
        return Comparison(column, operator, literal)
    if pa.types.is_floating(arrow):
        return _compare_float(column, arrow, operator, literal)
    endless = _infinity(literal, arrow)
    if endless is not None:
        return Comparison(column, operator, endless)
    value, unit = _exact(literal), _unit(arrow)
    if value is None or unit is None or _domain(literal.type) != _domain(arrow):
        return None
    if isinstance(value, float):
        return _beyond(column, operator, above=value > 0 or math.isnan(value))
    if pa.types.is_floating(literal.type) and not (pa.types.is_integer(arrow) and abs(value) < _EXACT_DOUBLE):
        return None
    return _compare_exact(column, arrow, operator, value / unit)


def membership(column: str, arrow: pa.DataType, literals: list[pa.Scalar]) -> Predicate | None:
    """`column IN (literals)`, or None where only DuckDB can decide."""
    kinds = {literal.type for literal in literals if literal.is_valid}
    if len({_domain(kind) for kind in kinds}) > 1:
        return None
    if mixes_floats(arrow, literals):
        return None
    has_null = any(not literal.is_valid for literal in literals)
    if len(kinds) == 1 and pa.types.is_string(next(iter(kinds))):
        texts = pa.array([literal.as_py() for literal in literals], pa.string())
        return InList(column, texts if arrow == pa.string() else _typed(duck.cast(texts, arrow), arrow))
    kept: list[pa.Scalar] = []
    for literal in literals:
        if literal.is_valid:
            term = comparison(column, arrow, "=", literal)
            if term is None:
                return None
            if isinstance(term, Comparison):
                kept.append(term.literal)
    if not kept and not has_null:
        return never(column)
    return InList(column, _array([*kept, pa.scalar(None, arrow)] if has_null else kept, arrow))


def mixes_floats(arrow: pa.DataType, literals: list[pa.Scalar]) -> bool:
    """Whether DuckDB compares a column with several literals in a type that none of them alone would be compared in, and that
    does not hold them all: `f BETWEEN 16777217 AND 1e300` is decided in DOUBLE, `f >= 16777217` in FLOAT."""
    kinds = {literal.type for literal in literals if literal.is_valid}
    return len(kinds) > 1 and any(pa.types.is_floating(kind) for kind in (arrow, *kinds))


def _array(scalars: list[pa.Scalar], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(arrow):
        # Through the stored integers: Python's own dates know neither nanoseconds nor infinity.
        plain = pa.array([scalar.value for scalar in scalars], pa.int32() if arrow.bit_width == 32 else pa.int64())
        return plain.cast(arrow)
    return pa.array([scalar.as_py() for scalar in scalars], arrow)


def _from_text(literal: pa.Scalar, arrow: pa.DataType) -> pa.Scalar:
    if not pa.types.is_string(literal.type) or arrow == pa.string():
        return literal
    return duck.cast(pa.array([literal.as_py()], pa.string()), arrow)[0]


def _typed(values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Values that DuckDB returned in its own unit, in the column's; those in between equal no row."""
    if values.type == arrow:
        return values
    kept = [literal for literal in values if not literal.is_valid]
    for literal in values:
        term = comparison("", arrow, "=", literal) if literal.is_valid else None
        if isinstance(term, Comparison):
            kept.append(term.literal)
    return _array([pa.scalar(None, arrow) if not scalar.is_valid else scalar for scalar in kept], arrow)


def _infinity(literal: pa.Scalar, arrow: pa.DataType) -> pa.Scalar | None:
    """An infinite date or timestamp literal in the column's type: the greatest number of units, whatever these are, and its
    negative. None for all other literals."""
    if _domain(literal.type) != "instant" or _domain(arrow) != "instant":
        return None
    greatest = _limits(literal.type)[1]
    if abs(literal.value) != greatest:
        return None
    return _scalar(_limits(arrow)[1] if literal.value > 0 else -_limits(arrow)[1], arrow)


def _compare_float(column: str, arrow: pa.DataType, operator: Operator, literal: pa.Scalar) -> Predicate | None:
    """DuckDB compares FLOAT with integers and decimals as FLOAT, with DOUBLE as DOUBLE."""
    if _domain(literal.type) != "number":
        return None
    if not pa.types.is_floating(literal.type) or arrow == pa.float64():
        return Comparison(column, operator, duck.cast(pa.array([literal.as_py()], literal.type), arrow)[0])
    value = literal.as_py()
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if math.isnan(value) or float(near) == value:
        return Comparison(column, operator, pa.scalar(float(near), arrow))
    below = near if float(near) < value else np.nextafter(near, np.float32(-np.inf))
    above = near if float(near) > value else np.nextafter(near, np.float32(np.inf))
    return _between(column, operator, pa.scalar(float(below), arrow), pa.scalar(float(above), arrow))


def _compare_exact(column: str, arrow: pa.DataType, operator: Operator, value: Fraction) -> Predicate:
    low, high = _limits(arrow)
    if value < low or value > high:
        return _beyond(column, operator, above=value > high)
    below = math.floor(value)
    if below == value:
        return Comparison(column, operator, _scalar(below, arrow))
    return _between(column, operator, _scalar(below, arrow), _scalar(min(below + 1, high), arrow))


def _between(column: str, operator: Operator, below: pa.Scalar, above: pa.Scalar) -> Predicate:
    """The comparison with a value that lies strictly between two neighbours of the type."""
    match operator:
        case "=":
            return never(column)
        case "<>":
            return always(column)
        case "<" | "<=":
            return Comparison(column, "<=", below)
        case _:
            return Comparison(column, ">=", above)


def _beyond(column: str, operator: Operator, *, above: bool) -> Predicate:
    """The comparison with a value above (or below) everything the type can hold."""
    holds = operator == "<>" or operator in (("<", "<=") if above else (">", ">="))
    return always(column) if holds else never(column)


def _domain(arrow: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(arrow) or types.is_decimal(arrow) or types.is_floating(arrow):
        return "number"
    if types.is_date(arrow) or types.is_timestamp(arrow):
        return "instant"
    return "time" if types.is_time(arrow) else str(arrow)


def _exact(literal: pa.Scalar) -> Fraction | float | None:
    """The literal in its domain: a fraction; infinities and NaN stay floats."""
    types, arrow = pa.types, literal.type
    if types.is_floating(arrow):
        value = literal.as_py()
        return Fraction(value) if math.isfinite(value) else float(value)
    if types.is_integer(arrow) or types.is_decimal(arrow):
        return Fraction(literal.as_py())
    if types.is_date32(arrow):
        return Fraction(literal.value * _DAY_NANOS)
    if types.is_timestamp(arrow) or types.is_time(arrow):
        return Fraction(literal.value * _NANOS[arrow.unit])
    return None


def _unit(arrow: pa.DataType) -> Fraction | None:
    """How much one step of the stored integer is worth in the domain."""
    types = pa.types
    if types.is_integer(arrow):
        return Fraction(1)
    if types.is_decimal(arrow):
        return Fraction(1, 10**arrow.scale)
    if types.is_date32(arrow):
        return Fraction(_DAY_NANOS)
    return Fraction(_NANOS[arrow.unit]) if types.is_timestamp(arrow) or types.is_time(arrow) else None


def _limits(arrow: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(arrow):
        return 1 - 10**arrow.precision, 10**arrow.precision - 1
    return -(2 ** (arrow.bit_width - 1)), 2 ** (arrow.bit_width - 1) - 1


def _scalar(steps: int, arrow: pa.DataType) -> pa.Scalar:
    if pa.types.is_decimal(arrow):
        return pa.scalar(Decimal(steps).scaleb(-arrow.scale, _WIDE), arrow)
    if pa.types.is_integer(arrow):
        return pa.scalar(steps, arrow)
    return pa.scalar(steps, pa.int32() if arrow.bit_width == 32 else pa.int64()).cast(arrow)
