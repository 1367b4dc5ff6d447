"""ls.write: rows of a DataFrame in a table, whatever its bucket mode, in one commit."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import lakelet
from lakelet import ConflictError, InvalidError, NotFoundError, Table
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.spark.write import write_job
from lakelet.spark.write.table_write import write

pytestmark = [pytest.mark.spark]

COLUMNS = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("amount", "DECIMAL(10, 2)"), ("note", "STRING")]
SCHEMA = "id bigint, dt string, amount decimal(10, 2), note string"


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("shop")
    return lake


def keyed(lake: lakelet.Lake, **options: object) -> Table:
    return lake.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["id", "dt"],
        partitioned_by=["dt"],
        options={"bucket": 2, **{key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}},
    )


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str = SCHEMA) -> DataFrame:
    return spark.createDataFrame(rows, schema)


def order(number: int, day: str = "d1", amount: int = 1, note: str | None = None) -> tuple[Any, ...]:
    return (number, day, Decimal(amount), note)


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["dt"], row["id"]))


def amounts(table: Table) -> dict[tuple[str, int], int]:
    return {(row["dt"], row["id"]): int(row["amount"]) for row in rows(table)}


def files(table: Table) -> list[Path]:
    return sorted(Path(table.location).glob("**/bucket-*/*"))


def test_upserts_go_to_their_buckets_in_one_commit_each(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    first = write(frame(spark, [order(n, f"d{n % 3}", n) for n in range(60)]), lake.location, "shop.orders")
    second = write(
        frame(spark, [order(n, f"d{n % 3}", n + 1000) for n in range(40, 80)]), lake.location, "shop.orders", "upsert"
    )
    assert first is not None
    assert second is not None
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2]
    expected = {(f"d{n % 3}", n): n + 1000 if n >= 40 else n for n in range(80)}
    assert amounts(table) == expected
    # One writer per bucket: three partitions with two buckets each, in two commits.
    assert len(files(table)) == 12
    table.write([dict(zip(("id", "dt", "amount", "note"), order(79, "d1", 5), strict=True))])
    assert amounts(table)[("d1", 79)] == 5


def test_spark_and_local_writes_choose_the_same_buckets(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    data = [order(n, f"d{n % 2}", n) for n in range(50)]
    write(frame(spark, data), lake.location, "shop.orders")
    table.write([dict(zip(("id", "dt", "amount", "note"), row, strict=True)) for row in data])
    by_bucket: dict[str, set[int]] = {}
    for path, file in table.files():
        by_bucket.setdefault(path.rsplit("/", 1)[0], set()).add(file.row_count)
    assert all(len(counts) == 1 for counts in by_bucket.values())


def test_append_tables_take_rows_as_they_come(spark: SparkSession, lake: lakelet.Lake) -> None:
    plain = lake.create_table("shop.plain", COLUMNS, partitioned_by=["dt"])
    fixed = lake.create_table("shop.fixed", COLUMNS, options={"bucket": 3, "bucket-key": "id"})
    data = frame(spark, [order(n, f"d{n % 2}", n) for n in range(30)])
    for name in ("shop.plain", "shop.fixed"):
        write(data, lake.location, name)
        write(data, lake.location, name)
    for table in (plain, fixed):
        assert sorted(row["id"] for row in rows(table)) == sorted(2 * list(range(30)))
    assert {path.parent.name for path in files(fixed)} <= {"bucket-0", "bucket-1", "bucket-2"}


@pytest.mark.deep
def test_postponed_rows_wait(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake, bucket=-2)
    write(frame(spark, [order(n) for n in range(20)]), lake.location, "shop.orders")
    assert rows(table) == []
    assert sum(file.row_count for _, file in table.files()) == 20
    assert {path.parent.name for path in files(table)} == {"bucket-postpone"}
    with pytest.raises(InvalidError, match=r"2 rows with the primary key of another row .*'id': 7"):
        write(frame(spark, [order(7), order(7), order(8), order(7)]), lake.location, "shop.orders")
    write(frame(spark, [order(7), order(7)]), lake.location, "shop.orders", on_duplicate="any")
    assert sum(file.row_count for _, file in table.files()) == 22


def test_overwrites(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    write(frame(spark, [order(1, "d1"), order(2, "d2"), order(3, "d3")]), lake.location, "shop.orders")
    static = frame(spark, [(4, Decimal(1))], "id bigint, amount decimal(10, 2)")
    write(static, lake.location, "shop.orders", "overwrite", {"dt": "d1"})
    assert sorted(amounts(table)) == [("d1", 4), ("d2", 2), ("d3", 3)]
    write(frame(spark, [order(5, "d2")]), lake.location, "shop.orders", "overwrite_partitions")
    assert sorted(amounts(table)) == [("d1", 4), ("d2", 5), ("d3", 3)]
    with pytest.raises(InvalidError, match="dt=d3"):
        write(frame(spark, [order(6, "d3")]), lake.location, "shop.orders", "overwrite", {"dt": "d1"})
    with pytest.raises(InvalidError, match="'id' is not a partition key"):
        write(frame(spark, [order(6, "d3")]), lake.location, "shop.orders", "overwrite", {"id": 1})
    before = len(files(table))
    write(frame(spark, []), lake.location, "shop.orders", "overwrite")
    assert rows(table) == []
    assert len(files(table)) == before


def test_two_rows_of_a_key_are_refused_unless_something_orders_them(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    twice = frame(spark, [order(1, amount=1), order(2), order(1, amount=2), order(1, amount=3)])
    with pytest.raises(InvalidError, match=r"2 rows with the primary key of another row .*'id': 1.*sequence\.field"):
        write(twice, lake.location, "shop.orders")
    assert table.snapshots() == []
    assert files(table) == []
    write(twice, lake.location, "shop.orders", on_duplicate="any")
    assert sorted(amounts(table)) == [("d1", 1), ("d1", 2)]


def test_a_sequence_field_orders_rows(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake, sequence__field="amount")
    data = [order(1, amount=n) for n in (3, 9, 5)]
    write(frame(spark, data), lake.location, "shop.orders")
    assert amounts(table) == {("d1", 1): 9}


def test_null_keys_are_counted(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    data = [order(n) for n in range(30)] + [(None, "d1", None, None), (7, None, None, None), (None, "d2", None, None)]
    with pytest.raises(InvalidError, match=r"3 rows with NULL in a column that is NOT NULL \(id, dt\), for example"):
        write(frame(spark, data), lake.location, "shop.orders")
    assert table.snapshots() == []
    assert files(table) == []


def test_row_kinds(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    write(frame(spark, [order(1), order(2), order(3)]), lake.location, "shop.orders")
    changed = [(*order(1, amount=7), "+U"), (*order(2), "-D"), (*order(4), "+I")]
    write(frame(spark, changed, f"{SCHEMA}, _row_kind string"), lake.location, "shop.orders")
    assert amounts(table) == {("d1", 1): 7, ("d1", 3): 1, ("d1", 4): 1}
    named = frame(spark, [(*order(3), "D")], f"{SCHEMA}, op string")
    write(named, lake.location, "shop.orders", kinds="op")
    assert sorted(amounts(table)) == [("d1", 1), ("d1", 4)]
    with pytest.raises(InvalidError, match="'X'"):
        write(frame(spark, [(*order(3), "X")], f"{SCHEMA}, op string"), lake.location, "shop.orders", kinds="op")


def test_a_column_of_the_table_tells_kinds(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake, rowkind__field="note")
    write(frame(spark, [order(1, note="+I"), order(2, note="+I")]), lake.location, "shop.orders")
    write(frame(spark, [order(1, note="-D")]), lake.location, "shop.orders")
    assert sorted(amounts(table)) == [("d1", 2)]


def test_a_job_may_run_again(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    for _ in range(2):
        made = write(frame(spark, [order(1)]), lake.location, "shop.orders", commit_user="nightly", commit_identifier=7)
        assert made is not None
        assert made.id == 1
    assert len(table.snapshots()) == 1
    assert len(files(table)) == 1
    assert write(frame(spark, []), lake.location, "shop.orders") is None
    with pytest.raises(InvalidError, match="both a user and an identifier"):
        write(frame(spark, [order(1)]), lake.location, "shop.orders", commit_user="nightly")


def test_options_hold_for_one_write(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    write(
        frame(spark, [order(1)]), lake.location, "shop.orders", options={"file.format": "orc", "data-file.prefix": "x-"}
    )
    assert [path.suffix for path in files(table)] == [".orc"]
    assert files(table)[0].name.startswith("x-")
    assert amounts(table) == {("d1", 1): 1}
    assert "file.format" not in table.options


def test_columns_are_matched_by_name_and_widened(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake)
    data = frame(spark, [("d1", 5, Decimal("1.5"))], "dt string, ID int, amount decimal(3, 1)")
    write(data, lake.location, "shop.orders", missing="default")
    assert rows(table) == [{"id": 5, "dt": "d1", "amount": Decimal("1.50"), "note": None}]
    with pytest.raises(InvalidError, match="weight"):
        write(frame(spark, [(*order(1), 1)], f"{SCHEMA}, weight int"), lake.location, "shop.orders")
    with pytest.raises(InvalidError, match=r"(?s)dt.*amount|amount.*dt"):
        write(frame(spark, [(1, 5, "a")], "id bigint, dt int, amount string"), lake.location, "shop.orders")


def test_columns_may_have_any_name(spark: SparkSession, lake: lakelet.Lake) -> None:
    names = ["a.b", "tick`", "x y", "`x`", "*", "größe"]
    table = lake.create_table(
        "shop.odd",
        [("a.b", "BIGINT NOT NULL"), *((name, "INT") for name in names[1:])],
        primary_key=["a.b"],
        options={"bucket": 2},
    )
    schema = T.StructType([T.StructField(name, T.IntegerType()) for name in names])
    write(spark.createDataFrame([(1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12)], schema), lake.location, "shop.odd")
    assert sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()) == [
        (1, 2, 3, 4, 5, 6),
        (7, 8, 9, 10, 11, 12),
    ]
    lake.create_table("shop.plain", [("a", "INT")])
    with pytest.raises(InvalidError, match="none of the table's columns"):
        write(spark.range(3).select(), lake.location, "shop.plain")


def test_a_partition_column_that_the_data_lacks_has_its_default(spark: SparkSession, lake: lakelet.Lake) -> None:
    columns = [Field(0, "id", parse_type("BIGINT NOT NULL")), Field(1, "dt", parse_type("STRING"), default="d7")]
    fixed = lake.create_table("shop.fixed", columns, partitioned_by=["dt"], options={"bucket": 2, "bucket-key": "id"})
    plain = lake.create_table("shop.plain", [("id", "BIGINT"), ("day", "DATE")], partitioned_by=["day"])
    write(frame(spark, [(1,), (2,)], "id bigint"), lake.location, "shop.fixed")
    write(frame(spark, [(1,)], "id bigint"), lake.location, "shop.plain")
    assert {row["dt"] for row in fixed.scan().to_arrow().to_pylist()} == {"d7"}
    assert plain.scan().to_arrow().to_pylist() == [{"id": 1, "day": None}]


def test_wrong_calls(spark: SparkSession, lake: lakelet.Lake) -> None:
    keyed(lake)
    lake.create_table("shop.plain", COLUMNS)
    data = frame(spark, [order(1)])
    with pytest.raises(InvalidError, match="mode 'merge': expected one of append, upsert"):
        write(data, lake.location, "shop.orders", "merge")
    with pytest.raises(NotFoundError, match=r"shop\.order"):
        write(data, lake.location, "shop.order")
    with pytest.raises(InvalidError, match="no primary key"):
        write(data, lake.location, "shop.plain", "upsert")
    with pytest.raises(NotFoundError, match="branch 'dev'"):
        write(data, lake.location, "shop.orders", branch="dev")
    with pytest.raises(InvalidError, match="no-such-option"):
        write(data, lake.location, "shop.orders", options={"no-such-option": "1"})


def test_rule_5_the_later_commit_wins(spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(lake)
    write(frame(spark, [order(n) for n in range(4)]), lake.location, "shop.orders")
    finish = write_job.commit_on_top

    def after_another(*args: Any) -> Any:
        table.write([dict(zip(("id", "dt", "amount", "note"), order(n, amount=50), strict=True)) for n in range(9)])
        return finish(*args)

    monkeypatch.setattr(write_job, "commit_on_top", after_another)
    write(frame(spark, [order(n, amount=100) for n in range(2)]), lake.location, "shop.orders")
    found = amounts(table)
    assert {found["d1", n] for n in range(2)} == {100}
    assert {found["d1", n] for n in range(2, 9)} == {50}
    listed = {Path(path).name for path, _ in table.files()}
    assert {path.name for path in files(table)} == listed


@pytest.mark.parametrize("options", [{}, {"bucket": -1}, {"deletion_vectors__enabled": True, "write_only": True}])
def test_stored_values_of_columns_that_the_frame_lacks_stay(
    spark: SparkSession, lake: lakelet.Lake, options: dict[str, object]
) -> None:
    table = keyed(lake, **options)
    write(frame(spark, [order(n, f"d{n % 2}", n, f"n{n}") for n in range(20)]), lake.location, "shop.orders")
    some = frame(spark, [(n, f"d{n % 2}", f"m{n}") for n in range(10, 25)], "id bigint, dt string, note string")
    with pytest.raises(InvalidError, match=r"lacks column 'amount'.*missing='keep'"):
        write(some, lake.location, "shop.orders")
    write(some, lake.location, "shop.orders", missing="keep")
    if options.get("write_only"):
        table.set_options({"write-only": "false"})
        table.compact(full=True)
    found = {row["id"]: (row["amount"], row["note"]) for row in rows(table)}
    kept = {n: (Decimal(n), f"m{n}") for n in range(10, 20)}
    assert found == {n: (Decimal(n), f"n{n}") for n in range(10)} | kept | {n: (None, f"m{n}") for n in range(20, 25)}


@pytest.mark.deep
def test_values_that_are_kept_must_not_change_meanwhile(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake)
    write(frame(spark, [order(1, note="ours")]), lake.location, "shop.orders")
    finish = write_job.commit_on_top

    def after_another(*args: Any) -> Any:
        table.write([dict(zip(("id", "dt", "amount", "note"), order(1, note="theirs"), strict=True))])
        return finish(*args)

    monkeypatch.setattr(write_job, "commit_on_top", after_another)
    some = frame(spark, [(1, "d1", Decimal(9))], "id bigint, dt string, amount decimal(10, 2)")
    with pytest.raises(ConflictError, match="look again"):
        write(some, lake.location, "shop.orders", missing="keep")
    assert [(row["amount"], row["note"]) for row in rows(table)] == [(Decimal(1), "theirs")]
    listed = {Path(path).name for path, _ in table.files()}
    assert {path.name for path in files(table)} == listed


def test_a_table_that_was_made_anew_meanwhile_gets_nothing(
    spark: SparkSession, lake: lakelet.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed(lake)
    finish = write_job.commit_on_top

    def after_a_drop(*args: Any) -> Any:
        lake.drop_table("shop.orders")
        keyed(lake)
        return finish(*args)

    monkeypatch.setattr(write_job, "commit_on_top", after_a_drop)
    with pytest.raises((ConflictError, InvalidError, NotFoundError)):
        write(frame(spark, [order(1)]), lake.location, "shop.orders")
    assert lake.table("shop.orders").snapshots() == []


def test_types_survive(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = lake.create_table(
        "shop.typed",
        [
            ("k", "DATE NOT NULL"),
            ("ts", "TIMESTAMP(3)"),
            ("ltz", "TIMESTAMP_LTZ(6)"),
            ("tags", "ARRAY<STRING>"),
            ("more", "ROW<a INT, b MAP<STRING, DOUBLE>>"),
            ("raw", "BYTES"),
            ("t", "TIME(3)"),
        ],
        primary_key=["k"],
        options={"bucket": 1},
    )
    data = spark.sql(
        "SELECT DATE'1969-12-31' k, TIMESTAMP_NTZ'1969-12-31 23:59:59.5' ts, TIMESTAMP'2026-01-01 00:00:00 UTC' ltz, "
        "array('a', NULL) tags, named_struct('a', 1, 'b', map('x', 1.5D)) more, X'00ff' raw, 3723004 t"
    )
    write(data, lake.location, "shop.typed")
    (row,) = table.scan().to_arrow().to_pylist()
    assert row["k"] == date(1969, 12, 31)
    assert row["ts"].isoformat() == "1969-12-31T23:59:59.500000"
    assert row["ltz"].isoformat() == "2026-01-01T00:00:00+00:00"
    assert row["tags"] == ["a", None]
    assert row["more"] == {"a": 1, "b": [("x", 1.5)]}
    assert row["raw"] == b"\x00\xff"
    assert row["t"].isoformat() == "01:02:03.004000"


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "7"},
        {"bucket-key": "id"},
        {"sequence.field": "amount"},
        {"merge-engine": "deduplicate"},
        {"commit.timeout": "1 s"},
    ],
)
def test_what_belongs_to_the_table_cannot_hold_for_one_write(
    spark: SparkSession, lake: lakelet.Lake, options: dict[str, str]
) -> None:
    table = keyed(lake)
    with pytest.raises(InvalidError, match="cannot hold for one job"):
        write(frame(spark, [order(1)]), lake.location, "shop.orders", options=options)
    assert table.snapshots() == []


@pytest.mark.deep
def test_a_table_that_is_made_anew_while_rows_are_computed_gets_nothing(
    spark: SparkSession, lake: lakelet.Lake, tmp_path: Path
) -> None:
    keyed(lake)
    location, done = lake.location, tmp_path / "done"

    def drops(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not done.exists():
            done.touch()
            other = lakelet.connect(location)
            other.drop_table("shop.orders")
            keyed(other)
        yield from batches

    rows = frame(spark, [order(1)]).coalesce(1).mapInArrow(drops, SCHEMA)
    with pytest.raises(ConflictError, match="dropped and created again"):
        write(rows, location, "shop.orders")
    assert lake.table("shop.orders").snapshots() == []
    assert files(lake.table("shop.orders")) == []


@pytest.mark.deep
def test_rows_of_ignored_kinds_are_no_second_rows_of_their_keys(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = keyed(lake, bucket=-2, ignore_update_before="true")
    data = frame(spark, [(*order(1), "-U"), (*order(1, amount=2), "+U")], f"{SCHEMA}, _row_kind string")
    write(data, lake.location, "shop.orders")
    assert sum(file.row_count for _, file in table.files()) == 1


def test_bytes_that_are_no_text_are_refused(spark: SparkSession, lake: lakelet.Lake) -> None:
    table = lake.create_table("shop.text", [("p", "STRING"), ("v", "STRING")], partitioned_by=["p"])
    for columns in ("cast(X'FE' AS STRING) AS p, 'a' AS v", "'a' AS p, cast(X'FE' AS STRING) AS v"):
        with pytest.raises(InvalidError, match="holds bytes that are no text"):
            write(spark.sql(f"SELECT {columns}"), lake.location, "shop.text")
    assert not table.snapshots()


def test_default_expressions(spark: SparkSession, lake: lakelet.Lake) -> None:
    """The time is that of the job, whichever task writes; a value by chance is drawn for each row."""
    expressions = {
        "made": "current_timestamp",
        "u": "uuid()",
        "day": "CAST(now() AS DATE)",
    }
    table = lake.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL"), ("day", "DATE"), ("made", "TIMESTAMP(3)"), ("u", "STRING NOT NULL"), ("n", "INT")],
        partitioned_by=["day"],
        options={f"fields.{name}.default-expression": text for name, text in expressions.items()},
    )
    warehouse = str(lake.location)
    write(spark.range(100).repartition(4), warehouse, "shop.orders")
    found = table.scan().to_arrow().to_pylist()
    assert len({row["u"] for row in found}) == 100
    [moment] = {row["made"] for row in found}
    assert {row["day"] for row in found} == {moment.date()}
    df = frame(spark, [(200, 1), (201, 2)], "id bigint, n int")
    df.write.format("lakelet").option("warehouse", warehouse).option("table", "shop.orders").mode("append").save()
    later = {row["made"] for row in table.scan(where="id >= 200").to_arrow().to_pylist()}
    assert len(later) == 1
    assert min(later) > moment
    keyed_by_chance = lake.create_table(
        "shop.keyed", [("k", "STRING"), ("v", "BIGINT")], primary_key=["k"],
        options={"bucket": "2", "fields.k.default-expression": "uuid()"},
    )  # fmt: skip
    with pytest.raises(InvalidError, match=r"lacks column 'k', by which Spark routes .* differs from row to row"):
        write(spark.range(3).toDF("v"), warehouse, "shop.keyed", missing="default")
    assert keyed_by_chance.latest_snapshot() is None
