"""ls.write_iceberg_stream and ls.write_iceberg_batch: each batch once, also after its snapshot has expired."""

import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import lakelet.spark as ls
from lakelet import InvalidError
from lakelet.iceberg.commit.stream_batch import StreamBatch
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.iceberg.write.table_writer import TableWriter
from tests.spark.iceberg_lakes import IcebergLake
from tests.spark.same_rows import counted
from tests.spark.stream.sink_tables import SCHEMA, Row, add_file, file_stream, rows_of, run

COLUMNS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "dt", StringType()),
    NestedField(3, "v", LongType()),
    NestedField(4, "note", StringType()),
)
BY_DT = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "dt"))
ARROW = pa.schema([("id", "int64"), ("dt", "string"), ("v", "int64"), ("note", "string")])


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    lake = IcebergLake.new(tmp_path / "wh")
    lake.create(COLUMNS, BY_DT)
    return lake


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)


def expected(*batches: list[Row]) -> Counter[Any]:
    return counted(pa.Table.from_pylist([row for batch in batches for row in batch], ARROW))


@pytest.mark.parametrize("driver_rows", [100_000, 0])
def test_a_stream_gives_the_rows_of_its_batches(
    spark: SparkSession, lake: IcebergLake, tmp_path: Path, driver_rows: int
) -> None:
    for batch in range(2):
        add_file(tmp_path / "in", batch, rows_of(batch))
        run(
            lambda: ls.write_iceberg_stream(
                file_stream(spark, tmp_path / "in"),
                "iceberg",
                "db.t",
                checkpoint=tmp_path / "checkpoint",
                warehouse=lake.location,
                driver_rows=driver_rows,
                commit_user="job",
            )
        )
    assert lake.rows() == expected(rows_of(0), rows_of(1))
    assert len(lake.table().snapshots()) == 2


@pytest.mark.parametrize("driver_rows", [100_000, 0])
def test_a_batch_is_applied_once_also_after_its_snapshot_expired(
    spark: SparkSession, lake: IcebergLake, driver_rows: int
) -> None:
    given: dict[str, Any] = {"commit_user": "job", "warehouse": lake.location, "driver_rows": driver_rows}
    made = ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", **given)
    assert made is not None
    assert ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", **given) == made
    ls.write_iceberg_batch(frame(spark, rows_of(1)), 0, "iceberg", "db.t", **{**given, "commit_user": "other"})
    table = lake.table()
    table.maintenance.expire_snapshots().by_id(made.id).commit()
    assert ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", **given) is not None
    assert lake.rows() == expected(rows_of(0), rows_of(1))


def test_partitions_of_a_batch_are_replaced(spark: SparkSession, lake: IcebergLake) -> None:
    given: dict[str, Any] = {"commit_user": "job", "warehouse": lake.location}
    ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", **given)
    new = [row for row in rows_of(4) if row["dt"] == "d1"]
    ls.write_iceberg_batch(frame(spark, new), 1, "iceberg", "db.t", mode="overwrite_partitions", **given)
    kept = [row for row in rows_of(0) if row["dt"] == "d0"]
    assert lake.rows() == expected(kept, new)
    assert ls.write_iceberg_batch(frame(spark, []), 2, "iceberg", "db.t", **given) is None


def test_a_batch_is_known_on_its_branch_alone(spark: SparkSession, lake: IcebergLake) -> None:
    """One number may name other rows on another branch; a branch has the batches of the snapshots that it begins with."""
    given: dict[str, Any] = {"commit_user": "job", "warehouse": lake.location}
    lake.table().append(pa.Table.from_pylist(rows_of(7), ARROW))
    lake.table().manage_snapshots().create_branch(lake.table().current_snapshot().snapshot_id, "audit").commit()
    ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", **given)
    ls.write_iceberg_batch(frame(spark, rows_of(1)), 0, "iceberg", "db.t", branch="audit", **given)
    assert lake.rows() == expected(rows_of(7), rows_of(0))
    audit = lake.table().scan().use_ref("audit").to_arrow()
    assert counted(audit) == expected(rows_of(7), rows_of(1))
    lake.table().manage_snapshots().create_branch(lake.table().current_snapshot().snapshot_id, "later").commit()
    ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", branch="later", **given)
    assert counted(lake.table().scan().use_ref("later").to_arrow()) == expected(rows_of(7), rows_of(0))


def test_a_checkpoint_that_is_one_batch_older_than_the_table_is_refused(
    spark: SparkSession, lake: IcebergLake, tmp_path: Path
) -> None:
    """What it plans has the number of the table's last batch, and rows of its own."""

    def start(checkpoint: str) -> None:
        stream = file_stream(spark, tmp_path / "in")
        folder = tmp_path / checkpoint
        run(lambda: ls.write_iceberg_stream(stream, "iceberg", "db.t", checkpoint=folder, warehouse=lake.location))

    add_file(tmp_path / "in", 0, rows_of(0))
    start("cp")
    shutil.copytree(tmp_path / "cp", tmp_path / "kept")
    add_file(tmp_path / "in", 1, rows_of(1))
    start("cp")
    with pytest.raises(StreamingQueryException, match="with other offsets than the checkpoint"):
        start("kept")
    assert lake.rows() == expected(rows_of(0), rows_of(1))


@pytest.mark.parametrize("driver_rows", [100_000, 0])
@pytest.mark.parametrize("other", [("another-query", "offsets"), None])
def test_a_batch_that_another_query_commits_meanwhile_is_no_repeated_one(
    spark: SparkSession,
    lake: IcebergLake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver_rows: int,
    other: tuple[str, str] | None,
) -> None:
    """Both look back before either commits. The same query's is a repeated one, and its rows are there once."""
    applied = IcebergTransaction.applied

    def looked(self: IcebergTransaction) -> Any:
        found = applied(self)
        monkeypatch.undo()
        ours = self._batch
        assert ours is not None
        batch = StreamBatch(ours.user, ours.batch_id, *(other or (ours.query_id, ours.offsets)))
        meanwhile = IcebergTransaction(lake.lake.catalogs.open("iceberg").table("db.t"), batch=batch)
        writer = TableWriter(meanwhile.begin_insert(), "7")
        for rows in pa.Table.from_pylist(rows_of(5 if other else 0), ARROW).to_batches():
            writer.write(rows)
        meanwhile.update_commit_data(writer.close())
        meanwhile.finish_insert()
        return found

    monkeypatch.setattr(IcebergTransaction, "applied", looked)
    add_file(tmp_path / "in", 0, rows_of(0))

    def start() -> Any:
        stream, folder = file_stream(spark, tmp_path / "in"), tmp_path / "cp"
        return ls.write_iceberg_stream(
            stream, "iceberg", "db.t", checkpoint=folder, warehouse=lake.location, driver_rows=driver_rows
        )

    with pytest.raises(StreamingQueryException, match="two queries with one identity") if other else nullcontext():
        run(start)
    assert lake.rows() == expected(rows_of(5 if other else 0))
    assert lake.unlisted() == set()


def test_bad_input(spark: SparkSession, lake: IcebergLake, tmp_path: Path) -> None:
    given: dict[str, Any] = {"commit_user": "job", "warehouse": lake.location}
    with pytest.raises(InvalidError, match="mode 'upsert'"):
        ls.write_iceberg_batch(frame(spark, rows_of(0)), 0, "iceberg", "db.t", mode="upsert", **given)
    with pytest.raises(InvalidError, match="does not fit the table"):
        ls.write_iceberg_batch(spark.range(3).withColumnRenamed("id", "x"), 0, "iceberg", "db.t", **given)
    wrong = file_stream(spark, tmp_path / "in").selectExpr("id", "v AS note")
    with pytest.raises(InvalidError, match="column 'note' is STRING; the data has BIGINT"):
        ls.write_iceberg_stream(wrong, "iceberg", "db.t", checkpoint=tmp_path / "cp", warehouse=lake.location)
    lake.create(COLUMNS, name="db.other")
    add_file(tmp_path / "in", 0, rows_of(0))

    def start(table: str) -> Any:
        stream = file_stream(spark, tmp_path / "in")
        return ls.write_iceberg_stream(stream, "iceberg", table, checkpoint=tmp_path / "cp", warehouse=lake.location)

    run(lambda: start("db.t"))
    with pytest.raises(InvalidError, match="is of a stream into"):
        start("db.other")
    catalog = lake.lake.catalogs.open("iceberg").library
    catalog.drop_table("db.t")
    lake.create(COLUMNS)
    with pytest.raises((InvalidError, StreamingQueryException), match="created again"):
        run(lambda: start("db.t"))
    assert lake.table().snapshots() == []
