"""Deleting rows of a primary-key table: each row that goes is written once more, as a delete.

The delete carries the whole row, so that it lands in the row's bucket, has the row's sequence where `sequence.field` decides
(a delete without one would lose against the row), and tells readers of changes what was deleted. Which rows go is found out
in one snapshot; if their buckets have changed when the commit comes, all of it is done again, since a row may not match
any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.committed_files import remove_files
from lakelet.commit.manifests import live_entries, snapshot_manifests
from lakelet.commit.schemas import latest_schema
from lakelet.commit.snapshots import latest_snapshot
from lakelet.commit.table_identity import table_uuid
from lakelet.errors import CommitUnknownError, ConflictError, InvalidError, LakeletError
from lakelet.model.arrow_types import arrow_schema, to_arrow
from lakelet.model.bucket_mode import POSTPONE_BUCKET, BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import IGNORE_DELETE, TableOptions
from lakelet.scan.plan import Where
from lakelet.storage.home import TableHome
from lakelet.table.after_write import AfterWrite
from lakelet.table.committing import TableCommit
from lakelet.table.point_reading import get_rows, key_table
from lakelet.table.repetition import Repetition
from lakelet.table.scanning import TableScan
from lakelet.table.writers import PinnedVersion, Writer, open_writer

_KEYS_AT_ONCE = 131_072
RowsOf = Callable[[TableSchema, Snapshot | None], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class KeyedDeletion:
    """Deletes the rows that `rows_of` finds in a version, in all columns of the schema given to it."""

    home: TableHome
    commit: TableCommit
    rows_of: RowsOf

    def run(self) -> Snapshot | None:
        """Deletes and commits; None where there is no such row."""
        commit, done = replace(self.commit, fresh=True).look_back()
        if done is not None:
            return AfterWrite(self.home, latest_schema(self.home), commit).repeated(done)
        repetition = Repetition(self.home, latest_schema(self.home))
        while True:
            # The snapshot comes first: a schema read after it knows every column of its files.
            snapshot = latest_snapshot(self.home)
            schema = latest_schema(self.home)
            if TableOptions(schema.options).get(IGNORE_DELETE):
                raise InvalidError("the table drops deletes, for its option 'ignore-delete' is on")
            writer, messages = self._prepare(schema, snapshot)
            try:
                made = replace(commit, read_at=0 if snapshot is None else snapshot.id).commit(messages)
                break
            except CommitUnknownError:
                raise
            except ConflictError as conflict:
                remove_files(self.home, schema, messages)
                repetition.again(conflict)
            except LakeletError:
                remove_files(self.home, schema, messages)
                raise
        return AfterWrite(self.home, schema, commit).run(made, messages, writer.runs)

    def _prepare(self, schema: TableSchema, snapshot: Snapshot | None) -> tuple[Writer, tuple[CommitMessage, ...]]:
        writer = open_writer(self.home, schema, None, base=PinnedVersion(snapshot))
        columns = arrow_schema(schema.fields)
        try:
            for batch in self.rows_of(schema, snapshot):
                rows = pa.RecordBatch.from_arrays(batch.columns, schema=columns)
                writer.write(rows, np.full(batch.num_rows, RowKind.DELETE, np.int8))
            uuid = table_uuid(self.home)
            return writer, tuple(replace(message, table_uuid=uuid) for message in writer.prepare_commit())
        except BaseException:
            writer.abort()
            raise


def matching_rows(home: TableHome, where_of: Callable[[TableSchema], Where]) -> RowsOf:
    """The rows that match a condition."""

    def rows(schema: TableSchema, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        where = where_of(schema)
        if snapshot is None:
            return iter(())
        if bucket_mode(schema) is BucketMode.POSTPONE_MODE and _waiting(home, snapshot):
            raise InvalidError(
                "rows of this table wait for compaction to give them a bucket, and nobody can tell whether they match: delete "
                "by key, or compact first"
            )
        return TableScan(home, schema, snapshot, schema.names, where).to_batches()

    return rows


def keyed_rows(home: TableHome, keys: Any) -> RowsOf:
    """The rows that have these keys."""
    kept: dict[int, pa.Table] = {}

    def rows(schema: TableSchema, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        # A stream of keys can be read once, but a deletion may have to be done again.
        wanted = kept.setdefault(0, key_table(keys, schema)) if not kept else kept[0]
        if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
            return iter(_bare_rows(wanted, schema).to_batches())
        return _found(home, schema, snapshot, wanted)

    return rows


def _found(
    home: TableHome, schema: TableSchema, snapshot: Snapshot | None, wanted: pa.Table
) -> Iterator[pa.RecordBatch]:
    """The rows of the keys, some keys at a time."""
    for start in range(0, wanted.num_rows, _KEYS_AT_ONCE):
        yield from get_rows(home, schema, snapshot, wanted.slice(start, _KEYS_AT_ONCE), None).to_batches()


def _bare_rows(keys: pa.Table, schema: TableSchema) -> pa.Table:
    """Rows with nothing but their keys."""
    needed = [field.name for field in schema.fields if not field.type.nullable and field.name not in keys.column_names]
    if needed:
        raise InvalidError(
            f"rows that wait for compaction cannot be looked up, and a delete of this table needs column {needed[0]!r}, which is "
            "NOT NULL: write whole rows with kinds '-D' instead"
        )
    columns = [
        keys.column(field.name) if field.name in keys.column_names else pa.nulls(keys.num_rows, to_arrow(field.type))
        for field in schema.fields
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema.fields))


def _waiting(home: TableHome, snapshot: Snapshot) -> bool:
    entries = live_entries(home, snapshot_manifests(home, snapshot), columns=())
    return bool(pc.any(pc.equal(entries.column("_BUCKET"), POSTPONE_BUCKET)).as_py())
