"""Compare two versions of a bucket by the keys that were written between them, where these are few.

Rows of all other keys are the same in both versions. So the keys are read from the files that were added, their rows are looked
up in either version, and only these are compared: a thousand rows written to a bucket of millions take a thousand lookups, not
two scans of the bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.predicate.row_filter import row_filter
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.split_reader import SplitReader
from lakelet.storage.home import TableHome
from lakelet.table.read.change_unit import ChangeUnit

# A lookup costs about as much as reading this many rows in order.
LOOKUP_ROWS = 16
_MOST_ROWS = 1 << 18


class ChangedKeys:
    """Looks up the rows of the keys that were written between two versions."""

    def __init__(self, home: TableHome, schema: TableSchema, schema_of: SchemaVersions) -> None:
        self._types = tuple(schema.field(name).type for name in schema.primary_keys)
        self._names = schema.primary_keys
        self._keys = SplitReader(home, schema.fields, self._names, row_filter(None, schema.fields), schema_of)
        self._rows = PointReader(home, schema, schema.names, schema_of)

    @staticmethod
    def suffice(unit: ChangeUnit) -> bool:
        """Whether looking up the written keys costs less than reading both versions."""
        if not unit.written:
            return False
        written = sum(split.row_count for split in unit.written)
        everything = sum(split.row_count for split in (*unit.before, *unit.after))
        return written <= _MOST_ROWS and written * 2 * LOOKUP_ROWS <= everything

    def rows(self, units: Sequence[ChangeUnit]) -> tuple[pa.Table, pa.Table]:
        """The rows of the written keys before and after."""
        before, after = list[pa.Table](), list[pa.Table]()
        for unit in units:
            were, are = _by_bucket(unit.before), _by_bucket(unit.after)
            for place, splits in _by_bucket(unit.written).items():
                keys = self._distinct(splits)
                before.append(self._found(were.get(place), keys))
                after.append(self._found(are.get(place), keys))
        empty = self._rows.schema.empty_table()
        return pa.concat_tables([empty, *before]), pa.concat_tables([empty, *after])

    def _distinct(self, splits: Sequence[Split]) -> pa.Table:
        """The keys of all rows of these files, those of retracts among them, each once, as the table distinguishes keys."""
        bare = [replace(one, deletion_vectors=(None,)) for split in splits for one in split.single_files()]
        keys = self._keys.table(bare).combine_chunks()
        encoded = encode_rows([keys.column(name) for name in self._names], self._types)
        _, first = np.unique(encoded.dictionary_encode().indices.to_numpy(zero_copy_only=False), return_index=True)
        return keys.take(pa.array(np.sort(first)))

    def _found(self, splits: Sequence[Split] | None, keys: pa.Table) -> pa.Table:
        if splits is None or not keys.num_rows:
            return self._rows.schema.empty_table()
        rows, _ = self._rows.get_many([(_whole(splits), np.arange(keys.num_rows, dtype=np.int64))], keys)
        return rows


def _by_bucket(splits: Iterable[Split]) -> dict[tuple[bytes, int], list[Split]]:
    found: dict[tuple[bytes, int], list[Split]] = {}
    for split in splits:
        found.setdefault((split.partition, split.bucket), []).append(split)
    return found


def _whole(splits: Sequence[Split]) -> Split:
    """One split of all files of a bucket."""
    return replace(
        splits[0],
        files=tuple(file for split in splits for file in split.files),
        paths=tuple(path for split in splits for path in split.paths),
        deletion_vectors=tuple(vector for split in splits for vector in split.deletion_vectors),
        needs_merge=True,
    )
