"""Memtables: the newest row of a key, the order of arrival without one, and the size of both."""

import pytest

from lakelet.format.rows.binary_row import encode_row
from lakelet.format.wal.wal_record import DELETE, PUT
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.realtime.memtable import ENTRY_BYTES, METADATA_BYTES, Memtable, MemtableState, decode_values, held_values

TYPES = [parse_type("BIGINT NOT NULL"), parse_type("STRING")]


def schema(*key: str) -> TableSchema:
    fields = [Field(number, name, kind) for number, (name, kind) in enumerate(zip(("id", "v"), TYPES, strict=True))]
    return new_schema(fields, primary_keys=key, partition_keys=(), options={}, comment=None, time_ms=0)


def size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + METADATA_BYTES + ENTRY_BYTES


def test_an_entry_counts_its_key_its_row_its_metadata_and_its_place() -> None:
    memtable = Memtable(1, schema("id"), 7)
    assert (memtable.state, memtable.sequence_number, memtable.create_timestamp) == (MemtableState.ACTIVE, 1, 7)
    memtable.apply([b"kk", b"k"], [b"\x01row", b"\x01"])
    assert memtable.memory_size == size(b"kk", b"\x01row") + size(b"k", b"\x01")
    assert ENTRY_BYTES == 40


def test_an_update_takes_the_place_and_the_size_of_the_old_row() -> None:
    memtable = Memtable(1, schema("id"), 0)
    memtable.apply([b"k", b"other"], [b"\x01" + b"long" * 10, b"\x01x"])
    memtable.apply([b"k", b"k", b"k"], [b"\x01a", b"\x01bbbbb", b"\x02c"])
    assert len(memtable) == 2
    assert memtable.get(b"k") == b"\x02c"
    assert memtable.memory_size == size(b"k", b"\x02c") + size(b"other", b"\x01x")
    assert memtable.get(b"none") is None


def test_without_a_key_every_row_stays_in_its_order() -> None:
    memtable = Memtable(1, schema(), 0)
    memtable.apply([b"", b""], [b"\x01b", b"\x01a"])
    memtable.apply([b""], [b"\x01b"])
    assert held_values(memtable.copy(), memtable.schema) == [b"\x01b", b"\x01a", b"\x01b"]
    assert memtable.memory_size == 3 * size(b"", b"\x01b")


@pytest.mark.parametrize("deletes", [False, True])
def test_values_decode_to_columns_and_kinds(deletes: bool) -> None:
    rows = [(1, "a"), (2, None), (3, "é" * 20)]
    types = [PUT, DELETE if deletes else PUT, PUT]
    values = [bytes((kind,)) + encode_row(row, TYPES) for kind, row in zip(types, rows, strict=True)]
    batch, kinds = decode_values(values, schema("id"))
    assert [tuple(row.values()) for row in batch.to_pylist()] == rows
    if deletes:
        assert kinds is not None
        assert kinds.tolist() == [RowKind.INSERT, RowKind.DELETE, RowKind.INSERT]
    else:
        assert kinds is None


def test_no_values_are_no_rows() -> None:
    batch, kinds = decode_values([], schema("id"))
    assert (batch.num_rows, batch.schema.names, kinds) == (0, ["id", "v"], None)


def test_a_few_values_decode_as_many_do() -> None:
    rows = [(number, None if number % 3 else "é" * number) for number in range(9)]
    values = [bytes((number % 2 + 1,)) + encode_row(row, TYPES) for number, row in enumerate(rows)]
    many, kinds = decode_values(values, schema("id"))
    assert kinds is not None
    for begin, end in ((0, 1), (2, 6), (4, 9)):
        few, own = decode_values(values[begin:end], schema("id"))
        assert few == many.slice(begin, end - begin)
        assert (own is None and not kinds[begin:end].any()) or (
            own is not None and own.tolist() == kinds[begin:end].tolist()
        )
