"""Read splits that need a merge: of every key the row that the merge engine selects or folds.

The sources of a split, its files and runs in memory, are partitioned into sections and those packed into pieces
(`merge.pieces`). A piece that is not raw is

    held       read by one scan and merged in memory; where the engine selects, only keys, sequences and kinds are compared,
               and rows are filtered in place; the rows of a single run are all that there are of their keys
    streamed   too large to hold: a cursor per run, merged step by step

Pieces are independent of one another. Those that are held are read ahead, as many as the budget takes, so that one is decoded
while another is merged. Where the engine selects, which rows of files survive is kept between reads (`merge.surviving_masks`):
then the values alone are read. Conditions on key and partition columns are applied below the merge, all others above it: a
superseded row must not become visible because the newer row of its key does not match.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.lsm.engine.fold import fold_groups
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD, VALUE_KIND
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.ordered_rows import fits_one_piece, rows_in_order
from lakelet.lsm.run_merge import STEP_ROWS, grouped_rows, kept_rows, merge_runs, surviving_rows
from lakelet.lsm.source.row_source import RowRequest, RowSource
from lakelet.lsm.spilled_runs import MOST_RUNS, SpilledRuns
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.predicate.row_filter import RowFilter, split_by_columns
from lakelet.read.merge.file_run import FileRun
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.merge.overlaid_split import AnySplit
from lakelet.read.merge.pieces import Piece, PieceCutter
from lakelet.read.merge.surviving_masks import Masks, SurvivingMasks, masks_of
from lakelet.read.parquet_scan import BATCH_ROWS
from lakelet.read.prefetch import prefetched
from lakelet.read.row_counts import only_rows
from lakelet.read.split_reader import SplitReader
from lakelet.storage.home import TableHome

BUDGET_BYTES = 256 << 20
# All rows of a table are held anyway when it is read as one, but a column of text cannot pass 2 GiB in one piece.
_TABLE_BUDGET_FACTOR = 4
_LEAST_BUFFER_BYTES = 16 << 10
_ONE_PLACE = (b"", 0)
_THREADS = max(2, min(8, os.cpu_count() or 2))


class MergeReader:
    """Reads columns of splits that need a merge, filtered; `columns` may be empty, where rows are only counted.

    Rows come in the order of the files, or with `ordered` in key order within each split. A piece is held where it takes no
    more than `budget_bytes`, about, and at most two of them at a time. `versions` is for rewrites of the rows: their sequence
    numbers and kinds are the first columns, and deletes are kept unless `drop_deletes`.
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
        depended_on = self._spec.engine.columns_for(tuple(dict.fromkeys([*columns, *self._above.columns])))
        needed = dict.fromkeys([*self._spec.deciding, *depended_on, *below.columns])
        fields = tuple(schema.field(name) for name in needed)
        self._files = KeyValueFiles(home, schema.trimmed_primary_keys, fields, below, schema_of)
        self._masks: SurvivingMasks | None = None
        if isinstance(self._spec.engine, SelectEngine) and not versions and not below.is_set:
            counts_deletes = TableOptions(schema.options).get(ROWKIND_FIELD) is None
            deciding = tuple(schema.field(name) for name in self._spec.deciding)
            self._masks = SurvivingMasks(home, self._spec, deciding, counts_deletes, schema_of)
            # Where masks say which rows survive, the key is read only where it is asked for.
            values = tuple(schema.field(name) for name in self._carried)
            self._values = KeyValueFiles(home, (), values, below, schema_of)
        self._cutter = PieceCutter(schema, self._spec, self._files, versions=versions)
        self._raw = SplitReader(home, schema.fields, columns, row_filter, schema_of)
        self.schema = pa.schema(
            [field.with_nullable(True) for field in arrow_schema([*own, *(schema.field(name) for name in columns)])]
        )

    def batches(self, splits: Sequence[AnySplit]) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, none of them empty."""
        pieces = (piece for split in splits for piece in self._cutter.pieces(split, self._budget))
        ahead: deque[tuple[Piece, Future[list[pa.RecordBatch]] | None]] = deque()
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

    def table(self, splits: Sequence[AnySplit]) -> pa.Table:
        """All rows as one table."""
        budget = self._budget * _TABLE_BUDGET_FACTOR
        pieces = [piece for split in splits for piece in self._cutter.pieces(split, budget)]
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
        """The positions of superseded and deleted rows, by file path, for engines that read the files themselves; None
        where the split is too large for that, or where the merge engine folds values. The reader has no filter, and the files
        no deletion vectors."""
        if not self._spec.engine.shortcuts.positions:
            return None
        found: dict[str, NDArray[np.int64]] = {}
        for piece in self._cutter.pieces(split, self._budget):
            if piece.split is not None:
                continue
            masks = None if self._masks is None else self._masks.find(piece)
            if masks is None:
                if not self._is_held(piece, self._budget):
                    return None
                assert self._masks is not None, "the reader has no filter"
                runs = self._held_runs(piece, whole=True)
                rows = surviving_rows(runs, self._spec, ordered=False)
                survives = _flags(rows, sum(run.num_rows for run in runs))
                masks = masks_of(piece, survives)
                self._masks.keep(piece, survives)
            for source, mask in zip(piece.sources, masks, strict=True):
                gone = np.flatnonzero(~mask.to_numpy(zero_copy_only=False))
                if len(gone):
                    assert isinstance(source, FileRun), "only files have positions"
                    found[source.file.path] = gone
        return found

    def outdated_bytes(self, split: Split) -> int | None:
        """About how much memory `outdated` takes; None where it finds nothing."""
        if not self._spec.engine.shortcuts.positions:
            return None
        pieces = [piece for piece in self._cutter.pieces(split, self._budget) if piece.split is None]
        if not all(self._is_held(piece, self._budget) for piece in pieces):
            return None
        return sum(piece.decoded_bytes for piece in pieces)

    def _all(self, piece: Piece, workers: ThreadPoolExecutor, budget: int) -> list[pa.RecordBatch]:
        if self._is_held(piece, budget):
            return self._merge(piece, workers, whole=True)
        return list(self._other(piece, workers))

    def _fits(self, piece: Piece, ahead: Sequence[tuple[Piece, Future[list[pa.RecordBatch]] | None]]) -> bool:
        """Whether a piece may be read while those ahead of it are not taken yet."""
        if not ahead:
            return True
        held = all(result is not None for _, result in ahead) and self._is_held(piece, self._budget)
        return held and sum(other.decoded_bytes for other, _ in ahead) + piece.decoded_bytes <= 2 * self._budget

    def _is_held(self, piece: Piece, budget: int) -> bool:
        return piece.split is None and piece.decoded_bytes <= budget

    def _other(self, piece: Piece, workers: ThreadPoolExecutor) -> Iterator[pa.RecordBatch]:
        """The rows of a piece that is not held."""
        if piece.split is not None:
            yield from self._raw.batches([piece.split])
            return
        # A run has a batch in its window, one that follows and one on its way; the step has the rest.
        decoded_bytes = sum(self._cutter.decoded_bytes(source) for source in piece.sources)
        row_bytes = max(1, decoded_bytes // max(1, piece.row_count))
        share = self._budget // (4 * row_bytes)
        batch_rows = max(1, min(BATCH_ROWS, share // len(piece.runs)))
        buffer_bytes = max(_LEAST_BUFFER_BYTES, self._budget // (4 * len(piece.runs) * len(self._files.fields)))
        sizes = {"step_rows": max(len(piece.runs), min(STEP_ROWS, share)), "step_bytes": max(1, self._budget // 2)}

        request = self._request(piece, batch_rows, buffer_bytes)

        def stream(run: tuple[RowSource, ...]) -> Generator[pa.RecordBatch, None, None]:
            return prefetched(_following(run, request), workers)

        def merged(
            runs: Sequence[Iterator[pa.RecordBatch]], spec: MergeSpec = self._spec, *, last: bool = True
        ) -> Iterator[pa.RecordBatch]:
            columns = (self._carried or (self._spec.key[0][0],)) if last else None
            return merge_runs(runs, spec, ordered=self._ordered or not last, columns=columns, **sizes)

        if len(piece.runs) <= MOST_RUNS:
            with _closing([stream(run) for run in piece.runs]) as streams:
                yield from (self._result(batch) for batch in merged(streams))
            return
        # Each stream has a file open, and the number of open files of a process is limited.
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

    def _merge(self, piece: Piece, workers: ThreadPoolExecutor, *, whole: bool) -> list[pa.RecordBatch]:
        """The rows of a piece that is held."""
        masks = None if self._masks is None or self._ordered else self._masks.find(piece)
        if masks is not None:
            return self._survivors(piece, masks, workers, whole=whole)
        runs = self._held_runs(piece, whole=whole)
        engine = self._spec.engine
        if self._is_single(piece):
            return self._of_single_run(runs[0], workers)
        if not isinstance(engine, SelectEngine):
            names = self._carried or (self._spec.key[0][0],)
            groups = grouped_rows(runs, self._spec, BATCH_ROWS)
            return list(workers.map(lambda part: self._result(fold_groups(part, engine, self._spec, names)), groups))
        rows = surviving_rows(runs, self._spec, ordered=self._ordered)
        keep = _flags(rows, sum(run.num_rows for run in runs))
        if self._masks is not None:
            self._masks.keep(piece, keep)
        if not len(rows):
            return []
        if not self._carried:
            return [only_rows(len(rows))]
        if self._ordered:
            return self._in_order(runs, rows, workers)
        parts: list[tuple[pa.RecordBatch, NDArray[np.bool_]]] = []
        at = 0
        for run in runs:
            for batch in run.select(list(self._carried)).to_batches():
                parts.append((batch, keep[at : at + batch.num_rows]))
                at += batch.num_rows
        return list(workers.map(lambda part: self._result(kept_rows(*part)), parts))

    def _is_single(self, piece: Piece) -> bool:
        """Whether a piece has one run, of files, each of which holds a key once, so that there is nothing to select. Where masks
        are kept, which the next read will find, it is merged like any other."""
        is_alone = len(piece.runs) == 1 and all(isinstance(source, FileRun) for source in piece.sources)
        return is_alone and isinstance(self._spec.engine, SelectEngine) and self._masks is None and bool(self._carried)

    def _of_single_run(self, run: pa.Table, workers: ThreadPoolExecutor) -> list[pa.RecordBatch]:
        """The rows of one run, in its order, but for deletes that are to be left out."""
        drops = (self._spec.drop_deletes or self._spec.ignore_delete) and VALUE_KIND in run.schema.names

        def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
            stays = batch.column(VALUE_KIND).to_numpy() & 1 == 0 if drops else np.ones(batch.num_rows, np.bool_)
            return self._result(kept_rows(batch.select(list(self._carried)), stays))

        return list(workers.map(kept, run.to_batches(max_chunksize=BATCH_ROWS)))

    def _survivors(
        self, piece: Piece, masks: Masks, workers: ThreadPoolExecutor, *, whole: bool
    ) -> list[pa.RecordBatch]:
        """The rows of a piece of files whose survivors are known; files without any are not read."""
        counts = [mask.true_count for mask in masks]
        if not self._carried:
            return [only_rows(sum(counts))] if sum(counts) else []
        chosen = [
            (source.file, mask)
            for source, mask, count in zip(piece.sources, masks, counts, strict=True)
            if count and isinstance(source, FileRun)
        ]
        if not chosen:
            return []
        tables = self._values.read([file for file, _ in chosen], sequences=False, kinds=False, whole=whole)
        parts: list[tuple[pa.RecordBatch, pa.BooleanArray]] = []
        for table, (_, mask) in zip(tables, chosen, strict=True):
            at = 0
            for batch in table.to_batches():
                parts.append((batch, mask.slice(at, batch.num_rows)))
                at += batch.num_rows
        return list(workers.map(lambda part: self._result(_masked(*part)), parts))

    def _held_runs(self, piece: Piece, *, whole: bool) -> list[pa.Table]:
        """The rows of each run of a piece."""
        sources = piece.sources
        files = [source.file for source in sources if isinstance(source, FileRun)]
        read = iter(self._files.read(files, sequences=piece.sequences, kinds=piece.kinds, whole=whole) if files else ())
        request = self._request(piece, BATCH_ROWS, _LEAST_BUFFER_BYTES)
        tables = iter(
            [
                next(read) if isinstance(one, FileRun) else pa.Table.from_batches(one.batches(request), request.schema)
                for one in sources
            ]
        )
        return [pa.concat_tables([next(tables) for _ in run]) for run in piece.runs]

    def _request(self, piece: Piece, batch_rows: int, buffer_bytes: int) -> RowRequest:
        return RowRequest(self._files.fields, self._files.below, piece.sequences, piece.kinds, batch_rows, buffer_bytes)

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


def _flags(rows: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Which of the rows are among those given."""
    flags = np.zeros(count, np.bool_)
    flags[rows] = True
    return flags


def _masked(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    return batch if mask.true_count == len(mask) else batch.filter(mask)


@contextmanager
def _closing(
    streams: list[Generator[pa.RecordBatch, None, None]],
) -> Iterator[list[Generator[pa.RecordBatch, None, None]]]:
    try:
        yield streams
    finally:
        for stream in streams:
            stream.close()


def _following(run: Sequence[RowSource], request: RowRequest) -> Generator[pa.RecordBatch, None, None]:
    """The rows of the sources of a run, one after the other."""
    for source in run:
        yield from source.batches(request)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
