"""Write a primary-key table: batches and row kinds in, commit messages with level-0 files out.

    write            ignored kinds dropped ─► placed ─► WriteBuffer
    (buffer full)    of every bucket a sorted run ─► SpilledRuns
    prepare_commit   runs of a bucket merged ─► row groups ─► SortedFileWriter

Each incoming row takes the next sequence number of its bucket, those folded away included. Memory is bounded by
`write-buffer-size` whatever the input, and a commit gives each bucket files that do not overlap, however often the
buffer was full. In postpone mode nothing is sorted, folded or numbered, and rows go to their file as the buffer fills up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles
from lakelet.format.partition_folders import PartitionFolders
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.run_merge import merge_runs
from lakelet.lsm.sorted_file import SortedFileSpec, SortedFileWriter
from lakelet.lsm.spilled_runs import BATCH_BYTES, SpilledRuns
from lakelet.lsm.write_buffer import BufferedRows, WriteBuffer
from lakelet.model.bucket_mode import BucketMode, Place, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_APPEND, DataFile
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.options import IGNORE_DELETE, IGNORE_UPDATE_BEFORE, TableOptions
from lakelet.sink.bucket.placers import ExtractedPlacer, RowPlacer, rows_by_place
from lakelet.sink.rows.batch_slices import pieces
from lakelet.sink.rows.refused_rows import SHOWN, RefusedRowsError, repeated_keys
from lakelet.sink.write.changelog_files import InputChangelog
from lakelet.sink.write.one_commit import OneCommit
from lakelet.sink.write.postponed import UNNUMBERED, postponed_spec
from lakelet.sink.write.row_groups import ahead, row_groups
from lakelet.sink.write.sequences import CommittedSequences
from lakelet.sink.write.settings import SinkSettings
from lakelet.storage.home import TableHome

# Arrow and numba release the GIL, so buckets are sorted and encoded in parallel; small ones mostly wait for their store.
_THREADS = min(2, os.cpu_count() or 1)
_THREADS_OF_SMALL = 8
_SMALL_ROWS = 16_384
_FEW_ROWS = 1024
# Of a run that waits to be merged.
_RUN_ROWS = 16_384
_Refusal = Callable[[int, Sequence[str]], RefusedRowsError]


class KeyValueWriter:
    """Collects rows for one commit. `write` as often as needed, then `prepare_commit` once or `abort`.

    `first_sequence` gives the first free sequence number of a bucket: those of the newest snapshot unless given. With
    `one_row_per_key` several rows of a key are an error, for a caller whose rows have no order. Files of a `level` above 0
    are for a caller whose rows replace all rows of the buckets. With `logs` the rows are also written as they came, to
    changelog files.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        *,
        placer: RowPlacer | None = None,
        first_sequence: Callable[[Place], int] | None = None,
        source: int = FILE_SOURCE_APPEND,
        level: int = 0,
        one_row_per_key: bool = False,
        logs: bool = False,
    ) -> None:
        self._home = home
        self._changelog = InputChangelog(home, schema) if logs else None
        self._postpones = bucket_mode(schema) is BucketMode.POSTPONE_MODE
        self._settings = replace(SinkSettings.keyed(schema), files=FileSettings.of(schema, level=level))
        self._spec = SortedFileSpec.of(schema, self._settings.files, level=level, source=source)
        if self._postpones:
            self._spec = postponed_spec(self._spec, home)
        self._repeated: _Refusal | None = repeated_keys if one_row_per_key else None
        self._placer = placer or ExtractedPlacer(schema)
        self._ignored = ignored_kinds(TableOptions(schema.options))
        self._merge = MergeSpec.of(schema, drop_deletes=False)
        if first_sequence is None:
            first_sequence = CommittedSequences(home, schema).first_free
        self._buffer = WriteBuffer(self._merge, (lambda _: 0) if self._postpones else first_sequence)
        self._spilled = SpilledRuns()
        self._folders = PartitionFolders(home.paths, schema)
        self._files = NewFiles(home, self._spec.settings)
        self._waiting: dict[Place, SortedFileWriter] = {}
        self._nan_columns: frozenset[str] = frozenset()
        self._row_bytes = 1.0
        self._life = OneCommit(home)

    def write(self, batch: pa.RecordBatch, kinds: Kinds | None = None) -> None:
        """Take rows in the table's columns with their row kinds: all are inserts unless given."""
        self._life.check()
        if kinds is not None and len(kinds) != batch.num_rows:
            raise InvalidError(f"{len(kinds)} row kinds were given for {batch.num_rows} rows")
        with self._all_or_nothing():
            batch, kinds = self._without_ignored(batch, kinds)
            if kinds is not None:
                self._merge.engine.check_kinds(kinds)
            start = 0
            for piece in pieces(batch, self._settings.memory_bytes):
                end = start + piece.num_rows
                self._add(piece, None if kinds is None else kinds[start:end])
                start = end

    def refuse_repeated_keys(self, refusal: _Refusal) -> None:
        """Make several rows of a key an error, rows already written included; it is detected when files are written."""
        self._repeated = self._repeated or refusal

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Write and close all files and return their commit messages."""
        self._life.check()
        with self._all_or_nothing():
            files = self._finish_waiting() if self._postpones else self._finish_sorted()
            messages = tuple(
                CommitMessage(*place, self._placer.total_buckets, new_files, changelog_files=self._logged(place))
                for place, new_files in files
                if new_files
            )
            completed = self._placer.complete(messages)
        self._spilled.close()
        self._life.end("it has prepared its commit")
        return completed

    def abort(self) -> None:
        """Removes everything written."""
        self._life.end("it was aborted")
        self._buffer.clear()
        self._waiting.clear()
        self._spilled.close()
        self._files.remove()
        if self._changelog is not None:
            self._changelog.remove()
        self._placer.abort()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            with self._life.all_or_nothing():
                yield
        except BaseException:
            self._buffer.clear()
            self._spilled.close()
            raise

    def _without_ignored(self, batch: pa.RecordBatch, kinds: Kinds | None) -> tuple[pa.RecordBatch, Kinds | None]:
        """Drop the rows whose kind the table's options ignore: they take no sequence number and get no bucket."""
        if kinds is None or not self._ignored:
            return batch, kinds
        kept = ~np.isin(kinds, self._ignored)
        return (batch, kinds) if kept.all() else (batch.filter(pa.array(kept)), kinds[kept])

    def _add(self, batch: pa.RecordBatch, kinds: Kinds | None) -> None:
        for placed in self._placer.place(batch, kinds):
            if self._buffer.bytes and self._buffer.bytes + placed.rows.nbytes > self._settings.memory_bytes:
                self._make_room()
            self._buffer.add(placed.rows, placed.kinds, rows_by_place(placed.extracted))

    def _make_room(self) -> None:
        """Empties the buffer."""
        rows = self._drained()
        if self._postpones:
            self._write_as_they_came(rows)
            return
        for place in rows.places:
            self._log(place, rows)
        batch_rows = max(1, int(BATCH_BYTES / max(rows.row_bytes, 1)))
        self._spilled.spill((place, rows.sorted(place, batch_rows)) for place in rows.places)

    def _drained(self) -> BufferedRows:
        rows = self._buffer.drain()
        self._nan_columns |= rows.nan_columns
        return rows

    def _finish_sorted(self) -> list[tuple[Place, tuple[DataFile, ...]]]:
        rows = self._drained()
        places = list(dict.fromkeys((*self._spilled.places, *rows.places)))
        is_small = not self._spilled.places and rows.count <= len(places) * _SMALL_ROWS
        if is_small and len(places) <= 1 and rows.count <= _FEW_ROWS:
            # Starting a thread takes longer than the rows.
            files = [(place, self._write_bucket(place, rows)) for place in places]
        else:
            with ThreadPoolExecutor(_THREADS_OF_SMALL if is_small else _THREADS, "lakelet-write") as pool:
                files = self._write_buckets(places, rows, pool)
        if self._repeated is not None:
            self._check_keys(files, rows, self._repeated)
        return files

    def _write_buckets(
        self, places: Sequence[Place], rows: BufferedRows, pool: ThreadPoolExecutor
    ) -> list[tuple[Place, tuple[DataFile, ...]]]:
        if len(places) == 1:
            return [(places[0], self._write_bucket(places[0], rows, pool))]
        return list(zip(places, pool.map(lambda place: self._write_bucket(place, rows), places), strict=True))

    def _check_keys(
        self,
        files: list[tuple[Place, tuple[DataFile, ...]]],
        rows: BufferedRows,
        refusal: _Refusal,
    ) -> None:
        """Detect repeated keys: a bucket has fewer rows than came in if one row superseded another of its key."""
        count, examples = 0, list[str]()
        for place, new_files in files:
            lost = self._buffer.taken(place) - sum(file.row_count for file in new_files)
            count += lost
            if lost and len(examples) < SHOWN:
                examples += [str(key) for key in rows.repeated(place, SHOWN)]
        if count:
            raise refusal(count, examples)

    def _write_bucket(
        self, place: Place, rows: BufferedRows, pool: ThreadPoolExecutor | None = None
    ) -> tuple[DataFile, ...]:
        if place in rows.places:
            self._log(place, rows)
        writer = self._file_writer(place)
        group_rows = self._group_rows(rows)
        runs = self._spilled.runs(place, lambda several: merge_runs(several, self._merge, ordered=True))
        batches: Iterator[pa.RecordBatch]
        if runs:
            if place in rows.places:
                runs.append(rows.sorted(place, min(group_rows, _RUN_ROWS)))
            batches = merge_runs(runs, self._merge, ordered=True) if len(runs) > 1 else runs[0]
        else:
            batches = rows.sorted(place, group_rows)
        for group in ahead(row_groups(batches, group_rows), pool):
            writer.write(group)
        return writer.finish()

    def _log(self, place: Place, rows: BufferedRows) -> None:
        if self._changelog is not None:
            self._changelog.add(place, self._folders.bucket_folder(*place), rows, self._group_rows(rows))

    def _logged(self, place: Place) -> tuple[DataFile, ...]:
        return () if self._changelog is None else self._changelog.finish(place)

    def _write_as_they_came(self, rows: BufferedRows) -> None:
        group_rows = self._group_rows(rows)
        for place in rows.places:
            writer = self._waiting.setdefault(place, self._file_writer(place))
            writer.expect_nans(self._nan_columns)
            for batch in rows.as_they_came(place, group_rows, UNNUMBERED):
                writer.write(pa.Table.from_batches([batch]))
        opened = [writer for writer in self._waiting.values() if writer.is_open]
        for writer in opened[self._settings.max_open_files :]:
            writer.roll()

    def _finish_waiting(self) -> list[tuple[Place, tuple[DataFile, ...]]]:
        self._write_as_they_came(self._drained())
        return [(place, writer.finish()) for place, writer in self._waiting.items()]

    def _file_writer(self, place: Place) -> SortedFileWriter:
        folder = self._folders.bucket_folder(*place)
        return SortedFileWriter(self._spec, self._home, self._files, folder, nan_columns=self._nan_columns)

    def _group_rows(self, rows: BufferedRows) -> int:
        """The number of rows per row group, by the size of the rows at hand."""
        self._row_bytes = rows.row_bytes or self._row_bytes
        return self._settings.group_rows(self._row_bytes)


def ignored_kinds(options: TableOptions) -> tuple[int, ...]:
    """The row kinds that a table's options ignore."""
    if options.get(IGNORE_DELETE):
        return (RowKind.UPDATE_BEFORE, RowKind.DELETE)
    return (RowKind.UPDATE_BEFORE,) if options.get(IGNORE_UPDATE_BEFORE) else ()
