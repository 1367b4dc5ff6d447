"""Streams out of Iceberg tables: the rows of the newest version, then those of every append."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType, NestedField, StringType
from pyspark.errors import StreamingQueryException

import lakelet.spark as ls
from lakelet.errors import InvalidError
from tests.spark.iceberg_lakes import IcebergLake
from tests.spark.stream.test_source import Run, running
from tests.unit.iceberg.ice_tables import spec_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

SCHEMA = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "v", StringType()))


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    made = IcebergLake.new(tmp_path / "wh")
    made.create(SCHEMA, spec_of((1, BucketTransform(2), "id_bucket")))
    return made


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "v": [f"v{one}" for one in ids]})


def ids(batches: list[Any]) -> list[list[int]]:
    return [sorted(row[0] for row in batch) for batch in batches if batch]


def test_rows_and_then_appends(spark: SparkSession, lake: IcebergLake, tmp_path: Path) -> None:
    lake.table().append(rows(1, 2))

    def run(name: str, **more: Any) -> Run:
        frame = lambda: ls.read_iceberg_stream(spark, "iceberg", "db.t", warehouse=lake.location, **more)  # noqa: E731
        return Run(frame, tmp_path / name)

    every, skipping = run("c"), run("d", skip_deletes=True, skip_overwrites=True, scan_mode="latest")
    assert ids(every()) == [[1, 2]]
    assert ids(skipping()) == []
    lake.table().append(rows(3))
    lake.table().append(rows(4, 5))
    assert ids(every()) == [[3, 4, 5]]
    newest = lake.table().metadata.current_snapshot_id
    lag = ls.stream_lag(every.query)[0]
    assert (lag.snapshot, lag.newest_snapshot, lag.snapshots_behind, lag.behind_ms) == (newest, newest, 0, 0)
    assert lag.processed_rows_per_second > 0
    lake.table().delete("id = 1")
    lake.table().append(rows(6))
    with pytest.raises(
        StreamingQueryException, match=r"'streaming-skip-(delete|overwrite)-snapshots' = 'true' passes over it"
    ):
        every()
    assert ids(skipping()) == [[3, 4, 5, 6]]
    cut = run(
        "e",
        options={"read.stream.maxFilesPerTrigger": 1, "scan.timestamp-millis": 0},
        skip_deletes=True,
        skip_overwrites=True,
    )
    found = ids(cut())
    assert sorted(one for batch in found for one in batch) == [1, 2, 3, 4, 5, 6]
    assert len(found) >= 4


def test_the_progress_of_a_batch_says_how_far_it_is_behind(
    spark: SparkSession, lake: IcebergLake, tmp_path: Path
) -> None:
    for number in range(3):
        lake.table().append(rows(number))
    snapshots = lake.table().metadata.snapshots
    frame = ls.read_iceberg_stream(
        spark,
        "iceberg",
        "db.t",
        warehouse=lake.location,
        options={"scan.timestamp-millis": 0, "read.stream.maxFilesPerTrigger": 1},
    )
    run = Run(lambda: frame, tmp_path / "c")
    assert ids(run()) == [[0], [1], [2]]
    told = [
        (source["endOffset"]["snapshot"], source["latestOffset"]["behindSnapshots"], source["latestOffset"]["behindMs"])
        for progress in run.query.recentProgress
        if (source := json.loads(progress.json)["sources"][0])["numInputRows"]
    ]
    assert told == [
        (one.snapshot_id, 2 - place, snapshots[-1].timestamp_ms - one.timestamp_ms)
        for place, one in enumerate(snapshots)
    ]


@pytest.mark.deep
def test_an_added_column_stops_the_query_until_it_is_restarted(
    spark: SparkSession, lake: IcebergLake, tmp_path: Path
) -> None:
    lake.table().append(rows(1))
    read = lambda **more: ls.read_iceberg_stream(spark, "iceberg", "db.t", warehouse=lake.location, **more)  # noqa: E731
    plain, merging = list[Any](), list[Any]()
    queries = [running(read(), tmp_path / "c", plain)]
    try:
        queries[0].processAllAvailable()
        queries.append(running(read(merge_schema=True), tmp_path / "m", merging))
        queries[1].processAllAvailable()
        with lake.table().update_schema() as change:
            change.add_column("note", StringType())
        lake.table().append(rows(2).append_column("note", [["n"]]))
        with pytest.raises(StreamingQueryException, match="column 'note' was added since the stream began"):
            queries[0].processAllAvailable()
        queries[1].processAllAvailable()
        assert (plain, merging) == ([[(1, "v1")]], [[(1, "v1")], [(2, "v2")]])
        with lake.table().update_schema() as change:
            change.rename_column("v", "V")
        lake.table().append(rows(3).rename_columns(["id", "V"]).append_column("note", [["n"]]))
        with pytest.raises(StreamingQueryException, match="column 'v' was renamed to 'V'"):
            queries[1].processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    assert Run(read, tmp_path / "c")() == [[(2, "v2", "n"), (3, "v3", "n")]]


def test_what_iceberg_tables_do_not_have_is_refused(spark: SparkSession, lake: IcebergLake) -> None:
    for options, message in (
        ({"consumer-id": "c"}, "'consumer-id' is for tables of Lakelet's own format"),
        ({"read.changelog": "true"}, r"read\.changelog"),
        ({"scan.mode": "nonsense"}, r"scan\.mode"),
    ):
        with pytest.raises(InvalidError, match=message):
            ls.read_iceberg_stream(spark, "iceberg", "db.t", warehouse=lake.location, options=options)
