"""Sorted runs that wait on the local disk until all rows of a commit are there.

    <temporary folder>/<n>.arrow        one file per spill: Arrow's IPC format, LZ4
                                        batches of the first bucket | of the second | ...

A bucket has at most one run in each file: a range of its batches, which is remembered in memory. The batches are small, since as
many are held at once as a bucket has runs. The folder is gone when `close` returns, at the latest when the
process ends in an orderly way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, KeysView
from tempfile import TemporaryDirectory

import pyarrow as pa

from lakelet.lsm.write_buffer import Place

BATCH_BYTES = 512 * 1024
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpilledRuns:
    """The runs of all buckets of one writer."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._files = 0
        self._runs: dict[Place, list[tuple[str, range]]] = {}

    @property
    def places(self) -> KeysView[Place]:
        """The buckets that have runs here."""
        return self._runs.keys()

    def spill(self, runs: Iterable[tuple[Place, Iterator[pa.RecordBatch]]]) -> None:
        """Writes one sorted run for each of these buckets."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="lakelet-", ignore_cleanup_errors=True)
        path = os.path.join(self._folder.name, f"{self._files}.arrow")
        self._files += 1
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

    def runs(self, place: Place) -> list[Iterator[pa.RecordBatch]]:
        """The runs of a bucket, the first spilled first."""
        return [_batches(path, numbers) for path, numbers in self._runs.get(place, ())]

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
