"""Merge scans by bitmaps: superseded rows are left out of what Spark's own reader returns."""

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakelet
from lakelet import Lake, Table
from lakelet.spark.read.table_frame import table as read
from lakelet.spark.session import settings
from tests.spark.same_rows import assert_reads_like_scan, plan_text

pytestmark = [pytest.mark.spark]

_BY_TASKS = ("lakelet.spark.read.marked_files._DRIVER_BYTES", -1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = lakelet.connect(str(tmp_path))
    made.create_database("d")
    return made


def _keyed(lake: Lake, columns: list[tuple[str, str]], keys: list[str], **arguments: Any) -> Table:
    options = {"bucket": "2", "write-only": "true", **arguments.pop("options", {})}
    return lake.create_table("d.k", columns, primary_key=keys, options=options, **arguments)


def _texts(first: int, last: int) -> list[str | None]:
    return [None if number % 5 == 0 else f"{first}-{number}" for number in range(first, last)]


@pytest.mark.parametrize("how", ["looked up", "joined", "by tasks"])
def test_superseded_and_deleted_rows(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Several runs, deletes among them, small row groups and tasks of parts of files; Python reads keys alone, if that."""
    if how == "by tasks":
        monkeypatch.setattr(*_BY_TASKS)
    if how == "joined":
        monkeypatch.setattr("lakelet.spark.read.bitmap_lookup._MOST_WORDS", 0)
    table = _keyed(lake, [("id", "BIGINT"), ("v", "STRING")], ["id"], options={"file.block-size": "4 kb"})
    for first, last in ((0, 3000), (1500, 2500), (2000, 3500)):
        table.write(pa.table({"id": pa.array(range(first, last), pa.int64()), "v": _texts(first, last)}))
    table.delete(where="id BETWEEN 100 AND 140 OR id = 3400")
    with settings(spark, {"spark.sql.files.maxPartitionBytes": "10000", "spark.sql.files.openCostInBytes": "0"}):
        frame = assert_reads_like_scan(spark, str(tmp_path), table)
        assert ("MapInArrow" in plan_text(frame)) == (how == "by tasks")
        assert ("BroadcastHashJoin" in plan_text(frame)) == (how != "looked up")
        # Neither the plan's text grows with the rows, nor is a condition kept from the files.
        assert ("UnsafeArrayData@" in plan_text(frame)) == (how == "looked up")
        assert "EqualTo(v" in plan_text(frame.filter("v = '2000-2100'"))
        with settings(spark, {"spark.sql.ansi.enabled": "false", "spark.sql.codegen.wholeStage": "false"}):
            assert frame.filter("v = '2000-2101'").count() == 1
        assert frame.count() == 3500 - 42
        assert frame.filter("v LIKE '2000-%' AND id > 2100").count() == 1120
        for arguments in ({"columns": ["v"]}, {"where": "v IS NULL"}, {"columns": ["v"], "where": "v > '2'"}):
            assert_reads_like_scan(spark, str(tmp_path), table, **arguments)
        for version in (1, 2):
            assert_reads_like_scan(spark, str(tmp_path), table, version=version)


def test_what_tasks_find_is_kept(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first frame that is evaluated finds superseded rows by tasks, later ones take what these brought."""
    monkeypatch.setattr("lakelet.spark.read.marked_files._DRIVER_BYTES", 0)
    table = _keyed(lake, [("id", "BIGINT"), ("v", "STRING")], ["id"])
    for first, last in ((0, 3000), (1500, 2500)):
        table.write(pa.table({"id": pa.array(range(first, last), pa.int64()), "v": _texts(first, last)}))
    assert "MapInArrow" in plan_text(assert_reads_like_scan(spark, str(tmp_path), table))
    again = assert_reads_like_scan(spark, str(tmp_path), table, where="v IS NOT NULL")
    assert "MapInArrow" not in plan_text(again)
    table.write(pa.table({"id": pa.array([7], pa.int64()), "v": ["new"]}))
    assert "MapInArrow" in plan_text(assert_reads_like_scan(spark, str(tmp_path), table))


def test_frames_of_few_calls(spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call into the JVM costs as much as reading a hundred rows: one frame for files with hidden rows and few without, whose
    columns are one text each. Names that Spark has for other things, and its row-based reader, are no matter."""
    columns = [
        ("id", "BIGINT"),
        ("_metadata", "INT"),
        ("row_index", "FLOAT"),
        *((f"c {n}", "DOUBLE") for n in range(9)),
    ]
    table = _keyed(lake, columns, ["id"], options={"bucket": "1"})
    for first, last in ((0, 300), (250, 340)):
        numbers = pa.array(range(first, last), pa.int64())
        values = [numbers.cast(pa.int32()), *[numbers.cast(pa.float32())], *[numbers.cast(pa.float64())] * 9]
        table.write(pa.table([numbers, *values], names=[name for name, _ in columns]))
    frame = assert_reads_like_scan(spark, str(tmp_path), table)
    assert "Union" not in plan_text(frame)
    assert_reads_like_scan(spark, str(tmp_path), table, columns=["_metadata"], where="row_index > 299")
    with settings(spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        assert_reads_like_scan(spark, str(tmp_path), table)
    calls = 0
    send = ClientServerConnection.send_command

    def counted(connection: ClientServerConnection, command: str) -> Any:
        nonlocal calls
        calls += 1
        return send(connection, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    read(spark, tmp_path, "d.k")
    assert calls < 120


_KEYS: dict[str, tuple[list[tuple[str, str]], Callable[[int], tuple[Any, ...]]]] = {
    "uuid": ([("k", "STRING")], lambda number: (str(uuid.UUID(int=number * 7919)),)),
    "text and number": ([("k", "STRING"), ("Part No.", "INT")], lambda number: (f"é{number % 3}", number - 40)),
    "bytes": ([("k", "BYTES")], lambda number: (bytes([number % 251, number // 251]),)),
    "decimal": ([("k", "DECIMAL(20, 2)")], lambda number: (Decimal(number - 50).scaleb(-2),)),
}


@pytest.mark.parametrize("kind", _KEYS)
def test_kinds_of_keys_partitions_and_evolved_columns(
    spark: SparkSession, lake: Lake, tmp_path: Path, kind: str
) -> None:
    """Old and new files of one key lie under different schemas and are joined with the same bitmaps."""
    columns, key = _KEYS[kind]
    names = [name for name, _ in columns]
    table = _keyed(
        lake, [*columns, ("d", "DATE"), ("a b", "INT")], [*names, "d"], partitioned_by=["d"], options={"bucket": "1"}
    )

    def write(numbers: range, **values: Any) -> None:
        rows = [
            {**dict(zip(names, key(number), strict=True)), "d": dt.date(2024, 1, 1 + number % 2), **values}
            for number in numbers
        ]
        table.write(pa.Table.from_pylist(rows, table.scan().arrow_schema))

    write(range(300), **{"a b": 1})
    write(range(100, 200), **{"a b": None})
    table.rename_column("a b", "c")
    table.change_type("c", "BIGINT")
    table.add_column("size", "STRING")
    write(range(150, 330), c=2**40, size="new")
    frame = assert_reads_like_scan(spark, str(tmp_path), table)
    assert "MapInArrow" not in plan_text(frame)
    assert_reads_like_scan(spark, str(tmp_path), table, columns=["size"], where="c IS NULL OR d = '2024-01-02'")


def test_what_is_left_to_the_merge(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Files that are not Parquet, conditions on the key, and splits of mostly superseded rows."""
    columns = [("id", "BIGINT"), ("v", "INT")]

    def written(table: Table, times: int = 2) -> Table:
        for number in range(times):
            rows = pa.array(range(number, 100 + number), pa.int64())
            table.write(pa.table({"id": rows, "v": pa.array([number] * 100, pa.int32())}))
        return table

    made = {
        name: written(lake.create_table(f"d.{name}", columns, primary_key=["id"], options={"bucket": "1", **options}))
        for name, options in {
            "orc": {"file.format": "orc"},
            "plain": {},
            "ordered": {"sequence.field": "v"},
        }.items()
    }
    for name, table in made.items():
        frame = assert_reads_like_scan(spark, str(tmp_path), table)
        assert ("MapInArrow" in plan_text(frame)) == (name == "orc"), name
    assert "MapInArrow" in plan_text(assert_reads_like_scan(spark, str(tmp_path), made["plain"], where="id > 50"))
    many = lake.create_table("d.many", columns, primary_key=["id"], options={"bucket": "1", "write-only": "true"})
    assert "MapInArrow" in plan_text(assert_reads_like_scan(spark, str(tmp_path), written(many, 4)))


def test_a_file_that_is_not_the_one_of_the_manifest(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Its rows have no bitmap: an error, neither all rows nor none."""
    table = _keyed(lake, [("id", "BIGINT"), ("v", "STRING")], ["id"], options={"bucket": "1"})
    table.write(pa.table({"id": pa.array(range(100), pa.int64()), "v": _texts(0, 100)}))
    table.write(pa.table({"id": pa.array(range(50, 80), pa.int64()), "v": _texts(50, 80)}))
    frame = read(spark, tmp_path, "d.k")
    assert frame.count() == 100
    first = max(table.files(), key=lambda pair: pair[1].row_count)[0]
    rows = pq.read_table(tmp_path / first)
    pq.write_table(rows, tmp_path / first, compression="none")
    spark.catalog.clearCache()
    with pytest.raises(PySparkException, match="not the one that its manifest describes"):
        read(spark, tmp_path, "d.k").collect()
