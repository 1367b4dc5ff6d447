"""Aggregates of nested columns: arrays and maps that are made of the elements of all values of a key.

    collect                   the elements of all arrays; with 'distinct' each once
    merge_map                 of each key of the maps the newest entry
    merge_map_with_keytime    the entry whose row has the greatest text in its time field; a NULL row removes the entry
    nested_update             the rows of all arrays, at most 'count-limit'; of each 'nested-key' the newest
    nested_partial_update     of each 'nested-key' one row, each member the newest that is not NULL

Elements are in the order in which they first came, where Java gives them in the order of its hash table. `element_loops`
says which elements a result has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.element_loops import (
    COLLECT,
    DISTINCT,
    DISTINCT_AS_IS,
    ENTRIES,
    KEYED_ROWS,
    NO_TIME,
    NO_VALUE,
    ROWS,
    TIMED,
    element_loop,
    row_loop,
)
from lakelet.lsm.engine.aggregate.equal_values import NULL, Codes, equal_codes, member_codes
from lakelet.lsm.engine.aggregate.row_actions import ADD, SET, Actions, takes_back
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.model.types import Array, Atomic, Map, Row

NO_LIMIT = np.iinfo(np.int64).max
_FOUR_BYTES = 0xF0
"""The first byte of a character that Java's text keeps in two units."""


def collected(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """`collect`: the elements of all arrays."""
    assert isinstance(rule.type, Array)
    column = groups.column(rule.column)
    element = rule.type.element
    distinct = DISTINCT if isinstance(element, Atomic) else DISTINCT_AS_IS
    function = distinct if rule.settings.distinct else COLLECT
    if rule.settings.distinct:
        # An array that is alone is not merged, and may hold an element twice.
        alone = groups.starts[(groups.ends - groups.starts == 1) & (actions[groups.starts] == ADD)]
        actions = actions.copy()
        actions[alone] = SET
    if rule.settings.distinct or takes_back(actions):
        # NULL is an element like others.
        codes = equal_codes(column.values, element) + 1
    else:
        codes = np.zeros(len(column.values), np.int64)
    return _lists(column, *elements(function, groups, rule, actions, column, codes))


def merged_maps(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """`merge_map`: the entries of all maps."""
    assert isinstance(rule.type, Map)
    column = groups.column(rule.column)
    codes = equal_codes(column.keys, rule.type.key)
    return _maps(column, *elements(ENTRIES, groups, rule, actions, column, codes))


def timed_maps(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """`merge_map_with_keytime`: the entries of all maps, by the time in their rows."""
    assert isinstance(rule.type, Map)
    assert isinstance(rule.type.value, Row)
    column = groups.column(rule.column)
    codes = equal_codes(column.keys, rule.type.key)
    fields = rule.type.value.fields
    wanted = rule.settings.time_field
    place = next((at for at, field in enumerate(fields) if field.name == wanted), len(fields) - 1)
    ranks = _text_ranks(column.items.field(place))
    valid = column.items.is_valid().to_numpy(zero_copy_only=False)
    ranks = np.where(valid, ranks, NO_VALUE)
    return _maps(column, *elements(TIMED, groups, rule, actions, column, codes, ranks))


def nested_rows(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """`nested_update`: the rows of all arrays."""
    assert isinstance(rule.type, Array)
    assert isinstance(rule.type.element, Row)
    column = groups.column(rule.column)
    key = rule.settings.nested_key
    if key:
        codes = member_codes(column.values, rule.type.element, key)
    elif not takes_back(actions):
        codes = np.where(column.values.is_valid().to_numpy(zero_copy_only=False), 0, NULL)
    else:
        codes = equal_codes(column.values, rule.type.element)
    return _lists(column, *elements(KEYED_ROWS if key else ROWS, groups, rule, actions, column, codes))


def updated_rows(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """`nested_partial_update`: the rows of all arrays, those of one key updated member by member."""
    assert isinstance(rule.type, Array)
    assert isinstance(rule.type.element, Row)
    column = groups.column(rule.column)
    rows, width = column.values, len(rule.type.element.fields)
    codes = member_codes(rows, rule.type.element, rule.settings.nested_key)
    members = np.empty((width, len(rows)), np.uint8)
    for place in range(width):
        members[place] = rows.field(place).is_valid().to_numpy(zero_copy_only=False)
    found = np.empty((len(rows), width + 1), np.int64)
    sizes, present = np.empty(len(groups), np.int64), np.empty(len(groups), np.uint8)
    loop = row_loop.for_bytes_or_interpreted(len(actions) + len(rows))
    valid = groups.valid(rule.column).view(np.uint8)
    begins = _begins(column)
    loop(groups.starts, groups.ends, actions, valid, begins, codes, members, found, sizes, present)
    found = np.ascontiguousarray(found[: sizes.sum()].T)
    absent = ~rows.is_valid().to_numpy(zero_copy_only=False)[found[width]]
    taken = [rows.field(place).take(pa.array(found[place])) for place in range(width)]
    merged = pa.StructArray.from_arrays(taken, fields=list(rows.type), mask=pa.array(absent))
    return pa.ListArray.from_arrays(_offsets(sizes), merged, column.type, mask=pa.array(present == 0))


def elements(
    function: int,
    groups: KeyGroups,
    rule: ColumnRule,
    actions: Actions,
    column: Any,
    codes: Codes,
    ranks: Codes | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """The elements of each key's value, their numbers, and which values are not NULL. `column` is nested; its rows are those of
    the groups, in their order."""
    found = np.empty(len(codes), np.int64)
    sizes, present = np.empty(len(groups), np.int64), np.empty(len(groups), np.uint8)
    ranks = np.zeros(0, np.int64) if ranks is None else ranks
    limit = NO_LIMIT if rule.settings.count_limit is None else rule.settings.count_limit
    loop = element_loop.for_bytes_or_interpreted(len(actions) + len(codes))
    loop(
        function,
        limit,
        groups.starts,
        groups.ends,
        actions,
        groups.valid(rule.column).view(np.uint8),
        _begins(column),
        np.ascontiguousarray(codes, np.int64),
        np.ascontiguousarray(ranks, np.int64),
        found,
        sizes,
        present,
    )
    return found[: sizes.sum()], sizes, present


def _lists(column: Any, found: Codes, sizes: Codes, present: NDArray[np.uint8]) -> pa.Array:
    taken = column.values.take(pa.array(found))
    return pa.ListArray.from_arrays(_offsets(sizes), taken, column.type, mask=pa.array(present == 0))


def _maps(column: Any, found: Codes, sizes: Codes, present: NDArray[np.uint8]) -> pa.Array:
    keys, items = (child.take(pa.array(found)) for child in (column.keys, column.items))
    return pa.MapArray.from_arrays(_offsets(sizes), keys, items, column.type, mask=pa.array(present == 0))


def _begins(column: Any) -> NDArray[np.int64]:
    return np.asarray(column.offsets, np.int64)


def _offsets(sizes: Codes) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))


def _text_ranks(texts: pa.Array) -> Codes:
    """Numbers that compare like texts do in Java, by units of 16 bits; NO_TIME for NULL."""
    encoded = texts.dictionary_encode()
    words = encoded.dictionary
    data = np.frombuffer(words.buffers()[2] or b"", np.uint8)
    if (data >= _FOUR_BYTES).any():
        spelled = words.to_pylist()
        order = np.array(sorted(range(len(spelled)), key=lambda at: spelled[at].encode("utf-16-be")), np.int64)
    else:
        order = pc.array_sort_indices(words).to_numpy().astype(np.int64)
    ranks = np.empty(len(words) + 1, np.int64)
    ranks[order] = np.arange(len(words))
    ranks[-1] = NO_TIME
    found: Codes = ranks[encoded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)]
    return found
