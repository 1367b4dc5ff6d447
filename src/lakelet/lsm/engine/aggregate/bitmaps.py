"""`rbm32`: the union of roaring bitmaps of 32-bit numbers, in the portable form that Java writes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.index.deletion_vectors import decode_bitmap, encode_bitmap
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.row_actions import ADD, ADD_OLDER, SET, Actions
from lakelet.lsm.engine.key_groups import KeyGroups


def united(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """The union of each key's bitmaps. One that is alone is the value as it was written."""
    column = groups.column(rule.column)
    valid = groups.valid(rule.column)
    counts = np.isin(actions, (ADD, ADD_OLDER)) & valid
    # A value that is set replaces all before it, also with NULL.
    sets = actions == SET
    found: list[bytes | None] = []
    for start, end in zip(groups.starts.tolist(), groups.ends.tolist(), strict=True):
        first = start + int(np.flatnonzero(sets[start:end])[-1]) if sets[start:end].any() else start
        rows = first + np.flatnonzero(counts[first:end] | (sets[first:end] & valid[first:end]))
        bitmaps = [column[row].as_py() for row in rows.tolist()]
        found.append(_union(bitmaps, rule) if len(bitmaps) > 1 else next(iter(bitmaps), None))
    return pa.array(found, column.type)


def _union(bitmaps: list[bytes], rule: ColumnRule) -> bytes:
    try:
        parts = [decode_bitmap(bitmap, path=f"column {rule.column!r}") for bitmap in bitmaps]
    except CorruptionError as error:
        raise InvalidError(f"column {rule.column!r} is aggregated with '{rule.function}': {error}") from error
    return encode_bitmap(np.unique(np.concatenate(parts)))
