"""Rows with their places."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelet import Lake, Table
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.storage.memory import MemoryStore
from lakelet.table.read.located_rows import FILE, ROW, LocatedRows
from lakelet.testing.instrumented_stores import CountingStore


@pytest.fixture
def table() -> Table:
    lake = Lake(CountingStore(MemoryStore()))
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")])
    for start in (0, 10):
        made.write([{"id": start + number, "s": str(number)} for number in range(3)])
    return made


def located(table: Table) -> LocatedRows:
    return LocatedRows(table.home, latest_schema(table.home), latest_snapshot(table.home))


def test_places_are_the_same_at_every_reading(table: Table) -> None:
    rows = located(table)
    whole = pa.Table.from_batches(rows.read(), rows.schema).to_pylist()
    assert [(row["id"], row[FILE], row[ROW]) for row in whole] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 2),
        (10, 1, 0),
        (11, 1, 1),
        (12, 1, 2),
    ]
    second = pa.Table.from_batches(rows.read([ROW, "id", FILE], pc.field("id") > 5))
    assert second.column_names == ["id", FILE, ROW]
    assert second.to_pylist() == [{key: row[key] for key in ("id", FILE, ROW)} for row in whole[3:]]


def test_places_alone_take_no_look_at_files(table: Table) -> None:
    store = table.home.store
    assert isinstance(store, CountingStore)
    store.reset()
    rows = located(table)
    assert pa.Table.from_batches(rows.read([FILE, ROW])).num_rows == 6
    assert list(rows.left(0, np.arange(3))) == []
    assert not [path for _, path in store.log if path.endswith(".parquet")]


def test_what_is_left_of_a_file(table: Table) -> None:
    rows = located(table)
    list(rows.read([FILE]))
    left = pa.Table.from_batches(rows.left(1, np.array([0, 2])))
    assert left.to_pylist() == [{"id": 11, "s": "1"}]
    assert rows.file(1).files[0].row_count == 3


def test_rows_of_a_primary_key_are_told_apart() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")], primary_key=["id"], options={"bucket": "2"})
    made.write([{"id": number, "s": "old"} for number in range(4)])
    made.write([{"id": number, "s": "new"} for number in range(2)])
    rows = pa.Table.from_batches(located(made).read()).to_pylist()
    assert sorted((row["id"], row["s"]) for row in rows) == [(0, "new"), (1, "new"), (2, "old"), (3, "old")]
    assert sorted(row[ROW] for row in rows) == [0, 1, 2, 3]
    assert {row[FILE] for row in rows} == {0}


def test_nothing_before_the_first_snapshot() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT")])
    assert list(located(made).read()) == []
