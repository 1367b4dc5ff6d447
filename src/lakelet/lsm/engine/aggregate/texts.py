"""`listagg`: the texts of all values of a key, with a delimiter between them.

Texts without characters are left out. With 'distinct' a newer text is split at its delimiters, and of its parts those are added
that the older ones lack.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.lsm.engine.aggregate.collections import elements
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.element_loops import TEXTS, TOKENS
from lakelet.lsm.engine.aggregate.equal_values import NULL
from lakelet.lsm.engine.aggregate.row_actions import Actions
from lakelet.lsm.engine.key_groups import KeyGroups


def joined(groups: KeyGroups, rule: ColumnRule, actions: Actions) -> pa.Array:
    """The joined texts of each key."""
    column = groups.column(rule.column)
    delimiter = rule.settings.delimiter
    if rule.settings.distinct:
        tokens = _lists(pc.split_pattern(column, delimiter), column)
        encoded = tokens.values.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes[pc.binary_length(tokens.values).to_numpy(zero_copy_only=False) == 0] = NULL
    else:
        tokens = _lists(pa.ListArray.from_arrays(pa.array(np.arange(len(column) + 1), pa.int32()), column), column)
        codes = np.zeros(len(tokens.values), np.int64)
    found, sizes, present = elements(TOKENS if rule.settings.distinct else TEXTS, groups, rule, actions, tokens, codes)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, tokens.values.take(pa.array(found)), mask=pa.array(present == 0))
    return pc.binary_join(lists, delimiter).cast(column.type)


def _lists(tokens: pa.Array, column: pa.Array) -> pa.Array:
    """The tokens of each text, none where it is NULL or has no characters."""
    begins = np.asarray(tokens.offsets, np.int64)
    sizes = np.diff(begins)
    lengths = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    kept = np.repeat(lengths > 0, sizes)
    offsets = np.concatenate(([0], np.cumsum(np.where(lengths > 0, sizes, 0)))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), tokens.values.filter(pa.array(kept)))
