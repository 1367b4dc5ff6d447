"""Functions whose values are bytes of a library's own: sets that are united, of which a key mostly has a few.

A value that is alone stays as it was written. How several are united is the function's; it is given them oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.row_actions import ADD, ADD_OLDER, SET, Actions
from lakelet.lsm.engine.key_groups import KeyGroups

Unite = Callable[[Sequence[bytes], ColumnRule], bytes]


def united(unite: Unite) -> Callable[[KeyGroups, ColumnRule, Actions], pa.Array]:
    """The fold of a function that unites values."""

    def fold(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
        column = groups.column(rule.column)
        valid = groups.valid(rule.column)
        counts = np.isin(actions, (ADD, ADD_OLDER)) & valid
        # A value that is set replaces all before it, also with NULL.
        sets = actions == SET
        older = actions == ADD_OLDER
        found: list[bytes | None] = []
        for start, end in zip(groups.starts.tolist(), groups.ends.tolist(), strict=True):
            first = start + int(np.flatnonzero(sets[start:end])[-1]) if sets[start:end].any() else start
            rows = first + np.flatnonzero(counts[first:end] | (sets[first:end] & valid[first:end]))
            # Of rows that are older than those before them the last is the oldest.
            ordered = [*rows[older[rows]][::-1].tolist(), *rows[~older[rows]].tolist()]
            values = [column[row].as_py() for row in ordered]
            found.append(unite(values, rule) if len(values) > 1 else next(iter(values), None))
        return pa.array(found, column.type)

    return fold
