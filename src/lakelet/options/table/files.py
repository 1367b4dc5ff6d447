"""Options of the files themselves: formats, compression, sizes, names, statistics and file indexes."""

from typing import Any

from lakelet.options.kinds import (
    BOOL,
    FILE_NAME_PART,
    POSITIVE_SIZE,
    SIZE,
    STATS_MODE,
    STRING,
    integer,
    one_of,
    per_level,
)
from lakelet.options.option import ACTED, Option, declare

FORMAT_NAME = one_of("parquet", "orc", "avro")
COMPRESSION_NAME = one_of(
    "zstd", "zstandard", "lz4", "snappy", "gzip", "zlib", "deflate", "brotli", "bzip2", "xz", "none", "uncompressed"
)

DATA_FORMAT_NAME = one_of("parquet", "orc", "avro", "sst")

FILE_FORMAT = declare(
    "file.format",
    DATA_FORMAT_NAME,
    "parquet",
    "Format of new data files. sst is for primary-key tables whose rows are looked up; other engines cannot open such a table.",
    ACTED,
)
FILE_FORMAT_PER_LEVEL = declare(
    "file.format.per.level",
    per_level(DATA_FORMAT_NAME),
    "",
    "Format of new data files of certain levels; file.format holds for the rest.",
    ACTED,
)
FILE_COMPRESSION = declare("file.compression", COMPRESSION_NAME, "zstd", "Compression of new data files.", ACTED)
FILE_COMPRESSION_PER_LEVEL = declare(
    "file.compression.per.level",
    per_level(COMPRESSION_NAME),
    "",
    "Compression of new data files of certain levels; file.compression holds for the rest.",
    ACTED,
)
FILE_COMPRESSION_ZSTD_LEVEL = declare(
    "file.compression.zstd-level",
    integer(1, 22),
    "1",
    "How hard zstd tries: higher numbers make smaller files, more slowly.",
    ACTED,
)
FILE_BLOCK_SIZE = declare(
    "file.block-size",
    POSITIVE_SIZE,
    None,
    "Size of a Parquet row group (unset: 128 mb) or an ORC stripe (unset: 64 mb).",
    ACTED,
)
TARGET_FILE_SIZE = declare(
    "target-file-size",
    POSITIVE_SIZE,
    None,
    "Size at which a data file is closed and the next one begun; "
    "unset means 256 mb for append tables and 128 mb for primary-key tables.",
    ACTED,
)
DATA_FILE_PREFIX = declare(
    "data-file.prefix", FILE_NAME_PART, "data-", "How names of data files begin; not with a dot.", ACTED
)
CHANGELOG_FILE_PREFIX = declare(
    "changelog-file.prefix", FILE_NAME_PART, "changelog-", "How names of changelog files begin; not with a dot.", ACTED
)
CHANGELOG_FILE_FORMAT = declare(
    "changelog-file.format", FORMAT_NAME, None, "Format of changelog files; unset means that of data files.", ACTED
)
CHANGELOG_FILE_COMPRESSION = declare(
    "changelog-file.compression",
    COMPRESSION_NAME,
    None,
    "Compression of changelog files; unset means that of data files.",
    ACTED,
)
CHANGELOG_FILE_STATS_MODE = declare(
    "changelog-file.stats-mode",
    STATS_MODE,
    None,
    "Statistics of changelog files; unset means those of data files.",
    ACTED,
)
FILE_SUFFIX_INCLUDE_COMPRESSION = declare(
    "file.suffix.include.compression", BOOL, "false", "Whether names of data files tell the compression.", ACTED
)
PARQUET_ENABLE_DICTIONARY = declare(
    "parquet.enable.dictionary",
    BOOL,
    None,
    "Whether Parquet columns may be dictionary-encoded; unset means yes.",
    ACTED,
)
METADATA_STATS_MODE = declare(
    "metadata.stats-mode",
    STATS_MODE,
    "truncate(16)",
    "Statistics kept for each column of a file: none, null counts, or minimum and maximum too, cut to n characters "
    "or in full.",
    ACTED,
)
METADATA_STATS_MODE_PER_LEVEL = declare(
    "metadata.stats-mode.per.level",
    per_level(STATS_MODE),
    "",
    "Statistics for files of certain levels; metadata.stats-mode holds for the rest.",
    ACTED,
)
METADATA_STATS_DENSE_STORE = declare(
    "metadata.stats-dense-store",
    BOOL,
    "true",
    "Whether columns without statistics take no room in manifests.",
    ACTED,
)
METADATA_STATS_KEEP_FIRST_N_COLUMNS = declare(
    "metadata.stats-keep-first-n-columns",
    integer(-1),
    "-1",
    "Columns, counted from the first, that get statistics; -1 means all.",
    ACTED,
)
FIELD_STATS_MODE = declare(
    "fields.<column>.stats-mode", STATS_MODE, None, "Statistics for one column, before any other setting.", ACTED
)

DATA_FILE_THIN_MODE = declare(
    "data-file.thin-mode",
    BOOL,
    "false",
    "Whether data files of primary-key tables store key columns once instead of twice.",
    ACTED,
)
FILE_INDEX_IN_MANIFEST_THRESHOLD = declare(
    "file-index.in-manifest-threshold",
    SIZE,
    "500 bytes",
    "Size up to which a file's index is embedded in the manifest instead of lying in a file of its own.",
    ACTED,
)
FILE_INDEX_READ_ENABLED = declare(
    "file-index.read.enabled", BOOL, "true", "Whether file indexes are used to skip files at reads.", ACTED
)
FILE_INDEX_SETTING = declare(
    "file-index.<setting>",
    STRING,
    None,
    "Columns of the file indexes (bloom-filter.columns, bitmap.columns, range-bitmap.columns) and their parameters.",
    ACTED,
)
FILE_OPTIONS: tuple[Option[Any], ...] = (
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    FILE_COMPRESSION_ZSTD_LEVEL,
    FILE_BLOCK_SIZE,
    TARGET_FILE_SIZE,
    DATA_FILE_PREFIX,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
    PARQUET_ENABLE_DICTIONARY,
    METADATA_STATS_MODE,
    METADATA_STATS_MODE_PER_LEVEL,
    METADATA_STATS_DENSE_STORE,
    METADATA_STATS_KEEP_FIRST_N_COLUMNS,
    FIELD_STATS_MODE,
    DATA_FILE_THIN_MODE,
    CHANGELOG_FILE_FORMAT,
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_PREFIX,
    CHANGELOG_FILE_STATS_MODE,
    FILE_INDEX_IN_MANIFEST_THRESHOLD,
    FILE_INDEX_READ_ENABLED,
    FILE_INDEX_SETTING,
    declare("parquet.<setting>", STRING, None, "A setting handed to the engine's Parquet writer or reader."),
    declare("orc.<setting>", STRING, None, "A setting handed to the engine's ORC writer or reader."),
    declare("avro.<setting>", STRING, None, "A setting handed to the engine's Avro writer or reader."),
)

# How SST files are laid out. They change speed and size, never rows.
SST_BLOCK_SIZE = declare(
    "sst.block-size",
    POSITIVE_SIZE,
    "4 kb",
    "Bytes before compression from which a data block of an SST file is closed.",
    ACTED,
)
SST_RESTART_INTERVAL = declare(
    "sst.restart-interval",
    integer(1),
    "16",
    "Entries of a data block from one restart point, where keys and numbers are stored whole, to the next.",
    ACTED,
)
SST_BLOOM_BITS_PER_KEY = declare(
    "sst.bloom-bits-per-key",
    integer(1, 64),
    "10",
    "Bits of the bloom filter of an SST file for each key; 10 let about 1 % of absent keys through.",
    ACTED,
)
SST_DELTA_ENCODING = declare(
    "sst.delta-encoding",
    BOOL,
    "true",
    "Whether whole numbers, dates and times of an SST file are stored as differences to the row before.",
    ACTED,
)

SST_OPTIONS: tuple[Option[Any], ...] = (
    SST_BLOCK_SIZE,
    SST_RESTART_INTERVAL,
    SST_BLOOM_BITS_PER_KEY,
    SST_DELTA_ENCODING,
)
