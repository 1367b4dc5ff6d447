"""What a table's options say about writing its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelet.format.data_file_format import WriteSettings
from lakelet.format.statistics import StatsCollector
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import (
    DATA_FILE_PREFIX,
    FIELD_STATS_MODE,
    FILE_BLOCK_SIZE,
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    FILE_COMPRESSION_ZSTD_LEVEL,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
    METADATA_STATS_DENSE_STORE,
    METADATA_STATS_KEEP_FIRST_N_COLUMNS,
    METADATA_STATS_MODE,
    METADATA_STATS_MODE_PER_LEVEL,
    TARGET_FILE_SIZE,
    WRITE_BATCH_MEMORY,
    TableOptions,
)

_MB = 1024 * 1024
DEFAULT_TARGET_BYTES = 256 * _MB
_ROW_GROUP_BYTES = 128 * _MB
_MAX_OPEN_FILES = 256
_FORMAT_PREFIXES = ("parquet.", "orc.", "avro.")


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Sizes, names, format and statistics of new data files at level 0."""

    file_format: str
    encoding: WriteSettings
    target_file_bytes: int
    row_group_bytes: int
    memory_bytes: int
    max_open_files: int
    file_prefix: str
    file_suffix: str
    stats_mode: str
    field_stats_modes: Mapping[str, str]
    stats_first_columns: int
    stats_dense: bool

    @staticmethod
    def of(schema: TableSchema) -> SinkSettings:
        """The settings a table's options ask for."""
        options = TableOptions(schema.options)
        file_format = options.get(FILE_FORMAT_PER_LEVEL).get(0) or options.get(FILE_FORMAT)
        compression = options.get(FILE_COMPRESSION_PER_LEVEL).get(0) or options.get(FILE_COMPRESSION)
        target = options.get(TARGET_FILE_SIZE) or DEFAULT_TARGET_BYTES
        extra = {key: text for key, text in options.raw.items() if key.startswith(_FORMAT_PREFIXES)}
        suffix = f".{compression}.{file_format}" if options.get(FILE_SUFFIX_INCLUDE_COMPRESSION) else f".{file_format}"
        memory = options.get(WRITE_BATCH_MEMORY)
        return SinkSettings(
            file_format=file_format,
            encoding=WriteSettings(compression, options.get(FILE_COMPRESSION_ZSTD_LEVEL), extra),
            target_file_bytes=target,
            row_group_bytes=max(1, min(options.get(FILE_BLOCK_SIZE) or _ROW_GROUP_BYTES, target, memory)),
            memory_bytes=memory,
            max_open_files=_MAX_OPEN_FILES,
            file_prefix=options.get(DATA_FILE_PREFIX),
            file_suffix=suffix,
            stats_mode=options.get(METADATA_STATS_MODE_PER_LEVEL).get(0) or options.get(METADATA_STATS_MODE),
            field_stats_modes={name: mode for name, mode in options.get_family(FIELD_STATS_MODE).items() if mode},
            stats_first_columns=options.get(METADATA_STATS_KEEP_FIRST_N_COLUMNS),
            stats_dense=options.get(METADATA_STATS_DENSE_STORE),
        )

    def collector(self, fields: Sequence[Field]) -> StatsCollector:
        """A fresh collector of a file's statistics."""
        return StatsCollector(
            fields,
            self.stats_mode,
            field_modes=self.field_stats_modes,
            keep_first=self.stats_first_columns,
            dense=self.stats_dense,
        )
