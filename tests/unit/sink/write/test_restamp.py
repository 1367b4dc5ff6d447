"""Restamping: sequence numbers of uncommitted files are moved above those of a concurrent commit."""

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.errors import UnavailableError
from lakelet.sink.write.restamp import restamp
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import OutputFile
from tests.unit.keyed_table import KeyedTable

Row = dict[str, Any]


def rows_of(table: KeyedTable, messages: Any, moved: int) -> list[Row]:
    return [row | {"_SEQUENCE_NUMBER": row["_SEQUENCE_NUMBER"] + moved} for row in table.rows(messages)]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("thin", ["true", "false"])
def test_rule_5_all_numbers_of_a_bucket_move_by_the_same(file_format: str, thin: str) -> None:
    options = {
        "file.format": file_format,
        "data-file.thin-mode": thin,
        "target-file-size": "1 b",
        "file.block-size": "50 b",
    }
    table = KeyedTable({"id": "INT", "v": "STRING"}, **options)
    rows: list[Row] = [
        {"id": -number, "v": f"v{number}", "_kind": "-D" if number % 3 else "+U"} for number in range(20)
    ]
    (message,) = table.write(rows)
    assert len(message.new_files) > 1
    lowest = min(file.min_sequence for file in message.new_files)
    (moved,) = restamp(table.home, table.schema, [message], {(message.partition, 0): 100})
    assert min(row["_SEQUENCE_NUMBER"] for row in table.rows([moved])) == 101
    assert table.rows([moved]) == rows_of(table, [message], 101 - lowest)
    for old, new in zip(message.new_files, moved.new_files, strict=True):
        assert new.name != old.name
        assert new.min_sequence - old.min_sequence == new.max_sequence - old.max_sequence == 101 - lowest
        changed = {"name": "", "size": 0, "min_sequence": 0, "max_sequence": 0, "creation_ms": 0}
        assert replace(new, **changed) == replace(old, **changed)  # type: ignore[arg-type]
        (path,) = [path for path in table.data_files() if path.endswith(new.name)]
        assert table.store.head(path).size == new.size  # type: ignore[union-attr]


def test_other_buckets_stay() -> None:
    table = KeyedTable({"id": "INT"}, bucket="4")
    messages = table.write([{"id": number} for number in range(40)])
    touched = (messages[1].partition, messages[1].bucket)
    moved = restamp(table.home, table.schema, messages, {touched: 7})
    assert [new is old for new, old in zip(moved, messages, strict=True)] == [True, False, True, True]


def test_numbers_that_are_above_already_stay() -> None:
    table = KeyedTable({"id": "INT"})
    messages = table.write([{"id": 1}], first_sequence=lambda place: 50)
    assert restamp(table.home, table.schema, messages, {(messages[0].partition, 0): 49}) == messages
    assert (
        restamp(table.home, table.schema, messages, {(messages[0].partition, 0): 50})[0].new_files[0].min_sequence == 51
    )


@pytest.mark.parametrize("stats", ["none", "truncate(16)"])
def test_rule_13_nan_gets_no_footer_range(stats: str) -> None:
    table = KeyedTable({"id": "DOUBLE", "x": "DOUBLE"}, **{"metadata.stats-mode": stats})
    messages = table.write([{"id": math.nan, "x": 1.0}, {"id": 2.0, "x": 2.0}])
    (moved,) = restamp(table.home, table.schema, messages, {(messages[0].partition, 0): 9})
    (path,) = [path for path in table.data_files() if path.endswith(moved.new_files[0].name)]
    group = pq.ParquetFile(pa.BufferReader(table.store.get(path))).metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    ranged = {chunk.path_in_schema for chunk in chunks if chunk.statistics and chunk.statistics.has_min_max}
    # Without statistics nobody knows whether x holds a NaN.
    assert ranged == {"_SEQUENCE_NUMBER", "_VALUE_KIND"} | ({"x"} if stats != "none" else set())


class FullStore(MemoryStore):
    """Fails after a number of files."""

    room: int | None = None

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        if self.room is not None:
            if self.room == 0:
                raise OSError("the disk is full")
            self.room -= 1
        return super().open_output(path, deferred=deferred)


def test_after_an_error_there_are_no_new_files() -> None:
    store = FullStore()
    table = KeyedTable({"id": "INT"}, store=store, bucket="4")
    messages = table.write([{"id": number} for number in range(40)])
    before = table.data_files()
    store.room = 2
    with pytest.raises(UnavailableError, match="the disk is full"):
        restamp(table.home, table.schema, messages, {(message.partition, message.bucket): 99 for message in messages})
    assert table.data_files() == before
