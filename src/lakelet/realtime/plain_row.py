"""Encode one row of plain Python values without Arrow: for a single put that takes a fraction of the time.

Only what needs no cast is taken: whole numbers in their range, booleans, floats that are numbers, text and bytes without a limit
of their own. The bytes are those of the columns (`binary_row_columns`, `lsm/plain_key`); anything else is left to them, and so is
every error.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from lakelet.format.rows.binary_row import decode_row
from lakelet.format.rows.row_packer import NotPlainError, RowPacker
from lakelet.lsm.plain_key import INTEGER_BYTES, PlainKey, plain_key, plain_keys
from lakelet.model.schema import TableSchema
from lakelet.model.types import MAX_LENGTH, Atomic, DataType, Kind

_WHERE = "a memtable"


class PlainRows:
    """Encodes rows of one schema; `of` gives None for a schema that has other columns."""

    def __init__(self, schema: TableSchema, packer: RowPacker, key_parts: list[PlainKey]) -> None:
        self._names = schema.names
        self._types = [field.type for field in schema.fields]
        self._pack = packer.pack
        self._key = list(zip(schema.primary_keys, key_parts, strict=True))
        # One call for all keys, where they have one column.
        self._encode_many = plain_keys(schema.field(schema.primary_keys[0]).type) if len(self._key) == 1 else None

    @staticmethod
    def of(schema: TableSchema) -> PlainRows | None:
        """For a schema all of whose columns are plain, without partitions."""
        packer = RowPacker.of(schema.fields) if all(_is_plain(field.type) for field in schema.fields) else None
        last = len(schema.primary_keys) - 1
        parts = [
            plain_key(schema.field(name).type, is_last=place == last) for place, name in enumerate(schema.primary_keys)
        ]
        if schema.partition_keys or packer is None or None in parts:
            return None
        return PlainRows(schema, packer, [one for one in parts if one])

    def encode(self, row: Mapping[str, object]) -> tuple[bytes, bytes] | None:
        """The key and the row with its arity in front; None where it is not plain or not whole."""
        try:
            encoded = self._pack(row)
            key = self._key_bytes(row)
        except NotPlainError:
            return None
        return None if key is None else (key, encoded)

    def encode_key(self, key: Mapping[str, object]) -> bytes | None:
        """The bytes of a primary key; None where it is not plain or not whole."""
        if not self._key or len(key) != len(self._key):
            return None
        try:
            return self._key_bytes(key)
        except KeyError:
            return None

    def encode_keys(self, keys: object) -> list[bytes] | None:
        """The bytes of the primary keys in a list of dicts; None where one is not plain or not whole."""
        if not self._key or type(keys) is not list or set(map(type, keys)) != {dict}:
            return None
        if self._encode_many is None:
            encoded = [self.encode_key(key) for key in keys]
            return None if None in encoded else [one for one in encoded if one is not None]
        name = self._key[0][0]
        if set(map(len, keys)) != {1}:
            return None
        joined = self._encode_many([key.get(name) for key in keys])
        if joined is None:
            return None
        data, at = joined
        return [data[begin:end] for begin, end in itertools.pairwise(at.tolist())]

    def decode(self, row: bytes) -> dict[str, Any]:
        """The values of a row by column."""
        return dict(zip(self._names, decode_row(row, self._types, where=_WHERE), strict=True))

    def _key_bytes(self, row: Mapping[str, object]) -> bytes | None:
        if len(self._key) == 1:
            ((name, encode),) = self._key
            return encode(row[name])
        parts: list[bytes] = []
        for name, encode in self._key:
            part = encode(row[name])
            if part is None:
                return None
            parts.append(part)
        return b"".join(parts)


def _is_plain(data_type: DataType) -> bool:
    """Whether values of a type are packed and read here."""
    if not isinstance(data_type, Atomic):
        return False
    if data_type.kind in (Kind.VARCHAR, Kind.VARBINARY):
        return data_type.precision == MAX_LENGTH
    return data_type.kind in INTEGER_BYTES or data_type.kind in (Kind.BOOLEAN, Kind.DOUBLE)
