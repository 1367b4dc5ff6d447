"""Loading, copying, counting and comparing tables as Spark jobs."""

import gzip
import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet import InvalidError, Lake, NotFoundError, connect
from lakelet.spark.jobs.bulk_load import bulk_load
from lakelet.spark.jobs.checksum import checksum
from lakelet.spark.jobs.copy_table import copy_table
from lakelet.spark.jobs.count import count
from lakelet.spark.session import settings
from lakelet.storage.open import open_store
from tests.services.server import S3Service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("name", "STRING"),
    ("price", "DECIMAL(10, 2)"),
    ("day", "DATE"),
    ("at", "TIMESTAMP(3)"),
    ("flag", "BOOLEAN"),
]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = connect(str(tmp_path / "warehouse"))
    found.create_database("db")
    return found


def text_file(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


# ---------------------------------------------------------------- loading


def test_csv_by_the_names_of_its_header(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    header = "price,ID,name,day,at,flag"
    text_file(tmp_path / "in" / "a.csv", header, '1.50,1,"x, y",2026-01-01,2026-01-01 10:11:12.345,true', "-0.1,2,,,,")
    text_file(tmp_path / "in" / "b.csv", header, ' 12345678.9 ,3,"",1960-01-01,1960-01-01 00:00:00,false')
    made = bulk_load(spark, tmp_path / "in", lake.location, "db.t")
    assert made is not None
    assert made.total_record_count == 3
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {
            "id": 1,
            "name": "x, y",
            "price": Decimal("1.50"),
            "day": date(2026, 1, 1),
            "at": datetime(2026, 1, 1, 10, 11, 12, 345000),
            "flag": True,
        },
        {"id": 2, "name": None, "price": Decimal("-0.10"), "day": None, "at": None, "flag": None},
        {
            "id": 3,
            "name": "",
            "price": Decimal("12345678.90"),
            "day": date(1960, 1, 1),
            "at": datetime(1960, 1, 1),
            "flag": False,
        },
    ]


@pytest.mark.parametrize(
    ("lines", "count_bad", "example"),
    [
        (["1,a,1.00", "x,b,1.00", "2,c,1.00"], 1, "x,b"),
        (["1,a,1.234", "2,b,123456789.00", "3,c,1e1", "4,d,4.5"], 3, "1.234"),
        (["2", "1,a,1.00,more"], 2, "more"),
        (["99999999999999999999,a,1.00"], 1, "99999999999999999999"),
        (
            [
                "1,,,2020-01-01 23:59:59,",
                "2,,,2020-01-01 00:00:00,2020-01-01",
                "3,,,2020,",
                "4,,,2020-02-30,",
                "5,,,,2020-01-01 00:00:00.123400",
                "6,,,,2020-01-01 00:00:00.1230000",
                "7,,,,2020-01-01T00:00:00+02:00",
                "8,,,,10:11:12",
            ],
            6,
            "23:59:59",
        ),
    ],
)
def test_malformed_csv_is_refused(
    spark: "SparkSession", lake: Lake, tmp_path: Path, lines: list[str], count_bad: int, example: str
) -> None:
    lake.create_table("db.t", COLUMNS)
    header = "id,name,price,day,at" if lines[0].count(",") > 2 else "id,name,price"
    path = text_file(tmp_path / "in.csv", header, *lines)
    with pytest.raises(InvalidError, match=f"{count_bad} rows are malformed") as raised:
        bulk_load(spark, path, lake.location, "db.t")
    assert example in str(raised.value)
    assert lake.table("db.t").latest_snapshot() is None


def test_files_whose_columns_differ(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    lake.create_table("db.t", COLUMNS)
    text_file(tmp_path / "in" / "a.csv", "id,name", "1,a")
    text_file(tmp_path / "in" / "b.csv", "name,id", "b,2")
    with pytest.raises(InvalidError, match="header"):
        bulk_load(spark, tmp_path / "in", lake.location, "db.t")
    path = text_file(tmp_path / "x.csv", "id,colour", "1,red")
    with pytest.raises(InvalidError, match="'colour', which is not in the table"):
        bulk_load(spark, path, lake.location, "db.t")
    path = text_file(tmp_path / "y.json", '{"id": 1}', '{"id": 2, "colour": "red"}')
    with pytest.raises(InvalidError, match="'colour', which is not in the table"):
        bulk_load(spark, path, lake.location, "db.t")
    assert lake.table("db.t").latest_snapshot() is None


def test_json(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    columns = [
        *COLUMNS[:3],
        ("tags", "ARRAY<STRING>"),
        ("who", "ROW<name STRING, age INT>"),
        ("kind", "STRING DEFAULT 'k'"),
    ]
    table = lake.create_table("db.t", columns[:-1])
    table.add_column("kind", "STRING", default="k")
    lines = [
        {"id": 1, "name": "a", "price": 1.25, "tags": ["x", None], "who": {"name": "n", "age": 3}},
        {"price": 7, "id": 2},
    ]
    bulk_load(spark, text_file(tmp_path / "in.jsonl", *map(json.dumps, lines)), lake.location, "db.t")
    first, second = table.scan().to_arrow().sort_by("id").to_pylist()
    assert first == {**lines[0], "price": Decimal("1.25"), "kind": "k"}
    assert (second["price"], second["tags"], second["who"], second["kind"]) == (Decimal("7.00"), None, None, "k")
    bad = text_file(tmp_path / "bad.jsonl", '{"id": 3}', '{"id": "many"}', "{", '{"id": 4, "who": {"age": "old"}}')
    with pytest.raises(InvalidError, match="3 rows are malformed"):
        bulk_load(spark, bad, lake.location, "db.t")
    with pytest.raises(InvalidError, match="NULL"):
        bulk_load(
            spark, text_file(tmp_path / "null.json", '{"name": "a"}', '{"id": 1, "name": "b"}'), lake.location, "db.t"
        )
    assert len(table.snapshots()) == 1


def test_values_inside_of_json_are_neither_rounded_nor_cut(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    columns = [
        ("id", "BIGINT"),
        ("who", "ROW<cost DECIMAL(5, 2), born DATE, n INT>"),
        ("costs", "ARRAY<DECIMAL(5, 2)>"),
        ("seen", "MAP<STRING, ARRAY<TIMESTAMP(6)>>"),
    ]
    table = lake.create_table("db.t", columns)
    good = [
        '{"id": 1, "who": {"cost": 1.50, "born": "2020-01-01"}, "costs": [1, null, 0.10], '
        '"seen": {"a": ["2020-01-01 00:00:00.123456"]}}',
        '{"id": 2, "who": null, "costs": [], "seen": {"b": null}}',
        '{"id": 3, "who": {"n": 1}}',
    ]
    bulk_load(spark, text_file(tmp_path / "good.json", *good), lake.location, "db.t")
    first, second, third = table.scan().to_arrow().sort_by("id").to_pylist()
    assert first == {
        "id": 1,
        "who": {"cost": Decimal("1.50"), "born": date(2020, 1, 1), "n": None},
        "costs": [Decimal("1.00"), None, Decimal("0.10")],
        "seen": [("a", [datetime(2020, 1, 1, microsecond=123456)])],
    }
    assert second == {"id": 2, "who": None, "costs": [], "seen": [("b", None)]}
    assert third == {"id": 3, "who": {"cost": None, "born": None, "n": 1}, "costs": None, "seen": None}
    bad = [
        '{"who": {"cost": 1.239}}',
        '{"who": {"born": "2020-01-01 23:59:59"}}',
        '{"who": {"born": 18262}}',
        '{"costs": [1.0, 1.239]}',
        '{"seen": {"a": ["2020-01-01 00:00:00.1234567"]}}',
        '{"id": 4, "costs": [1.230]}',
    ]
    with pytest.raises(InvalidError, match="5 rows are malformed"):
        bulk_load(spark, text_file(tmp_path / "bad.json", *bad), lake.location, "db.t")
    unknown = text_file(tmp_path / "unknown.json", '{"id": 1, "who": {"Cost": 1}}')
    with pytest.raises(InvalidError, match="the key 'Cost' in column 'who'"):
        bulk_load(spark, unknown, lake.location, "db.t")
    assert len(table.snapshots()) == 1


def test_times_of_other_zones_and_formats(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    columns = [("day", "DATE"), ("at", "TIMESTAMP(6) WITH LOCAL TIME ZONE")]
    table = lake.create_table("db.t", columns)
    lines = ["01.02.2020,2020-01-01 12:00:00.5", "02.02.2020,2020-01-01", "03.02.2020,2020-01-01T12:00:00.5+02:00"]
    options = {"timeZone": "America/New_York", "dateFormat": "dd.MM.yyyy"}
    path = text_file(tmp_path / "in.csv", "day,at", *lines)
    bulk_load(spark, path, lake.location, "db.t", read_options=options)
    assert [tuple(row.values()) for row in table.scan().to_arrow().sort_by("day").to_pylist()] == [
        (date(2020, 2, 1), datetime(2020, 1, 1, 17, microsecond=500000, tzinfo=UTC)),
        (date(2020, 2, 2), datetime(2020, 1, 1, 5, tzinfo=UTC)),
        (date(2020, 2, 3), datetime(2020, 1, 1, 10, microsecond=500000, tzinfo=UTC)),
    ]
    text_file(path, "at", "2020-01-01 00:00:00.1234567 Z")
    with pytest.raises(InvalidError, match="1 rows are malformed"):
        bulk_load(spark, path, lake.location, "db.t")


def test_parquet_columns_that_some_files_lack(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", [("id", "BIGINT"), ("v", "STRING")])
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    pq.write_table(pa.table({"id": [2], "v": ["two"]}), folder / "b.parquet")
    bulk_load(spark, folder, lake.location, "db.t")
    bulk_load(spark, folder, lake.location, "db.new", create=True)
    for name in ("db.t", "db.new"):
        assert lake.table(name).scan().to_arrow().sort_by("id").to_pylist() == [
            {"id": 1, "v": None},
            {"id": 2, "v": "two"},
        ]
    pq.write_table(pa.table({"id": [3], "w": ["three"]}), folder / "c.parquet")
    with pytest.raises(InvalidError, match="'w', which is not in the table"):
        bulk_load(spark, folder, lake.location, "db.t")
    pq.write_table(pa.table({"id": ["three"]}), folder / "c.parquet")
    with pytest.raises(InvalidError, match="cannot be read"):
        bulk_load(spark, folder, lake.location, "db.t")
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_files_that_cannot_be_read_are_not_left_out(
    spark: "SparkSession", lake: Lake, tmp_path: Path, format: str
) -> None:
    table = lake.create_table("db.t", [("id", "BIGINT")])
    folder = tmp_path / "in"
    folder.mkdir()
    if format == "parquet":
        pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
        (folder / "b.parquet").write_bytes(b"PAR1 torn")
    else:
        text_file(folder / "a.json", '{"id": 1}')
        (folder / "b.json.gz").write_bytes(gzip.compress(b'{"id": 2}\n' * 1000)[:-20])
    with (
        settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        pytest.raises(InvalidError, match="cannot be read"),
    ):
        bulk_load(spark, folder, lake.location, "db.t")
    assert table.latest_snapshot() is None


def test_parquet_folders_with_partitions_are_read_in_the_types_of_the_table(
    spark: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", [("id", "BIGINT"), ("code", "STRING"), ("day", "DATE")], partitioned_by=["day"])
    for code, number in (("01", 1), ("1", 2)):
        folder = tmp_path / "in" / f"code={code}" / "day=2026-01-01"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), folder / "x.parquet")
    bulk_load(spark, tmp_path / "in", lake.location, "db.t")
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "code": "01", "day": date(2026, 1, 1)},
        {"id": 2, "code": "1", "day": date(2026, 1, 1)},
    ]


def test_a_table_is_made_of_the_data(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    path = text_file(tmp_path / "in.csv", "id;day;amount", "1;2026-01-01;2.5", "2;2026-01-02;3")
    with pytest.raises(NotFoundError, match=r"new\.t"):
        bulk_load(spark, path, lake.location, "new.t")
    bulk_load(
        spark,
        path,
        lake.location,
        "new.t",
        read_options={"sep": ";"},
        create=True,
        primary_key=["id", "day"],
        partitioned_by=["day"],
        table_options={"bucket": 1},
    )
    schema = lake.table("new.t").schema
    assert (schema.primary_keys, schema.partition_keys) == (("id", "day"), ("day",))
    assert [str(field.type) for field in schema.fields] == ["INT NOT NULL", "DATE NOT NULL", "DOUBLE"]
    assert lake.table("new.t").scan().count() == 2


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("none", {}, "none is no folder with files"),
        ("in.csv", {"format": "xml"}, "format 'xml': expected one of parquet, csv, json"),
        ("in.csv", {"read_options": {"mode": "DROPMALFORMED"}}, "read option 'mode'"),
        ("in.csv", {"read_options": {"ignoreCorruptFiles": "true"}}, "read option 'ignoreCorruptFiles'"),
        ("in.csv", {"read_options": {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSS"}}, "beyond microseconds"),
        ("in.csv", {"mode": "merge"}, "mode 'merge'"),
        ("in", {}, "csv, json; give format="),
        ("none.csv", {}, "cannot be read"),
    ],
)
def test_loads_that_make_no_sense(
    spark: "SparkSession", lake: Lake, tmp_path: Path, name: str, arguments: dict[str, object], words: str
) -> None:
    lake.create_table("db.t", COLUMNS)
    text_file(tmp_path / "in.csv", "id", "1")
    text_file(tmp_path / "in" / "a.csv", "id", "1")
    text_file(tmp_path / "in" / "b.json", '{"id": 1}')
    with pytest.raises((InvalidError, NotFoundError)) as raised:
        bulk_load(spark, tmp_path / name, lake.location, "db.t", **arguments)  # type: ignore[arg-type]
    assert words in str(raised.value)


# ---------------------------------------------------------------- copying, counting, comparing


def sample(count: int = 40) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "part": pa.array([number % 3 for number in numbers], pa.int32()),
            "name": pa.array([None if number % 5 == 0 else f"name {number}" for number in numbers]),
            "list": pa.array([[number, None] for number in numbers], pa.list_(pa.int32())),
        }
    )


def test_tables_of_other_layouts_with_the_same_rows_have_the_same_checksum(spark: "SparkSession", lake: Lake) -> None:
    rows = sample()
    plain = lake.create_table("db.plain", rows.schema)
    plain.write(rows.slice(0, 7))
    plain.write(rows.slice(7))
    keyed = lake.create_table("db.keyed", rows.schema, primary_key=["id"], options={"bucket": "3"})
    keyed.write(rows.set_column(2, "name", pa.array(["old"] * 40)))
    keyed.write(rows)
    parted = lake.create_table("db.parted", rows.schema, partitioned_by=["part"])
    parted.write(rows.take(pa.array(range(39, -1, -1))))
    expected = checksum(spark, lake.location, "db.plain")
    assert expected.rows == 40
    assert checksum(spark, lake.location, "db.keyed") == expected
    assert checksum(spark, lake.location, "db.parted") == expected
    assert checksum(spark, lake.location, "db.keyed", version=1) != expected
    columns = ["id", "part"]
    assert checksum(spark, lake.location, "db.keyed", columns=columns, version=1) == checksum(
        spark, lake.location, "db.plain", columns=columns
    )
    parted.write(rows.slice(0, 1))
    twice = checksum(spark, lake.location, "db.parted")
    assert twice.rows == 41
    assert twice.digest != expected.digest
    assert checksum(spark, lake.location, "db.parted", where="id > 0") == checksum(
        spark, lake.location, "db.plain", where="id > 0"
    )


def test_counting(spark: "SparkSession", lake: Lake) -> None:
    table = lake.create_table("db.t", sample().schema, primary_key=["id"], options={"bucket": "2"})
    assert count(spark, lake.location, "db.t") == 0
    assert checksum(spark, lake.location, "db.t").rows == 0
    table.write(sample())
    table.write(sample(10))
    table.delete(where="id < 5")
    for where in (None, "id >= 8", "name IS NULL", "part = 1 AND id < 20", "false"):
        assert count(spark, lake.location, "db.t", where=where) == table.scan(where=where).count()
    assert count(spark, lake.location, "db.t", version=2) == 40
    with pytest.raises(NotFoundError):
        count(spark, lake.location, "db.none")


def test_copying(spark: "SparkSession", lake: Lake, tmp_path: Path) -> None:
    source = lake.create_table(
        "db.t",
        sample().schema,
        primary_key=["id", "part"],
        partitioned_by=["part"],
        options={"bucket": "2"},
        comment="c",
    )
    source.write(sample())
    source.delete(where="id = 3")
    other = str(tmp_path / "other")
    copy_table(spark, lake.location, "db.t", "copies.t", target_warehouse=other, create=True)
    copy = connect(other).table("copies.t")
    assert copy.schema.primary_keys == source.schema.primary_keys
    assert (copy.schema.comment, dict(copy.options)) == ("c", dict(source.options))
    assert checksum(spark, other, "copies.t") == checksum(spark, lake.location, "db.t")
    flat = lake.create_table("db.flat", sample().select(["id", "name"]).schema)
    copy_table(spark, lake.location, "db.t", "db.flat", columns=["id", "name"], where="part = 1", version=1)
    assert sorted(flat.scan().to_arrow().column("id").to_pylist()) == [
        number for number in range(40) if number % 3 == 1
    ]
    copy_table(spark, lake.location, "db.t", "db.flat", columns=["id", "name"], mode="overwrite", where="id < 10")
    assert flat.scan().count() == 9
    with pytest.raises(InvalidError, match="without its key columns part"):
        copy_table(spark, lake.location, "db.t", "db.new", columns=["id"], create=True)
    with pytest.raises(NotFoundError, match=r"db\.new"):
        copy_table(spark, lake.location, "db.t", "db.new")


def test_a_copy_does_not_cut_timestamps_unasked(spark: "SparkSession", lake: Lake) -> None:
    table = lake.create_table("db.t", [("id", "INT"), ("at", "TIMESTAMP(9)")])
    table.write(pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([1_000_000_001], pa.timestamp("ns"))}))
    with pytest.raises(InvalidError, match="at hold digits beyond microseconds"):
        copy_table(spark, lake.location, "db.t", "db.copy", create=True)
    assert not lake.table_exists("db.copy")
    copy_table(spark, lake.location, "db.t", "db.copy", create=True, cut_timestamps=True)
    (at,) = lake.table("db.copy").scan().to_arrow().column("at").cast(pa.int64()).to_pylist()
    assert at == 1_000_000_000


def test_parquet_files_of_a_bucket_are_loaded_through_our_storage(
    spark: "SparkSession", lake: Lake, s3_seaweedfs: S3Service
) -> None:
    address, options = s3_seaweedfs.url(f"load/{uuid.uuid4().hex}"), s3_seaweedfs.options
    source = open_store(address, options)
    for number in range(2):
        sink = pa.BufferOutputStream()
        pq.write_table(sample().slice(20 * number, 20).append_column("at", pa.array([datetime(1960, 1, 1)] * 20)), sink)
        source.put(f"day=2026-01-0{number + 1}/part.parquet", sink.getvalue().to_pybytes())
    source.put("x.csv", b"id\n1\n")
    columns = [("id", "BIGINT"), ("part", "INT"), ("name", "STRING"), ("list", "ARRAY<INT>"), ("at", "TIMESTAMP(6)")]
    table = lake.create_table("db.t", [*columns, ("day", "DATE")])
    with pytest.raises(InvalidError, match="give format="):
        bulk_load(spark, address, lake.location, "db.t", options=options)
    with pytest.raises(InvalidError, match="only Parquet is loaded from a bucket"):
        bulk_load(spark, f"{address}/x.csv", lake.location, "db.t", options=options)
    source.delete(["x.csv"])
    bulk_load(spark, address, lake.location, "db.t", options=options)
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in found] == list(range(40))
    assert found[39] == {**sample().to_pylist()[39], "at": datetime(1960, 1, 1), "day": date(2026, 1, 2)}
    bulk_load(spark, f"{address}/day=2026-01-01/part.parquet", lake.location, "db.new", create=True, options=options)
    assert lake.table("db.new").scan().count() == 20
