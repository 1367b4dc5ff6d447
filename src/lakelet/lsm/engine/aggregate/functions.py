"""The aggregate functions by their names: what types they take, whether they take values back, and how they compute.

    last_value, last_non_null_value, first_value, first_non_null_value       choose the value of a row
    max, min, bool_and, bool_or                                              choose by comparing; FALSE is less than TRUE
    sum, product                                                             compute

A function that Paimon has and that is not here is refused by name: its results would have to be the same bytes.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.fold_loops import (
    FIRST_NON_NULL,
    FIRST_VALUE,
    GREATEST,
    LAST_NON_NULL,
    LAST_VALUE,
    LEAST,
    PRODUCT,
    SUM,
    select_loop,
)
from lakelet.lsm.engine.aggregate.numbers import computed
from lakelet.lsm.engine.aggregate.row_actions import Actions, ignoring_retracts, takes_back
from lakelet.lsm.engine.key_groups import KeyGroups, Places
from lakelet.lsm.key_words import Words, encode_versions
from lakelet.model.types import FLOATS, INTEGERS, Atomic, DataType, Kind

_NO_RANKS = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A function. `takes` says of a type whether a column of it can have the function, `expected` which types those are."""

    name: str
    fold: Callable[[KeyGroups, ColumnRule, Actions], pa.Array]
    takes: Callable[[DataType], bool]
    expected: str
    retracts: bool = False


def _anything(data_type: DataType) -> bool:
    return True


def _number(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind in (*INTEGERS, *FLOATS, Kind.DECIMAL)


def _plain_number(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind in (*INTEGERS, *FLOATS)


def _boolean(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind is Kind.BOOLEAN


def _comparable(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind is not Kind.BOOLEAN


def _chosen(code: int, *, compares: bool = False) -> Callable[[KeyGroups, ColumnRule, Actions], pa.Array]:
    def fold(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
        ranks = ranked(groups, [(rule.column, rule.type)]) if compares else _NO_RANKS
        places = np.empty(len(groups), np.int64)
        valid = groups.valid(rule.column).view(np.uint8)
        loop = select_loop.for_bytes_or_interpreted(len(actions))
        loop(code, groups.starts, groups.ends, actions, valid, ranks, places)
        return groups.pick(rule.column, places)

    return fold


def _computed(code: int) -> Callable[[KeyGroups, ColumnRule, Actions], pa.Array]:
    return lambda groups, rule, actions: computed(code, groups, rule, actions)


_ALL = (
    AggregateFunction("last_value", _chosen(LAST_VALUE), _anything, "any type", retracts=True),
    AggregateFunction("last_non_null_value", _chosen(LAST_NON_NULL), _anything, "any type", retracts=True),
    AggregateFunction("first_value", _chosen(FIRST_VALUE), _anything, "any type"),
    AggregateFunction("first_non_null_value", _chosen(FIRST_NON_NULL), _anything, "any type"),
    AggregateFunction("first_not_null_value", _chosen(FIRST_NON_NULL), _anything, "any type"),
    AggregateFunction("max", _chosen(GREATEST, compares=True), _comparable, "a type without children, not BOOLEAN"),
    AggregateFunction("min", _chosen(LEAST, compares=True), _comparable, "a type without children, not BOOLEAN"),
    AggregateFunction("bool_and", _chosen(LEAST, compares=True), _boolean, "BOOLEAN"),
    AggregateFunction("bool_or", _chosen(GREATEST, compares=True), _boolean, "BOOLEAN"),
    AggregateFunction("sum", _computed(SUM), _number, "a number", retracts=True),
    AggregateFunction("product", _computed(PRODUCT), _plain_number, "an integer, FLOAT or DOUBLE", retracts=True),
)
FUNCTIONS = {function.name: function for function in _ALL}

_PAIMONS_OWN = (
    "collect",
    "hll_sketch",
    "listagg",
    "merge_map",
    "merge_map_with_keytime",
    "nested_partial_update",
    "nested_update",
    "rbm32",
    "rbm64",
    "theta_sketch",
)


def function_of(rule: ColumnRule, option: str) -> AggregateFunction:
    """The function of a rule. InvalidError, which names the option that asks for it, for one that there is not or that the
    column's type does not take."""
    function = FUNCTIONS.get(rule.function)
    if function is None:
        if rule.function in _PAIMONS_OWN:
            raise InvalidError(
                f"option '{option}' = '{rule.function}' is not supported by Lakelet and would change results"
            )
        nearest = difflib.get_close_matches(rule.function.lower(), list(FUNCTIONS), n=1, cutoff=0.4)
        meant = f"; did you mean '{nearest[0]}'?" if nearest else ""
        raise InvalidError(f"option '{option}': there is no aggregate function '{rule.function}'{meant}")
    if not function.takes(rule.type):
        raise InvalidError(
            f"option '{option}' = '{rule.function}': column {rule.column!r} is {rule.type}, expected {function.expected}"
        )
    return function


def folded(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """The values of a column, one for each key. InvalidError where rows take values back that the function cannot."""
    function = FUNCTIONS[rule.function]
    if rule.ignores_retracts:
        actions = ignoring_retracts(actions)
    elif not function.retracts and takes_back(actions):
        raise not_retracted(rule)
    return function.fold(groups, rule, actions)


def takes_retracts(rule: ColumnRule) -> bool:
    """Whether rows that take values back leave a value that the column can hold."""
    if rule.ignores_retracts:
        return True
    chooses = rule.function in ("last_value", "last_non_null_value")
    return FUNCTIONS[rule.function].retracts and (rule.type.nullable or not chooses)


def not_retracted(rule: ColumnRule) -> InvalidError:
    """The error for a row that takes back a value which cannot be."""
    why = "is NOT NULL" if FUNCTIONS[rule.function].retracts else f"is aggregated with '{rule.function}'"
    return InvalidError(
        f"a row (-U or -D) takes values back, but column {rule.column!r} {why} and cannot; with "
        f"'fields.{rule.column}.ignore-retract' = 'true' such rows leave it unchanged"
    )


def ranked(groups: KeyGroups, columns: list[tuple[str, DataType]]) -> NDArray[np.uint64]:
    """Numbers that compare like the values of some columns together, key by key; NULL is least."""
    source = [groups.source.column(name) for name, _ in columns]
    (words,) = encode_versions([source], [data_type for _, data_type in columns], descending=False)
    numbers = words[:, 0] if words.shape[1] == 1 else _dense(words, groups.order)
    return np.ascontiguousarray(numbers[groups.order])


def _dense(words: Words, rows: Places) -> NDArray[np.uint64]:
    """The place of each row among all, equal ones together; of rows that are not asked for anything."""
    part = words[rows]
    order = np.lexsort(part.T[::-1])
    ordered = part[order]
    steps = np.ones(len(rows), np.uint64)
    if len(rows):
        steps[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.zeros(len(words), np.uint64)
    numbers[rows[order]] = np.cumsum(steps, dtype=np.uint64)
    return numbers
