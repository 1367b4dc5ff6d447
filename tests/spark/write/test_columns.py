"""Columns of a DataFrame matched with those of a table, before any job runs."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.spark.failures import readable
from lakelet.spark.session import settings
from lakelet.spark.types import spark_type
from lakelet.spark.write.matched_columns import matched

pytestmark = [pytest.mark.spark]


def schema(
    columns: dict[str, str], *, primary: Sequence[str] = (), partition: Sequence[str] = (), **options: str
) -> TableSchema:
    return new_schema(
        [Field(index, name, parse_type(text)) for index, (name, text) in enumerate(columns.items())],
        partition_keys=list(partition),
        primary_keys=list(primary),
        options={key.replace("__", ".").replace("_", "-"): text for key, text in options.items()},
        comment=None,
        time_ms=0,
    )


ORDERS = schema(
    {"id": "BIGINT", "day": "DATE", "amount": "DECIMAL(10, 2)", "note": "STRING"},
    primary=["id", "day"],
    partition=["day"],
)


def empty(spark: SparkSession, ddl: str) -> DataFrame:
    return spark.createDataFrame([], ddl)


def names_and_types(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def test_columns_come_by_the_tables_names_in_its_order(spark: SparkSession) -> None:
    rows = empty(spark, "NOTE string, Amount decimal(10,2), id bigint, `Day` date")
    found = matched(rows, ORDERS, fixed={}, kinds=None)
    assert found.kinds is None
    assert names_and_types(found.frame) == [
        ("id", "bigint"),
        ("day", "date"),
        ("amount", "decimal(10,2)"),
        ("note", "string"),
    ]


def test_columns_that_the_data_lacks_stay_away(spark: SparkSession) -> None:
    found = matched(empty(spark, "id bigint, day date"), ORDERS, fixed={}, kinds=None)
    assert found.frame.columns == ["id", "day"]


def test_all_that_does_not_fit_is_told_at_once(spark: SparkSession) -> None:
    rows = empty(spark, "ID string, amount boolean, Amount int, extra array<int>, note interval day to second")
    with pytest.raises(InvalidError) as raised:
        matched(rows, ORDERS, fixed={}, kinds=None)
    message = str(raised.value)
    for part in (
        "column 'id' is BIGINT NOT NULL; the data has STRING, which does not convert",
        "column 'day' is DATE NOT NULL without a default, but the data does not have it",
        "the data has the column 'amount' 2 times ('amount', 'Amount')",
        "column 'amount' is DECIMAL(10, 2); the data has BOOLEAN",
        "the data has the column 'extra' (ARRAY<INT>), which is not in the table; its columns are id, day, amount, note",
        "column 'note' is STRING; the data has INTERVAL DAY TO SECOND",
    ):
        assert part in message


def test_case_counts_where_spark_says_so_or_the_table_leaves_a_doubt(spark: SparkSession) -> None:
    with (
        settings(spark, {"spark.sql.caseSensitive": "true"}),
        pytest.raises(InvalidError, match=r"'ID' .*not in the table"),
    ):
        matched(empty(spark, "ID bigint, id bigint, day date"), ORDERS, fixed={}, kinds=None)
    twins = schema({"a": "INT", "A": "INT", "b": "INT"})
    with pytest.raises(InvalidError, match=r"'A' of the table differs from another by case.*caseSensitive"):
        matched(empty(spark, "A int"), twins, fixed={}, kinds=None)
    assert matched(empty(spark, "B int"), twins, fixed={}, kinds=None).frame.columns == ["b"]
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        rows = spark.createDataFrame([(1, 2)], "A int, a int")
        assert matched(rows, twins, fixed={}, kinds=None).frame.collect() == [(2, 1)]


def test_names_may_hold_any_character(spark: SparkSession) -> None:
    odd = schema({"a.b": "INT", "c`d": "STRING"})
    rows = spark.createDataFrame(
        [("x", 1)], T.StructType([T.StructField("c`d", T.StringType()), T.StructField("A.b", T.IntegerType())])
    )
    assert matched(rows, odd, fixed={}, kinds=None).frame.collect() == [(1, "x")]


def test_what_the_sink_converts_is_left_to_it_outside_of_keys(spark: SparkSession) -> None:
    wide = schema(
        {"a": "BIGINT", "b": "TIMESTAMP(9)", "c": "TIME(3)", "d": "ROW<`x` BIGINT, `t` TIME(0)>", "e": "DOUBLE"}
    )
    rows = empty(spark, "a decimal(5,0), b timestamp_ntz, c bigint, d struct<t:int, x:smallint>, e decimal(3,1)")
    found = matched(rows, wide, fixed={}, kinds=None)
    assert names_and_types(found.frame) == names_and_types(rows)
    for ddl in ("b timestamp", "c string", "d struct<y:int>", "a boolean", "e string"):
        with pytest.raises(InvalidError, match=f"'{ddl[0]}' is .*does not convert without loss"):
            matched(empty(spark, ddl), wide, fixed={}, kinds=None)


def test_columns_that_decide_the_way_get_the_tables_type(spark: SparkSession) -> None:
    keyed = schema(
        {"i": "INT", "s": "BIGINT", "m": "DECIMAL(12, 2)", "t": "TIME(3)", "v": "INT", "x": "STRING", "n": "INT"},
        bucket="2",
        bucket_key="i,s,m,t,x,n",
    )
    day = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    rows = spark.createDataFrame(
        [(7, Decimal(5), 3, 1000, None, 9, "ä", day), (None, None, None, None, None, None, None, None)],
        "i bigint, m decimal(3,0), s smallint, t bigint, n void, v bigint, x string, w timestamp_ntz",
    ).drop("w")
    found = matched(rows, keyed, fixed={}, kinds=None).frame
    assert names_and_types(found) == [
        ("i", "int"),
        ("s", "bigint"),
        ("m", "decimal(12,2)"),
        ("t", "int"),
        ("v", "bigint"),
        ("x", "string"),
        ("n", "int"),
    ]
    assert set(map(tuple, found.collect())) == {(7, 3, Decimal("5.00"), 1000, 9, "ä", None), (None,) * 7}


def test_a_key_that_does_not_fit_is_told_as_in_local_writes(spark: SparkSession) -> None:
    keyed = schema({"k": "INT", "v": "INT"}, primary=["k"], bucket="1")
    found = matched(spark.createDataFrame([(2**40,)], "k bigint"), keyed, fixed={}, kinds=None)
    with pytest.raises(InvalidError, match=r"'k' is INT.*1099511627776"), readable("write"):
        found.frame.collect()


def test_a_static_partition_fills_the_columns_that_the_data_lacks(spark: SparkSession) -> None:
    fixed = {
        "i": 5,
        "s": "é",
        "b": b"\x00x",
        "d": dt.date(1969, 12, 31),
        "n": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        "l": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        "m": Decimal("-1.50"),
        "t": dt.time(0, 0, 1),
        "f": 0.5,
        "o": True,
        "z": None,
    }
    types = {
        "i": "SMALLINT",
        "s": "STRING",
        "b": "BYTES",
        "d": "DATE",
        "n": "TIMESTAMP(6)",
        "l": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "m": "DECIMAL(20, 2)",
        "t": "TIME(3)",
        "f": "FLOAT",
        "o": "BOOLEAN",
        "z": "INT",
    }
    kept = schema({**types, "v": "INT"}, partition=list(types))
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        found = matched(spark.createDataFrame([(1,)], "v int"), kept, fixed=fixed, kinds=None).frame
        row = found.withColumn("l", F.unix_micros("l")).collect()[0].asDict()
    assert [field.dataType for field in found.schema] == [spark_type(field.type) for field in kept.fields]
    assert row == {**fixed, "t": 1000, "l": -1, "b": bytearray(b"\x00x"), "v": 1}


def test_what_the_data_says_about_a_static_partition_stands(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, dt.date(2024, 1, 2))], "id bigint, day date")
    found = matched(rows, ORDERS, fixed={"day": dt.date(2024, 1, 1)}, kinds=None)
    assert found.frame.collect() == [(1, dt.date(2024, 1, 2))]


def test_the_column_of_row_kinds_comes_last(spark: SparkSession) -> None:
    rows = empty(spark, "op string, id bigint, day date")
    found = matched(rows, ORDERS, fixed={}, kinds="op")
    assert (found.kinds, found.frame.columns) == ("op", ["id", "day", "op"])
    usual = matched(empty(spark, "_row_kind string, id bigint, day date"), ORDERS, fixed={}, kinds=None)
    assert (usual.kinds, usual.frame.columns) == ("_row_kind", ["id", "day", "_row_kind"])
    own = matched(empty(spark, "id bigint, day date, note string"), ORDERS, fixed={}, kinds="note")
    assert (own.kinds, own.frame.columns) == ("note", ["id", "day", "note"])


def test_row_kinds_that_cannot_be(spark: SparkSession) -> None:
    with pytest.raises(InvalidError, match=r"'_row_kind' \(STRING\), which is not in the table"):
        matched(empty(spark, "a int, _row_kind string"), schema({"a": "INT"}), fixed={}, kinds=None)
    with pytest.raises(InvalidError, match="expected one column 'op' in the data, found 0"):
        matched(empty(spark, "id bigint, day date"), ORDERS, fixed={}, kinds="op")
    with pytest.raises(InvalidError, match="'op' tells row kinds: expected STRING or INT, found DOUBLE"):
        matched(empty(spark, "id bigint, day date, op double"), ORDERS, fixed={}, kinds="op")
    told = schema({"id": "INT", "op": "STRING"}, primary=["id"], bucket="1", rowkind__field="op")
    with pytest.raises(InvalidError, match=r"kinds= was given.*'op'"):
        matched(empty(spark, "id int, op string"), told, fixed={}, kinds="op")
    assert matched(empty(spark, "id int, op string"), told, fixed={}, kinds=None).kinds is None


def test_what_has_no_type_gets_that_of_the_table(spark: SparkSession) -> None:
    table = schema({"id": "INT", "a": "ARRAY<INT>", "m": "MAP<STRING, INT>", "r": "ROW<x INT, y ARRAY<INT>>"})
    rows = spark.sql("SELECT 1 AS id, array() AS a, map() AS m, named_struct('x', NULL, 'y', array()) AS r")
    assert names_and_types(matched(rows, table, fixed={}, kinds=None).frame) == [
        ("id", "int"),
        ("a", "array<int>"),
        ("m", "map<string,int>"),
        ("r", "struct<x:int,y:array<int>>"),
    ]
    with pytest.raises(InvalidError, match="column 'a' is ARRAY<INT>; the data has ARRAY<ARRAY<VOID>>"):
        matched(spark.sql("SELECT array(array()) AS a"), table, fixed={}, kinds=None)


def test_a_column_that_tells_kinds_is_there_for_the_tasks_that_ask_it(spark: SparkSession) -> None:
    table = schema({"id": "INT", "op": "STRING"}, primary=["id"], rowkind__field="op")
    assert matched(empty(spark, "id int"), table, fixed={}, kinds=None).frame.columns == ["id", "op"]
