"""Positions in an Iceberg table, how far they are behind, and columns that change under a stream; no session is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from lakelet.errors import ConflictError
from lakelet.iceberg.table import IcebergTable
from lakelet.spark.iceberg.append_source import AppendSource, Skipped
from lakelet.table.follow.admission import NO_LIMITS, ReadLimits
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import StreamSettings
from tests.unit.iceberg.ice_tables import ice_table

SCHEMA = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "v", StringType()))


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    return ice_table(tmp_path, SCHEMA)


def put(table: IcebergTable, *ids: int, **columns: Any) -> None:
    library = table.reloaded().library
    values = {"id": pa.array(ids, pa.int32()), **{name: [value] * len(ids) for name, value in columns.items()}}
    schema = library.schema().as_arrow()
    library.append(pa.table({name: values.get(name, [None] * len(ids)) for name in schema.names}).cast(schema))


def source(table: IcebergTable, **options: str) -> AppendSource:
    return AppendSource(table.reloaded(), None, StreamSettings.of({}, options, keyed=False), Skipped())


def advanced(source: AppendSource, position: StreamOffset) -> tuple[StreamOffset, int]:
    """The position after the next batch, and how many rows that has."""
    end = source.next(position, NO_LIMITS)
    return end, sum(file.row_count for file in source.files(position, end))


def test_how_far_a_position_is_behind(table: IcebergTable) -> None:
    empty = source(table)
    assert empty.behind(None) == (0, 0, 0)
    start = empty.start()
    assert empty.behind(start) == (0, 0, 0)
    for number in range(3):
        put(table, number)
    times = [(snapshot.snapshot_id, snapshot.timestamp_ms) for snapshot in table.reloaded().metadata.snapshots]
    newest, newest_ms = times[-1]
    assert empty.behind(start) == (newest, 3, 0)
    one = empty.next(start, ReadLimits(max_files=1))
    assert empty.behind(one) == (newest, 2, newest_ms - times[0][1])
    assert empty.behind(empty.newest()) == (newest, 0, 0)
    assert empty.behind(None) == (newest, 0, 0)
    # The rows of the newest version, of which none is read as yet.
    assert empty.behind(source(table).start()) == (newest, 1, 0)


def added(table: IcebergTable) -> None:
    with table.reloaded().library.update_schema() as change:
        change.add_column("note", StringType())


def renamed(table: IcebergTable) -> None:
    with table.reloaded().library.update_schema() as change:
        change.rename_column("v", "V")


def dropped(table: IcebergTable) -> None:
    with table.reloaded().library.update_schema() as change:
        change.delete_column("v")


def widened(table: IcebergTable) -> None:
    with table.reloaded().library.update_schema() as change:
        change.update_column("id", LongType())


def swapped(table: IcebergTable) -> None:
    """Another column of the same name."""
    dropped(table)
    with table.reloaded().library.update_schema() as change:
        change.add_column("v", StringType())


@pytest.mark.parametrize("merges", ["false", "true"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            added,
            "column 'note' was added since the stream began; restarted, it reads the new columns, or goes on without",
        ),
        (renamed, "column 'v' was renamed to 'V' since the stream began; restarted, it reads the new columns$"),
        (dropped, "column 'v' was dropped"),
        (widened, "the type of column 'id' became long"),
        (swapped, "column 'v' was added, column 'v' was dropped since"),
    ],
)
def test_columns_that_change_under_a_stream(
    table: IcebergTable, merges: str, change: Callable[[IcebergTable], None], message: str
) -> None:
    put(table, 1, v="a")
    running = source(table, **{"merge-schema": merges})
    position, count = advanced(running, running.start())
    assert count == 1
    change(table)
    # A change of columns alone is no snapshot.
    assert running.next(position, NO_LIMITS) == position
    put(table, 2, 3)
    if change is added and merges == "true":
        assert advanced(running, position)[1] == 2
    else:
        with pytest.raises(ConflictError, match=message):
            running.next(position, NO_LIMITS)
    assert advanced(source(table), position)[1] == 2


def test_a_column_that_is_dropped_again_gives_an_older_schema(table: IcebergTable) -> None:
    """Ids of schemas are used again: the newer snapshot has the smaller one."""
    put(table, 1)
    first = source(table).newest()
    added(table)
    put(table, 2, note="n")
    running = source(table)
    with table.reloaded().library.update_schema() as change:
        change.delete_column("note")
    put(table, 3)
    assert table.reloaded().metadata.snapshots[-1].schema_id == table.reloaded().metadata.snapshots[0].schema_id
    with pytest.raises(ConflictError, match="column 'note' was dropped since the stream began"):
        running.next(first, NO_LIMITS)
    # Snapshots from before the stream began are read in its columns, whatever theirs were.
    assert advanced(source(table), first)[1] == 2
