"""What a row does to the value that the rows of its key before it have come to.

An engine decides once for all rows, and the functions of columns follow, so that no function knows row kinds, sequence groups or
the options for deletes:

    SKIP             nothing
    ADD              the value is aggregated with that of the row
    ADD_OLDER        the same, with the row as the older one of the two
    RETRACT          the row's value is taken back
    RETRACT_OLDER    the same, by a row that is older than the newest of its sequence group
    SET              the value is that of the row, whatever was before
    SET_RETRACT      the value is that of the row, and is taken back

A key's only row sets the value: Paimon does not merge what is alone.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lakelet.lsm.engine.key_groups import KeyGroups

SKIP, ADD, ADD_OLDER, RETRACT, RETRACT_OLDER, SET, SET_RETRACT = range(7)

Actions: TypeAlias = NDArray[np.uint8]
"""An action for each row, key by key."""

DELETE = 3
"""The row kind -D."""


def mapped(actions: Actions, changes: dict[int, int]) -> Actions:
    """The actions with some replaced by others."""
    table = np.arange(SET_RETRACT + 1, dtype=np.uint8)
    for before, after in changes.items():
        table[before] = after
    return table[actions]


def ignoring_retracts(actions: Actions) -> Actions:
    """The actions for a column that retracts leave as it is."""
    return mapped(actions, {RETRACT: SKIP, RETRACT_OLDER: SKIP, SET_RETRACT: SET})


def takes_back(actions: Actions) -> bool:
    """Whether a value is taken back by some row."""
    return bool(np.isin(actions, (RETRACT, RETRACT_OLDER, SET_RETRACT)).any())


def kind_actions(groups: KeyGroups, *, removes_on_delete: bool) -> Actions:
    """The actions that row kinds alone say: retracts take back, or with `removes_on_delete` those that delete set the value."""
    actions = np.full(len(groups.order), ADD, np.uint8)
    retracts = groups.retracts()
    if retracts is None:
        return actions
    actions[retracts] = RETRACT
    if removes_on_delete:
        actions[groups.kinds() == DELETE] = SET
    actions[groups.starts[groups.ends - groups.starts == 1]] = SET
    return actions
