"""A data file as a source of sorted rows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pyarrow as pa

from lakelet.lsm.source.row_source import RowRequest
from lakelet.model.data_file import DataFile
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.split_files import SplitFile


@dataclass(frozen=True, slots=True)
class FileRun:
    """A file of a split. Files that are held are read together by `reader`, since one scan decodes them side by side."""

    file: SplitFile
    reader: KeyValueFiles

    @property
    def data(self) -> DataFile:
        """The file's manifest metadata."""
        return self.file.data

    def batches(self, request: RowRequest) -> Generator[pa.RecordBatch, None, None]:
        """The rows in key order. The request is the one that the reader was made for."""
        return self.reader.stream(
            [self.file],
            sequences=request.sequences,
            kinds=request.kinds,
            batch_rows=request.batch_rows,
            buffer_bytes=request.buffer_bytes,
        )
