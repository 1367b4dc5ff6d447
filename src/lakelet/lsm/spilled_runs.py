"""Sorted runs spilled to local disk until all rows of a commit have arrived.

    <temporary folder>/<n>.arrow        one file per spill: Arrow's IPC format, LZ4
                                        batches of the first bucket | of the second | ...

A bucket has at most one run in each file: a range of its batches, which is remembered in memory. The batches are small, since
as many are held at once as a bucket has runs, and there are never more of these than MOST_RUNS when they are read. The folder
is gone when `close` returns, at the latest when the process ends in an orderly way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, KeysView, Sequence
from threading import Lock
from typing import TypeAlias

import pyarrow as pa

from lakelet.model.bucket_mode import Place
from lakelet.storage.spill_folder import SpillFolder

Merge: TypeAlias = Callable[[Sequence[Iterator[pa.RecordBatch]]], Iterator[pa.RecordBatch]]
BATCH_BYTES = 512 * 1024
MOST_RUNS = 64
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpilledRuns:
    """The runs of all buckets of one writer."""

    def __init__(self) -> None:
        self._folder: SpillFolder | None = None
        self._files = 0
        self._lock = Lock()
        self._runs: dict[Place, list[tuple[str, range]]] = {}

    @property
    def places(self) -> KeysView[Place]:
        """The buckets that have runs here."""
        return self._runs.keys()

    def spill(self, runs: Iterable[tuple[Place, Iterator[pa.RecordBatch]]]) -> None:
        """Writes one sorted run for each of these buckets."""
        path = self._new_path()
        written = 0
        writer: pa.ipc.RecordBatchFileWriter | None = None
        with pa.OSFile(path, "wb") as sink:
            for place, batches in runs:
                start = written
                for batch in batches:
                    writer = writer or pa.ipc.new_file(sink, batch.schema, options=_OPTIONS)
                    writer.write_batch(batch)
                    written += 1
                self._runs.setdefault(place, []).append((path, range(start, written)))
            if writer is not None:
                writer.close()

    def runs(self, place: Place, merge: Merge) -> list[Iterator[pa.RecordBatch]]:
        """The runs of a bucket, the first spilled first. So that they can all be open at once, many of them are merged into few
        first: `merge` makes one sorted run of several."""
        while len(self._runs.get(place, ())) > MOST_RUNS:
            several, self._runs[place] = self._runs[place], []
            for start in range(0, len(several), MOST_RUNS):
                merged = merge([_batches(*run) for run in several[start : start + MOST_RUNS]])
                self.spill_merged(place, merged)
        return [_batches(path, numbers) for path, numbers in self._runs.get(place, ())]

    def spill_merged(self, place: Place, merged: Iterator[pa.RecordBatch]) -> None:
        """Writes one run whose batches may be large."""
        self.spill([(place, (part for batch in merged for part in _small(batch)))])

    def _new_path(self) -> str:
        with self._lock:
            if self._folder is None:
                self._folder = SpillFolder("lakelet-")
            self._files += 1
            return os.path.join(self._folder.name, f"{self._files}.arrow")

    def close(self) -> None:
        """Removes everything."""
        self._runs.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _batches(path: str, numbers: range) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
        for number in numbers:
            yield reader.get_batch(number)


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in parts of about BATCH_BYTES."""
    step = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, BATCH_BYTES))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
