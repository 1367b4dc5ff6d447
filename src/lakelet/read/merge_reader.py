"""Splits whose rows must be merged, to Arrow batches: of every key the newest row, unless it was deleted.

The files of a split are taken apart into sections and those packed into pieces, each of which is

    raw        a large section of one run without retracts: nothing to merge, `SplitReader` reads it
    held       read by one scan, merged in memory, and filtered in place: only keys, sequences and kinds are looked at
    streamed   too large to hold: a cursor per run, merged step by step

Pieces are independent of one another. Those that are held are read ahead, as many as the budget takes, so that one is decoded
while another is merged. Conditions on key and partition columns are applied below the merge, all others above it: an older
row of a key must not come out because a newer one does not match.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.ordered_rows import fits_one_piece, rows_in_order
from lakelet.lsm.run_merge import STEP_ROWS, kept_rows, merge_runs, surviving_rows
from lakelet.lsm.sections import Section, may_hold_retracts, needs_merge, sections
from lakelet.lsm.spilled_runs import MOST_RUNS, SpilledRuns
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.predicate.row_filter import RowFilter, split_by_columns
from lakelet.read.key_value_files import KeyValueFiles
from lakelet.read.parquet_scan import BATCH_ROWS
from lakelet.read.prefetch import prefetched
from lakelet.read.row_counts import only_rows
from lakelet.read.split_files import SplitFile, files_of
from lakelet.read.split_reader import SplitReader
from lakelet.storage.home import TableHome

BUDGET_BYTES = 256 << 20
# All rows of a table are held anyway when it is read as one, but a column of text cannot pass 2 GiB in one piece.
_TABLE_BUDGET_FACTOR = 4
_RAW_ROWS = 131_072
# What is known of the size of texts: hardly any is longer than this on average, and compression gains about so much.
_VARIABLE_BYTES = 64
_DECODED_PER_STORED = 4
_LEAST_BUFFER_BYTES = 16 << 10
_SAMPLED_FROM_ROWS = 65_536
_ONE_PLACE = (b"", 0)
_THREADS = max(2, min(8, os.cpu_count() or 2))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole sections to read together. `split` is set where they are raw; otherwise `runs` are the files of each run.

    `sequences` and `kinds` tell whether these columns are needed: not where every run is newer than the one before it, and not
    where no file has retracts.
    """

    runs: tuple[tuple[SplitFile, ...], ...]
    decoded_bytes: int
    sequences: bool
    kinds: bool
    split: Split | None = None

    @property
    def files(self) -> list[SplitFile]:
        return [file for run in self.runs for file in run]

    @property
    def rows(self) -> int:
        return sum(file.data.row_count for file in self.files)


class MergeReader:
    """Reads columns of splits that need a merge, filtered; `columns` may be empty, where rows are only counted.

    Rows come in the order of the files, or with `ordered` in key order within each split. A piece is held where it takes no more
    than `budget_bytes`, about, and at most two of them at a time. `versions` is for those who write the rows again: their
    sequence numbers and kinds come first, and deletes come out unless `drop_deletes`.
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
        budget_bytes: int = BUDGET_BYTES,
        versions: bool = False,
        drop_deletes: bool = True,
    ) -> None:
        self._versions = versions
        self._key = schema.trimmed_key_fields
        self._counts_deletes = TableOptions(schema.options).get(ROWKIND_FIELD) is None
        own = (SEQUENCE_FIELD, KIND_FIELD) if versions else ()
        self._columns = (*(field.name for field in own), *columns)
        self._ordered = ordered
        self._budget = budget_bytes
        self._spec = MergeSpec.of(schema, drop_deletes=drop_deletes)
        below, self._above = split_by_columns(
            row_filter, {*schema.trimmed_primary_keys, *schema.partition_keys}, schema.fields
        )
        # What leaves the merge: the columns of the result, and those that the rest of the filter looks at.
        self._carried = tuple(dict.fromkeys([*self._columns, *self._above.columns]))
        deciding = [name for name, _ in (*self._spec.key, *self._spec.versions)]
        needed = dict.fromkeys([*deciding, *columns, *self._above.columns, *below.columns])
        fields = tuple(schema.field(name) for name in needed)
        self._files = KeyValueFiles(home, schema.trimmed_primary_keys, fields, below, schema_of)
        self._row_bytes = sum(_value_bytes(field) for field in fields)
        self._has_texts = any(_is_variable(field) for field in fields)
        self._sampled_bytes = 0
        # How much of a file belongs to the columns that are read.
        self._stored_share = self._row_bytes / sum(_value_bytes(field) for field in schema.fields)
        self._raw = SplitReader(home, schema.fields, columns, row_filter, schema_of)
        self.schema = pa.schema(
            [field.with_nullable(True) for field in arrow_schema([*own, *(schema.field(name) for name in columns)])]
        )

    def batches(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, none of them empty."""
        pieces = (piece for split in splits for piece in self._pieces(split, self._budget))
        ahead: deque[tuple[_Piece, Future[list[pa.RecordBatch]] | None]] = deque()
        with ThreadPoolExecutor(2) as readers, ThreadPoolExecutor(_THREADS) as workers:
            try:
                following = next(pieces, None)
                while following is not None or ahead:
                    while following is not None and self._fits(following, ahead):
                        held = self._is_held(following, self._budget)
                        read = readers.submit(self._merge, following, workers, whole=False) if held else None
                        ahead.append((following, read))
                        following = next(pieces, None)
                    piece, result = ahead.popleft()
                    for batch in self._other(piece, workers) if result is None else result.result():
                        if batch.num_rows:
                            yield batch
            finally:
                for _, result in ahead:
                    if result is not None:
                        result.cancel()

    def table(self, splits: Sequence[Split]) -> pa.Table:
        """All rows as one table."""
        budget = self._budget * _TABLE_BUDGET_FACTOR
        pieces = [piece for split in splits for piece in self._pieces(split, budget)]
        with ThreadPoolExecutor(2) as readers, ThreadPoolExecutor(_THREADS) as workers:
            reads = [readers.submit(self._all, piece, workers, budget) for piece in pieces]
            try:
                batches = [batch for read in reads for batch in read.result()]
            finally:
                for read in reads:
                    read.cancel()
        if not self._columns:
            return pa.Table.from_batches([only_rows(sum(batch.num_rows for batch in batches))])
        return pa.Table.from_batches(batches, self.schema)

    def outdated(self, split: Split) -> dict[str, NDArray[np.int64]] | None:
        """The positions of rows that do not count, by the path of the file, for engines that read the files themselves; None
        where the split is too large for that. The reader has no filter, and the files no deletion vectors."""
        found: dict[str, NDArray[np.int64]] = {}
        for piece in self._pieces(split, self._budget):
            if piece.split is not None:
                continue
            if not self._is_held(piece, self._budget):
                return None
            tables = iter(self._files.read(piece.files, sequences=piece.sequences, kinds=piece.kinds, whole=True))
            runs = [pa.concat_tables([next(tables) for _ in run]) for run in piece.runs]
            keep = np.zeros(sum(run.num_rows for run in runs), np.bool_)
            keep[surviving_rows(runs, self._spec, ordered=False)] = True
            at = 0
            for file in piece.files:
                gone = np.flatnonzero(~keep[at : at + file.data.row_count])
                at += file.data.row_count
                if len(gone):
                    found[file.path] = gone
        return found

    def _all(self, piece: _Piece, workers: ThreadPoolExecutor, budget: int) -> list[pa.RecordBatch]:
        if self._is_held(piece, budget):
            return self._merge(piece, workers, whole=True)
        return list(self._other(piece, workers))

    def _pieces(self, split: Split, budget: int) -> Iterator[_Piece]:
        """The sections of a split in key order, small ones together."""
        files = list(files_of([split]))
        self._sample(files)
        packed: list[Section] = []
        packed_bytes = 0
        for section in sections(split.files, [field.type for field in self._key]):
            rows = sum(split.files[place].row_count for place in section.places)
            is_raw = (
                not self._versions
                and rows >= _RAW_ROWS
                and not needs_merge(split.files, section, counts_deletes=self._counts_deletes)
            )
            size = sum(self._decoded_bytes(split.files[place]) for place in section.places)
            if size > budget and not is_raw:
                size = self._narrowed_bytes([files[place] for place in section.places])
            if packed and (is_raw or packed_bytes + size > budget):
                yield self._piece(files, packed, packed_bytes)
                packed, packed_bytes = [], 0
            if is_raw:
                yield _Piece((), 0, False, False, _part(split, section.places))
            else:
                packed.append(section)
                packed_bytes += size
        if packed:
            yield self._piece(files, packed, packed_bytes)

    def _piece(self, files: Sequence[SplitFile], packed: Sequence[Section], decoded_bytes: int) -> _Piece:
        # Sections come in key order, so a run of one goes on with a run of the next.
        width = max(len(section.runs) for section in packed)
        runs = tuple(
            tuple(files[place] for section in packed if len(section.runs) > run for place in section.runs[run])
            for run in range(width)
        )
        datas = [file.data for file in files]
        return _Piece(
            runs,
            decoded_bytes,
            sequences=self._versions or not all(_newer_and_newer(datas, section) for section in packed),
            kinds=self._versions
            or any(may_hold_retracts(file.data, counts_deletes=self._counts_deletes) for run in runs for file in run),
        )

    def _decoded_bytes(self, file: DataFile) -> int:
        stored = int(file.size * self._stored_share)
        return max(file.row_count * max(self._row_bytes, self._sampled_bytes), _DECODED_PER_STORED * stored, 1)

    def _sample(self, files: Sequence[SplitFile]) -> None:
        """Looks at a few rows of the largest file, once per reader: neither names nor sizes of files tell how long texts are."""
        largest = max(files, key=lambda file: file.data.row_count)
        if self._has_texts and not self._sampled_bytes and largest.data.row_count >= _SAMPLED_FROM_ROWS:
            self._sampled_bytes = self._files.sampled_row_bytes(largest)

    def _narrowed_bytes(self, files: Sequence[SplitFile]) -> int:
        """The same for all files, of the row groups only that may hold keys that match."""
        return sum(
            self._decoded_bytes(file.data) * self._files.matching_rows(file) // max(1, file.data.row_count)
            for file in files
        )

    def _fits(self, piece: _Piece, ahead: Sequence[tuple[_Piece, Future[list[pa.RecordBatch]] | None]]) -> bool:
        """Whether a piece may be read while those ahead of it are not taken yet."""
        if not ahead:
            return True
        held = all(result is not None for _, result in ahead) and self._is_held(piece, self._budget)
        return held and sum(other.decoded_bytes for other, _ in ahead) + piece.decoded_bytes <= 2 * self._budget

    def _is_held(self, piece: _Piece, budget: int) -> bool:
        return piece.split is None and piece.decoded_bytes <= budget

    def _other(self, piece: _Piece, workers: ThreadPoolExecutor) -> Iterator[pa.RecordBatch]:
        """The rows of a piece that is not held."""
        if piece.split is not None:
            yield from self._raw.batches([piece.split])
            return
        # A run has a batch in its window, one that follows and one on its way; the step has the rest.
        row_bytes = max(1, sum(self._decoded_bytes(file.data) for file in piece.files) // max(1, piece.rows))
        share = self._budget // (4 * row_bytes)
        batch_rows = max(1, min(BATCH_ROWS, share // len(piece.runs)))
        buffer_bytes = max(_LEAST_BUFFER_BYTES, self._budget // (4 * len(piece.runs) * len(self._files.fields)))
        sizes = {"step_rows": max(len(piece.runs), min(STEP_ROWS, share)), "step_bytes": max(1, self._budget // 2)}

        def stream(run: tuple[SplitFile, ...]) -> Generator[pa.RecordBatch, None, None]:
            rows = self._files.stream(
                run,
                sequences=piece.sequences,
                kinds=piece.kinds,
                batch_rows=batch_rows,
                buffer_bytes=buffer_bytes,
            )
            return prefetched(rows, workers)

        def merged(
            runs: Sequence[Iterator[pa.RecordBatch]], spec: MergeSpec = self._spec, *, last: bool = True
        ) -> Iterator[pa.RecordBatch]:
            columns = (self._carried or (self._key[0].name,)) if last else None
            return merge_runs(runs, spec, ordered=self._ordered or not last, columns=columns, **sizes)

        if len(piece.runs) <= MOST_RUNS:
            with _closing([stream(run) for run in piece.runs]) as streams:
                yield from (self._result(batch) for batch in merged(streams))
            return
        # Each stream has a file open, of which a process has only so many.
        folded = replace(self._spec, drop_deletes=False)
        spilled = SpilledRuns()
        try:
            for start in range(0, len(piece.runs), MOST_RUNS):
                with _closing([stream(run) for run in piece.runs[start : start + MOST_RUNS]]) as streams:
                    spilled.spill_merged(_ONE_PLACE, merged(streams, folded, last=False))
            runs = spilled.runs(_ONE_PLACE, lambda several: merged(several, folded, last=False))
            yield from (self._result(batch) for batch in merged(runs))
        finally:
            spilled.close()

    def _merge(self, piece: _Piece, workers: ThreadPoolExecutor, *, whole: bool) -> list[pa.RecordBatch]:
        """The rows of a piece that is held."""
        files = self._files.read(piece.files, sequences=piece.sequences, kinds=piece.kinds, whole=whole)
        tables = iter(files)
        runs = [pa.concat_tables([next(tables) for _ in run]) for run in piece.runs]
        rows = surviving_rows(runs, self._spec, ordered=self._ordered)
        if not len(rows):
            return []
        if not self._carried:
            return [only_rows(len(rows))]
        if self._ordered:
            return self._in_order(runs, rows, workers)
        keep = np.zeros(sum(run.num_rows for run in runs), np.bool_)
        keep[rows] = True
        parts: list[tuple[pa.RecordBatch, NDArray[np.bool_]]] = []
        at = 0
        for run in runs:
            for batch in run.select(list(self._carried)).to_batches():
                parts.append((batch, keep[at : at + batch.num_rows]))
                at += batch.num_rows
        return list(workers.map(lambda part: self._result(kept_rows(*part)), parts))

    def _in_order(
        self, runs: Sequence[pa.Table], rows: NDArray[np.int64], workers: ThreadPoolExecutor
    ) -> list[pa.RecordBatch]:
        whole = pa.concat_tables(runs).select(list(self._carried))
        if not fits_one_piece(whole):
            return [self._result(batch) for batch in rows_in_order(whole, rows, BATCH_ROWS)]
        places = pa.array(rows)
        columns = workers.map(lambda column: pc.take(_one_array(column), places), whole.columns)
        batch = pa.RecordBatch.from_arrays(list(columns), schema=whole.schema)
        return [self._result(batch.slice(start, BATCH_ROWS)) for start in range(0, batch.num_rows, BATCH_ROWS)]

    def _result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kept = self._above.apply(batch)
        if not self._columns:
            return kept.select([])
        return pa.RecordBatch.from_arrays([kept.column(name) for name in self._columns], schema=self.schema)


@contextmanager
def _closing(
    streams: list[Generator[pa.RecordBatch, None, None]],
) -> Iterator[list[Generator[pa.RecordBatch, None, None]]]:
    try:
        yield streams
    finally:
        for stream in streams:
            stream.close()


def _newer_and_newer(files: Sequence[DataFile], section: Section) -> bool:
    """Whether every row of a run is newer than all rows of the runs before it, by the sequence numbers of the files."""
    ranges = [
        (min(files[place].min_sequence for place in run), max(files[place].max_sequence for place in run))
        for run in section.runs
    ]
    # The later files of a large write have the last number of it as their least in pypaimon, whatever they hold.
    is_sound = all(
        0 < file.max_sequence - file.min_sequence >= file.row_count - 1
        for file in (files[place] for place in section.places)
    )
    return is_sound and all(older[1] < newer[0] for older, newer in pairwise(ranges))


def _part(split: Split, places: Sequence[int]) -> Split:
    """Some files of a split, read as they are."""
    return replace(
        split,
        files=tuple(split.files[place] for place in places),
        paths=tuple(split.paths[place] for place in places),
        deletion_vectors=tuple(split.deletion_vectors[place] for place in places),
        needs_merge=False,
    )


def _value_bytes(field: Field) -> int:
    """About how much memory a value takes."""
    return _VARIABLE_BYTES if _is_variable(field) else max(1, int(to_arrow(field.type).bit_width) // 8)


def _is_variable(field: Field) -> bool:
    try:
        return int(to_arrow(field.type).bit_width) < 0
    except ValueError:
        return True


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
