"""Rows in memory of a table with `sequence.field`: of each key the record that the table will have after the flush.

    the snapshot's record of a key: a row, or a deletion that files still hold
        ── memtables, oldest first: a record wins where its sequence is not less than that of the one before

What is in memory is committed later than everything in the snapshot, so that it wins where sequences are equal. Where level 0 is
hidden, every flush is compacted and no deletion is kept: whatever is flushed after it wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.lsm.key_words import encode_versions
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.scan.tree import hides_level0
from lakelet.storage.home import TableHome
from lakelet.table.read.kept_lookup import find_kept_rows

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Rows of one memtable in the columns of the newest schema, what each does (None: all insert), and the number of its key."""

    rows: pa.RecordBatch
    kinds: Kinds | None
    places: Places

    def kept(self, mask: Mask) -> MemoryPart:
        """Some of the rows."""
        kinds = None if self.kinds is None else self.kinds[mask]
        return MemoryPart(self.rows.filter(pa.array(mask)), kinds, self.places[mask])

    @property
    def retracts(self) -> Mask:
        """Which rows delete."""
        return np.zeros(self.rows.num_rows, np.bool_) if self.kinds is None else (self.kinds & 1).astype(np.bool_)

    def present(self) -> list[tuple[Sequence[int], pa.RecordBatch]]:
        """The rows that delete none, with the numbers of their keys."""
        shown = self if self.kinds is None else self.kept(~self.retracts)
        return [(shown.places.tolist(), shown.rows)] if shown.rows.num_rows else []


def winning_parts(
    parts: Sequence[MemoryPart], home: TableHome, schema: TableSchema, snapshot: Snapshot | None
) -> list[MemoryPart]:
    """The rows in memory that win against all others of their keys, deletions among them. The parts are given oldest first, each
    with a key once; the snapshot has none of them."""
    parts = [part for part in parts if part.rows.num_rows]
    if not parts:
        return []
    merge = MergeSpec.of(schema)
    names, types = [name for name, _ in merge.versions], [data_type for _, data_type in merge.versions]
    stored, numbers = _stored(parts, home, schema, snapshot, names)
    columns = [[rows.column(name) for name in names] for rows in (*(part.rows for part in parts), stored)]
    *words, before = encode_versions(columns, types, descending=merge.descending)
    forgets = hides_level0(TableOptions(schema.options))
    count = max(int(part.places.max()) for part in parts) + 1
    best = np.zeros((count, before.shape[1]), np.uint64)
    exists, source = np.zeros(count, np.bool_), np.full(count, -1, np.int64)
    best[numbers], exists[numbers] = before, True
    for number, (part, own) in enumerate(zip(parts, words, strict=True)):
        places = part.places
        wins = ~(exists[places] & _is_less(own, best[places]))
        won = places[wins]
        best[won], source[won] = own[wins], number
        exists[won] = ~part.retracts[wins] if forgets else True
    return [part.kept(source[part.places] == number) for number, part in enumerate(parts)]


def _stored(
    parts: Sequence[MemoryPart], home: TableHome, schema: TableSchema, snapshot: Snapshot | None, names: Sequence[str]
) -> tuple[pa.Table, Places]:
    """Columns of the snapshot's records of all keys in the parts, and the numbers of these keys."""
    keys = pa.Table.from_batches([part.rows.select(list(schema.primary_keys)) for part in parts])
    places, firsts = np.unique(np.concatenate([part.places for part in parts]), return_index=True)
    rows, at = find_kept_rows(home, schema, snapshot, keys.take(pa.array(firsts)), names, retracts=True)
    return rows, places[at]


def _is_less(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> Mask:
    """Whether rows of words are less than others, the first word first."""
    less, same = np.zeros(len(one), np.bool_), np.ones(len(one), np.bool_)
    for place in range(one.shape[1]):
        less |= same & (one[:, place] < other[:, place])
        same &= one[:, place] == other[:, place]
    return less
