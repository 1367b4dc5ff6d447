"""Spill rows of many partitions to local disk until their partition is written.

    a run    rows-0.arrow: a file of Arrow's, in which each batch holds rows of one partition

A run is written whenever memory is full, and all runs are read once, partition after partition: a partition has one file in the
table however often memory was full. `close` removes all runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lakelet.errors import UnavailableError
from lakelet.storage.spill_folder import SpillFolder


@dataclass(slots=True)
class HeldRows:
    """Rows of one partition in memory, as ranges of batches that other partitions may share and that may still be pending,
    and about how many bytes they have. A slice for each place would take more memory than many of them have rows."""

    places: list[tuple[Future[pa.RecordBatch], int, int]] = field(default_factory=list)
    size: int = 0

    def add(self, batch: Future[pa.RecordBatch], start: int, count: int, size: int) -> None:
        """Adds `count` rows of the batch."""
        self.places.append((batch, start, count))
        self.size += size

    def table(self) -> pa.Table:
        """All rows as slices of their batches."""
        return pa.Table.from_batches([batch.result().slice(start, count) for batch, start, count in self.places])

    def batch(self) -> pa.RecordBatch:
        """All rows together."""
        slices = [batch.result().slice(start, count) for batch, start, count in self.places]
        return slices[0] if len(slices) == 1 else pa.concat_batches(slices)


def ready(batch: pa.RecordBatch) -> Future[pa.RecordBatch]:
    """The batch as a future that is done."""
    found: Future[pa.RecordBatch] = Future()
    found.set_result(batch)
    return found


class SpilledPartitions:
    """Spilled runs, with an index of the batches of each partition."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._folder: SpillFolder | None = None
        self._runs: list[Path] = []
        self._readers: dict[int, tuple[pa.NativeFile, pa.RecordBatchFileReader]] = {}
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._bytes: dict[int, int] = {}

    @property
    def partitions(self) -> list[int]:
        """The partitions of which there are rows."""
        return list(self._places)

    def bytes_of(self, partition: int) -> int:
        """About the size in memory of all rows of a partition."""
        return self._bytes.get(partition, 0)

    def add(self, parts: dict[int, HeldRows]) -> None:
        """Writes a run."""
        if not parts:
            return
        with _on_disk():
            if self._folder is None:
                self._folder = SpillFolder("lakelet-iceberg-")
            run = len(self._runs)
            self._runs.append(Path(self._folder.name) / f"rows-{run}.arrow")
            # Not compressed: with so many small batches that takes far longer than writing and reading them.
            with pa.ipc.new_file(str(self._runs[-1]), self._schema) as writer:
                for number, (partition, rows) in enumerate(parts.items()):
                    writer.write_batch(rows.batch())
                    self._places.setdefault(partition, []).append((run, number))
                    self._bytes[partition] = self.bytes_of(partition) + rows.size

    def rows_of(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, in order of arrival."""
        for run, number in self._places.get(partition, ()):
            with _on_disk():
                yield self._reader(run).get_batch(number)

    def close(self) -> None:
        """Removes all runs."""
        for source, _ in self._readers.values():
            source.close()
        self._readers.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _reader(self, run: int) -> pa.RecordBatchFileReader:
        if run not in self._readers:
            # Read, not mapped: pages of a mapped file count as memory of the process.
            source = pa.OSFile(str(self._runs[run]))
            self._readers[run] = (source, pa.ipc.open_file(source))
        return self._readers[run][1]


@contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"rows did not find place on local disk: {error}") from error
