"""Sequence groups of `partial-update`: columns that change together, each group by sequence columns of its own.

    'fields.g1.sequence-group' = 'a,b'         a and b follow g1: a row with a lesser g1 than the newest does not change them
    'fields.g2,g3.sequence-group' = 'c'        c follows g2, and g3 where g2 is equal; NULL is least
    a row whose sequence columns are all NULL leaves the columns of the group as they are

Here is decided what every row does to the columns of every group, and to those of none (`aggregate.row_actions`). The first row
of a key sets all columns if it is a retract. A -D sets them too where it removes the row: with
`partial-update.remove-record-on-delete`, or by a group of `partial-update.remove-record-on-sequence-group` in which it is not
older.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop
from lakelet.lsm.engine.aggregate.fold_loops import SAVED
from lakelet.lsm.engine.aggregate.functions import ranked
from lakelet.lsm.engine.aggregate.row_actions import (
    ADD,
    ADD_OLDER,
    DELETE,
    RETRACT,
    RETRACT_OLDER,
    SET,
    SET_RETRACT,
    SKIP,
    Actions,
)
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.model.row_arrays import Kinds
from lakelet.model.types import DataType

_PLACES = "Array(int64, 1, 'C', readonly=True)"


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """`sequence` are the columns that order rows, as (name, type), `members` those that follow them."""

    sequence: tuple[tuple[str, DataType], ...]
    members: tuple[str, ...]
    removes_on_delete: bool = False

    @property
    def sequence_names(self) -> tuple[str, ...]:
        """The sequence columns."""
        return tuple(name for name, _ in self.sequence)

    @property
    def columns(self) -> frozenset[str]:
        """All columns of the group."""
        return frozenset((*self.sequence_names, *self.members))


@dataclass(frozen=True, slots=True)
class GroupActions:
    """What each row does to the columns of each group, and to `others`; `kinds` are those of the results."""

    by_group: tuple[Actions, ...]
    others: Actions
    kinds: Kinds


def group_actions(
    groups: KeyGroups, sequence_groups: Sequence[SequenceGroup], *, removes_on_delete: bool
) -> GroupActions:
    """Decide for all rows."""
    rows, width = len(groups.order), len(sequence_groups)
    if not width and groups.retracts() is None:
        return GroupActions((), np.full(rows, ADD, np.uint8), np.zeros(len(groups), np.int8))
    ranks = np.zeros((width, rows), np.uint64)
    empty = np.ones((width, rows), np.bool_)
    for place, group in enumerate(sequence_groups):
        ranks[place] = ranked(groups, group.sequence)
        for name in group.sequence_names:
            empty[place] &= ~groups.valid(name)
    removing = np.array([group.removes_on_delete for group in sequence_groups], np.uint8)
    actions = np.empty((width + 1, rows), np.uint8)
    kinds = np.empty(len(groups), np.int8)
    loop = _decide_loop.for_bytes_or_interpreted(actions.nbytes)
    loop(
        removes_on_delete,
        groups.starts,
        groups.ends,
        np.ascontiguousarray(groups.kinds()),
        ranks,
        empty.view(np.uint8),
        removing,
        actions,
        kinds,
    )
    return GroupActions(tuple(actions[:width]), actions[width], kinds)


@compiled_loop(
    f"void(boolean, {_PLACES}, {_PLACES}, Array(int8, 1, 'C', readonly=True), Array(uint64, 2, 'C', readonly=True), "
    "Array(uint8, 2, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True), uint8[:, ::1], int8[::1])",
    saved_ns_per_byte=SAVED,
)
def _decide_loop(
    removes_on_delete: bool,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    row_kinds: Kinds,
    ranks: NDArray[np.uint64],
    empty: NDArray[np.uint8],
    removing: NDArray[np.uint8],
    actions: NDArray[np.uint8],
    kinds: Kinds,
) -> None:
    """Row by row within each key: `newest` has the row of each group whose sequence is the newest so far, -1 before any."""
    width = ranks.shape[0]
    newest = np.empty(width + 1, np.int64)
    for key in range(starts.shape[0]):
        start, end = starts[key], ends[key]
        if end - start == 1:
            actions[:, start] = SET
            kinds[key] = row_kinds[start]
            continue
        newest[:] = -1
        inserted = False
        removed = False
        for row in range(start, end):
            kind = row_kinds[row]
            retracts = kind & 1 != 0
            fills = retracts and row == start
            removed = removes_on_delete and kind == DELETE
            for group in range(width):
                if fills:
                    newest[group] = -1 if empty[group, row] else row
                if kind == DELETE and removing[group] and not empty[group, row]:
                    before = newest[group]
                    removed = removed or before < 0 or ranks[group, row] >= ranks[group, before]
            actions[width, row] = SET if removed or fills else (SKIP if retracts else ADD)
            for group in range(width):
                before = newest[group]
                if removed:
                    actions[group, row] = SET
                    newest[group] = -1 if empty[group, row] else row
                elif empty[group, row]:
                    actions[group, row] = SET if fills else SKIP
                elif before < 0 or ranks[group, row] >= ranks[group, before]:
                    newest[group] = row
                    actions[group, row] = (SET_RETRACT if fills else RETRACT) if retracts else ADD
                else:
                    actions[group, row] = RETRACT_OLDER if retracts else ADD_OLDER
            inserted = inserted or not retracts
        kinds[key] = DELETE if removed or not inserted else 0
