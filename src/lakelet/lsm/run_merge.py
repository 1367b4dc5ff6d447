"""Merge sorted runs: of every key the row that the merge engine selects or folds, unless that is a retract.

`surviving_rows` (select engines) and `grouped_rows` (fold engines) decide over runs that are held as a whole, `merge_runs`
over runs of any length in bounded memory, for both. Only key, sequence, kind and version columns decide; every other column
is carried along, or folded by the engine.

`merge_runs` works in steps. Of every run it holds a window, the rows that come next:

    run 1   ... | a  c  e  h |          the least last key of the windows is the bound, here g: all rows below it
    run 2   ... | b  c  d  e  f  g |    are complete in all runs and are merged; the rest waits for the next step
    run 3   ... | d  k  z |

Rows of the bound itself wait too, since their run may go on with the same key. Words of keys compare only within one
step, so rows that wait are encoded again; windows are therefore sized by how fast their run was used up in the step before.
This module never opens a file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.lsm.engine.fold import folded_batches
from lakelet.lsm.engine.key_groups import KeyGroups, key_groups
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.engine.row_order import rows_by_key
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.key_words import Words, encode_keys, encode_versions
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.ordered_rows import rows_in_order
from lakelet.lsm.winners import SortedRun, winners
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import DataType

# A step over fewer rows costs more than it saves memory, one over more falls out of the processor's caches.
STEP_ROWS = 524_288
STEP_BYTES = 128 << 20
_LEAST_SHARE = 1 / 64
_MIN_BATCH_ROWS = 16_384
_SMALL_BYTES = 64 << 20
_BATCH_ROWS = 131_072


def surviving_rows(runs: Sequence[pa.Table], spec: MergeSpec, *, ordered: bool) -> NDArray[np.int64]:
    """The rows that a select engine keeps, numbered through all runs in the order given: in key order if `ordered`, else
    ascending."""
    if not any(run.num_rows for run in runs):
        return np.empty(0, np.int64)
    return _surviving(runs, _words(runs, spec), spec, ordered=ordered)


def grouped_rows(runs: Sequence[pa.Table], spec: MergeSpec, batch_rows: int) -> Iterator[KeyGroups]:
    """The rows of runs that are held, grouped by key for a fold engine, in parts of about a number of rows."""
    filled = [run for run in runs if run.num_rows]
    return _grouped(filled, _words(filled, spec), spec, batch_rows) if filled else iter(())


def merge_runs(
    runs: Sequence[Iterator[pa.RecordBatch]],
    spec: MergeSpec,
    *,
    ordered: bool,
    columns: Sequence[str] | None = None,
    step_rows: int = STEP_ROWS,
    step_bytes: int = STEP_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The merged rows, batch by batch, in key order if `ordered`; folded rows always are.

    Each run is sorted by key, and all batches of all runs share one schema. `columns` are those of the results, all unless
    told. `step_rows` and `step_bytes` are how much a step looks at, over all runs, about; runs hold their batches besides.
    """
    cursors = [_Cursor(run, max(1, step_rows // len(runs)), max(1, step_bytes // len(runs))) for run in runs]
    packer = _Packer()
    engine = spec.engine
    while True:
        windows = [cursor.window() for cursor in cursors]
        if not any(window.num_rows for window in windows):
            break
        words = _words(windows, spec)
        counts = _complete(cursors, words)
        if not any(counts):
            for cursor in cursors:
                cursor.widen()
            continue
        taken = [window.slice(0, count) for window, count in zip(windows, counts, strict=True)]
        ready = [run_words[:count] for run_words, count in zip(words, counts, strict=True)]
        if isinstance(engine, SelectEngine):
            rows = _surviving(taken, ready, spec, ordered=ordered)
            chosen = _chosen(taken, columns)
            batches = _in_order(chosen, rows) if ordered else _in_place(chosen, rows)
        else:
            batches = folded_batches(_grouped(taken, ready, spec, _BATCH_ROWS), engine, spec, columns)
        yield from packer.pack(batches, ordered=ordered)
        total = sum(counts)
        for cursor, count in zip(cursors, counts, strict=True):
            cursor.advance(count, step_rows * max(count / total, _LEAST_SHARE))
    yield from packer.rest()


class _Cursor:
    """The merge's position in one run, and the window of rows that it holds."""

    def __init__(self, run: Iterator[pa.RecordBatch], window_rows: int, window_bytes: int) -> None:
        self._run = run
        self._held: deque[pa.RecordBatch] = deque()
        self._rows = 0
        self._bytes = 0
        self._window_rows = window_rows
        self._window_bytes = window_bytes
        self._ended = False
        self._schema: pa.Schema | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing of the run follows the window."""
        return self._ended and self._rows <= self._window_rows

    def window(self) -> pa.Table:
        """The next rows, as many as the window is wide or the run has, but no more batches than it takes bytes."""
        while not self._ended and self._rows <= self._window_rows and self._bytes <= self._window_bytes:
            batch = next(self._run, None)
            if batch is None:
                self._ended = True
            else:
                self._schema = self._schema or batch.schema
                if batch.num_rows:
                    self._held.append(batch)
                    self._rows += batch.num_rows
                    self._bytes += batch.nbytes
        if self._schema is None:
            return pa.table({})
        return pa.Table.from_batches(self._held, self._schema).slice(0, self._window_rows)

    def widen(self) -> None:
        """Doubles a window that one key fills."""
        self._window_rows *= 2
        self._window_bytes *= 2

    def advance(self, count: int, share: float) -> None:
        """Passes `count` rows; the next window has a little more than the run's share of rows in a step."""
        self._rows -= count
        self._window_rows = max(1, int(1.2 * share))
        while count:
            first = self._held.popleft()
            if first.num_rows > count:
                self._held.appendleft(first.slice(count))
                break
            count -= first.num_rows
        self._bytes = sum(batch.nbytes for batch in self._held)


class _Packer:
    """Packs the rows of successive steps into batches of a useful size."""

    def __init__(self) -> None:
        self._small: list[pa.RecordBatch] = []
        self._small_rows = 0

    def pack(self, batches: Iterator[pa.RecordBatch], *, ordered: bool) -> Iterator[pa.RecordBatch]:
        """The merged rows of a step. Small batches wait until they are many, which keeps their order."""
        for batch in batches:
            if self._small_rows + batch.num_rows > _BATCH_ROWS or (ordered and batch.num_rows >= _MIN_BATCH_ROWS):
                yield from self.rest()
            if batch.num_rows >= _MIN_BATCH_ROWS:
                yield batch
            elif batch.num_rows:
                self._small.append(batch)
                self._small_rows += batch.num_rows

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The batches that still wait, as one."""
        if self._small:
            if sum(batch.nbytes for batch in self._small) > _SMALL_BYTES:
                yield from self._small
            else:
                yield self._small[0] if len(self._small) == 1 else pa.concat_batches(self._small)
        self._small, self._small_rows = [], 0


def _chosen(runs: Sequence[pa.Table], columns: Sequence[str] | None) -> list[pa.Table]:
    filled = [run for run in runs if run.num_rows]
    return filled if columns is None else [run.select(list(columns)) for run in filled]


def _in_place(runs: Sequence[pa.Table], rows: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    keep = np.zeros(sum(run.num_rows for run in runs), np.bool_)
    keep[rows] = True
    at = 0
    for run in runs:
        for batch in run.to_batches():
            yield kept_rows(batch, keep[at : at + batch.num_rows])
            at += batch.num_rows


def _in_order(runs: Sequence[pa.Table], rows: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    return rows_in_order(pa.concat_tables(runs), rows, _BATCH_ROWS)


def kept_rows(batch: pa.RecordBatch, keep: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows of a batch that are to be kept."""
    count = int(np.count_nonzero(keep))
    if count == len(keep):
        return batch
    return batch.filter(pa.array(keep)) if count else batch.slice(0, 0)


def _complete(cursors: Sequence[_Cursor], words: Sequence[Words]) -> list[int]:
    """The number of rows of each window below the bound."""
    lasts = [tuple(part[-1].tolist()) for cursor, part in zip(cursors, words, strict=True) if not cursor.is_last]
    if not lasts:
        return [len(part) for part in words]
    bound = min(lasts)
    return [_below(part, bound) for part in words]


def _below(words: Words, bound: tuple[int, ...]) -> int:
    if words.shape[1] == 1:
        return int(np.searchsorted(words[:, 0], np.uint64(bound[0])))
    return bisect_left(range(len(words)), bound, key=lambda row: tuple(words[row].tolist()))


def _words(runs: Sequence[pa.Table], spec: MergeSpec) -> list[Words]:
    return encode_keys([_columns(run, spec.key) for run in runs], [data_type for _, data_type in spec.key])


def _sorted_runs(
    runs: Sequence[pa.Table], words: Sequence[Words], retracts: Sequence[NDArray[np.bool_] | None], spec: MergeSpec
) -> list[SortedRun]:
    versions: Sequence[Words | None] = [None] * len(runs)
    if spec.versions:
        parts = [_columns(run, spec.versions) for run in runs]
        versions = encode_versions(parts, [data_type for _, data_type in spec.versions], descending=spec.descending)
    keeps_first = isinstance(spec.engine, SelectEngine) and spec.engine.keeps_first
    return [
        SortedRun(
            words=words[place],
            sequences=-_sequences(run, place) if keeps_first else _sequences(run, place),
            versions=versions[place],
            absent=retracts[place] if spec.ignore_delete else None,
        )
        for place, run in enumerate(runs)
    ]


def _surviving(
    runs: Sequence[pa.Table], words: Sequence[Words], spec: MergeSpec, *, ordered: bool
) -> NDArray[np.int64]:
    retracts = [_retracts(run) for run in runs]
    rows = winners(_sorted_runs(runs, words, retracts, spec), ordered=ordered)
    if not spec.drop_deletes or spec.ignore_delete or all(part is None for part in retracts):
        return rows
    flags = [
        np.zeros(run.num_rows, np.bool_) if part is None else part for run, part in zip(runs, retracts, strict=True)
    ]
    retracted: NDArray[np.bool_] = np.concatenate(flags)[rows]
    kept: NDArray[np.int64] = rows[~retracted]
    return kept


def _grouped(runs: Sequence[pa.Table], words: Sequence[Words], spec: MergeSpec, batch_rows: int) -> Iterator[KeyGroups]:
    retracts = [_retracts(run) for run in runs] if spec.ignore_delete else [None] * len(runs)
    order, starts = rows_by_key(_sorted_runs(runs, words, retracts, spec))
    return key_groups(pa.concat_tables([run for run in runs if run.num_rows]), order, starts, batch_rows)


def _columns(run: pa.Table, columns: Sequence[tuple[str, DataType]]) -> list[pa.ChunkedArray]:
    if not run.num_columns:
        # A run without rows has no schema to tell.
        return [pa.chunked_array([], to_arrow(data_type)) for _, data_type in columns]
    return [run.column(name) for name, _ in columns]


def _sequences(run: pa.Table, place: int) -> NDArray[np.int64]:
    if SEQUENCE_NUMBER not in run.schema.names:
        return np.full(run.num_rows, place, np.int64)
    numbers: NDArray[np.int64] = np.ascontiguousarray(run.column(SEQUENCE_NUMBER).to_numpy(), np.int64)
    return numbers


def _retracts(run: pa.Table) -> NDArray[np.bool_] | None:
    """Which rows are retracts; None if none is."""
    if VALUE_KIND not in run.schema.names:
        return None
    flags: NDArray[np.bool_] = (run.column(VALUE_KIND).to_numpy() & 1).astype(np.bool_)
    return flags if flags.any() else None
