"""Tables as Spark frames: versions, evolution, deleted rows, odd paths, files that vanish, settings that change."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import lakelet
from lakelet import InvalidError, Lake, NotFoundError, Table
from lakelet.spark.read.table_frame import table as read
from lakelet.spark.session import settings
from tests.spark.same_rows import assert_reads_like_scan, assert_same, counted, plan_text
from tests.unit.read.test_split_reader import delete_rows

pytestmark = [pytest.mark.spark]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = lakelet.connect(str(tmp_path))
    made.create_database("d")
    return made


def _numbers(table: Table, first: int, last: int, **columns: Any) -> None:
    table.write(pa.table({"id": pa.array(range(first, last), pa.int64()), **columns}))


# ---------------------------------------------------------------------- versions and arguments


def test_versions(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")])
    assert read(spark, tmp_path, "d.t").collect() == []
    assert read(spark, tmp_path, "d.t").schema == T.StructType([T.StructField("id", T.LongType())])
    _numbers(table, 0, 2)
    pinned = read(spark, tmp_path, "d.t")
    _numbers(table, 2, 4)
    assert sorted(row.id for row in pinned.collect()) == [0, 1]
    assert read(spark, tmp_path, "d.t").count() == 4
    assert read(spark, tmp_path, "d.t", version=1).count() == 2
    assert read(spark, tmp_path, "d.t", options={"scan.snapshot-id": "1"}).count() == 2
    assert read(spark, tmp_path, "d.t", where="id > 100").collect() == []


def test_changes(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT"), ("v", "STRING")])
    _numbers(table, 0, 3, v=["a", "b", "c"])
    table.delete(where="id = 1")
    _numbers(table, 3, 4, v=["d"])
    found = read(spark, tmp_path, "d.t", start=0)
    assert found.columns == ["_row_kind", "id", "v"]
    assert_same(counted(table.changes(0)), counted(found.toArrow()))
    some = read(spark, tmp_path, "d.t", start=1, end=2, columns=["v"], where="id < 2")
    assert [tuple(row) for row in some.collect()] == [("-D", "b")]
    assert read(spark, tmp_path, "d.t", start=3).collect() == []
    with pytest.raises(NotFoundError, match="snapshot"):
        read(spark, tmp_path, "d.t", start=1, end=9)
    with pytest.raises(InvalidError, match="0 <= start <= end"):
        read(spark, tmp_path, "d.t", start=2, end=1)
    with pytest.raises(InvalidError, match="end needs start"):
        read(spark, tmp_path, "d.t", end=1)
    with pytest.raises(InvalidError, match="version does not go"):
        read(spark, tmp_path, "d.t", start=0, version=1)


def test_changes_up_to_a_snapshot_that_was_rolled_back(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Its id belongs to another snapshot then."""
    table = lake.create_table("d.t", [("id", "BIGINT")])
    for number in range(2):
        _numbers(table, number, number + 1)
    frame = read(spark, tmp_path, "d.t", start=0)
    table.rollback(1)
    _numbers(table, 9, 10)
    with pytest.raises(PySparkException, match="snapshot 2 is another one since a rollback"):
        frame.collect()


def test_wrong_arguments(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")])
    _numbers(table, 0, 1)
    with pytest.raises(NotFoundError, match=r"d\.other"):
        read(spark, tmp_path, "d.other")
    with pytest.raises(NotFoundError, match="branch 'b'"):
        read(spark, tmp_path, "d.t", branch="b")
    with pytest.raises(NotFoundError, match="column 'x'"):
        read(spark, tmp_path, "d.t", columns=["x"])
    with pytest.raises(InvalidError, match="unknown column 'x'"):
        read(spark, tmp_path, "d.t", where="x = 1")
    with pytest.raises(InvalidError, match=r"no\.such\.option"):
        read(spark, tmp_path, "d.t", options={"no.such.option": "1"})


# ---------------------------------------------------------------------- what Spark reads itself, and what it does not


def test_types_that_spark_reads_differently(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Nanoseconds are cut towards the past, a TIME is milliseconds of the day, a MULTISET a map."""
    pairs = [("id", "BIGINT"), ("ns", "TIMESTAMP(9)"), ("at", "TIME(3)"), ("m", "MULTISET<STRING>"), ("z", "CHAR(3)")]
    table = lake.create_table("d.t", pairs)
    schema = table.scan().arrow_schema
    rows: list[list[Any]] = [[1, 2], [-1, 1_999], [dt.time(0, 0, 1), None], [[("a", 2)], []], ["a ", "b"]]
    table.write(
        pa.table([pa.array(column, field.type) for column, field in zip(rows, schema, strict=True)], schema=schema)
    )
    frame = assert_reads_like_scan(spark, str(tmp_path), table)
    found = {row.id: row for row in frame.collect()}
    assert found[1].ns == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert found[2].ns == dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    assert (found[1]["at"], found[1].m, found[1].z) == (1000, {"a": 2}, "a ")
    assert "MapInArrow" not in plan_text(read(spark, tmp_path, "d.t", columns=["id", "z"]))
    assert "MapInArrow" in plan_text(read(spark, tmp_path, "d.t", columns=["id"], where="ns < '1970-01-01'"))


def test_columns_that_differ_only_in_case(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT"), ("ID", "STRING"), ("s", "ROW<a INT, A INT>")])
    schema = table.scan().arrow_schema
    rows = [{"id": 1, "ID": "one", "s": {"a": 1, "A": 2}}, {"id": 2, "ID": None, "s": None}]
    table.write(pa.Table.from_pylist(rows, schema=schema))
    found = read(spark, tmp_path, "d.t", columns=["id", "ID"]).collect()
    assert sorted(map(tuple, found)) == [(1, "one"), (2, None)]
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        assert_reads_like_scan(spark, str(tmp_path), table)


def test_renamed_dropped_added_and_widened_columns(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Rule 19: files are read by the names they have, whatever Spark's field-id setting says when the frame is used."""
    table = lake.create_table("d.t", [("id", "BIGINT"), ("a", "INT"), ("b", "STRING"), ("c", "STRING")])
    _numbers(table, 0, 2, a=pa.array([1, None], pa.int32()), b=["x", "y"], c=["old", "old"])
    table.rename_column("b", "a b.c")
    table.drop_column("c")
    table.add_column("c", "STRING")
    table.change_type("a", "BIGINT")
    _numbers(table, 2, 3, a=pa.array([2**40], pa.int64()), **{"a b.c": ["z"]}, c=["new"])
    for where in (None, "c IS NULL", "a > 0 AND \"a b.c\" <> 'q'"):
        frame = read(spark, tmp_path, "d.t", where=where)
        assert "MapInArrow" not in plan_text(frame)
        changed = {
            "spark.sql.parquet.fieldId.read.enabled": "true",
            "spark.sql.caseSensitive": "true",
            "spark.sql.session.timeZone": "Asia/Tokyo",
        }
        with settings(spark, changed):
            assert_same(counted(table.scan(where=where).to_arrow()), counted(frame.toArrow()))


def test_an_expression_is_decided_by_our_reader(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")])
    _numbers(table, 0, 5)
    assert read(spark, tmp_path, "d.t", where=pc.field("id") > 2).count() == 2


# ---------------------------------------------------------------------- deleted rows


def test_deleted_rows(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Rows are left out by bitmaps, whatever share of a file they are; a file of which no row is left is not read."""
    table = lake.create_table("d.t", [("id", "BIGINT"), ("_metadata", "STRING")], options={"file.block-size": "1 kb"})
    for first in (0, 1000, 2000, 3000):
        _numbers(table, first, first + 1000, _metadata=[str(number % 7) for number in range(1000)])
    names = [file.name for _, file in table.files()]
    gone = {names[0]: [0, 97, 999], names[1]: list(range(1000)), names[2]: list(range(100, 1000))}
    delete_rows(table, gone)
    frame = assert_reads_like_scan(spark, str(tmp_path), table)
    assert frame.count() == 4000 - 1903
    assert "raise_error" in plan_text(frame)
    assert "Join" not in plan_text(frame)
    assert "MapInArrow" not in plan_text(frame)
    assert len(frame.inputFiles()) == 3
    with settings(spark, {"spark.sql.sources.useV1SourceList": "csv"}):
        assert_reads_like_scan(spark, str(tmp_path), table, columns=["_metadata"], where="id BETWEEN 90 AND 1010")


@pytest.mark.parametrize("driver_bytes", [1 << 40, -1])
def test_deleted_rows_of_files_of_one_size(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_bytes: int
) -> None:
    """A row is identified by the size of its file: files that share one are read by other frames, or by our reader."""
    monkeypatch.setattr("lakelet.spark.read.marked_files._DRIVER_BYTES", driver_bytes)
    table = lake.create_table("d.t", [("id", "BIGINT")])
    for first in range(0, 7000, 1000):
        _numbers(table, first, first + 1000)
    names = [file.name for _, file in table.files()]
    assert len({file.size for _, file in table.files()}) < 3
    delete_rows(table, {name: list(range(number, 1000, 3 + number)) for number, name in enumerate(names)})
    assert_reads_like_scan(spark, str(tmp_path), table)


def test_deleted_rows_whose_number_is_not_told(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")], options={"data-file.prefix": "a b%41-"})
    _numbers(table, 0, 100)
    delete_rows(table, {table.files()[0][1].name: [7]}, cardinality=False)
    assert_reads_like_scan(spark, str(tmp_path), table)
    delete_rows(table, {table.files()[0][1].name: [8]})
    assert_reads_like_scan(spark, str(tmp_path), table)


# ---------------------------------------------------------------------- paths


@pytest.mark.parametrize("folder", ["plain", "a b %41 é=1,'", "we[ird] {x,y}*?"])
def test_paths_are_taken_as_they_are(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    """Neither a pattern nor a partition is seen in a path; a NULL partition and one of that name stay apart."""
    warehouse = tmp_path / folder
    made = lakelet.connect(str(warehouse))
    made.create_database("d")
    table = made.create_table("d.t", [("id", "BIGINT"), ("p", "STRING"), ("d", "DATE")], partitioned_by=["p", "d"])
    texts = ["a b", "%41", "[x]", "{y,z}", "*", "é", "a=b/c", "_hidden", ".dot", None, "__DEFAULT_PARTITION__", "1"]
    days = pa.array([dt.date(2024, 1, 1)] * (len(texts) - 1) + [None], pa.date32())
    _numbers(table, 0, len(texts), p=pa.array(texts), d=days)
    _numbers(table, 20, 20 + len(texts), p=pa.array(texts), d=days)
    assert_reads_like_scan(spark, str(warehouse), table)
    assert_reads_like_scan(spark, str(warehouse), table, where="p IN ('%41', '*') OR d IS NULL")


def test_files_that_spark_would_hide(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")], options={"data-file.prefix": "_x-"})
    _numbers(table, 0, 3)
    assert read(spark, tmp_path, "d.t").count() == 3


# ---------------------------------------------------------------------- files that vanish


def test_rule_20_a_vanished_file_is_an_error(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    plain = lake.create_table("d.t", [("id", "BIGINT")])
    keyed = lake.create_table("d.k", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "1"})
    for table in (plain, keyed):
        for _ in range(2):
            _numbers(table, 0, 3)
    with settings(spark, {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"}):
        # Conditions on the key are decided by our reader.
        frames = [read(spark, tmp_path, "d.t"), read(spark, tmp_path, "d.k", where="id >= 0")]
        for table in (plain, keyed):
            os.remove(tmp_path / table.files()[0][0])
        with pytest.raises(Exception, match="FILE_NOT_EXIST"):
            frames[0].collect()
        with pytest.raises(PySparkException, match="is missing, although snapshot 2 names it"):
            frames[1].collect()
        for name in ("d.t", "d.k"):
            with pytest.raises(lakelet.CorruptionError, match="is missing, although snapshot 2 names it"):
                read(spark, tmp_path, name)


def test_rule_13_conditions_that_spark_pushes_down_by_itself(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("d.t", [("x", "DOUBLE"), ("s", "ROW<y FLOAT, n INT>")])
    rows = [{"x": x, "s": None if x is None else {"y": x, "n": 1}} for x in (-0.0, -0.0, 0.0, 2.5, float("nan"), None)]
    table.write(rows)
    frame = read(spark, tmp_path, "d.t")
    for column in ("x", "s.y"):
        assert frame.filter(f"{column} = 0.0D").count() == 3
        assert frame.filter(f"{column} IN (0.0D, 9.0D)").count() == 3
        assert frame.filter(f"{column} > 2.0D").count() == 2
        assert frame.filter(f"{column} IS NULL").count() == 1
    assert frame.filter("s IS NULL").count() == 1


def test_instants_in_milliseconds_that_spark_compares_with_finer_ones(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Spark would push `t < 1.0005 s` into such files as `t < 1.000 s`; the files stay like that when the column gets digits."""
    table = lake.create_table("d.t", [("t", "TIMESTAMP_LTZ(3)"), ("s", "ROW<t TIMESTAMP_LTZ(0)>")])
    moment = dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    table.write([{"t": moment, "s": {"t": moment}}])
    frames = [read(spark, tmp_path, "d.t")]
    table.change_type("t", "TIMESTAMP_LTZ(6)")
    frames.append(read(spark, tmp_path, "d.t"))
    for frame in frames:
        for column in ("t", "s.t"):
            assert frame.filter(f"{column} < TIMESTAMP '2024-01-01 00:00:01.0005Z'").count() == 1
            assert frame.filter(f"{column} <> TIMESTAMP '2024-01-01 00:00:01.0005Z'").count() == 1


def test_days_that_the_calendar_of_java_leaves_out(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table(
        "d.t", [("d", "DATE"), ("t", "TIMESTAMP_LTZ(6)")], options={"metadata.stats-mode": "none"}
    )
    table.write([{"d": dt.date(1582, 10, 10), "t": dt.datetime(1582, 10, 10, tzinfo=dt.UTC)}])
    assert read(spark, tmp_path, "d.t", where="d = '1582-10-10'").count() == 1
    assert read(spark, tmp_path, "d.t", where="t = '1582-10-10 00:00:00+00:00'").count() == 1
