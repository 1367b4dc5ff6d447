"""Look up one key in the files of one bucket: the twin of `file_lookup` without arrays of keys, for low latency.

It finds the same rows in the same order. What is not in memory yet is loaded the same way, bloom filters included.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.lsm.sections import may_hold_retracts
from lakelet.read.lookup.file_lookup import BucketFiles, FileColumns, FileHits
from lakelet.read.lookup.key_bounds import WantedKeys
from lakelet.read.lookup.key_codes import SingleKey
from lakelet.read.lookup.lookup_blocks import Footer, LookupFile


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row of the key in one block; `kind` is 0 where the file holds no retracts."""

    lookup: LookupFile
    group: int
    row: int
    kind: int

    @property
    def is_retract(self) -> bool:
        """Whether the row takes an older one away."""
        return self.kind & 1 == 1

    def sequence(self, columns: FileColumns) -> int:
        """The sequence number of the row."""
        (numbers,) = columns.blocks.columns(self.lookup, self.group, (SEQUENCE_FIELD,))
        number: int = numbers[self.row].as_py()
        return number

    def values(self, columns: FileColumns, key: SingleKey) -> dict[str, Any]:
        """The columns of the result, by name."""
        fields = columns.spec.fields
        if not columns.is_current(self.lookup):
            keys, numbers = WantedKeys(key.columns, key.types), np.array([self.row], np.int64)
            hits = FileHits(columns, keys, self.lookup, self.group, numbers, np.zeros(1, np.int64), None)
            evolved: dict[str, Any] = hits.rows(fields).to_pylist()[0]
            return evolved
        known = columns.spec.key_places
        read = [field for field in fields if field.name not in known]
        stored = iter(columns.blocks.columns(self.lookup, self.group, read))
        return {
            field.name: (key.columns[known[field.name]][0] if field.name in known else next(stored)[self.row]).as_py()
            for field in fields
        }


def find_rows_of(key: SingleKey, bucket: BucketFiles, columns: FileColumns, *, counts_deletes: bool) -> list[FoundRow]:
    """All rows of the key in all files; files and row groups in order."""
    blocks = columns.blocks
    found: list[FoundRow] = []
    for number in bucket.bounds.holding(key):
        lookup = bucket.files[number]
        footer = blocks.footer(lookup)
        for group in _groups(footer, key):
            block = blocks.single_key_block(lookup, group, key)
            for row in () if block is None else block.find_single(key):
                if _is_deleted(columns, lookup, int(footer.starts[group]) + row):
                    continue
                kind = 0
                if may_hold_retracts(lookup.file.data, counts_deletes=counts_deletes):
                    kind = blocks.columns(lookup, group, (KIND_FIELD,))[0][row].as_py()
                found.append(FoundRow(lookup, group, row, kind))
    return found


def _groups(footer: Footer, key: SingleKey) -> Iterable[int]:
    """The row groups that may hold the key."""
    if footer.sst is not None:
        return [group for group, _ in footer.groups_of(WantedKeys(key.columns, key.types), np.zeros(1, np.int64))]
    count = len(footer.starts) - 1
    # The range of a single row group is that of its file.
    return range(count) if footer.bounds is None or count == 1 else footer.bounds.holding(key)


def _is_deleted(columns: FileColumns, lookup: LookupFile, position: int) -> bool:
    if lookup.file.vector is None:
        return False
    positions = columns.blocks.deleted(lookup.file)
    if positions is None:
        return False
    at = int(np.searchsorted(positions, position))
    return at < len(positions) and int(positions[at]) == position
