"""Delete rows by predicate from an append table: the files that hold a matching row are rewritten without it, or, with
`deletion-vectors.enabled`, the row is marked as deleted in the deletion vector of its file.

Only files that statistics do not prune are read, with just the columns of the predicate; a file without a matching row
stays, one in which every row matches is removed, the others are rewritten or marked. If another writer changes one of these
files meanwhile, the whole is retried on the new snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import RowFilter, row_filter
from lakelet.read.split_reader import SplitReader
from lakelet.scan.plan import Planner, Where
from lakelet.sink.write.append_writer import AppendWriter
from lakelet.storage.home import TableHome
from lakelet.table.change.looked_up_change import LookedUpChange, Prepared
from lakelet.table.change.marked_rows import MarkedRows, marks_rows, takes_marks
from lakelet.table.change.row_changes import without_files
from lakelet.table.read.located_rows import ROW
from lakelet.table.write.table_commit import TableCommit


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """Deletes the rows of an append table that match a predicate."""

    home: TableHome
    where_of: Callable[[TableSchema], Where]
    commit: TableCommit

    def run(self) -> Snapshot | None:
        """Delete and commit; None where no row matches."""
        return LookedUpChange(self.home, self.commit, self._prepare).run()

    def _prepare(self, schema: TableSchema, snapshot: Snapshot | None) -> Prepared:
        where = self.where_of(schema)
        if snapshot is None:
            return Prepared(())
        schema_of = SchemaVersions(self.home, {schema.id: schema})
        plan = Planner(self.home, schema, schema_of, TableOptions(schema.options)).plan(
            snapshot, where, whole_entries=True
        )
        looked = _Looked(self.home, schema, schema_of, row_filter(where, schema.fields))
        ones = (one for split in plan.splits for one in split.single_files())
        writer = AppendWriter(self.home.deferring(), schema)
        marked = MarkedRows(self.home.deferring(), schema, snapshot) if marks_rows(schema) else None
        try:
            removed = [
                one for one in ones if one.files[0].name in plan.matching_files or looked.goes(one, writer, marked)
            ]
            marks = () if marked is None else marked.messages()
            added = writer.prepare_commit()
        except BaseException:
            if marked is not None:
                marked.remove()
            writer.abort()
            raise
        return Prepared((*without_files(snapshot, removed), *marks, *added))


@dataclass(frozen=True, slots=True)
class _Looked:
    """Looks for the rows of files that match."""

    home: TableHome
    schema: TableSchema
    schema_of: SchemaVersions
    matching: RowFilter

    def goes(self, one: Split, writer: AppendWriter, marked: MarkedRows | None) -> bool:
        """Mark the rows of a file that match, or write the others; whether the file is to be removed."""
        if marked is None or not takes_marks(one):
            return self._rewrite(one, writer)
        places, rows = self._places(one)
        if 0 < len(places) < rows:
            marked.mark(one, places)
        return 0 < len(places) == rows

    def _places(self, one: Split) -> tuple[NDArray[np.int64], int]:
        """The matching rows by their numbers among the visible rows of a file, and how many rows are visible."""
        rows = 0
        found = [np.zeros(0, np.int64)]
        for batch in self._batches(one):
            numbered = batch.append_column(ROW, pa.array(np.arange(rows, rows + batch.num_rows)))
            found.append(self.matching.apply(numbered).column(ROW).to_numpy())
            rows += batch.num_rows
        return np.concatenate(found), rows

    def _rewrite(self, one: Split, writer: AppendWriter) -> bool:
        """Write the rows of a file that do not match; False where none matches."""
        rows = found = 0
        for batch in self._batches(one):
            rows += batch.num_rows
            found += self.matching.apply(batch).num_rows
        if found == 0:
            return False
        if found < rows:
            everything = row_filter(None, self.schema.fields)
            reader = SplitReader(self.home, self.schema.fields, self.schema.names, everything, self.schema_of)
            for batch in reader.batches([one]):
                writer.write(_without_matches(batch, self.matching))
        return True

    def _batches(self, one: Split) -> Iterator[pa.RecordBatch]:
        """The rows of a file in the columns of the predicate."""
        everything = row_filter(None, self.schema.fields)
        needed = self.matching.columns or self.schema.names[:1]
        return SplitReader(self.home, self.schema.fields, needed, everything, self.schema_of).batches([one])


def _without_matches(batch: pa.RecordBatch, matching: RowFilter) -> pa.RecordBatch:
    numbered = batch.append_column(ROW, pa.array(np.arange(batch.num_rows)))
    keep = np.ones(batch.num_rows, bool)
    keep[matching.apply(numbered).column(ROW).to_numpy()] = False
    return batch.filter(pa.array(keep))
