"""The write settings of a table's options: files, row groups and buffer memory."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.format.data.file_settings import FileSettings
from lakelet.model.schema import TableSchema
from lakelet.options import WRITE_BATCH_MEMORY, WRITE_BUFFER_SIZE, TableOptions

_MB = 1024 * 1024
_APPEND_GROUP_BYTES = 128 * _MB
# A look-up by key decodes whole row groups, so those of sorted files are small.
_KEYED_GROUP_BYTES = 16 * _MB
_KEYED_GROUP_ROWS = 128 * 1024
_ANY_ROWS = 2**31 - 1
_MAX_OPEN_FILES = 256
# Arrow's text columns address two gigabytes, and the rows of a buffer are concatenated before they are sorted.
_MAX_SORTED_BYTES = 1024 * _MB


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Settings of new level-0 files, the size of their row groups, and the memory of the write buffer."""

    files: FileSettings
    row_group_bytes: int
    row_group_rows: int
    memory_bytes: int
    max_open_files: int = _MAX_OPEN_FILES

    @staticmethod
    def of(schema: TableSchema) -> SinkSettings:
        """The settings of an append table."""
        files = FileSettings.of(schema)
        memory = TableOptions(schema.options).get(WRITE_BATCH_MEMORY)
        group = max(1, min(files.block_bytes or _APPEND_GROUP_BYTES, files.target_bytes, memory))
        return SinkSettings(files, group, _ANY_ROWS, memory)

    @staticmethod
    def keyed(schema: TableSchema) -> SinkSettings:
        """The settings of a primary-key table."""
        files = FileSettings.of(schema)
        memory = min(TableOptions(schema.options).get(WRITE_BUFFER_SIZE), _MAX_SORTED_BYTES)
        group = max(1, min(files.block_bytes or _KEYED_GROUP_BYTES, files.target_bytes))
        return SinkSettings(files, group, _ANY_ROWS if files.block_bytes else _KEYED_GROUP_ROWS, memory)

    def group_rows(self, row_bytes: float) -> int:
        """The number of rows of that size per row group."""
        return max(1, min(int(self.row_group_bytes / max(row_bytes, 1)), self.row_group_rows))
