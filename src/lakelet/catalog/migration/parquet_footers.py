"""Read the footer of a Parquet file, on an executor: columns as they are stored, row count, and ranges of values.

Only the footer is read. A range is kept where the footer has one in every row group that has values; ranges of FLOAT and DOUBLE
are not, for a footer leaves out NaN, which is the greatest value of a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelet.errors import CorruptionError
from lakelet.format.data.parquet_file import open_parquet
from lakelet.storage.store import ObjectStore

_SPARK_ROWS = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION = b"org.apache.spark.version"
_SPARK_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FLOATS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column as Parquet stores it. `kind` is its logical type without the parts that do not affect reading."""

    path: str
    physical: str
    kind: str
    repetition: int
    required: bool

    def __str__(self) -> str:
        return self.physical if self.kind == "None" else f"{self.physical} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Range:
    """Minimum, maximum (both None where unknown or where there are only NULLs) and the NULLs of a column, None if unknown."""

    low: object
    high: object
    nulls: int | None


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of one file; `problem` says why there is none. `instants` are INT96 columns that are points in time.
    `julian` says that its writer counted early dates by the Julian calendar, as Spark did before version 3."""

    rows: int
    leaves: tuple[Leaf, ...]
    ranges: Mapping[str, Range]
    schema: pa.Schema
    instants: frozenset[str]
    problem: str | None = None
    julian: bool = False


def read_footer(store: ObjectStore, path: str) -> Footer:
    """The footer of a file."""
    try:
        with open_parquet(store, path) as file:
            return footer_of(file)
    except CorruptionError as error:
        return Footer(0, (), {}, pa.schema([]), frozenset(), str(error))


def footer_of(file: pq.ParquetFile) -> Footer:
    """The footer of an open file."""
    leaves = leaves_of(file)
    names = set(file.schema_arrow.names)
    ranges = {
        leaf.path: _range(file.metadata, place, leaf)
        for place, leaf in enumerate(leaves)
        if leaf.path in names and not leaf.repetition
    }
    instants = _instants(file, leaves)
    return Footer(file.metadata.num_rows, leaves, ranges, file.schema_arrow, instants, julian=_is_julian(file))


def leaves_of(file: pq.ParquetFile) -> tuple[Leaf, ...]:
    """The columns of a file, those inside of others by their paths."""
    columns = (file.schema.column(place) for place in range(len(file.schema)))
    return tuple(
        Leaf(
            column.path,
            column.physical_type,
            _kind(column),
            column.max_repetition_level,
            required=not column.max_definition_level,
        )
        for column in columns
    )


def _kind(column: pq.ColumnSchema) -> str:
    logical = json.loads(column.logical_type.to_json())
    match logical:
        case {"Type": "Timestamp", "timeUnit": unit, "isAdjustedToUTC": utc}:
            return f"timestamp in {unit}{', UTC' if utc else ''}"
        case {"Type": "Time", "timeUnit": unit}:
            return f"time in {unit}"
        case {"Type": "Decimal", "precision": precision, "scale": scale}:
            return f"decimal({precision}, {scale})"
        case {"Type": "Int", "bitWidth": bits, "isSigned": signed}:
            return "None" if signed and bits in (32, 64) else f"{'' if signed else 'unsigned '}{bits} bits"
        case {"Type": kind}:
            return str(kind)
        case _:
            return "None"


def _range(metadata: pq.FileMetaData, place: int, leaf: Leaf) -> Range:
    lows, highs, nulls, known = [], [], 0, True
    bounded = leaf.physical not in _FLOATS
    for group in range(metadata.num_row_groups):
        column = metadata.row_group(group).column(place)
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            known, bounded = False, bounded and statistics is not None
        else:
            nulls += statistics.null_count
        bounds = _bounds(statistics) if statistics is not None and statistics.has_min_max else None
        if bounds is not None:
            lows.append(bounds[0])
            highs.append(bounds[1])
        elif statistics is None or not known or statistics.has_min_max or statistics.null_count < column.num_values:
            bounded = False
    counted = nulls if known else None
    return Range(min(lows), max(highs), counted) if bounded and lows else Range(None, None, counted)


def _bounds(statistics: pq.Statistics) -> tuple[Any, Any] | None:
    """Minimum and maximum; None where Python cannot represent the date or time."""
    try:
        return statistics.min, statistics.max
    except (OverflowError, ValueError):
        return None


def _is_julian(file: pq.ParquetFile) -> bool:
    told = file.metadata.metadata or {}
    old = told.get(_SPARK_VERSION, b"3").split(b".")[0] in (b"0", b"1", b"2")
    return old or any(key in told for key in _SPARK_JULIAN)


def _instants(file: pq.ParquetFile, leaves: tuple[Leaf, ...]) -> frozenset[str]:
    """The INT96 columns that are points in time: INT96 has no logical type, but Spark stores the type in the footer."""
    int96 = {leaf.path for leaf in leaves if leaf.physical == "INT96"}
    described = (file.metadata.metadata or {}).get(_SPARK_ROWS)
    if not int96 or described is None:
        return frozenset()
    fields = json.loads(described).get("fields", [])
    return frozenset(field["name"] for field in fields if field["name"] in int96 and field["type"] == "timestamp")
