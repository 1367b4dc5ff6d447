"""Rows of tables without a primary key: batches that memtables keep as columns are the rows that the log has."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.realtime.arrivals import LEAST_BLOCK_ROWS, Arrivals, row_block
from lakelet.realtime.memtable import decode_held, held_values
from lakelet.realtime.row_encoder import RowEncoder
from tests.unit.realtime import test_every_type as every
from tests.unit.realtime.written_table import WrittenTable, kill, sorted_rows

MANY = 2 * LEAST_BLOCK_ROWS


def numbers(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {"id": ids, "v": [f"text {one}" if one % 3 else None for one in ids], "x": [one / 2 for one in ids]}
    )


def without_key(folder: Path, **options: Any) -> WrittenTable:
    return WrittenTable(folder, key=(), options={"bucket": "-1"}, **options)


@pytest.mark.parametrize("end", ["flush", "crash"])
def test_every_value_of_a_batch_is_the_one_that_write_stores(tmp_path: Path, end: str) -> None:
    copies = -(-MANY // len(every.ROWS))
    plain = without_key(tmp_path / "plain", columns=every.COLUMNS)
    plain.table.write(every.ROWS * copies)
    written = without_key(tmp_path / "written", columns=every.COLUMNS)
    writer = written.writer()
    writer.put_together(every.ROWS * copies)
    held = writer._memtables.active.copy()
    assert isinstance(held, Arrivals)
    assert isinstance(held.parts[0], pa.RecordBatch)
    assert sorted_rows(writer.scan().to_arrow()) == plain.rows()
    if end == "flush":
        writer.close()
    else:
        kill(writer)
        written.writer().close()
    assert written.rows() == plain.rows()


def test_batches_and_single_rows_keep_the_order_in_which_they_came(tmp_path: Path) -> None:
    written = without_key(tmp_path)
    with written.writer() as writer:
        for first, count in ((0, 1), (1, MANY), (1 + MANY, 3), (4 + MANY, 2), (6 + MANY, MANY)):
            writer.put_many(numbers(first, count))
        assert writer.scan().to_arrow().column("id").to_pylist() == list(range(6 + 2 * MANY))
        memtable = writer._memtables.active
        assert len(memtable) == writer.status().memtables[0].rows == 6 + 2 * MANY
        held = memtable.copy()
        # What other nodes get is what the log has.
        rows, kinds = decode_held(held_values(held, memtable.schema), memtable.schema)
        assert kinds is None
        assert rows.equals(decode_held(held, memtable.schema)[0])
    assert written.table.scan().to_arrow().column("id").to_pylist() == list(range(6 + 2 * MANY))


def test_a_reader_keeps_what_it_saw(tmp_path: Path) -> None:
    with without_key(tmp_path).writer() as writer:
        writer.put_many(numbers(0, MANY))
        writer.put_many(numbers(MANY, 1))
        scan = writer.scan()
        writer.put_many(numbers(MANY + 1, 1))
        writer.put_many(numbers(MANY + 2, MANY))
        assert scan.count() == MANY + 1


def test_a_batch_that_its_caller_changes_afterwards_is_kept_as_it_was(tmp_path: Path) -> None:
    written = without_key(tmp_path)
    given = np.arange(MANY, dtype=np.int64)
    with written.writer() as writer:
        writer.put_many(pa.table({"id": pa.array(given), "v": ["a"] * MANY, "x": [0.5] * MANY}))
        given[:] = -1
        assert writer.scan().to_arrow().column("id").to_pylist() == list(range(MANY))
    assert written.table.scan().to_arrow().column("id").to_pylist() == list(range(MANY))


def test_a_slice_of_a_large_buffer_does_not_keep_it_in_memory(tmp_path: Path) -> None:
    table = without_key(tmp_path).table
    whole = numbers(0, 100_000).combine_chunks().to_batches()[0]
    block = row_block(whole.slice(50_000, MANY), table.schema, 0)
    assert block.rows.get_total_buffer_size() < 100 * MANY
    assert block.size_bytes == block.rows.nbytes


def test_a_memtable_counts_the_memory_of_columns_that_are_wider_than_their_values(tmp_path: Path) -> None:
    fields = ", ".join(f"f{number} BIGINT" for number in range(100))
    table = without_key(tmp_path, columns=[("id", "BIGINT NOT NULL"), ("p", f"ROW<{fields}>")]).table
    encoder = RowEncoder(table.home, table.schema, 1 << 20)
    (batch,) = encoder.batches([{"id": number, "p": None} for number in range(MANY)])
    assert encoder.encode(batch).blocks[0].size_bytes > 800 * MANY


def test_small_batches_are_kept_as_values(tmp_path: Path) -> None:
    table = without_key(tmp_path).table
    encoder = RowEncoder(table.home, table.schema, 1 << 20)
    few, many = (next(encoder.batches(numbers(0, count))) for count in (LEAST_BLOCK_ROWS - 1, LEAST_BLOCK_ROWS))
    assert (len(encoder.encode(few).values), encoder.encode(few).blocks) == (LEAST_BLOCK_ROWS - 1, ())
    assert (encoder.encode(many).values, encoder.encode(many).row_count) == ([], LEAST_BLOCK_ROWS)
    assert encoder.encode(many).records.startswith(encoder.encode(few).records)
