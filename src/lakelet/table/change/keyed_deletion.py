"""Delete rows of a primary-key table: each is written once more, as a row of kind -D.

The rows are looked up in one snapshot; if their buckets have changed when it is committed, all of it is retried, since
a row may no longer match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.errors import InvalidError
from lakelet.lsm.engine.removal import removal
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.bucket_mode import POSTPONE_BUCKET, BucketMode, bucket_mode
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import IGNORE_DELETE, TableOptions
from lakelet.scan.plan import Where
from lakelet.storage.home import TableHome
from lakelet.table.change.looked_up_change import LookedUpChange, Prepared
from lakelet.table.change.row_changes import prepare_keyed
from lakelet.table.read.point_read import get_rows, key_table
from lakelet.table.read.table_scan import TableScan
from lakelet.table.write.table_commit import TableCommit

_KEYS_AT_ONCE = 131_072
RowsOf = Callable[[TableSchema, Snapshot | None], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class KeyedDeletion:
    """Deletes the rows that `rows_of` finds in a version, in all columns of the schema given to it."""

    home: TableHome
    commit: TableCommit
    rows_of: RowsOf

    def run(self) -> Snapshot | None:
        """Delete and commit; None where there is no such row."""
        return LookedUpChange(self.home, self.commit, self._prepare).run()

    def _prepare(self, schema: TableSchema, snapshot: Snapshot | None) -> Prepared:
        check_takes_deletes(schema)
        found = self.rows_of(schema, snapshot)
        return prepare_keyed(
            self.home, schema, snapshot, ((batch, np.full(batch.num_rows, RowKind.DELETE, np.int8)) for batch in found)
        )


def check_takes_deletes(schema: TableSchema) -> None:
    """InvalidError for a primary-key table that drops deletes, or that takes values back instead of rows."""
    removal(schema)
    if TableOptions(schema.options).get(IGNORE_DELETE):
        raise InvalidError("the table drops deletes, for its option 'ignore-delete' is on")


def check_none_waiting(home: TableHome, schema: TableSchema, snapshot: Snapshot | None) -> None:
    """InvalidError where postponed rows wait for a bucket, so that a condition cannot be evaluated on them."""
    if snapshot is not None and bucket_mode(schema) is BucketMode.POSTPONE_MODE and _waiting(home, snapshot):
        raise InvalidError(
            "rows of this table wait for compaction to give them a bucket, and nobody can tell whether they match: delete "
            "by key, or compact first"
        )


def matching_rows(home: TableHome, where_of: Callable[[TableSchema], Where]) -> RowsOf:
    """The rows that match a condition."""

    def rows(schema: TableSchema, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        where = where_of(schema)
        if snapshot is None:
            return iter(())
        check_none_waiting(home, schema, snapshot)
        return TableScan(home, schema, snapshot, schema.names, where).to_batches()

    return rows


def keyed_rows(home: TableHome, keys: Any) -> RowsOf:
    """The rows that have these keys."""
    kept: dict[int, pa.Table] = {}

    def rows(schema: TableSchema, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        # A stream of keys can be read once, but a deletion may have to be retried.
        wanted = kept.setdefault(0, key_table(keys, schema)) if not kept else kept[0]
        if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
            return iter(_bare_rows(wanted, schema).to_batches())
        return _found(home, schema, snapshot, wanted)

    return rows


def _found(
    home: TableHome, schema: TableSchema, snapshot: Snapshot | None, wanted: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Look up the rows of the keys, a chunk of keys at a time."""
    for start in range(0, wanted.num_rows, _KEYS_AT_ONCE):
        yield from get_rows(home, schema, snapshot, wanted.slice(start, _KEYS_AT_ONCE), None).to_batches()


def _bare_rows(keys: pa.Table, schema: TableSchema) -> pa.Table:
    """Rows with only their key columns."""
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
