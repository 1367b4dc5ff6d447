"""Parquet data files.

What Java Paimon reads is what is written: field ids on every field, DECIMAL up to 18 digits as INT32 or INT64, TIME as
INT32 milliseconds, TIMESTAMP(0-3) and (4-6) as INT64 milliseconds and microseconds, TIMESTAMP(7-9) as INT96. Arrow's
writer knows INT96 for all timestamps of a file or none, so a table with one nanosecond column stores its other
timestamps as INT96 as well, which every reader takes.

INT96 holds any date, Arrow's nanoseconds only 1677-09-21 to 2262-04-11; a value beyond is refused when it is read as
nanoseconds. `parquet_int96` reads such columns, since Arrow's own reader is wrong before 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.data_file_errors import decoding, open_input
from lakelet.format.data_file_format import FormatWriter, WriteSettings
from lakelet.format.field_ids import schema_with_ids
from lakelet.format.parquet_int96 import metadata_with_raw_int96
from lakelet.format.restore import restore_batch
from lakelet.model.arrow_types import to_arrow
from lakelet.model.types import TIMESTAMPS, Array, Atomic, DataType, Field, Map, Multiset, Row
from lakelet.storage.store import ObjectStore, OutputFile

NAME = "parquet"
_MICRO = 6
_LONG_DIGITS = 18
_COMPRESSIONS = {"zstd", "snappy", "gzip", "lz4", "brotli", "none"}
_ALIASES = {"uncompressed": "none", "lz4_raw": "lz4", "null": "none"}


class ParquetFormat:
    """The default format."""

    name = NAME

    def open_writer(
        self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, *, without_ranges: frozenset[str]
    ) -> FormatWriter:
        """Starts a Parquet file."""
        return _Writer(output, fields, settings, without_ranges)

    def read(
        self, store: ObjectStore, path: str, fields: Sequence[Field], columns: Sequence[str], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, batch by batch."""
        wanted = [field for field in fields if field.name in columns]
        schema = pa.schema([(field.name, to_arrow(field.type)) for field in wanted])
        where = f"{store.location}/{path}"
        with open_input(store, path) as source:
            with decoding(store, path, "Parquet"):
                file = pq.ParquetFile(source, pre_buffer=True)
                if _int96_columns(file) & set(schema.names):
                    file = pq.ParquetFile(source, metadata=metadata_with_raw_int96(source), pre_buffer=True)
            present = file.schema_arrow.names
            if missing := [name for name in schema.names if name not in present]:
                raise CorruptionError(f"{where}: column {', '.join(missing)} is not in the Parquet file")
            # A dot separates the levels of a column's path there, so that a name with one cannot be asked for.
            names = None if any("." in name for name in present) else schema.names
            batches = file.iter_batches(batch_rows, columns=names)
            while True:
                with decoding(store, path, "Parquet"):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    yielded = batch if batch.schema.equals(schema) else _restored(batch, schema, where)
                yield yielded


class _Writer:
    def __init__(
        self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, without_ranges: frozenset[str]
    ) -> None:
        self._output = output
        self._schema = schema_with_ids(fields)
        compression = parquet_compression(settings.compression)
        self._writer = pq.ParquetWriter(
            output,
            self._schema,
            compression=compression,
            compression_level=settings.compression_level if compression == "zstd" else None,
            use_dictionary=_dictionary(self._schema, settings.extra),
            write_statistics=[column for column in self._schema.names if column not in without_ranges] or False,
            store_decimal_as_integer=True,
            use_deprecated_int96_timestamps=needs_int96(fields),
            store_schema=False,
            version="2.6",
        )

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(
            table.cast(self._schema) if table.schema != self._schema else table, row_group_size=table.num_rows or None
        )

    def size(self) -> int:
        return self._output.tell()

    def close(self) -> None:
        self._writer.close()


def _dictionary(schema: pa.Schema, extra: Mapping[str, str]) -> bool | list[str]:
    """The columns to encode with a dictionary: all but DECIMAL beyond 18 digits.

    Java Paimon looks for a literal in the dictionary of such a column by other bytes than it is stored with, and takes
    the value for absent. Its own files have no dictionary there.
    """
    if extra.get("parquet.enable.dictionary", "true").lower() == "false":
        return False
    wide = [field.name for field in schema if pa.types.is_decimal(field.type) and field.type.precision > _LONG_DIGITS]
    if not wide:
        return True
    return [path for field in schema if field.name not in wide for path in _leaf_paths(field.type, field.name)]


def _leaf_paths(arrow: pa.DataType, path: str) -> list[str]:
    """The paths under which Parquet has the columns of a type."""
    if pa.types.is_struct(arrow):
        inner = [(arrow.field(i).type, f"{path}.{arrow.field(i).name}") for i in range(arrow.num_fields)]
    elif pa.types.is_map(arrow):
        inner = [(arrow.key_type, f"{path}.key_value.key"), (arrow.item_type, f"{path}.key_value.value")]
    elif pa.types.is_list(arrow):
        inner = [(arrow.value_type, f"{path}.list.element")]
    else:
        return [path]
    return [leaf for child, below in inner for leaf in _leaf_paths(child, below)]


def parquet_compression(name: str) -> str:
    """Arrow's name of a `file.compression` value."""
    lower = name.lower()
    lower = _ALIASES.get(lower, lower)
    if lower not in _COMPRESSIONS:
        raise InvalidError(
            f"option 'file.compression': expected one of {', '.join(sorted(_COMPRESSIONS))} for Parquet, found {name!r}"
        )
    return lower


def open_parquet(store: ObjectStore, path: str) -> pq.ParquetFile:
    """The open file; CorruptionError names it if it is no Parquet file."""
    source = open_input(store, path)
    try:
        with decoding(store, path, "Parquet"):
            return pq.ParquetFile(source, pre_buffer=True)
    except BaseException:
        source.close()
        raise


def needs_int96(fields: Sequence[Field]) -> bool:
    """Whether a file of these columns holds INT96 timestamps when Lakelet or Java wrote it."""
    return any(_has_nanos(field.type) for field in fields)


def _restored(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    try:
        return restore_batch(batch, schema)
    except InvalidError as error:
        raise InvalidError(f"{where}: {error}") from error


def _int96_columns(file: pq.ParquetFile) -> set[str]:
    """Top-level columns of which some leaf is stored as INT96."""
    return {
        file.schema.column(index).path.split(".")[0]
        for index in range(len(file.schema))
        if file.schema.column(index).physical_type == "INT96"
    }


def _has_nanos(data_type: DataType) -> bool:
    match data_type:
        case Atomic(kind, precision):
            return kind in TIMESTAMPS and precision > _MICRO
        case Array(element) | Multiset(element):
            return _has_nanos(element)
        case Map(key, value):
            return _has_nanos(key) or _has_nanos(value)
        case Row(fields):
            return any(_has_nanos(field.type) for field in fields)
