"""Streams out of tables: `ls.read_stream` and `readStream.format("lakelet")`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import lakelet
import lakelet.spark as ls
from lakelet import InvalidError, Lake, NotFoundError, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark]

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(str(tmp_path / "lake"))
    found.create_database("d")
    return found


@pytest.fixture
def keyed(lake: Lake) -> Table:
    return lake.create_table("d.k", COLUMNS, primary_key=["id"], options={"bucket": "2"})


def put(table: Table, *ids: int, v: str = "a") -> None:
    table.write([{"id": number, "v": v} for number in ids])


class Run:
    """Runs a query until it has read what there is, again and again from its checkpoint, and keeps the rows of each batch."""

    def __init__(self, frame: Callable[[], DataFrame], checkpoint: Path) -> None:
        self._frame = frame
        self._checkpoint = checkpoint

    def __call__(self) -> list[Rows]:
        found: list[Rows] = []
        self.query = self._started(found)
        self.query.awaitTermination()
        return found

    def _started(self, found: list[Rows]) -> StreamingQuery:
        def take(batch: DataFrame, _: int) -> None:
            found.append(sorted(tuple(row) for row in batch.collect()))

        writer = self._frame().writeStream.foreachBatch(take).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(self._checkpoint)).start()


def test_first_the_rows_and_then_the_changes(spark: SparkSession, lake: Lake, keyed: Table, tmp_path: Path) -> None:
    put(keyed, 1, 2)
    run = Run(lambda: ls.read_stream(spark, lake.location, "d.k", changelog=True, consumer_id="c"), tmp_path / "c")
    assert run() == [[("+I", 1, "a"), ("+I", 2, "a")]]
    put(keyed, 2, 3, v="b")
    keyed.delete([{"id": 1}])
    assert run() == [[("+I", 3, "b"), ("+U", 2, "b"), ("-D", 1, "a"), ("-U", 2, "a")]]
    lag = ls.stream_lag(run.query)[0]
    assert (lag.snapshot, lag.newest_snapshot, lag.snapshots_behind, lag.behind_ms) == (3, 3, 0, 0)
    assert run() == []
    assert [consumer.id for consumer in keyed.consumers.list()] == ["c"]


def test_sparks_own_api_with_limits(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.a", COLUMNS)
    for number in range(3):
        put(table, number)

    def frame() -> DataFrame:
        reader = spark.readStream.format("lakelet").option("warehouse", lake.location)
        return (
            reader.option("scan.mode", "from-snapshot")
            .option("scan.snapshot-id", "1")
            .options(**{"read.stream.maxFilesPerTrigger": "2"})
            .load("d.a")
        )

    run = Run(frame, tmp_path / "c")
    assert run() == [[(0, "a"), (1, "a")], [(2, "a")]]
    put(table, 7)
    assert run() == [[(7, "a")]]


def test_columns_conditions_compaction_and_a_drop(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Rows of level 0 of a table with deletion vectors are visible once compaction has made them so."""
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "write-only": "true"}
    table = lake.create_table("d.Odd name", COLUMNS, primary_key=["id"], options=options)
    run = Run(
        lambda: ls.read_stream(
            spark,
            lake.location,
            "d.Odd name",
            changelog=True,
            columns=["v"],
            where="id > 1",
            options={"scan.mode": "latest"},
        ),
        tmp_path / "c",
    )
    # The first batch of a query runs even if there is nothing to read.
    assert [rows for rows in run() if rows] == []
    put(table, 1, 2)
    assert [rows for rows in run() if rows] == []
    table.compact(full=True)
    assert run() == [[("+I", "a")]]
    table.compact(full=True)
    put(table, 2, v="b")
    table.compact()
    assert [rows for rows in run() if rows] == [[("+U", "b"), ("-U", "a")]]
    lake.drop_table("d.Odd name")
    with pytest.raises(NotFoundError):
        run()
    lake.create_table("d.Odd name", COLUMNS, primary_key=["id"], options=options)
    with pytest.raises(StreamingQueryException, match="dropped and created again"):
        run()


def test_an_added_column_stops_the_query_until_it_is_restarted(
    spark: SparkSession, lake: Lake, keyed: Table, tmp_path: Path
) -> None:
    put(keyed, 1)
    found: list[Rows] = []
    query = running(ls.read_stream(spark, lake.location, "d.k"), tmp_path / "c", found)
    query.processAllAvailable()
    merging = running(ls.read_stream(spark, lake.location, "d.k", merge_schema=True), tmp_path / "m", found)
    try:
        merging.processAllAvailable()
        assert found == [[(1, "a")], [(1, "a")]]
        keyed.add_column("note", "STRING")
        keyed.write([{"id": 2, "v": "b", "note": "n"}])
        with pytest.raises(StreamingQueryException, match="column 'note' was added since the stream began"):
            query.processAllAvailable()
        merging.processAllAvailable()
        assert found[2:] == [[(2, "b")]]
    finally:
        query.stop()
        merging.stop()
    again = Run(lambda: ls.read_stream(spark, lake.location, "d.k"), tmp_path / "c")
    assert again() == [[(2, "b", "n")]]


def running(frame: DataFrame, checkpoint: Path, found: list[Rows]) -> StreamingQuery:
    """A query that goes on, and keeps the rows of each batch."""

    def take(batch: DataFrame, _: int) -> None:
        found.append(sorted(tuple(row) for row in batch.collect()))

    return frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()


@pytest.mark.deep
def test_where_a_stream_begins_is_not_the_version_of_a_batch(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Spark asks a source for its columns without saying whether it reads a batch or a stream."""
    table = lake.create_table("d.a", COLUMNS)
    put(table, 1)
    reader = lambda: spark.readStream.format("lakelet").option("warehouse", lake.location)  # noqa: E731
    early = Run(lambda: reader().option("scan.timestamp-millis", "1").load("d.a"), tmp_path / "early")
    assert early() == [[(1, "a")]]
    table.add_column("note", "STRING")
    table.write([{"id": 2, "v": "b", "note": "n"}])
    first = lambda: reader().option("scan.snapshot-id", "1")  # noqa: E731
    with pytest.raises(StreamingQueryException, match="say that this is a stream"):
        Run(lambda: first().load("d.a"), tmp_path / "c")()
    frame = first().option("read.changelog", "false").load("d.a")
    assert Run(lambda: frame, tmp_path / "c")() == [[(1, "a", None), (2, "b", "n")]]
    lake.drop_table("d.a")
    with pytest.raises(StreamingQueryException, match=r"NotFoundError: table 'd\.a' is not in"):
        Run(lambda: frame, tmp_path / "c")()


def test_a_rollback_under_the_stream_stops_it(spark: SparkSession, lake: Lake, keyed: Table, tmp_path: Path) -> None:
    put(keyed, 1)
    put(keyed, 2)
    run = Run(lambda: ls.read_stream(spark, lake.location, "d.k"), tmp_path / "c")
    assert run() == [[(1, "a"), (2, "a")]]
    keyed.rollback(1)
    put(keyed, 3)
    with pytest.raises(
        StreamingQueryException, match="snapshot 2, which is another one now, since the table was rolled back"
    ):
        run()


def test_wrong_options_are_refused_on_the_driver(spark: SparkSession, lake: Lake, keyed: Table) -> None:
    with pytest.raises(InvalidError, match=r"scan\.mode"):
        ls.read_stream(spark, lake.location, "d.k", scan_mode="nonsense")
    with pytest.raises(InvalidError, match="as an argument of read_stream, too"):
        ls.read_stream(spark, lake.location, "d.k", options={"Consumer-Id": "c"}, consumer_id="d")
    with pytest.raises(InvalidError, match=r"no\.such"):
        ls.read_stream(spark, lake.location, "d.k", options={"no.such": "c"})


@pytest.mark.parametrize(
    ("mode", "point", "expected"),
    [
        ("compacted-full", None, [[(0, "a"), (1, "a")], [(2, "a"), (3, "a")]]),
        ("from-snapshot-full", "scan.snapshot-id", [[(0, "a"), (1, "a")], [(2, "a"), (3, "a")]]),
        ("from-creation-timestamp", "scan.creation-time-millis", [[(2, "a"), (3, "a")]]),
        ("from-file-creation-time", "scan.file-creation-time-millis", [[(2, "a"), (3, "a")]]),
    ],
)
def test_where_streams_begin(
    spark: SparkSession, lake: Lake, tmp_path: Path, mode: str, point: str | None, expected: list[Rows]
) -> None:
    """Snapshots 1 and 2 add a row each, 3 compacts both, 4 and 5 add rows later."""
    table = lake.create_table("d.a", COLUMNS, options={"write-only": "true"})
    put(table, 0)
    put(table, 1)
    since = table.snapshots()[-1].time_ms + 1
    table.compact(full=True)
    at = {"scan.snapshot-id": 2, "scan.creation-time-millis": since, "scan.file-creation-time-millis": since}
    if mode == "from-file-creation-time":
        # The compacted file would be a young one.
        table.rollback(2)
    while table.home.clock.now_ms() <= since:
        pass
    put(table, 2)
    put(table, 3)
    options = {} if point is None else {point: at[point]}
    run = Run(
        lambda: ls.read_stream(spark, lake.location, "d.a", scan_mode=mode, options=options), tmp_path / "checkpoint"
    )
    assert [rows for rows in run() if rows] == expected
    put(table, 4)
    assert run() == [[(4, "a")]]
