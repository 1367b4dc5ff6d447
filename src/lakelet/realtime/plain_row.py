"""Encode one row of plain Python values without Arrow: for a single put that takes a fraction of the time.

Only what needs no cast is taken: whole numbers in their range, booleans, floats that are numbers, text and bytes without a limit
of their own. The bytes are those of the columns (`binary_row_columns`, `lsm/key_bytes`); anything else is left to them, and so is
every error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import decode_row, encode_row
from lakelet.model.schema import TableSchema
from lakelet.model.types import MAX_LENGTH, Atomic, DataType, Kind

_WHERE = "a memtable"
_WIDTHS = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.BIGINT: 8}
_TEXTS: dict[Kind, type] = {Kind.VARCHAR: str, Kind.VARBINARY: bytes}

Fits = Callable[[Any], bool]
KeyPart = Callable[[Any], bytes]


class PlainRows:
    """Encodes rows of one schema; `of` gives None for a schema that has other columns."""

    def __init__(self, schema: TableSchema, fits: list[Fits], key_parts: list[KeyPart]) -> None:
        self._names = schema.names
        self._types = [field.type for field in schema.fields]
        self._fits = fits
        self._key = list(zip([schema.names.index(name) for name in schema.primary_keys], key_parts, strict=True))

    @staticmethod
    def of(schema: TableSchema) -> PlainRows | None:
        """For a schema all of whose columns are plain, without partitions."""
        fits = [_fits(field.type) for field in schema.fields]
        last = len(schema.primary_keys) - 1
        parts = [_key_part(schema.field(name).type, place == last) for place, name in enumerate(schema.primary_keys)]
        if schema.partition_keys or None in fits or None in parts:
            return None
        return PlainRows(schema, [one for one in fits if one], [one for one in parts if one])

    def encode(self, row: Mapping[str, object]) -> tuple[bytes, bytes] | None:
        """The key and the row with its arity in front; None where it is not plain or not whole."""
        if len(row) != len(self._names):
            return None
        values = []
        try:
            for name, fits in zip(self._names, self._fits, strict=True):
                value = row[name]
                if not fits(value):
                    return None
                values.append(value)
            key = b"".join([part(values[place]) for place, part in self._key])
            return key, encode_row(values, self._types)
        except (KeyError, UnicodeEncodeError, InvalidError):
            return None

    def encode_key(self, key: Mapping[str, object]) -> bytes | None:
        """The bytes of a primary key; None where it is not plain or not whole."""
        if not self._key or len(key) != len(self._key):
            return None
        try:
            values = [(key[self._names[place]], place, part) for place, part in self._key]
            if not all(self._fits[place](value) for value, place, _ in values):
                return None
            return b"".join([part(value) for value, _, part in values])
        except (KeyError, UnicodeEncodeError):
            return None

    def decode(self, row: bytes) -> dict[str, Any]:
        """The values of a row by column."""
        return dict(zip(self._names, decode_row(row, self._types, where=_WHERE), strict=True))


def _fits(data_type: DataType) -> Fits | None:
    """Whether a value needs no cast to be one of a type; None for types of which this is not decided here."""
    if not isinstance(data_type, Atomic):
        return None
    kind, nullable = data_type.kind, data_type.nullable
    if kind in _WIDTHS:
        least, beyond = -(1 << 8 * _WIDTHS[kind] - 1), 1 << 8 * _WIDTHS[kind] - 1
        return lambda value: least <= value < beyond if type(value) is int else value is None and nullable
    if kind is Kind.BOOLEAN:
        return lambda value: type(value) is bool or (value is None and nullable)
    if kind is Kind.DOUBLE:
        # A NaN may have other bits in Python.
        return lambda value: value == value if type(value) is float else value is None and nullable  # noqa: PLR0124
    if kind in _TEXTS and data_type.precision == MAX_LENGTH:
        wanted = _TEXTS[kind]
        return lambda value: type(value) is wanted or (value is None and nullable)
    return None


def _key_part(data_type: DataType, is_last: bool) -> KeyPart | None:
    """The bytes of a key column, as `lsm/key_bytes` has them."""
    if not isinstance(data_type, Atomic):
        return None
    if data_type.kind in _WIDTHS:
        width = _WIDTHS[data_type.kind]
        shift = 1 << 8 * width - 1
        return lambda value: (value + shift).to_bytes(width, "big")
    if data_type.kind is Kind.BOOLEAN:
        return lambda value: b"\x01" if value else b"\x00"
    if data_type.kind is Kind.VARCHAR:
        return str.encode if is_last else lambda value: _ended(value.encode())
    if data_type.kind is Kind.VARBINARY:
        return bytes if is_last else _ended
    return None


def _ended(text: bytes) -> bytes:
    return text.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
