"""The settings of new data files from a table's options: names, format, size and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.index.file.settings import IndexedColumn, indexed_columns
from lakelet.format.index.file.writer import FileIndexWriter
from lakelet.format.stats.file_statistics import StatsCollector
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import (
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    CHANGELOG_FILE_PREFIX,
    CHANGELOG_FILE_STATS_MODE,
    DATA_FILE_PREFIX,
    FIELD_STATS_MODE,
    FILE_BLOCK_SIZE,
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    FILE_COMPRESSION_ZSTD_LEVEL,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    FILE_INDEX_IN_MANIFEST_THRESHOLD,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
    METADATA_STATS_DENSE_STORE,
    METADATA_STATS_KEEP_FIRST_N_COLUMNS,
    METADATA_STATS_MODE,
    METADATA_STATS_MODE_PER_LEVEL,
    TARGET_FILE_SIZE,
    TableOptions,
)

_MB = 1024 * 1024
_APPEND_TARGET_BYTES = 256 * _MB
_KEYED_TARGET_BYTES = 128 * _MB
_PARQUET, _SST = "parquet", "sst"
_FORMAT_PREFIXES = ("parquet.", "orc.", "avro.", "sst.")
# Bounds of key columns decide which files a look-up opens, so they are kept however statistics are cut.
KEY_STATS_MODE = "truncate(128)"


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Names, format, size and statistics of new data files of one level. `block_bytes` is None unless it is set."""

    file_format: str
    encoding: WriteSettings
    target_bytes: int
    block_bytes: int | None
    prefix: str
    suffix: str
    stats_mode: str
    field_stats_modes: Mapping[str, str]
    stats_first_columns: int
    stats_dense: bool
    indexes: tuple[IndexedColumn, ...] = ()
    embedded_index_bytes: int = 0

    @staticmethod
    def of(schema: TableSchema, *, level: int = 0) -> FileSettings:
        """The settings of a table's options."""
        options = TableOptions(schema.options)
        file_format = options.get(FILE_FORMAT_PER_LEVEL).get(level) or options.get(FILE_FORMAT)
        compression = options.get(FILE_COMPRESSION_PER_LEVEL).get(level) or options.get(FILE_COMPRESSION)
        default_target = _KEYED_TARGET_BYTES if schema.primary_keys else _APPEND_TARGET_BYTES
        extra = {key: text for key, text in options.raw.items() if key.startswith(_FORMAT_PREFIXES)}
        return FileSettings(
            file_format=file_format,
            encoding=WriteSettings(compression, options.get(FILE_COMPRESSION_ZSTD_LEVEL), extra),
            target_bytes=options.get(TARGET_FILE_SIZE) or default_target,
            block_bytes=options.get(FILE_BLOCK_SIZE),
            prefix=options.get(DATA_FILE_PREFIX),
            suffix=_suffix(file_format, compression, named=options.get(FILE_SUFFIX_INCLUDE_COMPRESSION)),
            stats_mode=options.get(METADATA_STATS_MODE_PER_LEVEL).get(level) or options.get(METADATA_STATS_MODE),
            field_stats_modes={name: mode for name, mode in options.get_family(FIELD_STATS_MODE).items() if mode},
            stats_first_columns=options.get(METADATA_STATS_KEEP_FIRST_N_COLUMNS),
            stats_dense=options.get(METADATA_STATS_DENSE_STORE),
            indexes=indexed_columns(options, schema.fields),
            embedded_index_bytes=options.get(FILE_INDEX_IN_MANIFEST_THRESHOLD),
        )

    @staticmethod
    def of_changelog(schema: TableSchema, *, level: int = 0) -> FileSettings:
        """The settings of changelog files made beside data files of a level: theirs, unless options say otherwise. SST files
        hold a key once and so can be none."""
        options = TableOptions(schema.options)
        ours = FileSettings.of(schema, level=level)
        file_format = options.get(CHANGELOG_FILE_FORMAT) or (_PARQUET if ours.file_format == _SST else ours.file_format)
        compression = options.get(CHANGELOG_FILE_COMPRESSION) or ours.encoding.compression
        return replace(
            ours,
            file_format=file_format,
            encoding=replace(ours.encoding, compression=compression),
            prefix=options.get(CHANGELOG_FILE_PREFIX),
            suffix=_suffix(file_format, compression, named=options.get(FILE_SUFFIX_INCLUDE_COMPRESSION)),
            stats_mode=options.get(CHANGELOG_FILE_STATS_MODE) or ours.stats_mode,
        )

    def in_format(self, file_format: str) -> FileSettings:
        """The same with another format."""
        suffix = self.suffix.removesuffix(self.file_format) + file_format
        return replace(self, file_format=file_format, suffix=suffix)

    def index_writer(self) -> FileIndexWriter | None:
        """A new writer of a file's indexes; None where no column has one."""
        return FileIndexWriter(self.indexes) if self.indexes else None

    def collector(self, fields: Sequence[Field], *, keys: Sequence[str] = ()) -> StatsCollector:
        """A new collector of a file's statistics. The columns `keys` have bounds whatever the mode of all columns is, and are
        not among the first n columns."""
        counted = [field.name for field in fields if field.name not in keys or field.name in self.field_stats_modes]
        kept = counted if self.stats_first_columns < 0 else counted[: self.stats_first_columns]
        modes = (
            dict.fromkeys(keys, KEY_STATS_MODE) | dict.fromkeys(kept, self.stats_mode) | dict(self.field_stats_modes)
        )
        return StatsCollector(fields, "none", field_modes=modes, dense=self.stats_dense)


def _suffix(file_format: str, compression: str, *, named: bool) -> str:
    return f".{compression}.{file_format}" if named else f".{file_format}"
