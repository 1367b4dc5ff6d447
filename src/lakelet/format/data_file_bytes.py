"""Serialise data file metadata, as Paimon sends it between processes.

    length      int32, big-endian, of the body
    body        a row of 20 fields without its arity (`binary_row`, `nested_rows`)

     0 name                 STRING          10 level                INT
     1 size                 BIGINT          11 extra files          ARRAY<STRING>
     2 row count            BIGINT          12 creation time        TIMESTAMP(3), may be NULL
     3 minimum key          BYTES *         13 delete row count     BIGINT, may be NULL
     4 maximum key          BYTES *         14 embedded file index  BYTES, may be NULL
     5 key statistics       ROW **          15 source               TINYINT, may be NULL
     6 value statistics     ROW **          16 statistics' columns  ARRAY<STRING>, may be NULL
     7 minimum sequence     BIGINT          17 external path        STRING, may be NULL
     8 maximum sequence     BIGINT          18 first row id         BIGINT, may be NULL
     9 schema id            BIGINT          19 written columns      ARRAY<STRING>, may be NULL

    *  a BinaryRow with its arity in front, as in manifests
    ** minimum values BYTES *, maximum values BYTES *, NULL counts ARRAY<BIGINT>, which and whose elements may be NULL

These are the bytes of Java Paimon 1.4.2; later versions have a 21st field, and another version number of the enclosing message.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from lakelet.errors import CorruptionError
from lakelet.format.rows.nested_rows import (
    Fields,
    byte_cell,
    bytes_cell,
    encode_array,
    encode_body,
    int_cell,
    long_cell,
    nested_cell,
    text_cell,
)
from lakelet.model.data_file import DataFile, Stats

_LENGTH = struct.Struct(">i")
_ARITY = 20
_STATS_ARITY = 3


def encode_data_file(file: DataFile) -> bytes:
    """The bytes of a file, with their length in front."""
    return with_length(
        encode_body(
            [
                text_cell(file.name),
                long_cell(file.size),
                long_cell(file.row_count),
                bytes_cell(file.min_key),
                bytes_cell(file.max_key),
                nested_cell(_encode_stats(file.key_stats)),
                nested_cell(_encode_stats(file.value_stats)),
                long_cell(file.min_sequence),
                long_cell(file.max_sequence),
                long_cell(file.schema_id),
                int_cell(file.level),
                nested_cell(_encode_texts(file.extra_files)),
                long_cell(file.creation_ms),
                long_cell(file.delete_row_count),
                bytes_cell(file.embedded_index),
                byte_cell(file.source),
                nested_cell(_encode_texts(file.value_stats_columns)),
                text_cell(file.external_path),
                long_cell(file.first_row_id),
                nested_cell(_encode_texts(file.write_columns)),
            ]
        )
    )


def decode_data_file(body: bytes, *, where: str) -> DataFile:
    """The inverse, of the body alone; errors name `where`."""
    row = Fields.of_body(body, _ARITY, where=where)
    missing = [index for index in range(12) if row.is_null(index)]
    if missing:
        raise CorruptionError(f"{where}: fields {missing} of a data file are NULL, which they never are")
    return DataFile(
        row.text_at(0),
        row.long_at(1),
        row.long_at(2),
        row.bytes_at(3),
        row.bytes_at(4),
        _decode_stats(row.nested_at(5), where),
        _decode_stats(row.nested_at(6), where),
        row.long_at(7),
        row.long_at(8),
        row.long_at(9),
        row.int_at(10),
        _decode_texts(row.nested_at(11), where),
        row.optional(row.long_at, 12),
        row.optional(row.long_at, 13),
        row.optional(row.bytes_at, 14),
        row.optional(row.byte_at, 15),
        _optional_texts(row, 16),
        row.optional(row.text_at, 17),
        row.optional(row.long_at, 18),
        _optional_texts(row, 19),
    )


def with_length(body: bytes) -> bytes:
    """Bytes with their length in front."""
    return _LENGTH.pack(len(body)) + body


def _encode_stats(stats: Stats) -> bytes:
    counts = None if stats.null_counts is None else encode_array([long_cell(count) for count in stats.null_counts])
    return encode_body([bytes_cell(stats.min_values), bytes_cell(stats.max_values), nested_cell(counts)])


def _decode_stats(body: bytes, where: str) -> Stats:
    row = Fields.of_body(body, _STATS_ARITY, where=f"{where}: statistics")
    if row.is_null(0) or row.is_null(1):
        raise CorruptionError(f"{row.where}: the minimum or maximum values are NULL, which they never are")
    if row.is_null(2):
        return Stats(row.bytes_at(0), row.bytes_at(1), None)
    counts = Fields.of_array(row.nested_at(2), where=row.where)
    return Stats(
        row.bytes_at(0), row.bytes_at(1), tuple(counts.optional(counts.long_at, index) for index in range(len(counts)))
    )


def _encode_texts(texts: Sequence[str] | None) -> bytes | None:
    return None if texts is None else encode_array([text_cell(text) for text in texts])


def _decode_texts(data: bytes, where: str) -> tuple[str, ...]:
    array = Fields.of_array(data, where=where)
    if any(array.is_null(index) for index in range(len(array))):
        raise CorruptionError(f"{where}: a list of names has a NULL in it")
    return tuple(array.text_at(index) for index in range(len(array)))


def _optional_texts(row: Fields, index: int) -> tuple[str, ...] | None:
    return None if row.is_null(index) else _decode_texts(row.nested_at(index), row.where)
