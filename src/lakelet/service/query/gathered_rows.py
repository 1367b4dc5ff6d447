"""The rows that nodes sent for one query: those of a node count when all of them are there, or not at all.

Up to a few megabytes a node are in memory, the rest is in files of the spill folder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.ids import RandomIds
from lakelet.storage.spill_folder import SpillFolder

_MEMORY_BYTES = 4 << 20
_IDS = RandomIds()


class GatheredFolder:
    """The folder of the rows of one query, made when the first of them do not fit into memory; used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: SpillFolder | None = None

    def new_path(self) -> str:
        """The path of a new file."""
        with self._lock:
            if self._folder is None:
                self._folder = SpillFolder("lakelet-gathered-")
            return os.path.join(self._folder.name, _IDS.uuid())

    def cleanup(self) -> None:
        """Remove it."""
        with self._lock:
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None


class GatheredPart:
    """The rows of one node; used by one thread at a time."""

    def __init__(self, schema: pa.Schema, folder: GatheredFolder) -> None:
        self._schema = schema
        self._folder = folder
        self._held: list[pa.RecordBatch] = []
        self._path: str | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._held_bytes = 0
        self._spilled_rows = 0
        self.rows = 0
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch; CorruptionError for one with other columns."""
        if not batch.schema.equals(self._schema):
            raise CorruptionError(f"rows of another node: expected {self._schema}, found {batch.schema}")
        self.bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._writer is None and self._held_bytes + batch.nbytes <= _MEMORY_BYTES:
            self._held.append(batch)
            self._held_bytes += batch.nbytes
            return
        if self._writer is None:
            self._path = self._folder.new_path()
            self._writer = pa.ipc.new_stream(self._path, self._schema)
        self._writer.write_batch(batch)
        self._spilled_rows += batch.num_rows

    def finish(self) -> None:
        """No more rows come."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def drop(self) -> None:
        """Forget the rows."""
        self.finish()
        self._held.clear()
        self._held_bytes = self._spilled_rows = self.rows = self.bytes = 0
        if self._path is not None:
            os.unlink(self._path)
            self._path = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        yield from self._held
        if self._path is not None:
            yield from _read(self._path, self._spilled_rows)


def _read(path: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a file, batch by batch; CorruptionError where it ends before the last of them."""
    found = 0
    # By its path Arrow would map the file into memory, where all of its pages stay until the last row is read.
    with pa.OSFile(path) as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            found += batch.num_rows
            yield batch
    # A stream that is cut off between two batches ends as a whole one does.
    if found != rows:
        raise CorruptionError(f"the file of the rows of other nodes was cut off: expected {rows} rows, found {found}")


class GatheredRows:
    """The rows of all nodes."""

    def __init__(self, parts: Sequence[GatheredPart], folder: GatheredFolder) -> None:
        self._parts = parts
        self._folder = folder

    @property
    def row_bytes(self) -> float:
        """What a row takes."""
        return sum(part.bytes for part in self._parts) / max(sum(part.rows for part in self._parts), 1)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; may be called again."""
        for part in self._parts:
            yield from part.batches()

    def close(self) -> None:
        """Release them."""
        self._folder.cleanup()
