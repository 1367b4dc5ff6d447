"""The JVM's hash, bucket and channel of every key type, against the numpy ones and Java's."""

import datetime as dt
import json
import struct
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import bucket_of, encode_rows, hash_rows
from lakelet.format.rows.murmur import murmur3_32
from lakelet.model.arrow.arrow_types import arrow_schema, timestamp_unit, to_arrow
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import BINARIES, STRINGS, TIMESTAMPS, Atomic, Field, Kind
from lakelet.sink.bucket.channels import partition_hashes, select_channels
from lakelet.sink.bucket.extractors import extractor_for
from lakelet.spark import session
from lakelet.spark.route.hash_expression import (
    binary_row,
    bucket_expression,
    channel_expression,
    channel_of,
    column_named,
    key_hash,
    needs_python,
    partition_hash,
    row_hash,
)
from lakelet.spark.types import spark_schema, to_spark_arrow
from tests.tiers.examples import examples

pytestmark = [pytest.mark.spark]

VECTORS = Path(__file__).parents[2] / "golden" / "bucket-vectors.json"
ZONE = " WITH LOCAL TIME ZONE"
IN_THE_JVM = (
    *(
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "DATE",
        "TIME(3)",
        "STRING",
        "BYTES",
        "VARCHAR(90)",
        "BINARY(90)",
    ),
    *("DECIMAL(1, 0)", "DECIMAL(9, 2)", "DECIMAL(18, 0)", "DECIMAL(18, 5)", "DECIMAL(18, 18)"),
    *(f"TIMESTAMP({precision}){zone}" for precision in (0, 3, 4, 6, 9) for zone in ("", ZONE)),
)
IN_PYTHON = ("FLOAT", "DOUBLE", "DECIMAL(19, 3)", "DECIMAL(38, 10)", "DECIMAL(38, 38)")
FEW = settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
ROWS = 60
# What Spark takes as a timestamp without a doubt: the years 1 to 9999, and 1678 to 2262 where nanoseconds must hold them.
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
NANOS = (-9_000_000_000_000_000, 9_000_000_000_000_000)
BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
EDGES = (0, 1, 6, 7, 8, 9, 15, 16, 17, 60)


def fields(*types: str) -> list[Field]:
    return [Field(index, f"c{index}", parse_type(text)) for index, text in enumerate(types)]


def values(data_type: Atomic) -> st.SearchStrategy[Any]:
    """Values of a key, numbers in place of times."""
    kind, precision = data_type.kind, data_type.precision
    if kind is Kind.BOOLEAN:
        return st.booleans()
    if kind in BITS:
        return st.integers(-(2 ** (BITS[kind] - 1)), 2 ** (BITS[kind] - 1) - 1)
    if kind is Kind.DATE:
        return st.integers(-719_162, 2_932_896)
    if kind is Kind.TIME:
        return st.integers(0, 86_399_999)
    if kind in TIMESTAMPS:
        step = 10 ** max(0, 6 - precision)
        micros = st.one_of(st.integers(-2000, 2000), st.integers(*(MICROS if precision <= 6 else NANOS)))
        per_unit = {"ms": lambda n: n // 1000, "us": lambda n: n, "ns": lambda n: n * 1000}[timestamp_unit(precision)]
        return micros.map(lambda number: per_unit(number // step * step))
    if kind is Kind.DECIMAL:
        most = 10**precision - 1
        return st.integers(-most, most).map(lambda n: Decimal(n).scaleb(-data_type.scale, Context(prec=40)))
    if kind in STRINGS:
        text = st.text(st.characters(codec="utf-8"), max_size=20)
        return st.one_of(text, st.sampled_from(EDGES).map(lambda size: "x" * size))
    if kind in BINARIES:
        return st.one_of(st.binary(max_size=20), st.sampled_from(EDGES).map(bytes))
    return st.floats(width=32 if kind is Kind.FLOAT else 64)


def column(data_type: Atomic, found: Sequence[Any]) -> pa.Array:
    arrow = to_arrow(data_type)
    if pa.types.is_timestamp(arrow):
        return pa.array(found, pa.int64()).view(arrow)
    if pa.types.is_date(arrow) or pa.types.is_time(arrow):
        return pa.array(found, pa.int32()).view(arrow)
    return pa.array(found, arrow)


@st.composite
def tables(draw: st.DrawFn, columns: Sequence[Field]) -> pa.Table:
    """Random values of these columns; a seed in place of single draws would find no small examples, so few rows are drawn
    and mixed anew in every row."""
    arrays = []
    for field in columns:
        assert isinstance(field.type, Atomic)
        own = draw(st.lists(values(field.type), min_size=8, max_size=12))
        chosen = draw(st.lists(st.sampled_from([None, *range(len(own))]), min_size=ROWS, max_size=ROWS))
        arrays.append(column(field.type, [None if index is None else own[index] for index in chosen]))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def frame(spark: SparkSession, table: pa.Table, columns: Sequence[Field]) -> DataFrame:
    """The table as a DataFrame of one partition, in order and bit by bit (createDataFrame would go through pandas)."""
    batches = to_spark_arrow(table, columns).combine_chunks().to_batches()

    def rows(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return spark.range(0, 1, 1, 1).mapInArrow(rows, spark_schema(columns))


def check(spark: SparkSession, table: pa.Table, columns: Sequence[Field], keys: Sequence[Sequence[str]]) -> None:
    """Hash and bytes of several keys over one table, all in one job."""
    typed = [[(F.col(name), next(f.type for f in columns if f.name == name)) for name in key] for key in keys]
    found = (
        frame(spark, table, columns)
        .select(
            *(row_hash(key).alias(f"h{number}") for number, key in enumerate(typed)),
            *(binary_row(key).alias(f"b{number}") for number, key in enumerate(typed)),
        )
        .toArrow()
    )
    for number, key in enumerate(keys):
        types = [data_type for _, data_type in typed[number]]
        arrays = [table.column(name) for name in key]
        rows = [row[4:] for row in encode_rows(arrays, types).to_pylist()]
        assert found.column(f"b{number}").to_pylist() == rows, [str(data_type) for data_type in types]
        hashes = hash_rows(arrays, types).tolist()
        assert found.column(f"h{number}").to_pylist() == hashes, [str(data_type) for data_type in types]


@FEW
@given(st.data())
def test_every_type_alone(spark: SparkSession, data: st.DataObject) -> None:
    columns = fields(*data.draw(st.lists(st.sampled_from(IN_THE_JVM), min_size=6, max_size=6, unique=True)))
    check(spark, data.draw(tables(columns)), columns, [[field.name] for field in columns])


@FEW
@given(st.data())
def test_types_that_only_python_can_take_apart(spark: SparkSession, data: st.DataObject) -> None:
    columns = fields(*IN_PYTHON, "TIMESTAMP(3)", "TIMESTAMP(9)", "TIME(3)", "STRING")
    keys = [[field.name] for field in columns[: len(IN_PYTHON)]]
    check(spark, data.draw(tables(columns)), columns, [*keys, [field.name for field in columns[4:]]])


@pytest.mark.deep
@FEW
@given(st.data())
def test_several_columns_after_one_another(spark: SparkSession, data: st.DataObject) -> None:
    columns = fields(*data.draw(st.lists(st.sampled_from(IN_THE_JVM), min_size=5, max_size=5)))
    names = [field.name for field in columns]
    check(spark, data.draw(tables(columns)), columns, [names, names[:2], names[3:]])


@pytest.mark.deep
@pytest.mark.sampled
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_neither_ansi_mode_nor_the_time_zone_matter(spark: SparkSession, ansi: str, zone: str) -> None:
    columns = fields("BIGINT", "DECIMAL(18, 18)", "DATE", *(f"TIMESTAMP({p}){z}" for p in (3, 6) for z in ("", ZONE)))
    micros = [-1, 0, 999, -999, -1000, -1001, 1_710_037_800_000_001, 1_730_610_000_000_000, MICROS[0], MICROS[1], None]
    digits = [-(10**18) + 1, 10**18 - 1, 0, 1, -1, 5, -5, 10**17, -(10**17), 7, None]
    found: list[list[Any]] = [
        [2**63 - 1, -(2**63), 0, 1, -1, 2**31, -(2**31) - 1, 2**32, 255, -256, None],
        [None if n is None else Decimal(n).scaleb(-18) for n in digits],
        [None if n is None else n // 86_400_000_000 for n in micros],
        *([None if n is None else n // 1000 for n in micros] for _ in range(2)),
        *(micros for _ in range(2)),
    ]
    arrays = [
        column(field.type, own) for field, own in zip(columns, found, strict=True) if isinstance(field.type, Atomic)
    ]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    with session.settings(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone}):
        check(spark, table, columns, [*([field.name] for field in columns), [field.name for field in columns]])


@pytest.mark.deep
@pytest.mark.parametrize("setting", ["legacy.lpadRpadAlwaysReturnString", "function.concatBinaryAsString"])
def test_settings_that_make_text_of_bytes_do_not_matter(spark: SparkSession, setting: str) -> None:
    columns = fields("STRING", "BYTES", "TIMESTAMP(6)")
    texts = ["", "é", "éé数", "数数", "ééééé数", "数" * 20, None]
    found: list[list[Any]] = [
        texts,
        [b"\xff\xc3" * size for size in range(6)] + [None],
        [*range(-3000, 3000, 1000), None],
    ]
    arrays = [
        column(field.type, own) for field, own in zip(columns, found, strict=True) if isinstance(field.type, Atomic)
    ]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    with session.settings(spark, {f"spark.sql.{setting}": "true"}):
        check(spark, table, columns, [*([field.name] for field in columns), [field.name for field in columns]])


@pytest.mark.deep
@pytest.mark.parametrize("arity", [56, 121])
def test_the_header_grows_with_the_columns(spark: SparkSession, arity: int) -> None:
    columns = fields(*["SMALLINT"] * arity)
    arrays = [pa.array([None, number, None if number % 3 else 1], pa.int16()) for number in range(arity)]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    check(spark, table, columns, [[field.name for field in columns]])


def test_numbers_without_a_usual_form(spark: SparkSession) -> None:
    """NaN of every payload and both zeros are distinguished, as their bytes are."""
    odd = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
    columns = fields("DOUBLE", "FLOAT")
    doubles = np.array([0.0, -0.0, np.nan, odd, -np.nan, np.inf, -np.inf, 5e-324])
    table = pa.Table.from_arrays(
        [pa.array(doubles), pa.array(doubles.astype(np.float32))], schema=arrow_schema(columns)
    )
    check(spark, table, columns, [["c0"], ["c1"], ["c0", "c1"]])


def test_the_hash_of_no_columns_is_that_of_the_empty_row(spark: SparkSession) -> None:
    assert spark.range(1).select(row_hash([])).collect()[0][0] == murmur3_32(bytes(8))


def golden(data_type: Atomic, value: Any) -> Any:
    if data_type.kind is Kind.DECIMAL:
        return Decimal(value)
    if data_type.kind is Kind.DATE:
        return dt.date.fromisoformat(value)
    if data_type.kind in TIMESTAMPS:
        return dt.datetime.fromisoformat(value)
    return bytes.fromhex(value) if data_type.kind in BINARIES else value


def test_buckets_are_those_that_java_chose(spark: SparkSession) -> None:
    columns: list[Field] = []
    arrays: list[pa.Array] = []
    expected: list[list[int]] = []
    chosen = []
    for vector in json.loads(VECTORS.read_text()).values():
        key = []
        for place, own in enumerate(vector["columns"], 1):
            data_type = parse_type(own["type"])
            assert isinstance(data_type, Atomic)
            found = [golden(data_type, row[place]) for row in vector["rows"]]
            key.append((F.col(f"c{len(columns)}"), data_type))
            columns.append(Field(len(columns), f"c{len(columns)}", data_type))
            arrays.append(pa.array(found, to_arrow(data_type)))
        chosen.append(F.abs(row_hash(key) % vector["buckets"]).alias(f"b{len(chosen)}"))
        expected.append([row[0] for row in vector["rows"]])
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    found = frame(spark, table, columns).select(*chosen).toArrow()
    assert [buckets.to_pylist() for buckets in found.columns] == expected


def test_where_python_is_needed() -> None:
    assert all(needs_python([parse_type(text)]) for text in IN_PYTHON)
    assert not any(needs_python([parse_type(text)]) for text in IN_THE_JVM)
    assert needs_python([parse_type("INT"), parse_type("DOUBLE")])


def schema(*types: str, primary: Sequence[int] = (), partition: Sequence[int] = (), **options: str) -> TableSchema:
    return new_schema(
        fields(*types),
        partition_keys=[f"c{index}" for index in partition],
        primary_keys=[f"c{index}" for index in primary],
        options={key.replace("_", "-"): text for key, text in options.items()},
        comment=None,
        time_ms=0,
    )


@pytest.mark.deep
@FEW
@given(st.data())
def test_channels_are_those_of_the_sink(spark: SparkSession, data: st.DataObject) -> None:
    kept = schema("STRING", "INT", "BIGINT", "DATE", primary=(0, 1, 2), partition=(0,), bucket="5", bucket_key="c2")
    table = data.draw(tables(kept.fields))
    channels = data.draw(st.sampled_from([1, 2, 3, 7, 64, 2**20]))
    batch = table.combine_chunks().to_batches()[0]
    extracted = extractor_for(kept).extract(batch)
    assert extracted.buckets is not None
    hashes = partition_hashes(extracted.partitions)[extracted.partition_codes]
    found = (
        frame(spark, table, kept.fields)
        .select(
            bucket_expression(kept),
            partition_hash(kept),
            key_hash(kept),
            channel_expression(kept, channels),
        )
        .toArrow()
    )
    assert [column.to_pylist() for column in found.columns] == [
        extracted.buckets.tolist(),
        hashes.tolist(),
        extracted.key_hashes.tolist(),
        select_channels(hashes, extracted.buckets, channels).tolist(),
    ]


def test_the_least_hash_has_a_channel(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelet.spark.route import hash_expression

    hashes = np.array([-(2**31), -(2**31) + 1, -1, 0, 2**31 - 1], np.int32)
    monkeypatch.setattr(hash_expression, "row_hash", lambda columns: F.col("h"))
    kept = schema("STRING", "INT", partition=(0,))
    rows = spark.createDataFrame([(int(number),) for number in hashes], "h int")
    found = rows.select("h", channel_of(kept, 7, F.lit(3))).collect()
    assert dict(map(tuple, found)) == dict(
        zip(hashes.tolist(), select_channels(hashes, np.full(5, 3, np.int32), 7).tolist(), strict=True)
    )


def test_modes_without_a_hash_have_one_bucket_and_assigned_ones_are_refused(spark: SparkSession) -> None:
    unaware = schema("INT", "INT")
    postponed = schema("INT", "INT", primary=(0,), bucket="-2")
    row = spark.range(1).select(bucket_expression(unaware), bucket_expression(postponed)).collect()[0]
    assert tuple(row) == (0, -2)
    with pytest.raises(InvalidError, match="index"):
        bucket_expression(schema("INT", "INT", primary=(0,), bucket="-1"))


def test_across_partitions_the_whole_key_is_hashed(spark: SparkSession) -> None:
    kept = schema("INT", "STRING", "INT", primary=(0,), partition=(1,), bucket="-1")
    table = pa.table({"c0": pa.array([1, 2], pa.int32()), "c1": ["a", "b"], "c2": pa.array([1, 1], pa.int32())})
    found = frame(spark, table, kept.fields).select(key_hash(kept)).toArrow().column(0).to_pylist()
    assert found == hash_rows([table.column("c0")], [kept.fields[0].type]).tolist()


def test_a_row_goes_to_its_channel_by_a_udf_as_well(spark: SparkSession) -> None:
    kept = schema("DOUBLE", "INT", primary=(0,), bucket="3")
    table = pa.table({"c0": pa.array(np.linspace(-5, 5, 40)), "c1": pa.array(range(40), pa.int32())})
    routed = frame(spark, table, kept.fields).repartitionById(3, channel_expression(kept, 3))
    found = routed.select("c0", F.spark_partition_id().alias("p")).toArrow()
    buckets = bucket_of(hash_rows([found.column("c0")], [kept.fields[0].type]), 3)
    start = int(select_channels(partition_hashes([bytes(12)]), np.zeros(1, np.int32), 3)[0])
    assert found.num_rows == 40
    assert found.column("p").to_pylist() == ((buckets + start) % 3).tolist()


def test_names_are_taken_literally(spark: SparkSession) -> None:
    odd = "a.b`c d"
    rows = spark.range(1).select(F.col("id").alias(odd))
    assert rows.select(column_named(odd)).collect()[0][0] == 0


@pytest.mark.parametrize("channels", [0, 2**31])
def test_numbers_of_tasks_must_make_sense(channels: int) -> None:
    with pytest.raises(InvalidError, match="expected a number from 1"):
        channel_expression(schema("INT", "INT", primary=(0,), bucket="5"), channels)


def test_nested_values_have_no_place_in_keys() -> None:
    with pytest.raises(InvalidError, match="no place in keys"):
        row_hash([(F.col("a"), parse_type("ARRAY<INT>"))])
