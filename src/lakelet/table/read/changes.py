"""The changes between two versions of a table.

Those of a primary-key table are found by key, in `keyed_changes`. Of an append table every snapshot after `start` up to
`end` contributes its delta: added files are insertions, removed ones deletions. Where one snapshot has both (an
overwrite, a delete by predicate), rows that are in both are no change, so the two sides are subtracted from one another.
Compaction changes no row and contributes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelet.commit.metadata.manifests import read_manifest_list
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.manifest import EntryKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.changes.row_difference import row_difference
from lakelet.read.split_reader import SplitReader
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.table.read.keyed_changes import keyed_changes

ROW_KIND = "_row_kind"


def changes_schema(schema: TableSchema) -> pa.Schema:
    """`_row_kind` and the table's columns."""
    columns = [field.with_nullable(True) for field in arrow_schema(schema.fields)]
    return pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *columns])


def read_changes(home: TableHome, schema: TableSchema, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The changes of snapshots (start, end], oldest first, in the table's current columns."""
    ids: tuple[tuple[str, object], ...] = (("start", start), ("end", end))
    for name, number in ids:
        if not isinstance(number, int) or isinstance(number, bool):
            raise InvalidError(f"{name} {number!r}: expected the id of a snapshot, found {type(number).__name__}")
    if not 0 <= start <= end:
        raise InvalidError(f"changes from {start} to {end}: expected 0 <= start <= end")
    if schema.primary_keys:
        yield from (
            _with_kinds(kinds, rows) for kinds, rows in keyed_changes(home, schema, start, end) if rows.num_rows
        )
        return
    for number in range(start + 1, end + 1):
        snapshot = read_snapshot(home, number)
        if snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
            yield from _snapshot_changes(home, schema, snapshot)


def _snapshot_changes(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    schema_of = SchemaVersions(home, {schema.id: schema})
    planner = Planner(home, schema, schema_of, TableOptions(schema.options))
    reader = SplitReader(home, schema.fields, schema.names, row_filter(None, schema.fields), schema_of)
    before = read_snapshot(home, snapshot.id - 1) if snapshot.id > 1 else None
    manifests = read_manifest_list(home, snapshot.delta_manifest_list)
    added = planner.plan_entries(snapshot, manifests, EntryKind.ADD)
    removed = planner.plan_entries(before, manifests, EntryKind.DELETE) if before else ()
    if before is not None:
        were, are = _with_other_vectors(planner, before, snapshot)
        removed, added = (*removed, *were), (*added, *are)
    if added and removed:
        gone, come = row_difference(_stream(reader, removed), _stream(reader, added))
        yield from _marked(gone, "-D")
        yield from _marked(come, "+I")
        return
    yield from _marked(reader.batches(removed), "-D")
    yield from _marked(reader.batches(added), "+I")


def _with_other_vectors(
    planner: Planner, before: Snapshot, snapshot: Snapshot
) -> tuple[tuple[Split, ...], tuple[Split, ...]]:
    """The files that are in both snapshots but with different deletion vectors, before and after."""
    if before.index_manifest == snapshot.index_manifest:
        return (), ()
    old, new = planner.deletion_vectors(before), planner.deletion_vectors(snapshot)
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    if not changed:
        return (), ()
    were, are = ({one.files[0].name: one for one in _single_files(planner, version)} for version in (before, snapshot))
    both = sorted(changed & were.keys() & are.keys())
    return tuple(were[name] for name in both), tuple(are[name] for name in both)


def _single_files(planner: Planner, snapshot: Snapshot) -> Iterator[Split]:
    for split in planner.plan(snapshot).splits:
        yield from split.single_files()


def _stream(reader: SplitReader, splits: Sequence[Split]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(reader.schema, reader.batches(splits))


def _marked(batches: Iterator[pa.RecordBatch], kind: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield _with_kinds(pa.repeat(kind, batch.num_rows), batch)


def _with_kinds(kinds: pa.Array, batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *batch.schema])
    return pa.RecordBatch.from_arrays([kinds, *batch.columns], schema=schema)
