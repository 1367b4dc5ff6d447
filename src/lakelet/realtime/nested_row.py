"""Encode a few rows of Python values without Arrow, nested ones included: keys, values and records of a log.

Only what needs no cast is taken (`format/rows/row_packer`); rows and nested rows name all their fields. Anything else is left to
the columns, and so is every error. A few rows take a fraction of the time: columns cost a millisecond or more, however few rows
they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakelet.format.rows.row_packer import NotPlainError, RowPacker
from lakelet.format.wal.wal_record import PUT, encode_record
from lakelet.lsm.plain_key import PlainKey, plain_key
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic, DataType, Kind
from lakelet.realtime.row_encoder import EncodedRows

# From about here on columns are as quick.
MOST_NESTED_ROWS = 192
_PUT = bytes((PUT,))


class NestedRows:
    """Encodes rows of one schema; `of` gives None for a schema with other columns."""

    def __init__(self, schema: TableSchema, packer: RowPacker, key_parts: list[PlainKey], most_bytes: int) -> None:
        self._schema_id = schema.id
        self._packer = packer
        self._key = list(zip(schema.primary_keys, key_parts, strict=True))
        self._most_bytes = most_bytes

    @staticmethod
    def of(schema: TableSchema, most_bytes: int) -> NestedRows | None:
        """For a schema all of whose columns are taken; partitions are days alone, whose folders have short names."""
        packer = RowPacker.of(schema.fields)
        last = len(schema.primary_keys) - 1
        parts = [
            plain_key(schema.field(name).type, is_last=place == last) for place, name in enumerate(schema.primary_keys)
        ]
        days = all(_is_kind(schema.field(name).type, Kind.DATE) for name in schema.partition_keys)
        if not days or packer is None or None in parts:
            return None
        return NestedRows(schema, packer, [one for one in parts if one], most_bytes)

    def encode(self, rows: Sequence[Mapping[str, object]]) -> EncodedRows | None:
        """The keys, values and records of rows; None where one of them is left to the columns."""
        keys: list[bytes] = []
        values: list[bytes] = []
        records: list[bytes] = []
        pack = self._packer.pack
        try:
            for row in rows:
                encoded = pack(row)
                key = self._key_bytes(row) if self._key else b""
                record = encode_record(PUT, key, encoded)
                if len(record) > self._most_bytes:
                    return None
                keys.append(key)
                values.append(_PUT + encoded)
                records.append(record)
        except NotPlainError:
            return None
        return EncodedRows(self._schema_id, keys, values, b"".join(records))

    def _key_bytes(self, row: Mapping[str, object]) -> bytes:
        parts = [encode(row[name]) for name, encode in self._key]
        if None in parts:
            raise NotPlainError
        return b"".join(part for part in parts if part is not None)


def _is_kind(data_type: DataType, kind: Kind) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind is kind
