"""Parquet folders that become tables in place: every reader sees their rows, no file is lost or adopted twice."""

import os
import uuid
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet import ConflictError, InvalidError, Lake, NotFoundError, UnavailableError, connect
from lakelet.catalog.migration import adopted_file, migration
from lakelet.catalog.migration.journal import NAME, Journal, begin_journal, read_journal
from lakelet.catalog.migration.source_files import SourceFile, open_folder
from lakelet.spark.jobs.migrate import migrate
from lakelet.spark.read.table_frame import table
from lakelet.storage.open import open_store
from tests.services.server import S3Service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = connect(str(tmp_path / "warehouse"))
    found.create_database("db")
    return found


def rows(first: int, count: int = 3) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([f"n{number}" if number % 2 else None for number in numbers]),
            "price": pa.array([Decimal(number) / 4 for number in numbers], pa.decimal128(10, 2)),
            "at": pa.array([datetime(2026, 1, 1, 0, 0, number) for number in numbers], pa.timestamp("us")),
            "ratio": pa.array([float("nan") if number == 2 else number / 2 for number in numbers]),
            "tags": pa.array([["a", None]] * count, pa.list_(pa.string())),
        }
    )


def put(data: pa.Table, *path: str | Path, **options: Any) -> Path:
    target = Path(*path)
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, target, **options)
    return target


def ids(lake: Lake, name: str = "db.t", **scan: Any) -> list[int]:
    return sorted(lake.table(name).scan(**scan).to_arrow().column("id").to_pylist())


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_flat_folder_becomes_a_table(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    inodes = {os.stat(put(rows(10 * number), folder, f"part-{number}.parquet")).st_ino for number in range(3)}
    put(rows(0).slice(0, 0), folder, "empty.parquet")
    (folder / "_SUCCESS").touch()
    done = migrate(spark, lake.location, "db.t", folder, table_options={"metadata.stats-mode": "full"})
    assert (done.files, done.rows) == (3, 9)
    assert done.snapshot is not None
    assert done.snapshot.total_record_count == 9
    adopted = lake.table("db.t")
    assert adopted.scan().to_arrow().sort_by("id").to_pylist()[0]["name"] is None
    assert ids(lake) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert {os.stat(Path(lake.location, path)).st_ino for path, _ in adopted.files()} == inodes
    assert files_below(folder) == ["_SUCCESS", "empty.parquet"]
    assert adopted.scan(where="id >= 20").plan().files == 1
    assert adopted.scan(where="ratio > 100").to_arrow().num_rows == 1, "NaN is the greatest value"
    assert migrate(spark, lake.location, "db.t", folder).snapshot is None
    adopted.write(rows(30))
    assert adopted.scan().count() == 12


def test_hive_partitions(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    put(rows(0), folder, "dt=2026-01-01", "kind=a%3Ab", "x.snappy.parquet", compression="snappy")
    put(rows(10), folder, "dt=2026-01-02", "kind=__HIVE_DEFAULT_PARTITION__", "000000_0")
    migrate(spark, lake.location, "db.t", folder, partitioned_by=[("dt", "DATE"), "kind"])
    adopted = lake.table("db.t")
    assert adopted.schema.partition_keys == ("dt", "kind")
    found = adopted.scan(columns=["kind", "dt", "id"]).to_arrow().sort_by("id").to_pylist()
    assert found[0] == {"kind": "a:b", "dt": date(2026, 1, 1), "id": 0}
    assert found[3] == {"kind": None, "dt": date(2026, 1, 2), "id": 10}
    assert ids(lake, where="dt = DATE '2026-01-02'") == [10, 11, 12]
    assert ids(lake, where="kind = 'a:b' AND id > 1") == [2]
    adopted.add_column("more", "INT")
    adopted.write(
        rows(20).append_column("dt", pa.array([date(2026, 1, 1)] * 3)).append_column("kind", pa.array(["c"] * 3))
    )
    assert ids(lake, where="dt = DATE '2026-01-01'") == [0, 1, 2, 20, 21, 22]
    put(rows(40), folder, "dt=2026-01-03", "kind=d", "y.parquet")
    adopted.drop_column("more")
    assert migrate(spark, lake.location, "db.t", folder).files == 1
    assert ids(lake, where="kind = 'd'") == [40, 41, 42]


def test_spark_reads_adopted_partitions(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    put(rows(0), tmp_path / "events", "dt=2026-01-01", "x.parquet")
    migrate(spark, lake.location, "db.t", tmp_path / "events", partitioned_by=[("dt", "DATE")])
    found = table(spark, lake.location, "db.t", columns=["id", "dt"]).orderBy("id").collect()
    assert [tuple(row) for row in found] == [(number, date(2026, 1, 1)) for number in range(3)]


def test_what_spark_wrote_itself(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    text = (
        "SELECT id, CAST(id AS INT) AS i, CAST(id / 7 AS DECIMAL(20, 3)) AS big, CAST(id AS DECIMAL(8, 2)) AS small, "
        "timestamp_seconds(id) AS instant, CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ) AS local, date_add(DATE'1960-01-01', "
        "CAST(id AS INT)) AS day, map('k', id) AS m, struct(id AS x, 'y' AS y) AS s, CAST('b' AS BINARY) AS b, "
        "id % 2 AS part FROM range(10)"
    )
    frame = spark.sql(text)
    folder = tmp_path / "spark"
    frame.coalesce(1).write.partitionBy("part").parquet(str(folder))
    migrate(spark, lake.location, "db.t", folder, partitioned_by=[("part", "BIGINT")])
    found = lake.table("db.t").scan().to_arrow().sort_by("id").to_pylist()
    expected = frame.orderBy("id").toArrow().to_pylist()
    assert len(found) == 10
    for one, other in zip(found, expected, strict=True):
        assert one | {"instant": None, "local": None} == other | {"instant": None, "local": None}
        for name in ("instant", "local"):
            assert one[name].isoformat()[:19] == other[name].isoformat()[:19]


def test_files_that_cannot_be_adopted_are_listed(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    put(rows(0), folder, "a.parquet")
    put(rows(0).drop_columns(["name"]), folder, "b.parquet")
    put(rows(0).append_column("more", pa.array([1, 2, 3])), folder, "c.parquet")
    put(rows(0).set_column(0, "id", pa.array([1, 2, 3], pa.int32())), folder, "d.parquet")
    put(rows(0).cast(rows(0).schema.set(3, pa.field("at", pa.timestamp("ms")))), folder, "e.parquet")
    (folder / "f.parquet").write_bytes(b"PAR1 or not")
    before = files_below(folder)
    with pytest.raises(InvalidError) as raised:
        migrate(spark, lake.location, "db.t", folder)
    text = str(raised.value)
    assert "5 files cannot be adopted" in text
    for name, why in [
        ("b", "column 'name', STRING, is missing"),
        ("c", "column 'more' is not in the table"),
        ("d", "column 'id' is BIGINT, which is stored as INT64; found INT32"),
        ("e", "found INT64 (timestamp in milliseconds)"),
        ("f", "f.parquet"),
    ]:
        assert any(f"/{name}.parquet" in line and why in line for line in text.splitlines()), (name, text)
    assert "a.parquet" not in text
    assert files_below(folder) == before
    assert not lake.table_exists("db.t")


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda folder: put(rows(0), folder, "sub", "a.parquet"), "names no partition"),
        (
            lambda folder: [put(rows(0), folder, "a=1", "a.parquet"), put(rows(0), folder, "b.parquet")],
            "differ in their",
        ),
        (lambda folder: put(rows(0), folder, "dt=2026-13-01", "a.parquet"), "is no DATE"),
        (
            lambda folder: put(
                rows(0).append_column("dt", pa.array([date(2026, 1, 2)] * 3)), folder, "dt=2026-01-01/a.parquet"
            ),
            "other values than its folder",
        ),
    ],
)
def test_folders_that_make_no_sense(
    spark: "SparkSession", lake: Lake, tmp_path: Path, prepare: Callable[[Path], object], words: str
) -> None:
    prepare(tmp_path / "events")
    with pytest.raises(InvalidError, match=words):
        migrate(
            spark,
            lake.location,
            "db.t",
            tmp_path / "events",
            partitioned_by=[("dt", "DATE")] if "dt" in words or "DATE" in words else (),
        )
    assert not lake.table_exists("db.t")


def test_tables_and_folders_that_cannot_be(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    put(rows(0), tmp_path / "events", "a.parquet")
    lake.create_table("db.keyed", rows(0).schema, primary_key=["id"], options={"bucket": "1"})
    with pytest.raises(InvalidError, match="without buckets"):
        migrate(spark, lake.location, "db.keyed", tmp_path / "events")
    lake.create_table("db.parted", rows(0).schema, partitioned_by=["name"])
    with pytest.raises(InvalidError, match="partitioned by name; the folders name nothing"):
        migrate(spark, lake.location, "db.parted", tmp_path / "events")
    with pytest.raises(InvalidError, match="within each other"):
        migrate(spark, lake.location, "db.parted", tmp_path / "warehouse")
    with pytest.raises(NotFoundError, match="is no folder"):
        migrate(spark, lake.location, "db.t", tmp_path / "none")


@pytest.mark.parametrize("stop", ["commit", "delete", "journal"])
def test_a_migration_that_stopped_is_finished_by_the_next(
    spark: "SparkSession", lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    folder = tmp_path / "events"
    for number in range(3):
        put(rows(10 * number), folder, f"part-{number}.parquet")

    def fails(*_: object, **__: object) -> None:
        raise UnavailableError("the lights went out")

    with monkeypatch.context() as patched:
        if stop == "commit":
            patched.setattr(migration, "_messages", fails)
        elif stop == "delete":
            patched.setattr(type(lake._store), "delete", fails)
        else:
            patched.setattr(migration, "remove_journal", fails)
        with pytest.raises(UnavailableError, match="lights"):
            migrate(spark, lake.location, "db.t", folder)
    assert (folder / NAME).exists()
    assert len(files_below(folder)) == (1 if stop == "journal" else 4)
    assert len(ids(lake)) == (0 if stop == "commit" else 9)
    lake.create_table("db.other", rows(0).schema)
    with pytest.raises(InvalidError, match=r"a migration into .*/t was begun"):
        migrate(spark, lake.location, "db.other", folder)
    put(rows(50), folder, "late.parquet")
    done = migrate(spark, lake.location, "db.t", folder)
    assert (done.files, done.rows) == (4, 12)
    assert ids(lake) == [0, 1, 2, 10, 11, 12, 20, 21, 22, 50, 51, 52]
    assert files_below(folder) == []
    assert len(lake.table("db.t").snapshots()) == 2


def test_a_table_that_was_dropped_meanwhile_is_migrated_anew(
    spark: "SparkSession", lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "events"
    put(rows(0), folder, "a.parquet")

    def fails(*_: object) -> None:
        raise UnavailableError("the lights went out")

    with monkeypatch.context() as patched:
        patched.setattr(migration, "_messages", fails)
        with pytest.raises(UnavailableError):
            migrate(spark, lake.location, "db.t", folder)
    lake.drop_table("db.t")
    assert migrate(spark, lake.location, "db.t", folder).rows == 3
    assert ids(lake) == [0, 1, 2]


def test_of_two_migrations_at_once_one_is_refused(tmp_path: Path) -> None:
    source = open_folder(str(tmp_path), {})
    journal = Journal("table", None, "user", 0, ((SourceFile("a=1/x", 3, (("a", "1"),)), "data-1.parquet"),))
    begin_journal(source, journal)
    assert read_journal(source) == journal
    with pytest.raises(ConflictError, match="another migration"):
        begin_journal(source, journal)


def test_another_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuses)
    with pytest.raises(InvalidError, match="different file systems"):
        adopted_file._link(str(tmp_path / "a"), str(tmp_path / "b"))


def test_in_a_bucket(spark: "SparkSession", s3_seaweedfs: S3Service) -> None:
    address, options = s3_seaweedfs.url(f"migrate/{uuid.uuid4().hex}"), s3_seaweedfs.options
    source = open_store(f"{address}/events", options)
    for number in range(2):
        sink = pa.BufferOutputStream()
        pq.write_table(rows(10 * number), sink)
        source.put(f"dt=2026-01-0{number + 1}/part-{number}.parquet", sink.getvalue().to_pybytes())
    lake = connect(f"{address}/warehouse", options)
    lake.create_database("db")
    done = migrate(spark, lake.location, "db.t", source.location, partitioned_by=[("dt", "DATE")], options=options)
    assert (done.files, done.rows) == (2, 6)
    assert ids(lake, where="dt = DATE '2026-01-02'") == [10, 11, 12]
    assert not list(source.list(""))
