"""Rows for logs and memtables: one row and many give the same bytes."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError, TooLargeError
from lakelet.format.wal.wal_record import DELETE, PUT
from lakelet.realtime.row_encoder import RowEncoder
from tests.unit.realtime.written_table import COLUMNS, WrittenTable


@pytest.mark.parametrize("key", [("id",), ("v", "id"), ()])
@pytest.mark.parametrize("record_type", [PUT, DELETE])
def test_few_rows_and_many_have_the_same_bytes(tmp_path: Path, key: tuple[str, ...], record_type: int) -> None:
    table = WrittenTable(tmp_path, key=key, options={"bucket": "1"} if key else {}).table
    encoder = RowEncoder(table.home, table.schema, 1 << 20)
    data = pa.table({"id": list(range(12)), "v": [f"\x00{number}" for number in range(12)], "x": [0.5, None] * 6})
    (batch,) = encoder.batches(data)
    many = encoder.encode(batch, record_type)
    few = [encoder.encode(batch.slice(place, 3), record_type) for place in range(0, 12, 3)]
    assert [key for part in few for key in part.keys] == many.keys
    assert [value for part in few for value in part.values] == many.values
    assert b"".join(part.records for part in few) == many.records


@pytest.mark.parametrize("count", [1, 10])
def test_a_row_larger_than_a_memtable_is_refused(tmp_path: Path, count: int) -> None:
    table = WrittenTable(tmp_path).table
    encoder = RowEncoder(table.home, table.schema, 500)
    rows = pa.record_batch({"id": list(range(count)), "v": ["a" * 600] * count, "x": [0.5] * count})
    with pytest.raises(TooLargeError, match=r"more than a memtable holds; expected at most 500"):
        encoder.encode(encoder.cast(rows))


def test_a_partition_that_no_folder_can_be_named_after_is_refused(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path, columns=[*COLUMNS, ("p", "STRING")], key=("id", "p"), partitions=("p",))
    with written.writer() as writer, pytest.raises(InvalidError, match="at most 255 bytes"):
        writer.put({"id": 1, "v": "a", "x": 0.5, "p": "long" * 80})
