"""Encode rows for a log and a memtable: anything that `Table.write` takes in, keys, values and log records out.

Rows are cast and checked here as by a write, so that a row that was acknowledged can be committed later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError, TooLargeError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.format.rows.few_rows import MOST_ROWS
from lakelet.format.rows.nested_columns import stored_columns, stored_types
from lakelet.format.wal.wal_group import WalKey, encode_group
from lakelet.format.wal.wal_record import DELETE, PUT, encode_record, encode_records, record_sizes
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.options import WRITE_MISSING_COLUMNS
from lakelet.realtime.arrivals import LEAST_BLOCK_ROWS, RowBlock, row_block
from lakelet.realtime.memtable import Memtable
from lakelet.realtime.plain_row import PlainRows
from lakelet.sink.rows.batch_slices import pieces
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.sink.rows.missing_columns import ERROR, KEEP, missing_columns, missing_policy, rows_apart
from lakelet.sink.rows.row_input import batches_of
from lakelet.storage.home import TableHome

_PIECE_BYTES = 4 << 20
_PIECE_ROWS = 1 << 16
_LONGEST_NAME = 255
_PUT = bytes((PUT,))


class EncodedRows(NamedTuple):
    """Rows for one memtable, and their records for its log; `write_keys` are the names of the writes that they come from. In a
    table without a primary key rows may be in `blocks` instead of `values`."""

    schema_id: int
    keys: list[bytes]
    values: list[bytes]
    records: bytes
    write_keys: tuple[WalKey, ...] = ()
    blocks: tuple[RowBlock, ...] = ()

    @property
    def row_count(self) -> int:
        """The number of rows."""
        if not self.blocks:
            return len(self.values)
        return len(self.values) + sum(len(block.rows) for block in self.blocks)

    @property
    def logged(self) -> bytes:
        """What the log gets: the records as one group, of which a replay takes all or none."""
        if len(self.values) == 1 and not self.write_keys and not self.blocks:
            return self.records
        return encode_group(self.records, self.row_count, self.write_keys)

    @property
    def deletes(self) -> bool:
        """Whether these are deletions, of which there are no others beside."""
        return bool(self.values) and self.values[0][0] == DELETE

    def apply_to(self, memtable: Memtable) -> None:
        """Put the rows into a memtable."""
        for block in self.blocks:
            memtable.apply_block(block)
        memtable.apply(self.keys, self.values)

    def keys_are_apart(self, others: Sequence[bytes]) -> bool:
        """Whether none of some keys is among these."""
        return not any(key in self.keys for key in others)


def encoded_together(parts: Sequence[EncodedRows], schema_id: int) -> EncodedRows:
    """Rows of one schema, encoded in parts, as one."""
    if len(parts) == 1:
        return parts[0]
    keys = [key for part in parts for key in part.keys]
    values = [value for part in parts for value in part.values]
    blocks = tuple(block for part in parts for block in part.blocks)
    return EncodedRows(schema_id, keys, values, b"".join(part.records for part in parts), blocks=blocks)


class RowEncoder:
    """Encodes rows of one schema; used by one call at a time."""

    def __init__(self, home: TableHome, schema: TableSchema, most_bytes: int) -> None:
        self.schema = schema
        self._most_bytes = most_bytes
        self._missing = missing_policy(None, schema, replaces=False)
        self._defaults = ColumnDefaults.now(schema, home.clock)
        self._caster = RowCaster(schema.fields, self._defaults)
        self._arrow = arrow_schema(schema.fields)
        self._types = [field.type for field in schema.fields]
        self._stored_types = stored_types(self._types)
        self._key_types = [schema.field(name).type for name in schema.primary_keys]
        self._folders = PartitionFolders(home.paths, schema)
        self.plain = PlainRows.of(schema)

    def batches(self, data: Any) -> Iterator[pa.RecordBatch]:
        """The rows in the table's columns, in pieces that fit a memtable; InvalidError for what does not fit the table."""
        rows = 0
        apart = rows_apart(self._missing, None)
        for whole in batches_of(data, self._arrow, self.schema.fields, apart=apart, defaults=self._defaults):
            for piece in pieces(whole, min(_PIECE_BYTES, self._most_bytes), _PIECE_ROWS):
                self._check_columns(piece, rows)
                cast = self._caster.cast(piece, first_row=rows)
                self._check_partitions(cast)
                rows += piece.num_rows
                if piece.num_rows:
                    yield cast

    def encode_plain(self, row: Mapping[str, object]) -> EncodedRows | None:
        """One whole row of plain values, without Arrow; None for any other, which `batches` and `encode` take or refuse."""
        found = None if self.plain is None else self.plain.encode(row)
        if found is None:
            return None
        key, encoded = found
        record = encode_record(PUT, key, encoded)
        self._check_size(len(record))
        return EncodedRows(self.schema.id, [key], [_PUT + encoded], record)

    @property
    def has_expressions(self) -> bool:
        """Whether values of defaults depend on the time of the call."""
        return bool(self._defaults.expressions)

    def cast(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that have all columns, checked once more."""
        return self._caster.cast(rows)

    def encode(self, rows: pa.RecordBatch, record_type: int = PUT) -> EncodedRows:
        """The keys, values and records of rows in the table's columns."""
        if rows.num_rows <= MOST_ROWS:
            return self._encode_few(rows, record_type)
        if not self._key_types:
            return self._encode_arrivals(rows, record_type)
        names = self.schema.primary_keys
        keys = encode_key_bytes([rows.column(name) for name in names], self._key_types).cast(pa.large_binary())
        encoded = self._encoded(rows)
        self._check_size(int(record_sizes(keys, encoded).max()))
        prefix = pa.scalar(bytes((record_type,)), pa.large_binary())
        values = pc.binary_join_element_wise(prefix, encoded.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()))
        records = encode_records(record_type, keys, encoded)
        return EncodedRows(self.schema.id, keys.to_pylist(), values.to_pylist(), records)

    def _encode_arrivals(self, rows: pa.RecordBatch, record_type: int) -> EncodedRows:
        """The same without keys: what the log has is made of the rows, and the memtable gets them as they are."""
        keys, encoded = _no_keys(rows.num_rows), self._encoded(rows)
        self._check_size(int(record_sizes(keys, encoded).max()))
        records = encode_records(record_type, keys, encoded)
        if rows.num_rows < LEAST_BLOCK_ROWS or record_type != PUT:
            prefix = bytes((record_type,))
            values = [prefix + row for row in encoded.to_pylist()]
            return EncodedRows(self.schema.id, [b""] * rows.num_rows, values, records)
        block = row_block(rows, self.schema, encoded.nbytes + rows.num_rows)
        return EncodedRows(self.schema.id, [], [], records, blocks=(block,))

    def _encode_few(self, rows: pa.RecordBatch, record_type: int) -> EncodedRows:
        """The same, row by row: for one row that takes a tenth of the time."""
        columns = [rows.column(name) for name in self.schema.primary_keys]
        keys = encode_key_bytes(columns, self._key_types).to_pylist() if columns else [b""] * rows.num_rows
        encoded = self._encoded(rows).to_pylist()
        records = [encode_record(record_type, key, row) for key, row in zip(keys, encoded, strict=True)]
        self._check_size(max(map(len, records)))
        prefix = bytes((record_type,))
        return EncodedRows(self.schema.id, keys, [prefix + row for row in encoded], b"".join(records))

    def _encoded(self, rows: pa.RecordBatch) -> pa.Array:
        return encode_rows(stored_columns(rows.columns, self._types), self._stored_types)

    def _check_size(self, greatest: int) -> None:
        if greatest > self._most_bytes:
            raise TooLargeError(
                f"a row takes {greatest} bytes, more than a memtable holds; expected at most {self._most_bytes} (option "
                "'memtable.size')"
            )

    def _check_columns(self, rows: pa.RecordBatch, first_row: int) -> None:
        if self._missing not in (ERROR, KEEP):
            return
        self._caster.check_names(rows.schema)
        lacking = missing_columns(rows.schema, self.schema.fields)
        if not lacking:
            return
        if self._missing == KEEP:
            raise InvalidError(
                f"the data lacks {', '.join(lacking)}: a writer takes whole rows and cannot keep stored values (option "
                "'write.missing-columns' = 'keep'); write() does"
            )
        from_row = f" from row {first_row} on" if first_row else ""
        named = f"{'column' if len(lacking) == 1 else 'columns'} {', '.join(map(repr, lacking))}"
        raise InvalidError(
            f"the data lacks {named}{from_row}, and a writer takes whole rows: give the values, or set the table option "
            f"'{WRITE_MISSING_COLUMNS.name}' = 'default' (the column's default, else NULL)"
        )

    def _check_partitions(self, rows: pa.RecordBatch) -> None:
        """Refuse values that no folder can be named after, which a flush would find too late."""
        names = self.schema.partition_keys
        if not names:
            return
        partitions = encode_rows([rows.column(name) for name in names], self.schema.partition_types).unique()
        for partition in partitions.to_pylist():
            for part in self._folders.partition_path(partition).split("/"):
                if len(part.encode()) > _LONGEST_NAME:
                    raise InvalidError(f"partition {part[:40]!r}…: a folder's name has at most {_LONGEST_NAME} bytes")


def _no_keys(count: int) -> pa.Array:
    return pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(bytes(8 * (count + 1))), pa.py_buffer(b"")]
    )
