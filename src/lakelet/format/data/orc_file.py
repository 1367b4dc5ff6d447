"""ORC data files.

Beside the Parquet and Avro formats, over Arrow's ORC reader and writer. It owns how a table's types are stored in ORC
and come back; it never looks at the bytes of a file itself.

What Java Paimon reads is what is written: the field id of every type, nested ones too, is its attribute `paimon.id`;
TIME is INT milliseconds, MULTISET is MAP to INT, TIMESTAMP is TIMESTAMP and TIMESTAMP WITH LOCAL TIME ZONE is
TIMESTAMP_INSTANT. CHAR and VARCHAR of a length are stored as STRING, BINARY and VARBINARY as BINARY, so that every value
comes back as it was written. ORC's own CHAR, which Java writes, is padded to its length; what pads it is no part of the
value. Stripes are written as of the time zone UTC.

Two limits are Arrow's. Its writer stores a fraction of a second before 1970 as a negative number, at which Java fails,
so such timestamps are refused when written (in ORC itself the last second before 1970 cannot be distinguished from the first
one after it, and Java shifts it). Its reader knows nanoseconds only, so timestamps outside 1677-09-21 to 2262-04-11 are
refused, when written as when read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.data.data_file_errors import decoding, open_input
from lakelet.format.data.data_file_format import FormatWriter, WriteSettings
from lakelet.format.data.field_ids import schema_with_ids
from lakelet.format.data.restored_columns import restore_batch
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import Array, Atomic, DataType, Field, Kind, Map, Multiset, Row
from lakelet.storage.store import ObjectStore, OutputFile

if TYPE_CHECKING:
    from pyarrow import orc

NAME = "orc"
_ID = b"paimon.id"
_STRIPE_BYTES = 64 << 20
_ASSUMED_RATIO = 0.5
_COMPRESSIONS = {"zstd", "snappy", "zlib", "lz4", "none"}
_ALIASES = {"uncompressed": "none", "null": "none", "gzip": "zlib", "deflate": "zlib", "zstandard": "zstd"}
_OUT_OF_RANGE = "out of range for nanosecond"
_NANOS_REACH_SECONDS = 2**63 // 10**9 - 1
# How Arrow calls the library that this module and pypaimon write with; neither makes use of ORC's own CHAR.
_UNPADDED_WRITER = "ORC_CPP"
_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class OrcFormat:
    """Stripes of columns."""

    name = NAME

    def open_writer(
        self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, *, without_ranges: frozenset[str]
    ) -> FormatWriter:
        """Starts an ORC file. A column with NaN keeps its ranges: its sum is NaN too, at which readers distrust them."""
        return _Writer(output, fields, settings)

    def read(
        self, store: ObjectStore, path: str, fields: Sequence[Field], columns: Sequence[str], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, a stripe in memory at a time."""
        from pyarrow import orc  # noqa: PLC0415 - its library loads only where there are such files.

        wanted = [field for field in fields if field.name in columns]
        schema = pa.schema([(field.name, to_arrow(field.type)) for field in wanted])
        with open_input(store, path) as source:
            with decoding(store, path, "ORC"):
                file = orc.ORCFile(source)
                present = file.schema.names
                padded = [field for field in wanted if file.writer != _UNPADDED_WRITER and _has_char(field.type)]
            if missing := [name for name in schema.names if name not in present]:
                raise CorruptionError(f"{store.location}/{path}: column {', '.join(missing)} is not in the ORC file")
            # A dot separates the levels of a column's path there, so that a name with one cannot be asked for.
            # Without any column Arrow would not tell the number of rows.
            names = None if any("." in name for name in present) else schema.names or present[:1]
            for number in range(file.nstripes):
                with decoding(store, path, "ORC"):
                    stripe = _read_stripe(file, number, names, f"{store.location}/{path}")
                    batch = _without_padding(restore_batch(stripe, schema), padded)
                for begin in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(begin, batch_rows)


class _Sink(io.RawIOBase):
    """Hands bytes on to the output while it is open.

    Arrow's writer, when it is discarded, still writes the end of its file, and crashes the process if that fails.
    """

    def __init__(self, output: OutputFile) -> None:
        super().__init__()
        self._to = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self._to.closed else self._to.write(bytes(data))

    def tell(self) -> int:
        return 0 if self._to.closed else self._to.tell()


class _Writer:
    def __init__(self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings) -> None:
        from pyarrow import orc  # noqa: PLC0415 - as above.

        self._output = output
        self._schema = pa.schema([_storage_field(field) for field in schema_with_ids(fields)])
        self._writer = orc.ORCWriter(
            _Sink(output),
            compression=orc_compression(settings.compression),
            stripe_size=_number(settings.extra, "orc.stripe.size", _STRIPE_BYTES),
            row_index_stride=_number(settings.extra, "orc.row.index.stride", 10_000),
        )
        # Rows wait in memory until a stripe is full; how large they will be is guessed from the stripes before.
        self._flushed = 0
        self._flushed_arrow = 0
        self._waiting_arrow = 0
        self._is_empty = True

    def write(self, table: pa.Table) -> None:
        for column in table.column_names:
            for chunk in table.column(column).chunks:
                _check_timestamps(chunk, column)
        self._writer.write(_settled(table.cast(self._schema)))
        self._is_empty = False
        self._waiting_arrow += table.nbytes
        self._note_flush()

    def size(self) -> int:
        ratio = self._flushed / self._flushed_arrow if self._flushed_arrow else _ASSUMED_RATIO
        return self._flushed + int(self._waiting_arrow * min(ratio, 1.0))

    def close(self) -> None:
        if self._is_empty:
            # The file gets its schema with the first rows.
            self._writer.write(self._schema.empty_table())
        self._writer.close()
        self._note_flush()

    def _note_flush(self) -> None:
        if self._output.tell() > self._flushed:
            self._flushed = self._output.tell()
            self._flushed_arrow += self._waiting_arrow
            self._waiting_arrow = 0


def orc_compression(name: str) -> str:
    """Arrow's name of a `file.compression` value."""
    lower = name.lower()
    lower = _ALIASES.get(lower, lower)
    if lower not in _COMPRESSIONS:
        expected = ", ".join(sorted(_COMPRESSIONS))
        raise InvalidError(f"option 'file.compression': expected one of {expected} for ORC, found {name!r}")
    return "uncompressed" if lower == "none" else lower


def _number(extra: Mapping[str, str], option: str, default: int) -> int:
    text = extra.get(option)
    if text is None:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise InvalidError(f"option {option!r}: expected a number above 0, found {text!r}")
    return int(text)


def _storage_field(field: pa.Field) -> pa.Field:
    """The field as ORC has it: its id under Paimon's attribute, and only types that ORC knows."""
    metadata = {_ID: next(iter(field.metadata.values()))} if field.metadata else None
    return pa.field(field.name, _storage_type(field.type), nullable=field.nullable, metadata=metadata)


def _storage_type(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow):
        return pa.struct([_storage_field(arrow.field(i)) for i in range(arrow.num_fields)])
    if pa.types.is_map(arrow):
        return pa.map_(_storage_field(arrow.key_field), _storage_field(arrow.item_field))
    if pa.types.is_list(arrow):
        return pa.list_(_storage_field(arrow.value_field))
    return pa.int32() if pa.types.is_time32(arrow) else arrow


def _settled(table: pa.Table) -> pa.Table:
    """The table with nested arrays as Arrow's writer needs them: begun at their first row, else it takes the wrong
    members, and with nothing below a NULL struct but NULLs, else members of a ROW in a ROW slip into other rows."""
    columns = []
    for column in table.columns:
        nested = pa.types.is_nested(column.type)
        chunks = [_settled_array(pa.concat_arrays([chunk])) for chunk in column.chunks] if nested else column.chunks
        columns.append(pa.chunked_array(chunks, column.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _settled_array(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind):
        buffers, children = array.buffers()[:1], [_settled_array(member) for member in array.flatten()]
    elif pa.types.is_map(kind):
        keys, items = _settled_array(array.keys), _settled_array(array.items)
        entry = pa.struct([kind.key_field, kind.item_field])
        buffers, children = array.buffers()[:2], [pa.Array.from_buffers(entry, len(keys), [None], 0, 0, [keys, items])]
    elif pa.types.is_list(kind):
        buffers, children = array.buffers()[:2], [_settled_array(array.values)]
    else:
        return array
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, 0, children)


def _check_timestamps(array: pa.Array, column: str) -> None:
    """Refuses what Java or this module could not read."""
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            _check_timestamps(child, column)
    elif pa.types.is_map(array.type):
        begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        _check_timestamps(array.keys.slice(begin, end - begin), column)
        _check_timestamps(array.items.slice(begin, end - begin), column)
    elif pa.types.is_list(array.type):
        _check_timestamps(array.flatten(), column)
    elif pa.types.is_timestamp(array.type):
        second = _SECOND[array.type.unit]
        values = pc.drop_null(array.view(pa.int64())).to_numpy()
        if (np.where(values < 0, values % second, 0) != 0).any():
            raise InvalidError(
                f"column {column!r} has a timestamp before 1970 with a fraction of a second, which cannot be written to "
                "ORC files; use 'file.format' = 'parquet'"
            )
        if (np.abs(values // second) > _NANOS_REACH_SECONDS).any():
            raise InvalidError(
                f"column {column!r} has a timestamp outside 1677-09-22 to 2262-04-11, which could not be read from ORC "
                "files; use 'file.format' = 'parquet'"
            )


def _read_stripe(file: orc.ORCFile, number: int, names: list[str] | None, where: str) -> pa.RecordBatch:
    try:
        return file.read_stripe(number, columns=names)
    except pa.ArrowInvalid as error:
        if _OUT_OF_RANGE in str(error):
            raise InvalidError(
                f"{where}: {error}; timestamps of ORC files are read from 1677-09-21 to 2262-04-11"
            ) from error
        raise


def _without_padding(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """Java pads CHAR to its length when it writes ORC, and cuts the spaces off when it reads."""
    for field in fields:
        index = batch.schema.get_field_index(field.name)
        batch = batch.set_column(index, field.name, _trimmed(batch.column(index), field.type))
    return batch


def _has_char(data_type: DataType) -> bool:
    match data_type:
        case Atomic(kind):
            return kind is Kind.CHAR
        case Array(element) | Multiset(element):
            return _has_char(element)
        case Map(key, value):
            return _has_char(key) or _has_char(value)
        case Row(fields):
            return any(_has_char(field.type) for field in fields)


def _trimmed(array: pa.Array, data_type: DataType) -> pa.Array:
    children: list[pa.Array]
    match data_type:
        case Atomic(kind):
            return pc.utf8_rtrim(array, " ") if kind is Kind.CHAR else array
        case Row(fields):
            children = [_trimmed(array.field(i), field.type) for i, field in enumerate(fields)]
            return pa.Array.from_buffers(array.type, len(array), array.buffers()[:1], array.null_count, 0, children)
        case Array(element):
            children = [_trimmed(array.values, element)]
        case Multiset() | Map():
            key, value = (data_type.key, data_type.value) if isinstance(data_type, Map) else (data_type.element, None)
            parts = [_trimmed(array.keys, key), _trimmed(array.items, value) if value else array.items]
            entry = pa.struct([array.type.key_field, array.type.item_field])
            children = [pa.Array.from_buffers(entry, len(parts[0]), [None], 0, 0, parts)]
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], array.null_count, 0, children)
