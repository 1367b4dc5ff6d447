"""Parquet data files.

What Java Paimon reads is what is written: field ids on every field, DECIMAL up to 18 digits as INT32 or INT64, TIME as
INT32 milliseconds, TIMESTAMP(0-3) and (4-6) as INT64 milliseconds and microseconds, TIMESTAMP(7-9) as INT96, which
`parquet_int96_write` brings about.

INT96 holds any date, Arrow's nanoseconds only 1677-09-21 to 2262-04-11; a value beyond is refused when it is read as
nanoseconds. `parquet_int96` reads such columns, since Arrow's own reader is wrong before 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.data.data_file_errors import decoding, open_input
from lakelet.format.data.data_file_format import FormatWriter, WriteSettings
from lakelet.format.data.field_ids import schema_with_ids
from lakelet.format.data.parquet_int96 import metadata_with_raw_int96
from lakelet.format.data.parquet_int96_write import Int96Output, encode_int96, raw_int96_schema
from lakelet.format.data.restored_columns import restore_batch
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import TIMESTAMPS, Array, Atomic, DataType, Field, Map, Multiset, Row
from lakelet.storage.store import ObjectStore, OutputFile

NAME = "parquet"
_MICRO = 6
_SAMPLE_RUNS = 8
_SAMPLE_RUN_ROWS = 1024
_LONG_DIGITS = 18
_BLOOM = "parquet.bloom.filter"
_BLOOM_FPP = 0.01
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
            # Row groups are cut by size, so that a batch no longer than one is small however wide the rows are.
            groups = (file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups))
            batches = file.iter_batches(min(batch_rows, max(1, max(groups, default=1))), columns=names)
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
        self._raw_schema = raw_int96_schema(self._schema) if needs_int96(fields) else None
        self._int96 = Int96Output(output) if self._raw_schema is not None else None
        self._settings = settings
        self._compression = parquet_compression(settings.compression)
        self._without_ranges = without_ranges
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        rows = table.cast(self._schema) if table.schema != self._schema else table
        writer = self._writer or self._begin(rows)
        if self._raw_schema is not None:
            rows = encode_int96(rows, self._raw_schema)
        writer.write_table(rows, row_group_size=rows.num_rows or None)

    def _begin(self, first: pa.Table) -> pq.ParquetWriter:
        """Start the file; its first rows decide which columns get a dictionary."""
        # The order of INT96 statistics is undefined.
        unordered = {field.name for field in self._raw_schema or () if pa.types.is_fixed_size_binary(field.type)}
        excluded = self._without_ranges | unordered
        dictionary = _dictionary(self._schema, self._settings.extra, first)
        differences = _stored_as_differences(self._schema, self._settings.sorted_columns, dictionary)
        blooms = bloom_filters(self._schema, self._settings.extra, first.num_rows)
        self._writer = pq.ParquetWriter(
            self._int96 or self._output,
            self._raw_schema or self._schema,
            compression=self._compression,
            compression_level=self._settings.compression_level if self._compression == "zstd" else None,
            use_dictionary=dictionary,
            column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED") or None,
            write_statistics=[name for name in self._schema.names if name not in excluded] or False,
            store_decimal_as_integer=True,
            store_schema=False,
            version="2.6",
            # Releases of pyarrow that cannot write them do not know the argument.
            **({"bloom_filter_options": blooms} if blooms else {}),
        )
        return self._writer

    def size(self) -> int:
        return self._output.tell()

    def close(self) -> None:
        writer = self._writer or self._begin(self._schema.empty_table())
        if self._int96 is None:
            writer.close()
            return
        self._int96.hold()
        writer.close()
        self._int96.release()


def _dictionary(schema: pa.Schema, extra: Mapping[str, str], first: pa.Table) -> bool | list[str]:
    """The columns to encode with a dictionary: all but DECIMAL beyond 18 digits and, unless the option asks for all,
    columns whose values hardly repeat in the first rows, for which building one takes time and saves nothing.

    Java Paimon looks for a literal in the dictionary of such a DECIMAL by other bytes than it is stored with, and takes
    the value for absent. Its own files have no dictionary there.
    """
    asked = extra.get("parquet.enable.dictionary", "").lower()
    if asked == "false":
        return False
    without = {
        field.name for field in schema if pa.types.is_decimal(field.type) and field.type.precision > _LONG_DIGITS
    }
    if asked != "true":
        without |= {name for name in schema.names if name not in without and _hardly_repeats(first.column(name))}
    if not without:
        return True
    return [path for field in schema if field.name not in without for path in _leaf_paths(field.type, field.name)]


def _stored_as_differences(schema: pa.Schema, asked: frozenset[str], dictionary: bool | list[str]) -> list[str]:
    """The columns to delta-encode: those requested that are integers and have no dictionary.

    Sequence numbers and sorted keys take less than half the space and the time that plain values take.
    """
    if dictionary is True:
        return []
    with_dictionary = dictionary or ()
    return [
        field.name
        for field in schema
        if field.name in asked and field.name not in with_dictionary and _is_whole_number(field.type)
    ]


def _is_whole_number(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(arrow) or types.is_date(arrow) or (types.is_timestamp(arrow) and arrow.unit != "ns"))


def bloom_filters(schema: pa.Schema, extra: Mapping[str, str], rows: int) -> dict[str, dict[str, float]]:
    """The bloom filters of a table's options, as pyarrow's arguments.

    `parquet.bloom.filter.enabled#<column>` asks for one column, `parquet.bloom.filter.enabled` for all that can have one. A
    filter is sized for a row group like the first unless `parquet.bloom.filter.expected.ndv#<column>` says otherwise.
    """
    found: dict[str, dict[str, float]] = {}
    for field in schema:
        asked = extra.get(f"{_BLOOM}.enabled#{field.name}", extra.get(f"{_BLOOM}.enabled", "false"))
        if asked.lower() != "true" or pa.types.is_nested(field.type) or pa.types.is_boolean(field.type):
            continue
        values = extra.get(f"{_BLOOM}.expected.ndv#{field.name}")
        share = extra.get(f"{_BLOOM}.fpp#{field.name}")
        try:
            found[field.name] = {
                "ndv": max(1, int(values)) if values else max(1, rows),
                "fpp": float(share) if share else _BLOOM_FPP,
            }
        except ValueError as error:
            raise InvalidError(f"option '{_BLOOM}.…#{field.name}': expected a number: {error}") from error
    return found


def _hardly_repeats(column: pa.ChunkedArray) -> bool:
    """Whether nine in ten of some thousand values, in runs spread over the column, are different ones."""
    if len(column) < _SAMPLE_RUNS * _SAMPLE_RUN_ROWS or pa.types.is_nested(column.type):
        return False
    step = len(column) // _SAMPLE_RUNS
    runs = [column.slice(run * step, _SAMPLE_RUN_ROWS) for run in range(_SAMPLE_RUNS)]
    sample = pa.chunked_array([chunk for run in runs for chunk in run.chunks], column.type)
    return bool(10 * pc.count_distinct(sample).as_py() > 9 * len(sample))


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
