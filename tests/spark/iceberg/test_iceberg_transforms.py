"""Routing of an Iceberg table's rows: Spark expressions against pyiceberg's transforms, whatever the session's settings."""

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.spark.iceberg.fields import TransformedField
from lakelet.spark.iceberg.transforms import Keyed
from lakelet.spark.session import settings

pytestmark = [pytest.mark.spark]

ZONES = ("UTC", "America/Sao_Paulo", "Asia/Kathmandu")
DAY = 86_400_000_000
DAYS = [0, 1, -1, 58, 59, 60, -365, -366, 19_723, -719_162, 2_932_896, 11_016, -25_567]
MICROS = [
    0,
    1,
    -1,
    DAY - 1,
    DAY,
    -DAY,
    -DAY - 1,
    3_600_000_000,
    -3_600_000_001,
    1_700_000_000_123_456,
    -62_135_596_800_000_000,
]
LONGS = [0, 1, -1, 9, 10, -10, -11, 34, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 1 << 40]
INTS = [number for number in LONGS if -(2**31) <= number < 2**31]
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "iceberg",
    "Zürich",
    "日本語テキスト",
    "😀😀😀",
    "\u0000",
    "null",
    "a" * 40,
]
BYTES = [b"", b"\x00", b"\xff", b"\x80\x81", b"\xff\xfe\xfd", b"abcd", b"\xff" * 5, bytes(range(256))]
DECIMALS = [Decimal(n).scaleb(-2) for n in (0, 1, -1, 127, 128, -128, -129, 32_767, 32_768, 99_999, -99_999, 10**9 + 7)]
LONG_DECIMALS = [Decimal(n).scaleb(-4) for n in (0, -1, 10**18 - 1, -(10**18) + 1, 2**55, -(2**55) - 1)]
UUIDS = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

# Iceberg's type, Spark's type, what Iceberg's transforms take, what Arrow takes for Spark.
Column = tuple[IcebergType, T.DataType, Sequence[Any], pa.Array]
COLUMNS: dict[str, Column] = {
    "int": (IntegerType(), T.IntegerType(), INTS, pa.array(INTS, pa.int32())),
    "long": (LongType(), T.LongType(), LONGS, pa.array(LONGS, pa.int64())),
    "date": (DateType(), T.DateType(), DAYS, pa.array(DAYS, pa.int32()).cast(pa.date32())),
    "time": (TimeType(), T.LongType(), [0, 1, DAY - 1], pa.array([0, 1, DAY - 1], pa.int64())),
    "timestamp": (TimestampType(), T.TimestampNTZType(), MICROS, pa.array(MICROS, pa.timestamp("us"))),
    "timestamptz": (TimestamptzType(), T.TimestampType(), MICROS, pa.array(MICROS, pa.timestamp("us", "UTC"))),
    "string": (StringType(), T.StringType(), TEXTS, pa.array(TEXTS, pa.string())),
    "binary": (BinaryType(), T.BinaryType(), BYTES, pa.array(BYTES, pa.binary())),
    "fixed[3]": (FixedType(3), T.BinaryType(), [b"abc", b"\xff\x00\x80"], pa.array([b"abc", b"\xff\x00\x80"], pa.binary())),
    "uuid": (UUIDType(), T.StringType(), UUIDS, pa.array([str(one) for one in UUIDS], pa.string())),
    "decimal(12, 2)": (DecimalType(12, 2), T.DecimalType(12, 2), DECIMALS, pa.array(DECIMALS, pa.decimal128(12, 2))),
    "decimal(18, 4)": (
        DecimalType(18, 4), T.DecimalType(18, 4), LONG_DECIMALS, pa.array(LONG_DECIMALS, pa.decimal128(18, 4)),
    ),
}  # fmt: skip
PERIODS: dict[str, Transform[Any, Any]] = {
    "year": YearTransform(), "month": MonthTransform(), "day": DayTransform(), "hour": HourTransform(),
}  # fmt: skip


Wanted = tuple[str, str, int]


def keys_in_spark(spark: SparkSession, wanted: Sequence[Wanted]) -> dict[Wanted, list[Any]]:
    """The key of every value of a column under a transform, and of NULL at the end, all by one job."""
    longest = max(len(values) for _, _, values, _ in COLUMNS.values()) + 1
    arrays = [pa.concat_arrays([array, pa.nulls(longest - len(array), array.type)]) for *_, array in COLUMNS.values()]
    rows = pa.table([pa.array(range(longest)), *arrays], names=["n", *COLUMNS])
    with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        # Without a schema, moments without a zone would get one.
        types = [T.StructField(name, kind) for name, (_, kind, _, _) in COLUMNS.items()]
        frame = spark.createDataFrame(rows, T.StructType([T.StructField("n", T.LongType()), *types]))
    keyed = Keyed(frame)
    keys = [keyed.key(TransformedField((name,), name, transform, argument)) for name, transform, argument in wanted]
    known = [key for key in keys if key is not None]
    assert len(known) == len(keys)
    found = sorted(keyed.frame.select("n", *known).collect(), key=lambda row: row[0])
    return {
        one: [row[place] for row in found][: len(COLUMNS[one[0]][2]) + 1] for place, one in enumerate(wanted, start=1)
    }


@pytest.mark.deep
@pytest.mark.parametrize(("zone", "ansi"), zip(ZONES, ["true", "false", "true"], strict=True))
def test_keys_are_those_of_iceberg(spark: SparkSession, zone: str, ansi: str) -> None:
    moments = [name for name in COLUMNS if name in ("date", "timestamp", "timestamptz")]
    periods = [(name, period) for name in moments for period in PERIODS if (name, period) != ("date", "hour")]
    wanted = [*((name, "bucket", 16) for name in COLUMNS), *((name, period, 0) for name, period in periods)]
    texts = str(ansi == "false").lower()
    chosen = {
        "spark.sql.session.timeZone": zone,
        "spark.sql.ansi.enabled": ansi,
        # Bytes that are joined, or filled up, become texts.
        "spark.sql.function.concatBinaryAsString": texts,
        "spark.sql.legacy.lpadRpadAlwaysReturnString": texts,
    }
    with settings(spark, chosen):
        found = keys_in_spark(spark, wanted)
    for (name, transform, argument), keys in found.items():
        iceberg, _, values, _ = COLUMNS[name]
        apply = (BucketTransform(argument) if transform == "bucket" else PERIODS[transform]).transform(iceberg)
        # Months are counted from one here: only which are equal matters.
        moved = 1 if transform == "month" else 0
        assert keys == [*(apply(value) + moved for value in values), None], (name, transform)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_iceberg_truncates_alike_has_one_key(spark: SparkSession, ansi: str) -> None:
    names = ("int", "long", "string", "binary", "decimal(12, 2)", "decimal(18, 4)")
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        found = keys_in_spark(spark, [(name, "truncate", width) for name in names for width in (1, 3, 10, 50)])
    for (name, _, width), keys in found.items():
        iceberg, _, values, _ = COLUMNS[name]
        assert keys[-1] is None
        if name in ("int", "long"):
            assert keys[:-1] == [value // width for value in values]
            continue
        truncate = TruncateTransform(width).transform(iceberg)
        expected = [truncate(value) for value in values]
        pairs = list(zip(expected, keys, strict=False))
        assert all((one == other) == (key == second) for one, key in pairs for other, second in pairs), (name, width)


def test_a_member_of_a_struct_and_a_type_that_differs(spark: SparkSession) -> None:
    inner = T.StructType([T.StructField("c.d", T.ShortType())])
    schema = T.StructType([T.StructField("a b", inner), T.StructField("key0", T.StringType())])
    keyed = Keyed(spark.createDataFrame([((5,), "x"), (None, "y")], schema))
    key = keyed.key(TransformedField(("a b", "c.d"), "long", "bucket", 7))
    assert key is not None
    expected = BucketTransform(7).transform(LongType())(5)
    assert sorted(keyed.frame.select("key0", key).collect()) == [("x", expected), ("y", None)]
    assert keyed.key(TransformedField(("key0",), "string", "bucket", 7)) is not None
    assert keyed.without_keys(keyed.frame).columns == ["a b", "key0"]
    assert keyed.key(TransformedField(("key0",), "date", "day")) is None
    assert keyed.key(TransformedField(("gone",), "date", "day")) is None
    assert keyed.key(TransformedField(("key0", "deeper"), "string", "identity")) is None


def test_decimals_that_spark_cannot_tell_have_no_key(spark: SparkSession) -> None:
    keyed = Keyed(spark.createDataFrame([], "d decimal(38, 10), e decimal(38, 12)"))
    for transform in ("bucket", "truncate"):
        assert keyed.key(TransformedField(("d",), "decimal(38, 10)", transform, 4)) is None
    assert keyed.key(TransformedField(("e",), "decimal(38, 10)", "identity")) is None
