"""Read splits of a table: raw ones by the split reader, all others through the merge.

Rows keep the order of the splits. This is the one reader that tables use; which kind a split is was decided by its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from lakelet.lsm.sections import sections
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.predicate.row_filter import RowFilter
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.read.merge.overlaid_split import AnySplit, OverlaidSplit
from lakelet.read.row_counts import joined
from lakelet.read.split_reader import SplitReader
from lakelet.storage.home import TableHome


class TableReader:
    """Reads columns of splits, filtered.

    With `ordered`, the rows of each split of a primary-key table come in key order; a table without a key has none.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        columns: Sequence[str],
        row_filter: RowFilter,
        schema_of: Callable[[int], TableSchema],
        *,
        ordered: bool = False,
    ) -> None:
        self._schema = schema
        self._ordered = ordered and bool(schema.primary_keys)
        self._raw = SplitReader(home, schema.fields, columns, row_filter, schema_of)
        self._merged: MergeReader | None = None
        if schema.primary_keys:
            self._merged = MergeReader(home, schema, columns, row_filter, schema_of, ordered=ordered)
        self.schema = self._raw.schema

    def batches(self, splits: Sequence[AnySplit]) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, none of them empty."""
        for needs_merge, group in self._groups(splits):
            yield from self._merge_reader.batches(group) if needs_merge else self._raw.batches(_plain(group))

    def table(self, splits: Sequence[AnySplit]) -> pa.Table:
        """All rows as one table."""
        tables = [
            self._merge_reader.table(group) if needs_merge else self._raw.table(_plain(group))
            for needs_merge, group in self._groups(splits)
        ]
        return joined(tables, self.schema)

    @property
    def _merge_reader(self) -> MergeReader:
        assert self._merged is not None, "only primary-key tables have splits to merge"
        return self._merged

    def _groups(self, splits: Sequence[AnySplit]) -> Iterator[tuple[bool, list[AnySplit]]]:
        """Neighbours that are merged, and neighbours that are not."""
        wanted = [self._in_key_order(split) for split in splits] if self._ordered else splits
        for needs_merge, group in groupby(wanted, key=lambda split: split.needs_merge):
            yield needs_merge, list(group)

    def _in_key_order(self, split: AnySplit) -> AnySplit:
        """The same split, read so that its keys come in order: file after file, or by a merge where files overlap.

        Files of a raw split overlap where deletion vectors delete the superseded rows; a merge of the rest drops none.
        """
        if isinstance(split, OverlaidSplit) or split.needs_merge:
            return split
        found = sections(split.files, [field.type for field in self._schema.trimmed_key_fields])
        if any(len(section.runs) > 1 for section in found):
            return replace(split, needs_merge=True)
        places = [place for section in found for place in section.places]
        return replace(
            split,
            files=tuple(split.files[place] for place in places),
            paths=tuple(split.paths[place] for place in places),
            deletion_vectors=tuple(split.deletion_vectors[place] for place in places),
        )


def _plain(splits: Sequence[AnySplit]) -> list[Split]:
    return [split for split in splits if isinstance(split, Split)]
