"""Delete rows by predicate from an append table: the files that hold a matching row are rewritten without it.

Only files that statistics do not prune are read, with just the columns of the predicate; a file without a matching row
stays, one in which every row matches is removed, the others are rewritten. If another writer changes one of these files
meanwhile, the whole is retried on the new snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

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
        matching = row_filter(where, schema.fields)
        writer = AppendWriter(self.home.deferring(), schema)
        try:
            removed = [
                one
                for one in (one for split in plan.splits for one in split.single_files())
                if one.files[0].name in plan.matching_files or self._rewrite(one, schema, schema_of, matching, writer)
            ]
            added = writer.prepare_commit()
        except Exception:
            writer.abort()
            raise
        return Prepared((*without_files(snapshot, removed), *added))

    def _rewrite(
        self,
        one: Split,
        schema: TableSchema,
        schema_of: SchemaVersions,
        matching: RowFilter,
        writer: AppendWriter,
    ) -> bool:
        """Write the rows of a file that do not match; False where none matches."""
        everything = row_filter(None, schema.fields)
        needed = matching.columns or schema.names[:1]
        looked = SplitReader(self.home, schema.fields, needed, everything, schema_of)
        rows = found = 0
        for batch in looked.batches([one]):
            rows += batch.num_rows
            found += matching.apply(batch).num_rows
        if found == 0:
            return False
        if found < rows:
            reader = SplitReader(self.home, schema.fields, schema.names, everything, schema_of)
            for batch in reader.batches([one]):
                writer.write(_without_matches(batch, matching))
        return True


def _without_matches(batch: pa.RecordBatch, matching: RowFilter) -> pa.RecordBatch:
    numbered = batch.append_column(ROW, pa.array(np.arange(batch.num_rows)))
    keep = np.ones(batch.num_rows, bool)
    keep[matching.apply(numbered).column(ROW).to_numpy()] = False
    return batch.filter(pa.array(keep))
