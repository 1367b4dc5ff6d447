"""Avro data files.

Above the `avro` package, beside the Parquet and ORC formats. It owns what a table adds to an Avro container: which
columns the record has, and in which types they come back. The container and the encoding of rows are drawn in
`avro.container` and `avro.encode`, the mapping of types in `avro.logical`. Avro has neither field ids nor statistics:
columns are found by their names.

A file is written as it grows: the header first, then the blocks of each batch, all with the sync marker of the header.
What Java Paimon refuses is refused when the file is opened: MULTISET of anything but strings, TIME and TIMESTAMP with
more digits than three and six, and names that are none in Avro.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro import avro_schema, read_tables, write_table
from lakelet.format.avro.container import read_header
from lakelet.format.avro.encode import random_sync
from lakelet.format.data.data_file_errors import decoding
from lakelet.format.data.data_file_format import FormatWriter, WriteSettings
from lakelet.format.data.restored_columns import restore_batch
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.types import STRINGS, TIMESTAMPS, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row
from lakelet.storage.store import ObjectStore, OutputFile

NAME = "avro"
# The encoded bytes of a file that are decoded at a time.
_DECODED_BYTES = 16 << 20
_TIME_DIGITS, _TIMESTAMP_DIGITS = 3, 6
# Java Paimon carries no library for Avro's other codecs.
_CODECS = {"zstd": "zstandard", "deflate": "deflate", "none": "null"}
_ALIASES = {"zstandard": "zstd", "gzip": "deflate", "zlib": "deflate", "null": "none", "uncompressed": "none"}


class AvroFormat:
    """The row-oriented format."""

    name = NAME

    def open_writer(
        self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, *, without_ranges: frozenset[str]
    ) -> FormatWriter:
        """Starts an Avro file; it has no ranges that could be left out."""
        return _Writer(output, fields, settings)

    def read(
        self, store: ObjectStore, path: str, fields: Sequence[Field], columns: Sequence[str], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, out of the bytes of the whole file, some blocks at a time: rows of a block cannot be skipped."""
        wanted = [field for field in fields if field.name in columns]
        schema = pa.schema([(field.name, to_arrow(field.type)) for field in wanted])
        where = f"{store.location}/{path}"
        for table in read_tables(store.get(path), path=where, columns=schema.names, batch_bytes=_DECODED_BYTES):
            if missing := [name for name in schema.names if name not in table.column_names]:
                raise CorruptionError(f"{where}: column {', '.join(missing)} is not in the Avro file")
            for chunk in table.to_batches():
                with decoding(store, path, "Avro"):
                    batch = restore_batch(chunk, schema)
                for begin in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(begin, batch_rows)


class _Writer:
    def __init__(self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings) -> None:
        check_avro_fields(fields)
        self._output = output
        self._codec = avro_codec(settings.compression)
        self._level = settings.compression_level if self._codec == "zstandard" else None
        self._arrow = arrow_schema(fields)
        self._schema = avro_schema(self._arrow)
        self._sync = random_sync()
        output.write(self._encoded(self._arrow.empty_table()))

    def write(self, table: pa.Table) -> None:
        data = self._encoded(table)
        self._output.write(data[read_header(data, path=NAME).size :])

    def size(self) -> int:
        return self._output.tell()

    def close(self) -> None:
        """Nothing ends an Avro file."""

    def _encoded(self, table: pa.Table) -> bytes:
        return write_table(table, self._schema, codec=self._codec, codec_level=self._level, sync=self._sync)


def check_avro_fields(fields: Sequence[Field]) -> None:
    """InvalidError if an Avro file cannot hold these columns."""
    for field in fields:
        _check_name(field.name, field.name)
        _check_type(field.type, field.name)


def avro_codec(name: str) -> str:
    """Avro's name of a `file.compression` value."""
    lower = name.lower()
    lower = _ALIASES.get(lower, lower)
    if lower not in _CODECS:
        expected = ", ".join(sorted(_CODECS))
        raise InvalidError(f"option 'file.compression': expected one of {expected} for Avro, found {name!r}")
    return _CODECS[lower]


def _check_name(name: str, where: str) -> None:
    letters = name.replace("_", "a")
    if not letters.isalnum() or not letters[0].isalpha():
        raise InvalidError(
            f"column {where!r}: a name in an Avro file has letters, digits and underscores, not {name!r}"
        )


def _check_type(data_type: DataType, where: str) -> None:
    match data_type:
        case Atomic(kind, precision):
            digits = _TIME_DIGITS if kind is Kind.TIME else _TIMESTAMP_DIGITS if kind in TIMESTAMPS else precision
            if precision > digits:
                raise InvalidError(
                    f"column {where!r}: Avro files hold {kind.value} of at most {digits} digits, not {data_type}"
                )
        case Array(element):
            _check_type(element, f"{where}.element")
        case Multiset(element):
            if not (isinstance(element, Atomic) and element.kind in STRINGS):
                raise InvalidError(f"column {where!r}: Avro files hold a MULTISET of strings only, not {data_type}")
        case Map(key, value):
            _check_type(key, f"{where}.key")
            _check_type(value, f"{where}.value")
        case Row(fields):
            for field in fields:
                _check_name(field.name, f"{where}.{field.name}")
                _check_type(field.type, f"{where}.{field.name}")
