"""df.writeStream.format("lakelet"): batches of append and postpone tables, known by commit.user and their number."""

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakelet
import lakelet.spark as ls
from lakelet.errors import ConflictError, LakeletError
from lakelet.spark.source.writer import TaskFiles
from lakelet.spark.stream.write.stream_writer import LakeletStreamWriter
from lakelet.spark.types import spark_schema
from tests.spark.stream.sink_tables import add_file, file_stream, make_table, merged, ordered, rows_of, run, stored


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> lakelet.Lake:
    ls.register(spark)
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("shop")
    return lake


def start(spark: SparkSession, lake: lakelet.Lake, folder: Path, **options: Any) -> Any:
    writer = file_stream(spark, folder / "in").writeStream.format("lakelet").trigger(availableNow=True)
    given = {"warehouse": lake.location, "checkpointLocation": str(folder / "cp"), **options}
    for key, text in given.items():
        writer = writer.option(key.replace("__", "."), text)
    return writer.start("shop.orders")


@pytest.mark.parametrize("mode", ["append", "postpone"])
def test_batches_are_written_once(spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, mode: str) -> None:
    table = make_table(lake, mode)
    for batch in range(2):
        add_file(tmp_path / "in", batch, rows_of(batch))
    run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    # As if Spark had died before its own log of the last batch: it sends the batch again.
    for log in (tmp_path / "cp" / "commits").glob("*1*"):
        log.unlink()
    run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    assert stored(table) == merged([rows_of(0), rows_of(1)], keyed=mode != "append")
    numbers = [one.commit_identifier for one in table.snapshots() if one.commit_user.startswith("job-")]
    assert numbers == [0, 1]
    shutil.rmtree(tmp_path / "cp")
    run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    twice = [rows_of(0), rows_of(1), rows_of(0), rows_of(1)]
    assert stored(table) == merged(twice, keyed=mode != "append")


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("append", {}, r"needs the option 'commit\.user'"),
        ("fixed", {"commit__user": "job"}, "must be routed to their buckets"),
        ("append", {"commit__user": "job", "resume": "maybe"}, "option 'resume'"),
        ("append", {"commit__user": "job", "commit-identifier": "1"}, "have their own numbers"),
    ],
)
def test_what_is_refused(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path, mode: str, options: dict[str, str], message: str
) -> None:
    table = make_table(lake, mode)
    add_file(tmp_path / "in", 0, rows_of(0))
    with pytest.raises((LakeletError, PySparkException), match=message):
        run(lambda: start(spark, lake, tmp_path, **options))
    assert table.snapshots() == []


def test_a_checkpoint_of_another_table_is_refused(spark: SparkSession, lake: lakelet.Lake, tmp_path: Path) -> None:
    make_table(lake, "append")
    add_file(tmp_path / "in", 0, rows_of(0))
    run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    lake.drop_table("shop.orders")
    again = make_table(lake, "append")
    add_file(tmp_path / "in", 1, rows_of(1))
    with pytest.raises((LakeletError, PySparkException), match="created again"):
        run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    assert again.snapshots() == []


def test_a_batch_is_known_however_its_checkpoint_is_spelled(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path
) -> None:
    table = make_table(lake, "append")
    add_file(tmp_path / "in", 0, rows_of(0))
    (tmp_path / "link").symlink_to(tmp_path / "cp")
    folder = str(tmp_path / "cp")
    for spelled in (os.path.relpath(folder), folder, f"file:{folder}", f"file://{folder}/", str(tmp_path / "link")):
        run(lambda at=spelled: start(spark, lake, tmp_path, commit__user="job", checkpointLocation=at))
        # Spark sends the batch again in the next run.
        for log in (tmp_path / "cp" / "commits").iterdir():
            log.unlink()
    assert stored(table) == ordered(rows_of(0))


def test_a_checkpoint_that_is_one_batch_older_than_the_table_is_refused(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path
) -> None:
    """What it plans has the number of the table's last batch, and rows of its own."""
    table = make_table(lake, "append")
    add_file(tmp_path / "in", 0, rows_of(0))
    run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    shutil.copytree(tmp_path / "cp", tmp_path / "kept")
    add_file(tmp_path / "in", 1, rows_of(1))
    run(lambda: start(spark, lake, tmp_path, commit__user="job"))
    with pytest.raises(PySparkException, match="with other offsets than the checkpoint"):
        run(lambda: start(spark, lake, tmp_path, commit__user="job", checkpointLocation=str(tmp_path / "kept")))
    assert stored(table) == merged([rows_of(0), rows_of(1)], keyed=False)


def test_commits_without_a_mark_and_aborts(spark: SparkSession, lake: lakelet.Lake) -> None:
    """Without Spark: where the folder cannot be reached batch 0 of a known user is refused; an abort spares committed files."""
    table = make_table(lake, "append")
    given = {
        "warehouse": lake.location,
        "table": "shop.orders",
        "commit.user": "job",
        "checkpointLocation": "hdfs://n/x",
    }

    def written(number: int, **more: str) -> tuple[LakeletStreamWriter, TaskFiles]:
        writer = LakeletStreamWriter.of({**given, **more}, spark_schema(table.schema.fields), overwrite=False)
        return writer, writer.write(iter(pa.Table.from_pylist(rows_of(number)).to_batches()))

    writer, files = written(0)
    writer.commit([files], 0)
    writer.abort([files, None], 0)
    assert stored(table) == ordered(rows_of(0))
    again, others = written(1)
    with pytest.raises(ConflictError, match="cannot be known"):
        again.commit([others], 0)
    writer, files = written(2, resume="true")
    writer.commit([files], 0)
    writer, files = written(3)
    writer.commit([files], 1)
    writer, files = written(3)
    writer.commit([files], 1)
    assert stored(table) == ordered([*rows_of(0), *rows_of(3)])
    # What was not committed is gone.
    assert len(list(Path(table.location).rglob("data-*.parquet"))) == len(table.files())
