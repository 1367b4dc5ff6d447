"""Parquet encoding settings from the table's properties; an invalid property is refused before a row is read.

write.parquet.compression-codec, -level         zstd
write.parquet.page-size-bytes, page-row-limit   1 MB, 20,000 rows
write.parquet.dict-size-bytes                   2 MB
write.parquet.row-group-size-bytes, -limit      128 MB of rows in memory, 1,048,576 rows
write.parquet.bloom-filter-enabled.column.<c>   with bloom-filter-fpp.column.<c> (0.01), bloom-filter-max-bytes (1 MB)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.table import TableProperties
from pyiceberg.types import BooleanType

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.file_schema import LeafColumn

COMPRESSION = TableProperties.PARQUET_COMPRESSION
_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "uncompressed": "none",
    "none": "none",
}
_LEVELLED = ("zstd", "gzip", "brotli")
_BLOOM = f"{TableProperties.PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX}."
_BLOOM_FPP = "write.parquet.bloom-filter-fpp.column."
_DEFAULT_FPP = 0.01


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """The settings of one table's Parquet writers."""

    options: Mapping[str, Any]
    row_group_bytes: int
    row_group_rows: int
    bloom_bytes: int
    bloom_chances: Mapping[str, float]

    def options_for(self, rows: int) -> dict[str, Any]:
        """The arguments of a writer for a file that begins with this many rows."""
        if not self.bloom_chances:
            return dict(self.options)
        blooms = {
            path: {"ndv": min(max(rows, 1), _most_values(self.bloom_bytes, chance)), "fpp": chance}
            for path, chance in self.bloom_chances.items()
        }
        return {**self.options, "bloom_filter_options": blooms}


def parquet_settings(properties: Mapping[str, str], leaves: list[LeafColumn]) -> ParquetSettings:
    """The settings of a table's properties; InvalidError for an invalid one."""
    codec = codec_of(properties)
    level = properties.get(TableProperties.PARQUET_COMPRESSION_LEVEL)
    options = {
        "compression": codec,
        "data_page_size": positive(
            properties, TableProperties.PARQUET_PAGE_SIZE_BYTES, TableProperties.PARQUET_PAGE_SIZE_BYTES_DEFAULT
        ),
        "dictionary_pagesize_limit": positive(
            properties, TableProperties.PARQUET_DICT_SIZE_BYTES, TableProperties.PARQUET_DICT_SIZE_BYTES_DEFAULT
        ),
        "max_rows_per_page": positive(
            properties, TableProperties.PARQUET_PAGE_ROW_LIMIT, TableProperties.PARQUET_PAGE_ROW_LIMIT_DEFAULT
        ),
        "store_decimal_as_integer": True,
        # Columns are resolved by field id.
        "store_schema": False,
    }
    if level is not None and codec in _LEVELLED:
        options["compression_level"] = _level(level)
    return ParquetSettings(
        options,
        positive(
            properties,
            TableProperties.PARQUET_ROW_GROUP_SIZE_BYTES,
            TableProperties.PARQUET_ROW_GROUP_SIZE_BYTES_DEFAULT,
        ),
        positive(properties, TableProperties.PARQUET_ROW_GROUP_LIMIT, TableProperties.PARQUET_ROW_GROUP_LIMIT_DEFAULT),
        positive(
            properties,
            TableProperties.PARQUET_BLOOM_FILTER_MAX_BYTES,
            TableProperties.PARQUET_BLOOM_FILTER_MAX_BYTES_DEFAULT,
        ),
        _blooms(properties, leaves),
    )


def codec_of(properties: Mapping[str, str]) -> str:
    """pyarrow's name of the compression codec."""
    name = properties.get(COMPRESSION, TableProperties.PARQUET_COMPRESSION_DEFAULT)
    found = _CODECS.get(name.lower())
    if found is None:
        raise InvalidError(f"table property '{COMPRESSION}': expected one of {', '.join(_CODECS)}, found {name!r}")
    return found


def positive(properties: Mapping[str, str], name: str, default: int) -> int:
    """A number from 1 on."""
    text = properties.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InvalidError(f"table property '{name}': expected a number from 1 on, found {text!r}")
    return int(text)


def _level(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        name = TableProperties.PARQUET_COMPRESSION_LEVEL
        raise InvalidError(f"table property '{name}': expected a number, found {text!r}") from error


def _blooms(properties: Mapping[str, str], leaves: list[LeafColumn]) -> dict[str, float]:
    """The false-positive rate of each column with a Bloom filter."""
    by_name = {".".join(leaf.path): leaf for leaf in leaves}
    found = {}
    for key, text in properties.items():
        name = key.removeprefix(_BLOOM)
        leaf = by_name.get(name)
        # A property of a column that was dropped or renamed stays behind.
        if name == key or text.lower() != "true" or leaf is None or isinstance(leaf.type, BooleanType):
            continue
        found[leaf.parquet_path] = _chance(properties, f"{_BLOOM_FPP}{name}")
    return found


def _chance(properties: Mapping[str, str], name: str) -> float:
    text = properties.get(name, str(_DEFAULT_FPP))
    try:
        chance = float(text)
    except ValueError:
        chance = math.nan
    if not 0 < chance < 1:
        raise InvalidError(f"table property '{name}': expected a number between 0 and 1, found {text!r}")
    return chance


def _most_values(size: int, chance: float) -> int:
    """The number of values that a filter of that size holds at that false-positive rate."""
    return max(1, int(-size * math.log(1 - chance ** (1 / 8))))
