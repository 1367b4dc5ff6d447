"""Write the indexes of one data file: its rows go in as they are written, the container comes out at its end."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.format.index.file.container import encode_indexes
from lakelet.format.index.file.settings import IndexedColumn

SUFFIX = ".index"


class FileIndexWriter:
    """The indexes of one file."""

    def __init__(self, columns: Sequence[IndexedColumn]) -> None:
        self._writers = [(column.name, column.index, column.writer()) for column in columns]

    def update(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Takes rows in the table's columns."""
        for name, _, writer in self._writers:
            column = rows.column(name)
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                writer.update(chunk)

    def finish(self) -> bytes:
        """The container."""
        found: dict[str, dict[str, bytes | None]] = {}
        for name, index, writer in self._writers:
            found.setdefault(name, {})[index] = writer.finish()
        return encode_indexes(found)
