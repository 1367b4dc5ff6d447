"""Deleting rows by predicate from an append table: the files that hold a matching row are rewritten without it.

Only files that statistics cannot rule out are looked at, with just the columns of the predicate; a file without a matching row
stays, one in which every row matches goes, the others are rewritten. If another writer changes one of these files
meanwhile, the whole is done again on the new snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakelet.commit.schemas import SchemaVersions, latest_schema
from lakelet.commit.snapshots import latest_snapshot
from lakelet.errors import CommitUnknownError, ConflictError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import RowFilter, row_filter
from lakelet.read.split_reader import SplitReader
from lakelet.scan.plan import Planner, Where
from lakelet.sink.append_writer import AppendWriter
from lakelet.storage.home import TableHome
from lakelet.table.committing import TableCommit
from lakelet.table.repetition import Repetition

_ROW = "__lakelet_row"


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """Deletes the rows of a table that match."""

    home: TableHome
    where_of: Callable[[TableSchema], Where]
    commit: TableCommit

    def run(self) -> Snapshot | None:
        """Deletes and commits; None where no row matches."""
        commit, done = replace(self.commit, fresh=True).look_back()
        if done is not None:
            return done
        repetition = Repetition(self.home, latest_schema(self.home))
        while True:
            messages = self._prepare()
            try:
                return commit.commit(messages)
            except ConflictError as conflict:
                commit.abort(messages)
                repetition.again(conflict)
            except CommitUnknownError:
                raise
            except Exception:
                commit.abort(messages)
                raise

    def _prepare(self) -> tuple[CommitMessage, ...]:
        # The snapshot comes first: a schema read after it knows every column of its files.
        snapshot = latest_snapshot(self.home)
        schema = latest_schema(self.home)
        where = self.where_of(schema)
        if snapshot is None:
            return ()
        schema_of = SchemaVersions(self.home, {schema.id: schema})
        plan = Planner(self.home, schema, schema_of, TableOptions(schema.options)).plan(
            snapshot, where, whole_entries=True
        )
        matching = row_filter(where, schema.fields)
        writer = AppendWriter(self.home, schema)
        removed: dict[tuple[bytes, int, int], list[Split]] = {}
        try:
            for one in (one for split in plan.splits for one in split.single_files()):
                if one.files[0].name in plan.matching_files or self._rewrite(one, schema, schema_of, matching, writer):
                    removed.setdefault((one.partition, one.bucket, one.total_buckets), []).append(one)
            added = writer.prepare_commit()
        except Exception:
            writer.abort()
            raise
        gone = [
            CommitMessage(
                partition,
                bucket,
                total,
                (),
                tuple(one.files[0] for one in splits),
                snapshot.id,
                old_vectors=_index_names(splits),
            )
            for (partition, bucket, total), splits in removed.items()
        ]
        return (*gone, *added)

    def _rewrite(
        self,
        one: Split,
        schema: TableSchema,
        schema_of: SchemaVersions,
        matching: RowFilter,
        writer: AppendWriter,
    ) -> bool:
        """Writes the rows of a file that stay; False where all of them do."""
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


def _index_names(splits: Sequence[Split]) -> tuple[str, ...]:
    """The index files that hold deletion vectors of these files."""
    found = {vector.index_name for split in splits for vector in split.deletion_vectors if vector}
    return tuple(sorted(found))


def _without_matches(batch: pa.RecordBatch, matching: RowFilter) -> pa.RecordBatch:
    numbered = batch.append_column(_ROW, pa.array(np.arange(batch.num_rows)))
    keep = np.ones(batch.num_rows, bool)
    keep[matching.apply(numbered).column(_ROW).to_numpy()] = False
    return batch.filter(pa.array(keep))
