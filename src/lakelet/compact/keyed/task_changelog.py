"""The changelog of a compaction: of every key that rises to the reported level the row before and the row after.

    files below the reported level   k1' k3 k5⁻       read once, merged with each other, in key order
    files on it and above            k1  k2 k4 k5     merged likewise; looked up by key where few keys rise
    ────────────────────────────────────────────
    changelog                        -U k1  +U k1'  +I k3  -D k5

Where the merge engine folds and several files rise, the row after is that of all files together, which are read once more.

The state that the changelog has told of is that of the files on the reported level and above, whether this compaction rewrites
them or not (`lsm.changelog_producer`). So what a task tells of depends on the rows alone, not on how they are rewritten. As in
Java an update is told of also where it changes no value, unless `changelog-producer.row-deduplicate` says otherwise.

Keys are compared as bytes that sort like the keys, batch by batch: memory holds a batch of keys with their rows of both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.compact.keyed.sorted_keys import SortedKeys
from lakelet.compact.known_nans import known_nan_columns
from lakelet.compact.progress import Watch
from lakelet.compact.task import CompactionTask
from lakelet.format.data.new_files import NewFiles
from lakelet.format.stats.nan_columns import nan_columns
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.run_merge import merge_runs
from lakelet.lsm.sections import sections
from lakelet.lsm.sorted_file import SortedFileSpec, SortedFileWriter
from lakelet.model.data_file import DataFile
from lakelet.model.row_arrays import Mask
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.options import (
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
    TableOptions,
)
from lakelet.predicate.row_filter import row_filter
from lakelet.read.changes.changed_values import changed_values
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.read.serve.lookup_choice import looks_up
from lakelet.read.serve.stored_rows import StoredRowReader
from lakelet.sink.write.row_groups import ahead
from lakelet.storage.home import TableHome

Places = NDArray[np.int64]
_GROUP_ROWS = 128 * 1024


@dataclass(frozen=True, slots=True)
class TaskChangelog:
    """Writes the changelog files of one task, in the newest schema."""

    home: TableHome
    schema: TableSchema
    schema_of: Callable[[int], TableSchema]
    task: CompactionTask
    folder: str
    budget_bytes: int

    def write(self, spec: SortedFileSpec, files: NewFiles, watch: Watch) -> tuple[DataFile, ...]:
        """The changelog files, oldest keys first; none where the task tells of nothing."""
        least = self.task.reported_level
        rising = tuple(file for file in self.task.files if file.level < least)
        if not rising:
            return ()
        known = self._near(
            rising, [f for f in (*self.task.files, *self.task.beside, *self.task.older) if f.level >= least]
        )
        nans = known_nan_columns((*rising, *known), self.schema, self.schema_of)
        writer = SortedFileWriter(spec, self.home, files, self.folder, nan_columns=nans)
        tables = (pa.Table.from_batches([batch]) for batch in self._changes(rising, known, watch))
        with ThreadPoolExecutor(1, "lakelet-changelog") as pool:
            for rows in ahead(tables, pool):
                watch.check()
                watch.count_changelog(rows=rows.num_rows)
                writer.expect_nans(nan_columns(rows))
                for start in range(0, rows.num_rows, _GROUP_ROWS):
                    writer.write(rows.slice(start, _GROUP_ROWS))
        return writer.finish()

    def _near(self, rising: Sequence[DataFile], others: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """The files that may hold keys of the rising ones."""
        together = [*rising, *others]
        types = [field.type for field in self.schema.trimmed_key_fields]
        near = {
            place
            for section in sections(together, types)
            if any(place < len(rising) for place in section.places)
            for place in section.places
        }
        return tuple(file for place, file in enumerate(others, len(rising)) if place in near)

    def _changes(self, rising: Sequence[DataFile], known: Sequence[DataFile], watch: Watch) -> Iterator[pa.RecordBatch]:
        """The changes in key order, the row before an update in front of the row after it."""
        stored = self._stored(rising, known, watch)
        together = _SoughtRows(self._rows([*rising, *known]), self._keys) if self._folds_more(rising, known) else None
        for batch in self._rows(rising):
            keys = self._keys(batch)
            nothing = _Found(batch.slice(0, 0), np.empty(0, np.int64))
            before = stored.of(keys, batch) or nothing
            if together is not None:
                after = together.of(keys, batch) or nothing
            elif self._replaces(before, batch):
                after = _Found(batch, np.arange(batch.num_rows))
            else:
                merged = self._merged(before.rows, batch)
                after = _Found(merged, self._keys(merged).places_in(keys))
            changes = self._compared(len(keys), before, after)
            if changes.num_rows:
                yield changes

    def _folds_more(self, rising: Sequence[DataFile], known: Sequence[DataFile]) -> bool:
        """Whether a key may have more than a row on either side and they are folded: a delete among them, a row that takes a
        value back or one that an older `sequence.field` puts in front of stored ones has to meet them all, one by one."""
        folds = not isinstance(MergeSpec.of(self.schema).engine, SelectEngine)
        return folds and bool(known) and (len(rising) > 1 or len({file.level for file in known}) > 1)

    def _stored(self, rising: Sequence[DataFile], known: Sequence[DataFile], watch: Watch) -> _StoredRows:
        """The rows of the known files: looked up where that costs less than reading them."""
        few = looks_up(keys=sum(file.row_count for file in rising), rows=sum(file.row_count for file in known))
        if few and (isinstance(MergeSpec.of(self.schema).engine, SelectEngine) or _are_folded(known)):
            return _LookedUpRows(
                StoredRowReader(self.home, self.schema, self.schema.names, self.schema_of), self._split(known), watch
            )
        return _SoughtRows(self._rows(known), self._keys)

    def _replaces(self, before: _Found, coming: pa.RecordBatch) -> bool:
        """Whether rows that come are what is left of their keys: the newest row wins, and they are newer than those before."""
        if not len(before.places):
            return True
        spec = MergeSpec.of(self.schema)
        if not isinstance(spec.engine, SelectEngine) or spec.engine.keeps_first or spec.versions:
            return False
        theirs, ours = (rows.column(SEQUENCE_NUMBER).to_numpy() for rows in (before.rows, coming))
        return bool((ours[before.places] >= theirs).all())

    def _compared(self, count: int, before: _Found, after: _Found) -> pa.RecordBatch:
        """The changes of as many keys."""
        old, new = before.by_key(count), after.by_key(count)
        was, is_there = old >= 0, new >= 0
        if self._keeps_first:
            is_there &= ~was
            was[:] = False
        kept = was & is_there
        if kept.any():
            changed = self._changed(before.rows, old[kept], after.rows, new[kept])
            kept_places = np.flatnonzero(kept)[~changed]
            was[kept_places] = is_there[kept_places] = False
        return _assembled(before.rows, old, was, after.rows, new, is_there)

    def _merged(self, before: pa.RecordBatch, coming: pa.RecordBatch) -> pa.RecordBatch:
        """What is left of each key, deletes included."""
        spec = MergeSpec.of(self.schema, drop_deletes=False)
        merged = list(merge_runs([iter([before]), iter([coming])], spec, ordered=True))
        return pa.concat_batches(merged) if merged else coming.slice(0, 0)

    def _changed(self, before: pa.RecordBatch, old: Places, after: pa.RecordBatch, new: Places) -> Mask:
        """Which updates are told of."""
        options = TableOptions(self.schema.options)
        if not options.get(CHANGELOG_PRODUCER_ROW_DEDUPLICATE):
            return np.ones(len(old), np.bool_)
        ignored = options.get(CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS) or ()
        names = [name for name in self.schema.names if name not in ignored]
        return changed_values(before.select(names).take(pa.array(old)), after.select(names).take(pa.array(new)))

    @property
    def _keeps_first(self) -> bool:
        engine = MergeSpec.of(self.schema).engine
        return isinstance(engine, SelectEngine) and engine.keeps_first

    def _keys(self, rows: pa.RecordBatch) -> SortedKeys:
        return SortedKeys.of(rows, self.schema.trimmed_key_fields)

    def _rows(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        """The merged rows of files, deletes included, in key order with their sequence numbers and kinds."""
        if not files:
            return iter(())
        reader = MergeReader(
            self.home,
            self.schema,
            self.schema.names,
            row_filter(None, self.schema.fields),
            self.schema_of,
            ordered=True,
            budget_bytes=self.budget_bytes,
            versions=True,
            drop_deletes=False,
        )
        return reader.batches([self._split(files)])

    def _split(self, files: Sequence[DataFile]) -> Split:
        task = self.task
        return Split(
            task.snapshot_id,
            task.partition,
            task.bucket,
            task.total_buckets,
            tuple(files),
            tuple(f"{self.folder}/{file.name}" for file in files),
            tuple(task.vectors.get(file.name) for file in files),
            needs_merge=True,
        )


def _are_folded(known: Sequence[DataFile]) -> bool:
    """Whether files hold every key once, as the row that compaction has folded."""
    return len({file.level for file in known}) == 1 and all(file.delete_row_count == 0 for file in known)


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows, and for each the place of its key among the keys at hand, ascending."""

    rows: pa.RecordBatch
    places: Places

    def by_key(self, count: int) -> Places:
        """For each of `count` keys the place of its row, -1 where it has none or a deleted one."""
        found = np.full(count, -1, np.int64)
        alive = np.flatnonzero(self.rows.column(VALUE_KIND).to_numpy() & 1 == 0)
        found[self.places[alive]] = alive
        return found


class _StoredRows(Protocol):
    """The rows of the state before, retracts among them."""

    def of(self, keys: SortedKeys, coming: pa.RecordBatch) -> _Found | None:
        """The rows of keys that ascend from call to call, in their order, None where there are none; `coming` are the rows
        that have these keys."""
        ...


@dataclass(frozen=True, slots=True)
class _LookedUpRows:
    """The rows of files in which the keys are looked up."""

    reader: StoredRowReader
    split: Split
    watch: Watch

    def of(self, keys: SortedKeys, coming: pa.RecordBatch) -> _Found | None:
        if not len(keys):
            return None
        found = self.reader.stored(self.split, pa.Table.from_batches([coming]))
        self.watch.count_lookups(looked_up=len(keys), found=0 if found is None else found[0].num_rows)
        return None if found is None else _Found(*found)


class _SoughtRows:
    """The rows of keys out of a stream in key order."""

    def __init__(self, rows: Iterator[pa.RecordBatch], keys_of: Callable[[pa.RecordBatch], SortedKeys]) -> None:
        self._rows = rows
        self._keys_of = keys_of
        self._held: tuple[pa.RecordBatch, SortedKeys] | None = None

    def of(self, keys: SortedKeys, coming: pa.RecordBatch) -> _Found | None:
        # Rows of lesser keys are passed over.
        found: list[pa.RecordBatch] = []
        at: list[Places] = []
        while (held := self._next()) is not None:
            rows, their_keys = held
            count = their_keys.count_up_to(keys)
            places = their_keys.up_to(count).places_in(keys)
            sought = places >= 0
            if sought.any():
                found.append(rows.slice(0, count).filter(pa.array(sought)))
                at.append(places[sought])
            if count < rows.num_rows:
                self._held = (rows.slice(count), their_keys.after(count))
                break
            self._held = None
        return _Found(pa.concat_batches(found), np.concatenate(at)) if found else None

    def _next(self) -> tuple[pa.RecordBatch, SortedKeys] | None:
        if self._held is None:
            rows = next(self._rows, None)
            self._held = None if rows is None else (rows, self._keys_of(rows))
        return self._held


def _assembled(
    before: pa.RecordBatch, old: Places, was: Mask, after: pa.RecordBatch, new: Places, is_there: Mask
) -> pa.RecordBatch:
    """The rows before that are told of and the rows after, by key, with their kinds."""
    gone, come = np.flatnonzero(was), np.flatnonzero(is_there)
    both = was & is_there
    kinds = np.concatenate(
        [
            np.where(both[gone], np.int8(RowKind.UPDATE_BEFORE), np.int8(RowKind.DELETE)),
            np.where(both[come], np.int8(RowKind.UPDATE_AFTER), np.int8(RowKind.INSERT)),
        ]
    ).astype(np.int8)
    order = np.argsort(np.concatenate([gone * 2, come * 2 + 1]), kind="stable")
    places = np.concatenate([old[gone], new[come] + before.num_rows])[order]
    rows = pa.concat_batches([before.cast(after.schema), after]).take(pa.array(places))
    place = rows.schema.get_field_index(VALUE_KIND)
    return rows.set_column(place, rows.schema.field(place), pa.array(kinds[order], rows.schema.field(place).type))
