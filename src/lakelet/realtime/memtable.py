"""A memtable: the newest row of each key, or rows in the order of their arrival where the table has no key.

    ACTIVE ── IMMUTABLE ── FLUSHING ── FLUSHED
    puts      waits        commits     its log is deleted

An entry is a key in bytes (`lsm/key_bytes`) and a value, the type of its log record followed by its row. Its size is that of key
and row, of its metadata, and 40 bytes for its place in the map; a newer row of a key takes the place and the size of the older,
except in a `first-row` table, where the older one stays, and in one with `sequence.field`, where the one with the greater
sequence does, the later of two with the same. A table whose engine folds keeps every version of a key.
A dict is sorted once, when it is flushed, which costs less than a structure that is in order at every put.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.format.rows.few_rows import MOST_ROWS, decode_few_rows
from lakelet.format.rows.nested_columns import restored_columns, stored_types
from lakelet.format.wal.wal_group import WalKey
from lakelet.format.wal.wal_record import DELETE
from lakelet.lsm.engine.merge_engine import FIRST_ROW
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.version_bytes import encode_version_bytes
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.options import FOLDING, MERGE_ENGINE, SEQUENCE_FIELD, TableOptions
from lakelet.realtime.arrivals import Arrivals, RowBlock, memory_schema

ENTRY_BYTES = 40
# The sequence number and the timestamp; the type of the record is counted with the value.
METADATA_BYTES = 16
# The objects that hold the name of a write.
WRITE_KEY_BYTES = 250
_FEW_ROWS = 32
_WHERE = "a write-ahead log"
# The rows of a memtable: its values, those of a table without a primary key in the order in which they came.
HeldRows: TypeAlias = "Sequence[bytes] | Arrivals"


class MemtableState(Enum):
    """The life of a memtable."""

    ACTIVE = "active"
    IMMUTABLE = "immutable"
    FLUSHING = "flushing"
    FLUSHED = "flushed"


class Memtable:
    """The rows of one log. The caller serialises changes."""

    def __init__(self, sequence_number: int, schema: TableSchema, create_timestamp: int) -> None:
        self.sequence_number = sequence_number
        self.schema = schema
        self.create_timestamp = create_timestamp
        self.state = MemtableState.ACTIVE
        self.memory_size = 0
        # The newest snapshot before the first attempt to flush, or an older one; the one that has the rows, once it is known.
        self.flush_base: int | None = None
        self.committed_in: int | None = None
        # Whether a thread has taken it to flush it, until it is committed.
        self.is_taken = False
        self._newest: dict[bytes, bytes] = {}
        # Values, or whole batches, in the order in which they came.
        self._arrivals: list[list[bytes] | pa.RecordBatch] = []
        self._arrived = 0
        self._keyed = bool(schema.primary_keys)
        self.folds = folds(schema)
        # In a folding table the versions of each key, in the order of their arrival.
        self._versions: dict[bytes, list[bytes]] = {}
        # The keys that it deletes. No row follows in the same memtable (`wal/log_writer`).
        self.deleted: set[bytes] = set()
        self.keeps_first = keeps_first(schema)
        self.is_sequenced = is_sequenced(schema)
        self._merge = MergeSpec.of(schema) if self.is_sequenced else None
        # Whether the row of a key depends on what older memtables and the snapshot hold of it.
        self.depends_on_others = self.keeps_first or self.is_sequenced or self.folds
        self._is_plain = self._keyed and not self.depends_on_others
        self._sequences: dict[bytes, bytes] = {}
        # The names of the writes in the log, so that one that is repeated is recognised.
        self.write_keys: dict[bytes, WalKey] = {}

    def __len__(self) -> int:
        return len(self._newest) if self._keyed and not self.folds else self._arrived

    def apply_block(self, block: RowBlock) -> None:
        """Take a batch of rows as columns, for a table without a primary key."""
        self._arrivals.append(block.rows)
        self._arrived += block.rows.num_rows
        self.memory_size += block.size_bytes + block.rows.num_rows * (ENTRY_BYTES + METADATA_BYTES)

    def apply(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Take rows, the later of two with one key last."""
        if not values:
            return
        if self._is_plain and len(values) <= _FEW_ROWS:
            self._put_few(keys, values)
            return
        if not self._keyed or self.folds:
            self._arrive(values)
            self.memory_size += _size(keys, values)
        if not self._keyed:
            return
        if self.folds:
            for key, value in zip(keys, values, strict=True):
                self._versions.setdefault(key, []).append(value)
                if value[0] == DELETE:
                    self.deleted.add(key)
            return
        if self._merge is not None:
            self._apply_in_sequence(keys, values, self._merge)
            return
        if self.keeps_first:
            given = zip(reversed(keys), reversed(values), strict=True)
            fresh = {key: value for key, value in given if key not in self._newest}
        else:
            fresh = dict(zip(keys, values, strict=True))
        replaced = self._newest.keys() & fresh.keys()
        self.memory_size += _size(fresh.keys(), fresh.values())
        self.memory_size -= _size(replaced, list(map(self._newest.__getitem__, replaced)))
        self._newest.update(fresh)

    def _put_few(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """The same for a few rows where the later one wins, without collections on the way."""
        newest, size = self._newest, 0
        for key, value in zip(keys, values, strict=True):
            before = newest.get(key)
            size += len(key) + ENTRY_BYTES + METADATA_BYTES if before is None else -len(before)
            size += len(value)
            newest[key] = value
        self.memory_size += size

    def _arrive(self, values: Sequence[bytes]) -> None:
        if not self._arrivals or isinstance(self._arrivals[-1], pa.RecordBatch):
            self._arrivals.append([])
        self._arrivals[-1].extend(values)
        self._arrived += len(values)

    def _apply_in_sequence(self, keys: Sequence[bytes], values: Sequence[bytes], merge: MergeSpec) -> None:
        rows, _ = decode_values(values, self.schema)
        columns, types = [rows.column(name) for name, _ in merge.versions], [one for _, one in merge.versions]
        sequences = encode_version_bytes(columns, types, descending=merge.descending).to_pylist()
        for key, value, sequence in zip(keys, values, sequences, strict=True):
            held = self._sequences.get(key)
            if held is not None:
                if sequence < held:
                    continue
                self.memory_size -= len(held) + _size((key,), (self._newest[key],))
            self.memory_size += len(sequence) + _size((key,), (value,))
            self._sequences[key], self._newest[key] = sequence, value

    def note(self, keys: Sequence[WalKey]) -> None:
        """Take the names of writes."""
        for key in keys:
            self.write_keys[key.name] = key
            self.memory_size += len(key.name) + len(key.note) + WRITE_KEY_BYTES

    def get(self, key: bytes) -> bytes | None:
        """The value of a key: the type of its record and its row. In a folding table that of its newest version."""
        if self.folds:
            versions = self._versions.get(key)
            return versions[-1] if versions else None
        return self._newest.get(key)

    def holds_any(self, keys: Sequence[bytes]) -> bool:
        """Whether there is a value of one of the keys."""
        held = self._versions.keys() if self.folds else self._newest.keys()
        return bool(held) and not held.isdisjoint(keys)

    def versions(self, key: bytes) -> list[bytes]:
        """All values of a key that are kept, oldest first."""
        if self.folds:
            return list(self._versions.get(key, ()))
        value = self._newest.get(key)
        return [] if value is None else [value]

    def copy(self) -> HeldRows:
        """The rows at this moment."""
        if not self._keyed or self.folds:
            return Arrivals(tuple(part if isinstance(part, pa.RecordBatch) else list(part) for part in self._arrivals))
        return list(self._newest.values())


def keeps_first(schema: TableSchema) -> bool:
    """Whether the first row of a key stays, whatever follows."""
    return bool(schema.primary_keys) and TableOptions(schema.options).get(MERGE_ENGINE) == FIRST_ROW.name


def is_sequenced(schema: TableSchema) -> bool:
    """Whether columns of the rows say which row of a key wins."""
    return bool(schema.primary_keys) and not folds(schema) and bool(TableOptions(schema.options).get(SEQUENCE_FIELD))


def folds(schema: TableSchema) -> bool:
    """Whether the row of a key is made of all of its versions."""
    return bool(schema.primary_keys) and TableOptions(schema.options).get(MERGE_ENGINE) in FOLDING


def decode_held(held: HeldRows, schema: TableSchema) -> tuple[pa.RecordBatch, Kinds | None]:
    """The rows of a memtable in the table's columns, and what each does; None where all are insertions."""
    if not isinstance(held, Arrivals):
        return decode_values(held, schema)
    if len(held.parts) == 1 and not isinstance(held.parts[0], pa.RecordBatch):
        return decode_values(held.parts[0], schema)
    # Where rows are kept as columns there is no key, and nothing is deleted by the log.
    parts = [part if isinstance(part, pa.RecordBatch) else decode_values(part, schema)[0] for part in held.parts]
    return pa.concat_batches(parts), None


def held_values(held: HeldRows, schema: TableSchema) -> Sequence[bytes]:
    """The rows of a memtable as values."""
    return held.values(schema) if isinstance(held, Arrivals) else held


def decode_values(values: Sequence[bytes], schema: TableSchema) -> tuple[pa.RecordBatch, Kinds | None]:
    """The rows of values in the table's columns, and what each does; None where all are insertions."""
    types = [field.type for field in schema.fields]
    wanted = stored_types(types)
    few = decode_few_rows([value[1:] for value in values[: MOST_ROWS + 1]], wanted, where=_WHERE)
    if few is not None:
        kinds, columns = np.frombuffer(b"".join(value[:1] for value in values), np.uint8), few
    else:
        kinds, rows = _split(pa.array(values, pa.large_binary()))
        columns = restored_columns(decode_rows(rows, wanted, where=_WHERE), types, where=_WHERE)
    batch = pa.RecordBatch.from_arrays(columns, schema=memory_schema(schema))
    deletes = kinds == DELETE
    if not deletes.any():
        return batch, None
    return batch, np.where(deletes, np.int8(RowKind.DELETE), np.int8(RowKind.INSERT)).astype(np.int8)


def _split(values: pa.Array) -> tuple[NDArray[np.uint8], pa.Array]:
    """The first byte of each value, and the rest."""
    offsets = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1)
    data = np.frombuffer(values.buffers()[2], np.uint8, int(offsets[-1]))
    firsts = offsets[:-1]
    rest = pa.py_buffer(np.delete(data, firsts))
    ends = pa.py_buffer(offsets - np.arange(len(offsets)))
    return data[firsts], pa.Array.from_buffers(pa.large_binary(), len(values), [None, ends, rest])


def _size(keys: Collection[bytes], values: Collection[bytes]) -> int:
    return sum(map(len, keys)) + sum(map(len, values)) + len(values) * (ENTRY_BYTES + METADATA_BYTES)
