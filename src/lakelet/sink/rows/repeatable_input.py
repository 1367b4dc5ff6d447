"""Input rows that can be iterated again, for a write that is retried on a newer snapshot.

Rows in memory are simply read again. A stream can be read once, so it is spilled to local disk as it is read, and
the retry reads that; nothing is spilled where no retry can be needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelet.errors import UnavailableError
from lakelet.model.types import Field
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sink.rows.row_input import Apart, batches_of
from lakelet.storage.spill_folder import SpillFolder, spill_root


class RepeatableInput:
    """The batches of the input of `write`. `repeatable` says whether they may be iterated again, `apart` whether
    dicts that leave out different columns come in batches of their own."""

    def __init__(
        self,
        data: Any,
        schema: pa.Schema,
        fields: Sequence[Field],
        *,
        repeatable: bool,
        apart: Apart = Apart.NEVER,
        defaults: ColumnDefaults = LITERALS,
    ) -> None:
        self._data = data
        self._schema = schema
        self._fields = fields
        self._apart = apart
        self._defaults = defaults
        self._in_memory = stays_in_memory(data)
        self._spills = repeatable and not self._in_memory
        self._folder: SpillFolder | None = None
        self._files: list[Path] = []
        self._source: Iterator[pa.RecordBatch] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._complete = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, from the first one on. The next iteration continues one that was interrupted."""
        if self._in_memory or not self._spills:
            yield from self._read()
            return
        self._close_file()
        yield from self._spilled()
        if not self._complete:
            yield from self._spilling()
            self._complete = True

    def _read(self) -> Iterator[pa.RecordBatch]:
        return batches_of(self._data, self._schema, self._fields, apart=self._apart, defaults=self._defaults)

    def close(self) -> None:
        """Removes what was kept on disk."""
        if self._folder is not None:
            self._folder.cleanup()

    def _spilling(self) -> Iterator[pa.RecordBatch]:
        schema: pa.Schema | None = None
        if self._source is None:
            self._source = self._read()
        try:
            for batch in self._source:
                with _keeping():
                    if self._writer is None or not batch.schema.equals(schema):
                        self._close_file()
                        schema, self._writer = batch.schema, self._new_file(batch.schema)
                    self._writer.write_batch(batch)
                yield batch
        finally:
            self._close_file()

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _new_file(self, schema: pa.Schema) -> pa.RecordBatchStreamWriter:
        if self._folder is None:
            self._folder = SpillFolder("lakelet-input-")
        self._files.append(Path(self._folder.name) / f"rows-{len(self._files)}.arrow")
        options = pa.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)
        return pa.ipc.new_stream(str(self._files[-1]), schema, options=options)

    def _spilled(self) -> Iterator[pa.RecordBatch]:
        for path in self._files:
            with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
                yield from reader


@contextmanager
def _keeping() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"rows that may have to be read again cannot be kept in the temporary folder {spill_root()}: {error}"
        ) from error


def stays_in_memory(data: Any) -> bool:
    """Whether a second iteration gives the same rows: tables, batches and frames do, streams do not."""
    if isinstance(data, (list, tuple)):
        return all(isinstance(part, dict) or stays_in_memory(part) for part in data)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return True
    library = type(data).__module__.partition(".")[0]
    return library == "pandas" or (library == "polars" and not hasattr(data, "collect"))
