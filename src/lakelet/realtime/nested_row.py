"""Encode a few rows of Python values without Arrow, nested ones included: the bytes of `binary_row_columns` and `nested_columns`.

    ROW      a BinaryRow of its fields, its arity in front
    ARRAY    count, ends of the elements, each element a BinaryRow of one field; numbers of 4 bytes, little-endian

Only what needs no cast is taken, as in `plain_row`, and besides dates and moments in UTC; rows and nested rows name all their
fields. Anything else is left to the columns, and so is every error. A few rows take a fraction of the time: columns cost a
millisecond or more, however few rows they have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import encode_row
from lakelet.format.rows.nested_columns import stored_types
from lakelet.format.wal.wal_record import PUT, encode_record
from lakelet.lsm.plain_key import PlainKey, plain_key
from lakelet.model.schema import TableSchema
from lakelet.model.types import Array, Atomic, DataType, Kind, Row
from lakelet.realtime.plain_row import fits_plainly
from lakelet.realtime.row_encoder import EncodedRows

_MICROSECONDS = 6
# From about here on columns are as quick.
MOST_NESTED_ROWS = 32


class _OtherError(Exception):
    """A value that is left to the columns."""


Stored = Callable[[Any], Any]


class NestedRows:
    """Encodes rows of one schema; `of` gives None for a schema with other columns."""

    def __init__(self, schema: TableSchema, columns: list[Stored], key_parts: list[PlainKey], most_bytes: int) -> None:
        self._schema_id = schema.id
        self._names = schema.names
        self._columns = list(zip(schema.names, columns, strict=True))
        self._types = stored_types([field.type for field in schema.fields])
        self._key = list(zip(schema.primary_keys, key_parts, strict=True))
        self._most_bytes = most_bytes

    @staticmethod
    def of(schema: TableSchema, most_bytes: int) -> NestedRows | None:
        """For a schema all of whose columns are taken; partitions are days alone, whose folders have short names."""
        columns = [_stored(field.type) for field in schema.fields]
        last = len(schema.primary_keys) - 1
        parts = [
            plain_key(schema.field(name).type, is_last=place == last) for place, name in enumerate(schema.primary_keys)
        ]
        days = all(_is_kind(schema.field(name).type, Kind.DATE) for name in schema.partition_keys)
        if not days or None in columns or None in parts:
            return None
        return NestedRows(schema, [one for one in columns if one], [one for one in parts if one], most_bytes)

    def encode(self, rows: Sequence[Mapping[str, object]]) -> EncodedRows | None:
        """The keys, values and records of rows; None where one of them is left to the columns."""
        keys: list[bytes] = []
        values: list[bytes] = []
        records: list[bytes] = []
        try:
            for row in rows:
                if len(row) != len(self._names):
                    return None
                encoded = encode_row([stored(row[name]) for name, stored in self._columns], self._types)
                key = self._key_bytes(row)
                record = encode_record(PUT, key, encoded)
                if len(record) > self._most_bytes:
                    return None
                keys.append(key)
                values.append(b"%c%b" % (PUT, encoded))
                records.append(record)
        except (_OtherError, KeyError, UnicodeEncodeError, InvalidError):
            return None
        return EncodedRows(self._schema_id, keys, values, b"".join(records))

    def _key_bytes(self, row: Mapping[str, object]) -> bytes:
        parts = [encode(row[name]) for name, encode in self._key]
        if None in parts:
            raise _OtherError
        return b"".join(part for part in parts if part is not None)


def _stored(data_type: DataType) -> Stored | None:
    """A function from a value to what is stored of it; None for types that are left to the columns."""
    match data_type:
        case Atomic(kind=Kind.TIMESTAMP_LTZ, precision=precision) if precision == _MICROSECONDS:
            return _only(lambda value: type(value) is datetime and value.tzinfo is UTC, nullable=data_type.nullable)
        case Atomic(kind=Kind.DATE):
            return _only(lambda value: type(value) is date, nullable=data_type.nullable)
        case Atomic():
            fits = fits_plainly(data_type)
            return None if fits is None else _only(fits, nullable=data_type.nullable)
        case Row(fields):
            columns = [_stored(field.type) for field in fields]
            if not fields or None in columns:
                return None
            named = [(field.name, one) for field, one in zip(fields, columns, strict=True) if one]
            types = stored_types([field.type for field in fields])
            return lambda value: _row(value, named, types, nullable=data_type.nullable)
        case Array(element):
            inner = _stored(element)
            if inner is None:
                return None
            element_types = stored_types([element])
            return lambda value: _array(value, inner, element_types, nullable=data_type.nullable)
    return None


def _only(fits: Callable[[Any], bool], *, nullable: bool) -> Stored:
    def stored(value: Any) -> Any:
        if (value is None and not nullable) or (value is not None and not fits(value)):
            raise _OtherError
        return value

    return stored


def _row(
    value: Any, columns: Sequence[tuple[str, Stored]], types: Sequence[DataType], *, nullable: bool
) -> bytes | None:
    if value is None and nullable:
        return None
    if type(value) is not dict or len(value) != len(columns):
        raise _OtherError
    return encode_row([stored(value[name]) for name, stored in columns], types)


def _array(value: Any, inner: Stored, types: Sequence[DataType], *, nullable: bool) -> bytes | None:
    if value is None and nullable:
        return None
    if type(value) is not list:
        raise _OtherError
    elements = [encode_row([inner(one)], types) for one in value]
    ends, end = [], 0
    for element in elements:
        end += len(element)
        ends.append(end)
    return struct.pack(f"<{1 + len(ends)}i", len(ends), *ends) + b"".join(elements)


def _is_kind(data_type: DataType, kind: Kind) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind is kind
