"""`product` of DECIMAL: exact, then rounded half up to the column's scale at every step, as Java's BigDecimal is.

A product with more digits than the column has is NULL, and what follows starts anew. Products of 38 digits need 256 bits, so that
they are made with Python's integers, value by value.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.row_actions import ADD, ADD_OLDER, SET, SET_RETRACT, SKIP, Actions
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.model.types import Atomic

MAX_DIGITS = 38


def decimal_products(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """The product of each key."""
    assert isinstance(rule.type, Atomic)
    unit, most = 10**rule.type.scale, 10**rule.type.precision
    scale = rule.type.scale
    # The context of Python's decimals has 28 digits, and a shift of the point rounds to them.
    with localcontext(prec=MAX_DIGITS):
        given = groups.column(rule.column).to_pylist()
        values = [None if value is None else int(value.scaleb(scale)) for value in given]
    products: list[int | None] = []
    for start, end in zip(groups.starts.tolist(), groups.ends.tolist(), strict=True):
        total: int | None = None
        for value, action in zip(values[start:end], actions[start:end].tolist(), strict=True):
            if action in (SET, SET_RETRACT):
                total = value
            if value is None or action in (SKIP, SET):
                continue
            if action in (ADD, ADD_OLDER):
                total = value if total is None else _rounded(total * value, unit)
            elif total is not None:
                total = _divided(total, value, unit, rule)
            total = None if total is None or abs(total) >= most else total
        products.append(total)
    with localcontext(prec=MAX_DIGITS):
        scaled = [None if product is None else Decimal(product).scaleb(-scale) for product in products]
    return pa.array(scaled, pa.decimal128(rule.type.precision, rule.type.scale))


def _rounded(number: int, unit: int) -> int:
    """The nearest number of units; of two that are equally near the one that is farther from 0."""
    quotient, rest = divmod(abs(number), unit)
    quotient += 2 * rest >= unit
    return quotient if number >= 0 else -quotient


def _divided(total: int, value: int, unit: int, rule: ColumnRule) -> int:
    if value == 0:
        raise InvalidError(f"column {rule.column!r}: a product cannot take 0 back, for that divides by it")
    exact = Fraction(total, value)
    left = exact.denominator
    for prime in (2, 5):
        while left % prime == 0:
            left //= prime
    if left != 1:
        raise InvalidError(
            f"column {rule.column!r}: a product cannot take {Fraction(value, unit)} back, for the quotient has no end of digits"
        )
    return _rounded(exact.numerator * unit, exact.denominator)
