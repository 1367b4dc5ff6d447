"""Deleted and added rows, found in one version and written as one commit.

    append table        a file that loses rows is rewritten without them, or removed if it loses all; new rows are appended;
                        with `deletion-vectors.enabled` rows are marked instead, and the file stays
    primary-key table   a deleted row is written once more as a delete, an added row is an upsert

A delete carries the whole row, so that it gets the row's bucket, has the row's sequence where `sequence.field` decides (a delete
without one would lose against the row), and shows readers of changes what was deleted. In a folding table `lsm/engine/removal`
says what it carries, and `lsm/engine/row_update` what an update does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.lsm.engine.removal import removal
from lakelet.lsm.engine.row_update import row_update
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.sink.write.append_writer import AppendWriter
from lakelet.storage.home import TableHome
from lakelet.table.change.looked_up_change import Prepared
from lakelet.table.change.marked_rows import MarkedRows, marks_rows, takes_marks
from lakelet.table.read.located_rows import LocatedRows
from lakelet.table.write.writer import PinnedVersion, open_writer


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Some rows in all columns of the table, and their kinds; where there is no primary key, the places of deleted rows
    (from `LocatedRows`), beside rows that are all added."""

    rows: pa.RecordBatch
    kinds: Kinds | None = None
    gone_files: NDArray[np.int32] | None = None
    gone_rows: NDArray[np.int64] | None = None


# Finds the changes in a version whose rows can be read with their places.
FindChanges = Callable[[TableSchema, Snapshot | None, LocatedRows], Iterable[RowChanges]]


def prepare_changes(home: TableHome, find: FindChanges) -> Callable[[TableSchema, Snapshot | None], Prepared]:
    """The `prepare` of a `LookedUpChange` that finds and writes row changes."""

    def prepare(schema: TableSchema, snapshot: Snapshot | None) -> Prepared:
        located = LocatedRows(home, schema, snapshot)
        changes = find(schema, snapshot, located)
        if schema.primary_keys:
            return prepare_keyed(home, schema, snapshot, ((one.rows, one.kinds) for one in changes))
        return _prepare_appended(home, schema, snapshot, changes, located)

    return prepare


def prepare_keyed(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    changes: Iterator[tuple[pa.RecordBatch, Kinds | None]],
) -> Prepared:
    """Write rows of a primary-key table on top of the version they were found in."""
    writer = open_writer(home.deferring(), schema, None, base=PinnedVersion(snapshot))
    columns = arrow_schema(schema.fields)
    try:
        for found, kinds in changes:
            batch = _as_written(found, kinds, schema)
            writer.write(pa.RecordBatch.from_arrays(batch.columns, schema=columns), kinds)
        return Prepared(_marked(home, writer.prepare_commit()), writer.runs)
    except BaseException:
        writer.abort()
        raise


def _as_written(rows: pa.RecordBatch, kinds: Kinds | None, schema: TableSchema) -> pa.RecordBatch:
    """The rows as they are written into a folding table: deletes carry no values, or later rows would be merged with them, and
    updates none that would be aggregated again. The rows are all deletes or none is."""
    if kinds is None or not len(kinds):
        return rows
    if kinds[0] == RowKind.DELETE:
        removing = removal(schema)
        return rows if removing is None else removing.bare(rows)
    if not (kinds == RowKind.UPDATE_AFTER).any():
        return rows
    update = row_update(schema, "the table")
    return rows if update is None else update.written(rows, kinds)


def without_files(snapshot: Snapshot, splits: Iterable[Split]) -> tuple[CommitMessage, ...]:
    """The messages that remove files of a snapshot, each given as a split of its own."""
    removed: dict[tuple[bytes, int, int], list[Split]] = {}
    for one in splits:
        removed.setdefault((one.partition, one.bucket, one.total_buckets), []).append(one)
    return tuple(
        CommitMessage(
            partition,
            bucket,
            total,
            (),
            tuple(one.files[0] for one in ones),
            snapshot.id,
            old_vectors=_index_names(ones),
        )
        for (partition, bucket, total), ones in removed.items()
    )


def _prepare_appended(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    changes: Iterable[RowChanges],
    located: LocatedRows,
) -> Prepared:
    writer = AppendWriter(home.deferring(), schema)
    # As files are read: rows from before a column became NOT NULL may have NULL there.
    columns = pa.schema([one.with_nullable(True) for one in arrow_schema(schema.fields)])
    files: list[NDArray[np.int32]] = []
    rows: list[NDArray[np.int64]] = []
    try:
        for one in changes:
            if one.rows.num_rows:
                writer.write(pa.RecordBatch.from_arrays(one.rows.columns, schema=columns))
            if one.gone_files is not None and one.gone_rows is not None:
                files.append(one.gone_files)
                rows.append(one.gone_rows)
        gone = _by_file(files, rows)
        marked = MarkedRows(home.deferring(), schema, snapshot) if snapshot and marks_rows(schema) else None
        removed = _taken_away(gone, located, writer, marked)
        marks = () if marked is None else _written_marks(marked)
    except BaseException:
        writer.abort()
        raise
    try:
        added = _marked(home, writer.prepare_commit())
    except BaseException:
        if marked is not None:
            marked.remove()
        writer.abort()
        raise
    return Prepared((*(() if snapshot is None else without_files(snapshot, removed)), *marks, *added))


def _taken_away(
    gone: list[tuple[int, NDArray[np.int64]]], located: LocatedRows, writer: AppendWriter, marked: MarkedRows | None
) -> list[Split]:
    """Take deleted rows away by marks, or by files without them; the files that are to be removed."""
    removed: list[Split] = []
    for number, places in gone:
        file = located.file(number)
        if marked is not None and takes_marks(file) and not located.is_emptied(number, places):
            marked.mark(file, places)
            continue
        removed.append(file)
        for batch in located.left(number, places):
            writer.write(batch)
    return removed


def _written_marks(marked: MarkedRows) -> tuple[CommitMessage, ...]:
    try:
        return marked.messages()
    except BaseException:
        marked.remove()
        raise


def _by_file(files: list[NDArray[np.int32]], rows: list[NDArray[np.int64]]) -> list[tuple[int, NDArray[np.int64]]]:
    """The deleted rows of each file, ascending."""
    if not any(len(part) for part in files):
        return []
    every_file, every_row = np.concatenate(files), np.concatenate(rows)
    order = np.lexsort((every_row, every_file))
    every_file, every_row = every_file[order], every_row[order]
    numbers, starts = np.unique(every_file, return_index=True)
    return [
        (int(number), np.unique(part)) for number, part in zip(numbers, np.split(every_row, starts[1:]), strict=True)
    ]


def _marked(home: TableHome, messages: tuple[CommitMessage, ...]) -> tuple[CommitMessage, ...]:
    uuid = table_uuid(home)
    return tuple(replace(message, table_uuid=uuid) for message in messages)


def _index_names(splits: Sequence[Split]) -> tuple[str, ...]:
    """The index files that hold deletion vectors of these files."""
    found = {vector.index_name for split in splits for vector in split.deletion_vectors if vector}
    return tuple(sorted(found))
