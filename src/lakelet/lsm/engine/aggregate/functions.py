"""The aggregate functions by their names: what types they take, whether they take values back, and how they compute.

last_value, last_non_null_value, first_value, first_non_null_value       choose the value of a row
max, min, bool_and, bool_or                                              choose by comparing; FALSE is less than TRUE
sum, product                                                             compute
listagg, collect, merge_map, merge_map_with_keytime, nested_update,
nested_partial_update, rbm32, rbm64, hll_sketch, theta_sketch            assemble what the values hold
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.bitmaps import united_bitmaps, united_wide_bitmaps
from lakelet.lsm.engine.aggregate.collections import collected, merged_maps, nested_rows, timed_maps, updated_rows
from lakelet.lsm.engine.aggregate.column_checks import (
    anything,
    delimiter_problem,
    elements_problem,
    is_array,
    is_array_of_rows,
    is_boolean,
    is_bytes,
    is_comparable,
    is_map,
    is_map_of_rows,
    is_number,
    is_text,
    nested_problem,
    time_problem,
)
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.decimal_products import decimal_products
from lakelet.lsm.engine.aggregate.equal_values import has_codes
from lakelet.lsm.engine.aggregate.fold_loops import (
    FIRST_NON_NULL,
    FIRST_VALUE,
    GREATEST,
    LAST_NON_NULL,
    LAST_VALUE,
    LEAST,
    PRODUCT,
    SUM,
    present_loop,
    select_loop,
)
from lakelet.lsm.engine.aggregate.numbers import computed
from lakelet.lsm.engine.aggregate.opaque_values import united
from lakelet.lsm.engine.aggregate.row_actions import ADD, Actions, ignoring_retracts, takes_back
from lakelet.lsm.engine.aggregate.sketches import missing_library, united_hll, united_theta
from lakelet.lsm.engine.aggregate.texts import joined
from lakelet.lsm.engine.key_groups import KeyGroups, Places
from lakelet.lsm.key_words import Words, encode_keys, encode_versions
from lakelet.model.types import Array, Atomic, DataType, Kind

_NO_WORDS = np.empty((0, 1), np.uint64)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A function. `takes` says of a type whether a column of it can have the function, `expected` which types those are."""

    name: str
    fold: Callable[[KeyGroups, ColumnRule, Actions], pa.Array]
    takes: Callable[[DataType], bool]
    expected: str
    retracts: bool = False
    refuses: Callable[[ColumnRule], str | None] = lambda rule: None
    """What is wrong with the settings of a rule, if anything."""


def _chosen(code: int, *, compares: bool = False) -> Callable[[KeyGroups, ColumnRule, Actions], pa.Array]:
    def fold(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
        if not compares and bool((actions == ADD).all()):
            return groups.pick(rule.column, _ends(code, groups, rule.column))
        words = _words(groups, rule) if compares else _NO_WORDS
        places = np.empty(len(groups), np.int64)
        valid = groups.valid(rule.column).view(np.uint8)
        loop = select_loop.for_bytes_or_interpreted(len(actions))
        loop(code, groups.starts, groups.ends, actions, valid, words, places)
        return groups.pick(rule.column, places)

    return fold


def _ends(code: int, groups: KeyGroups, column: str) -> Places:
    """The places of the first or the last values, where all rows add one."""
    is_last = code in (LAST_VALUE, LAST_NON_NULL)
    if code in (LAST_VALUE, FIRST_VALUE) or not groups.source.column(column).null_count:
        return groups.ends - 1 if is_last else groups.starts
    places = np.empty(len(groups), np.int64)
    loop = present_loop.for_bytes_or_interpreted(len(groups.order))
    loop(is_last, groups.starts, groups.ends, groups.valid(column).view(np.uint8), places)
    return places


def _computed(code: int) -> Callable[[KeyGroups, ColumnRule, Actions], pa.Array]:
    return lambda groups, rule, actions: computed(code, groups, rule, actions)


def _product(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    is_decimal = isinstance(rule.type, Atomic) and rule.type.kind is Kind.DECIMAL
    return decimal_products(groups, rule, actions) if is_decimal else computed(PRODUCT, groups, rule, actions)


_BYTES = "VARBINARY or BYTES"
_MAP = "a MAP whose keys are no bytes or maps"
_ALL = (
    AggregateFunction("last_value", _chosen(LAST_VALUE), anything, "any type", retracts=True),
    AggregateFunction("last_non_null_value", _chosen(LAST_NON_NULL), anything, "any type", retracts=True),
    AggregateFunction("first_value", _chosen(FIRST_VALUE), anything, "any type"),
    AggregateFunction("first_non_null_value", _chosen(FIRST_NON_NULL), anything, "any type"),
    AggregateFunction("first_not_null_value", _chosen(FIRST_NON_NULL), anything, "any type"),
    AggregateFunction("max", _chosen(GREATEST, compares=True), is_comparable, "a type without children, not BOOLEAN"),
    AggregateFunction("min", _chosen(LEAST, compares=True), is_comparable, "a type without children, not BOOLEAN"),
    AggregateFunction("bool_and", _chosen(LEAST, compares=True), is_boolean, "BOOLEAN"),
    AggregateFunction("bool_or", _chosen(GREATEST, compares=True), is_boolean, "BOOLEAN"),
    AggregateFunction("sum", _computed(SUM), is_number, "a number", retracts=True),
    AggregateFunction("product", _product, is_number, "a number", retracts=True),
    AggregateFunction("listagg", joined, is_text, "STRING", refuses=delimiter_problem),
    AggregateFunction("collect", collected, is_array, "an ARRAY", retracts=True, refuses=elements_problem),
    AggregateFunction("merge_map", merged_maps, is_map, _MAP, retracts=True),
    AggregateFunction(
        "merge_map_with_keytime",
        timed_maps,
        is_map_of_rows,
        f"{_MAP}, of rows with two fields or more",
        refuses=time_problem,
    ),
    AggregateFunction(
        "nested_update", nested_rows, is_array_of_rows, "an ARRAY of rows", retracts=True, refuses=nested_problem
    ),
    AggregateFunction(
        "nested_partial_update", updated_rows, is_array_of_rows, "an ARRAY of rows", refuses=nested_problem
    ),
    AggregateFunction("rbm32", united(united_bitmaps), is_bytes, _BYTES),
    AggregateFunction("rbm64", united(united_wide_bitmaps), is_bytes, _BYTES),
    AggregateFunction("hll_sketch", united(united_hll), is_bytes, _BYTES, refuses=missing_library),
    AggregateFunction("theta_sketch", united(united_theta), is_bytes, _BYTES, refuses=missing_library),
)
FUNCTIONS = {function.name: function for function in _ALL}
UNITED = ("rbm32", "rbm64", "hll_sketch", "theta_sketch")
"""The functions that cannot tell whether bytes are a value of theirs before they unite them."""


def function_of(rule: ColumnRule, option: str) -> AggregateFunction:
    """The function of a rule. InvalidError, which names the option that asks for it, for one that there is not or that the
    column's type does not take."""
    function = FUNCTIONS.get(rule.function)
    if function is None:
        nearest = difflib.get_close_matches(rule.function.lower(), list(FUNCTIONS), n=1, cutoff=0.4)
        meant = f"; did you mean '{nearest[0]}'?" if nearest else ""
        raise InvalidError(f"option '{option}': there is no aggregate function '{rule.function}'{meant}")
    if not function.takes(rule.type):
        raise InvalidError(
            f"option '{option}' = '{rule.function}': column {rule.column!r} is {rule.type}, expected {function.expected}"
        )
    problem = function.refuses(rule)
    if problem:
        raise InvalidError(f"option '{option}' = '{rule.function}': {problem}")
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
    if rule.function == "collect":
        return isinstance(rule.type, Array) and _has_equality(rule.type.element, rule)
    if rule.function == "nested_update":
        return bool(rule.settings.nested_key) or (isinstance(rule.type, Array) and has_codes(rule.type.element))
    chooses = rule.function in ("last_value", "last_non_null_value")
    return FUNCTIONS[rule.function].retracts and (rule.type.nullable or not chooses)


def _has_equality(element: DataType, rule: ColumnRule) -> bool:
    """Whether Paimon finds elements of an array that are equal: without 'distinct' only plain values."""
    return has_codes(element) and (rule.settings.distinct or isinstance(element, Atomic))


def not_retracted(rule: ColumnRule) -> InvalidError:
    """The error for a row that takes back a value which cannot be."""
    chooses = rule.function in ("last_value", "last_non_null_value")
    why = "is NOT NULL" if chooses else f"is aggregated with '{rule.function}'"
    return InvalidError(
        f"a row (-U or -D) takes values back, but column {rule.column!r} {why} and cannot; with "
        f"'fields.{rule.column}.ignore-retract' = 'true' such rows leave it unchanged"
    )


def _words(groups: KeyGroups, rule: ColumnRule) -> Words:
    """Words by which the values of a column compare, key by key; those of NULLs mean nothing."""

    def make() -> Words:
        return encode_keys([[_without_nulls(groups.source.column(rule.column))]], [rule.type])[0]

    return np.ascontiguousarray(groups.of_source(("words", rule.column), make)[groups.order])


def ranked(groups: KeyGroups, columns: Sequence[tuple[str, DataType]]) -> NDArray[np.uint64]:
    """Numbers that compare like the values of some columns together, key by key; NULL is least, rows of NULLs mean nothing."""

    def make() -> NDArray[np.uint64]:
        source = [groups.source.column(name) for name, _ in columns]
        types = [data_type for _, data_type in columns]
        if len(columns) == 1:
            (words,) = encode_keys([[_without_nulls(source[0])]], types)
        else:
            (words,) = encode_versions([source], types, descending=False)
        return words[:, 0] if words.shape[1] == 1 else _dense(words)

    name = ("ranks", tuple(name for name, _ in columns))
    return np.ascontiguousarray(groups.of_source(name, make)[groups.order])


def _without_nulls(column: pa.Array) -> pa.Array:
    """The column with whatever lies below its NULLs."""
    if not column.null_count:
        return column
    return pa.Array.from_buffers(column.type, len(column), [None, *column.buffers()[1:]], offset=column.offset)


def _dense(words: Words) -> NDArray[np.uint64]:
    """The place of each row among all, equal ones together."""
    order = np.lexsort(words.T[::-1])
    ordered = words[order]
    steps = np.ones(len(words), np.uint64)
    steps[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(len(words), np.uint64)
    numbers[order] = np.cumsum(steps, dtype=np.uint64)
    return numbers
