"""Whose batches they are: checkpoints of other tables, deleted and restored ones, two queries with one identity."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import lakelet
import lakelet.spark as ls
from lakelet import ConflictError, InvalidError, Table
from lakelet.spark.stream.write import query as queries
from lakelet.spark.stream.write import table_sink
from lakelet.spark.stream.write.checkpoint_mark import scheme_of_running
from tests.spark.stream.sink_tables import add_file, file_stream, make_table, ordered, rows_of, run, stored


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    lake = lakelet.connect(str(tmp_path / "linked"))
    lake.create_database("shop")
    return lake


class Stream:
    """A stream of files into an append table, where a row that is written twice shows."""

    def __init__(self, spark: SparkSession, lake: lakelet.Lake, folder: Path, table: str = "shop.orders") -> None:
        self.spark = spark
        self.lake = lake
        self.folder = folder
        self.table = table
        self.given: dict[str, Any] = {"checkpoint": f"file://{folder}/check%20 point", "mode": "append"}
        self.batches = 0

    def add(self) -> None:
        add_file(self.folder / "in", self.batches, rows_of(self.batches))
        self.batches += 1

    def run(self, **more: Any) -> None:
        stream = file_stream(self.spark, self.folder / "in")
        run(lambda: ls.write_stream(stream, self.lake.location, self.table, **{**self.given, **more}))

    @property
    def checkpoint(self) -> Path:
        return self.folder / "check%20 point"

    def rows(self, *batches: int) -> list[dict[str, Any]]:
        return ordered([row for number in batches for row in rows_of(number)])


@pytest.fixture
def stream(spark: SparkSession, lake: lakelet.Lake, tmp_path: Path) -> Stream:
    made = Stream(spark, lake, tmp_path)
    made.add()
    return made


@pytest.fixture
def table(lake: lakelet.Lake) -> Table:
    return make_table(lake, "append")


@pytest.mark.parametrize("user", [None, "my job"])
def test_a_deleted_checkpoint_begins_anew(stream: Stream, table: Table, user: str | None) -> None:
    stream.run(commit_user=user)
    shutil.rmtree(stream.checkpoint)
    stream.add()
    stream.run(commit_user=user)
    assert stored(table) == stream.rows(0, 0, 1)


def test_a_checkpoint_of_another_table_is_refused(stream: Stream, lake: lakelet.Lake, table: Table) -> None:
    stream.run()
    other = make_table(lake, "append", "shop.other")
    with pytest.raises(InvalidError, match=r"is of a stream into shop\.orders, not into shop\.other"):
        Stream(stream.spark, lake, stream.folder, "shop.other").run()
    assert other.snapshots() == []
    stream.add()
    Stream(stream.spark, lake, stream.folder, "shop.other").run(resume=True)
    assert stored(other) == stream.rows(1)


def test_a_table_that_was_created_again_is_refused(stream: Stream, lake: lakelet.Lake, table: Table) -> None:
    stream.run()
    lake.drop_table("shop.orders")
    again = make_table(lake, "append")
    stream.add()
    with pytest.raises(InvalidError, match="dropped and created again"):
        stream.run()
    assert again.snapshots() == []


def test_a_checkpoint_of_another_sink_is_refused(stream: Stream, table: Table) -> None:
    stream.run()
    (stream.checkpoint / "lakelet" / "sink.json").unlink()
    stream.add()
    with pytest.raises(InvalidError, match="another sink wrote"):
        stream.run()
    assert stored(table) == stream.rows(0)


def test_a_restored_checkpoint_is_refused_until_resuming_is_asked_for(
    stream: Stream, table: Table, tmp_path: Path
) -> None:
    stream.run()
    shutil.copytree(stream.checkpoint, tmp_path / "copy")
    for _ in range(2):
        stream.add()
        stream.run()
    shutil.rmtree(stream.checkpoint)
    shutil.copytree(tmp_path / "copy", stream.checkpoint)
    with pytest.raises(StreamingQueryException, match="older than the table"):
        stream.run()
    stream.run(resume=True)
    assert stored(table) == stream.rows(0, 1, 2)


def test_two_queries_with_one_identity_are_found_out(stream: Stream, table: Table, tmp_path: Path) -> None:
    """A copied checkpoint has the id of the query: the second query's batches would be taken for the first one's."""
    stream.run()
    shutil.copytree(stream.checkpoint, tmp_path / "copy")
    stream.add()
    stream.run()
    for _ in range(2):
        stream.add()
    # The first batch of the copy has the number of the other query's last one.
    with pytest.raises(StreamingQueryException, match="with other offsets than the checkpoint"):
        stream.run(checkpoint=str(tmp_path / "copy"))
    stream.run(checkpoint=str(tmp_path / "copy"), resume=True)
    with pytest.raises(StreamingQueryException, match="another query counts under the same user"):
        stream.run()
    assert stored(table) == stream.rows(0, 1, 2, 3)


@pytest.mark.parametrize("expired", [False, True])
def test_a_checkpoint_that_is_one_batch_older_than_the_table_is_refused(
    spark: SparkSession, lake: lakelet.Lake, table: Table, tmp_path: Path, expired: bool
) -> None:
    """What it plans has the number of the table's last batch, and rows that came later."""
    source, checkpoint, kept = tmp_path / "in", tmp_path / "cp", tmp_path / "kept"
    add_file(source, 0, rows_of(0))

    def start() -> None:
        files = file_stream(spark, source, per_batch=10)
        run(lambda: ls.write_stream(files, lake.location, "shop.orders", checkpoint=checkpoint, mode="append"))

    start()
    shutil.copytree(checkpoint, kept)
    add_file(source, 1, rows_of(1))
    start()
    shutil.rmtree(checkpoint)
    kept.rename(checkpoint)
    add_file(source, 2, rows_of(2))
    if expired:
        table.write(rows_of(9))
        table.expire_snapshots(retain_last=1, retain_max=1, older_than="0 s")
    with pytest.raises(StreamingQueryException, match="with other offsets than the checkpoint"):
        start()
    assert stored(table) == ordered([*rows_of(0), *rows_of(1), *(rows_of(9) if expired else [])])


def test_a_table_that_comes_back_into_a_mapping_is_refused(stream: Stream, lake: lakelet.Lake, table: Table) -> None:
    make_table(lake, "append", "shop.odd")
    both = {"shop.orders": None, "shop.odd": lambda batch: batch.where("id % 2 = 1")}

    def start(tables: Any, **more: Any) -> None:
        files = file_stream(stream.spark, stream.folder / "in")
        run(lambda: ls.write_stream(files, lake.location, tables, **{**stream.given, **more}))

    start(both)
    stream.add()
    start("shop.orders")
    stream.add()
    with pytest.raises(InvalidError, match=r"not into shop\.odd"):
        start(both)
    start(both, resume=True)
    assert stored(table) == stream.rows(0, 1, 2)
    assert stored(lake.table("shop.odd")) == [row for row in stream.rows(0, 2) if row["id"] % 2]


def test_a_batch_that_another_query_commits_meanwhile_is_no_repeated_one(
    stream: Stream, table: Table, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queries with one identity that both look back before either commits."""
    look_back = table_sink.TableSink.look_back

    def looked(sink: Any, opened: Any, identity: Any) -> Any:
        planned = look_back(sink, opened, identity)
        table.write(rows_of(5), commit_user=identity.user, commit_identifier=identity.batch_id)
        return planned

    monkeypatch.setattr(table_sink.TableSink, "look_back", looked)
    with pytest.raises(StreamingQueryException, match="two queries with one identity"):
        stream.run()
    assert stored(table) == stream.rows(5)


def test_a_folder_that_cannot_be_reached(
    stream: Stream, table: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(queries, "checkpoint_store", lambda *_: None)
    stream.run(commit_user="job")
    assert table.snapshots()[-1].commit_user == "job"
    stream.add()
    stream.run(commit_user="job")
    with pytest.raises(StreamingQueryException, match="committed by another query"):
        stream.run(commit_user="job", checkpoint=str(tmp_path / "new"))
    stream.add()
    stream.run(commit_user="job", checkpoint=str(tmp_path / "new"), resume=True)
    assert stored(table) == stream.rows(0, 1, 2)


@pytest.mark.parametrize("logged", [True, False])
def test_what_was_rolled_back_comes_again_only_where_spark_had_not_logged_it(
    stream: Stream, table: Table, logged: bool
) -> None:
    stream.run()
    stream.add()
    stream.run()
    table.rollback(1)
    if not logged:
        for log in (stream.checkpoint / "commits").glob("*1*"):
            log.unlink()
    stream.add()
    stream.run()
    assert stored(table) == (stream.rows(0, 2) if logged else stream.rows(0, 1, 2))


def test_a_folder_without_a_scheme_is_local_where_spark_uses_it(tmp_path: Path) -> None:
    """Over Spark Connect, and to a data source, nobody tells the default file system."""
    assert scheme_of_running(str(tmp_path)) == ""
    (tmp_path / "metadata").write_text("{}")
    assert scheme_of_running(str(tmp_path)) == scheme_of_running(os.path.relpath(tmp_path)) == "file"
    assert scheme_of_running(f"hdfs://node{tmp_path}") == ""


def test_a_broken_mark_is_told(stream: Stream, table: Table) -> None:
    stream.run()
    (stream.checkpoint / "lakelet" / "sink.json").write_text(json.dumps(["?"]))
    with pytest.raises(lakelet.CorruptionError, match=r"sink\.json"):
        stream.run()


def test_a_query_of_another_id_does_not_skip_batches(
    stream: Stream, table: Table, spark: SparkSession, lake: lakelet.Lake, tmp_path: Path
) -> None:
    """`write_batch` under a name that an earlier query had."""

    def start(checkpoint: str, user: str = "job") -> None:
        def body(batch: Any, batch_id: int) -> None:
            ls.write_batch(batch, batch_id, lake.location, "shop.orders", commit_user=user, mode="append")

        files = file_stream(spark, tmp_path / "in")
        writer = files.writeStream.foreachBatch(body).option("checkpointLocation", str(tmp_path / checkpoint))
        run(lambda: writer.trigger(availableNow=True).start())

    start("first")
    with pytest.raises(StreamingQueryException, match=ConflictError.__name__):
        start("second")
    # The record that expiry leaves of the user knows the query too.
    stored_rows = stored(table)
    table.write(rows_of(8))
    table.expire_snapshots(retain_last=1, retain_max=1, older_than="0 s")
    with pytest.raises(StreamingQueryException, match="committed by another query"):
        start("third")
    assert stored(table) == ordered([*stored_rows, *rows_of(8)])
    # Nobody knows of what query a commit without one was.
    table.write(rows_of(9), commit_user="other", commit_identifier=0)
    with pytest.raises(StreamingQueryException, match="cannot be known"):
        start("fourth", "other")
