"""SST files as data files: all types, projections, ranges of keys; every flipped byte is told or harmless."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError, InvalidError, LakeletError, NotFoundError
from lakelet.format.data.data_file_format import KeyedRows, WriteSettings
from lakelet.format.data.sst_file import SstFormat
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.memory import MemoryStore
from tests.unit.format.every_type import PATH, every_type, field, read, write

FORMAT = SstFormat()
KEY = field(900, "k", "INT NOT NULL")


def _key(rows: pa.RecordBatch) -> pa.Array:
    return encode_key_bytes([rows.column("k")], [KEY.type])


def settings(compression: str = "zstd", **extra: str) -> WriteSettings:
    options = {name.replace("__", ".").replace("_", "-"): text for name, text in extra.items()}
    return WriteSettings(compression=compression, extra=options, keyed=KeyedRows(7, _key), create_ms=1_700_000_000_000)


def keyed(fields: Sequence[Field], table: pa.Table) -> tuple[list[Field], pa.Table]:
    """The columns behind a sequence number, a row kind and a key."""
    count = table.num_rows
    front = [pa.array(range(5, 5 + count)), pa.array([row % 4 for row in range(count)], pa.int8())]
    columns = [*front, pa.array(range(-count, count, 2), pa.int32()), *table.columns]
    whole = [SEQUENCE_FIELD, KIND_FIELD, KEY, *fields]
    return whole, pa.Table.from_arrays(columns, names=[one.name for one in whole])


def numbered(count: int) -> tuple[list[Field], pa.Table]:
    table = pa.table({"n": pa.array([None if row % 5 == 3 else row * 7 for row in range(count)], pa.int64())})
    return keyed([field(1, "n", "BIGINT")], table)


@pytest.mark.parametrize("compression", ["zstd", "zstandard", "lz4", "snappy", "none"])
@pytest.mark.parametrize("delta", ["true", "false"])
def test_every_type_comes_back(compression: str, delta: str) -> None:
    fields, table = keyed(*every_type(60))
    chosen = settings(compression, sst__block_size="300 b", sst__delta_encoding=delta)
    store = write(FORMAT, fields, [table.slice(0, 11), table.slice(11)], settings=chosen)
    got = read(FORMAT, store, fields, batch_rows=7)
    assert got.to_pylist() == table.to_pylist()
    assert got.select(["c3", "c26"]).schema.types == table.select(["c3", "c26"]).schema.types


def test_columns_are_projected_and_rows_counted_without_any() -> None:
    fields, table = keyed(*every_type(20))
    store = write(FORMAT, fields, [table], settings=settings(sst__block_size="200 b"))
    for names in (["c26", "c3"], ["_VALUE_KIND"], ["k", "_SEQUENCE_NUMBER"]):
        in_order = [one.name for one in fields if one.name in names]
        assert read(FORMAT, store, fields, names).to_pylist() == table.select(in_order).to_pylist()
    assert sum(batch.num_rows for batch in FORMAT.read(store, PATH, fields, [], batch_rows=4)) == 20


def test_a_file_without_rows_reads_as_none() -> None:
    fields, table = keyed(*every_type(5))
    for tables in ([], [table.slice(0, 0)]):
        assert read(FORMAT, write(FORMAT, fields, tables, settings=settings()), fields).num_rows == 0


def test_every_flipped_byte_is_told_or_harmless() -> None:
    fields, table = numbered(40)
    store = write(FORMAT, fields, [table], settings=settings(sst__block_size="90 b"))
    data, silent = store.get(PATH), []
    for at in range(len(data)):
        broken = MemoryStore()
        broken.put(PATH, data[:at] + bytes((data[at] ^ 0x41,)) + data[at + 1 :])
        try:
            found = read(FORMAT, broken, fields)
        except CorruptionError:
            continue
        silent.append(at)
        assert found.to_pylist() == table.to_pylist(), f"byte {at}"
    # Header: the create timestamp; before the footer: the checksum of the whole file.
    assert silent == [*range(9, 17), *range(len(data) - 52, len(data) - 48)]


def test_a_file_that_is_cut_or_gone() -> None:
    fields, table = numbered(40)
    data = write(FORMAT, fields, [table], settings=settings()).get(PATH)
    for size in (0, 3, 40, 90, len(data) - 1):
        cut = MemoryStore()
        cut.put(PATH, data[:size])
        with pytest.raises(CorruptionError):
            read(FORMAT, cut, fields)
    with pytest.raises(NotFoundError):
        read(FORMAT, MemoryStore(), fields)


def test_what_is_refused() -> None:
    fields, table = numbered(3)
    with pytest.raises(InvalidError, match="without a primary key"):
        write(FORMAT, fields, [table], settings=WriteSettings())
    with pytest.raises(InvalidError, match="none, snappy, lz4, zstd for SST, found 'gzip'"):
        write(FORMAT, fields, [table], settings=settings("gzip"))
    with pytest.raises(InvalidError, match="ascending"):
        write(FORMAT, fields, [table, table], settings=settings())
    store = write(FORMAT, fields, [table], settings=settings())
    with pytest.raises(CorruptionError, match="missing is not in the SST file"):
        read(FORMAT, store, [*fields, field(9, "missing", "INT")])
    with pytest.raises(CorruptionError, match="of type BIGINT, expected STRING"):
        read(FORMAT, store, [*fields[:3], Field(1, "n", parse_type("STRING"))])


def test_errors_name_the_file() -> None:
    store = MemoryStore()
    store.put(PATH, b"nothing of that kind" * 9)
    with pytest.raises(LakeletError, match=PATH):
        read(FORMAT, store, [KEY])
