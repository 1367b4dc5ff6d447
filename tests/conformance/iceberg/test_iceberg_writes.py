"""Tables that our writers wrote: pyiceberg, Iceberg's Spark runtime and DuckDB read the rows, and Java, given the same rows,
makes the same partition values and the same statistics of them, so that both prune the same.
"""

import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)

import lakelet
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from tests.conformance.iceberg_spark.client import IcebergSpark
from tests.conformance.iceberg_tables import (
    EDGES,
    NOT_IN_JAVA,
    Edges,
    canonical,
    every_type,
    for_spark,
    insert,
    metadata_path,
    rows_of,
)


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    found = lakelet.connect(str(tmp_path)).catalogs.open("iceberg")
    found.create_namespace("d")
    return found


def in_duckdb(spark: IcebergSpark, table: Table) -> pa.Table:
    return spark.duckdb(f"SELECT * FROM iceberg_scan('{metadata_path(table)}')")


def statistics_hold(table: Table) -> None:
    """Counts are right, and no value lies outside its bounds, in every file and for every column outside lists and maps."""
    schema = table.schema()
    for task in table.scan().plan_files():
        file = task.file
        rows = pq.ParquetFile(file.file_path.removeprefix("file://").removeprefix("file:")).read()
        assert rows.num_rows == file.record_count
        # Names in files may differ from those of the table; ids say which is which.
        names = {int((field.metadata or {})[b"PARQUET:field_id"]): field.name for field in rows.schema}
        for field in schema.fields:
            if not field.field_type.is_primitive:
                continue
            values = rows.column(names[field.field_id]).to_pylist()
            there = [value for value in values if value is not None]
            numbers = [value for value in there if not (isinstance(value, float) and math.isnan(value))]
            assert file.value_counts[field.field_id] == len(values), field.name
            assert file.null_value_counts[field.field_id] == len(values) - len(there), field.name
            if isinstance(field.field_type, DoubleType):
                assert file.nan_value_counts[field.field_id] == len(there) - len(numbers)
            for bounds, outside in ((file.lower_bounds, lambda a, b: a < b), (file.upper_bounds, lambda a, b: a > b)):
                if field.field_id in bounds:
                    bound = from_bytes(field.field_type, bounds[field.field_id])
                    wrong = [value for value in numbers if outside(compared(value), compared(bound))]
                    assert not wrong, (field.name, bound)


def compared(value: Any) -> Any:
    """A value in the form that bounds are kept in."""
    match value:
        case dt.datetime():
            return (value.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(
                microseconds=1
            )
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days
        case dt.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case str():
            return value.encode()
    return getattr(value, "bytes", value)


STATISTICS = "record_count, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds"


def test_every_type_by_every_transform(catalog: IcebergCatalog, iceberg_spark: IcebergSpark, tmp_path: Path) -> None:
    schema, spec, rows = every_type(EDGES)
    for name in ("d.ours", "d.java"):
        catalog.library.create_table(name, schema, partition_spec=spec)
    insert(catalog, "d.ours", rows)
    iceberg_spark.insert(tmp_path, "d.java", for_spark(rows))
    table = catalog.library.load_table("d.ours")
    statistics_hold(table)

    def spark(query: str) -> pa.Table:
        return iceberg_spark.sql(tmp_path, query)

    # The rows.
    assert rows_of(table.scan().to_arrow()) == rows_of(rows)
    assert rows_of(spark("SELECT * FROM iceberg.d.ours")) == rows_of(rows)
    # Each row's partition.
    ours = spark("SELECT id, _partition FROM iceberg.d.ours ORDER BY id").to_pylist()
    java = spark("SELECT id, _partition FROM iceberg.d.java ORDER BY id").to_pylist()
    for mine, theirs in zip(ours, java, strict=True):
        assert canonical(mine) == canonical(theirs)
    # Every row is a partition of its own, so that files stand side by side.
    files = [spark(f"SELECT {STATISTICS} FROM iceberg.d.{name}.files").to_pylist() for name in ("ours", "java")]
    by_id = [{dict(one["lower_bounds"])[1]: one for one in of_table} for of_table in files]
    assert len(by_id[0]) == rows.num_rows
    for number, mine in by_id[0].items():
        theirs = by_id[1][number]
        for kind in mine:
            assert in_order(mine[kind]) == in_order(theirs[kind]), (number, kind)


def in_order(statistics: Any) -> Any:
    """Maps come as pairs, in any order."""
    return sorted(statistics) if isinstance(statistics, list) else statistics


def test_types_that_java_has_not(catalog: IcebergCatalog) -> None:
    schema, spec, rows = every_type(NOT_IN_JAVA)
    catalog.library.create_table("d.t", schema, partition_spec=spec)
    insert(catalog, "d.t", rows)
    table = catalog.library.load_table("d.t")
    assert rows_of(table.scan().to_arrow()) == rows_of(rows)
    statistics_hold(table)


def test_duckdb_reads_our_tables(catalog: IcebergCatalog, iceberg_spark: IcebergSpark) -> None:
    # DuckDB's Avro reader knows no values of fixed length, which decimals and uuids are in manifests, and no names of fields
    # beyond ASCII.
    odd = [one for one in EDGES if isinstance(one.type, DecimalType | UUIDType) or not one.name.isascii()]
    edges = [Edges(one.name, one.type, () if one in odd else one.transforms[-1:], one.values) for one in EDGES]
    schema, spec, rows = every_type(edges, void=False)
    catalog.library.create_table("d.t", schema, partition_spec=spec)
    insert(catalog, "d.t", rows)
    assert rows_of(in_duckdb(iceberg_spark, catalog.library.load_table("d.t"))) == rows_of(rows)
    insert(catalog, "d.t", rows.slice(0, 5), mode="overwrite_partitions")
    insert(catalog, "d.t", rows.slice(5, 2))
    table = catalog.library.load_table("d.t")
    expected = rows_of(pa.concat_tables([rows, rows.slice(5, 2)]))
    assert rows_of(in_duckdb(iceberg_spark, table)) == expected
    assert rows_of(table.scan().to_arrow()) == expected


NESTED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "at", TimestampType()),
    NestedField(
        3,
        "spot",
        StructType(
            NestedField(4, "x", IntegerType(), required=False),
            NestedField(5, "deep", StructType(NestedField(6, "s", StringType(), required=False)), required=False),
        ),
    ),
    NestedField(7, "tags", ListType(8, StringType(), element_required=False)),
    NestedField(9, "named", MapType(10, StringType(), 11, DoubleType(), value_required=False)),
    NestedField(
        12,
        "many",
        ListType(13, StructType(NestedField(14, "k", DecimalType(20, 3), required=False)), element_required=False),
    ),
)


def test_nested_columns_and_partitions_by_members(
    catalog: IcebergCatalog, iceberg_spark: IcebergSpark, tmp_path: Path
) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"),
        PartitionField(4, 1001, IdentityTransform(), "spot.x"),
        PartitionField(6, 1002, TruncateTransform(1), "deep s"),
    )
    rows = pa.Table.from_pylist(
        [
            {
                "id": 1,
                "at": dt.datetime(1969, 12, 31, 23),
                "spot": {"x": 1, "deep": {"s": "été"}},
                "tags": ["a", None, ""],
            },
            {"id": 2, "spot": {"x": None, "deep": None}, "tags": [], "named": [("k", -0.0), ("", None)]},
            {"id": 3, "spot": None, "named": [], "many": [{"k": None}, None]},
            {"id": 4, "spot": {"x": 1, "deep": {"s": None}}, "many": []},
        ],
        schema_to_pyarrow(NESTED, include_field_ids=False),
    )
    for name in ("d.ours", "d.java"):
        catalog.library.create_table(name, NESTED, partition_spec=spec)
    insert(catalog, "d.ours", rows)
    iceberg_spark.insert(tmp_path, "d.java", rows)
    table = catalog.library.load_table("d.ours")
    statistics_hold(table)
    # pyiceberg shows a NULL list of structs as an empty one, from its own files as well.
    assert rows_of(table.scan().to_arrow().drop("many")) == rows_of(rows.drop("many"))
    found = iceberg_spark.sql(tmp_path, "SELECT * FROM iceberg.d.ours")
    assert rows_of(found) == rows_of(rows)
    places = "SELECT id, _partition FROM iceberg.d.{} ORDER BY id"
    assert iceberg_spark.sql(tmp_path, places.format("ours")) == iceberg_spark.sql(tmp_path, places.format("java"))
    metrics = "SELECT readable_metrics FROM iceberg.d.{}.files ORDER BY readable_metrics.id.lower_bound"
    ours, java = (iceberg_spark.sql(tmp_path, metrics.format(name)).to_pylist() for name in ("ours", "java"))
    for mine, theirs in zip(ours, java, strict=True):
        for column, said in theirs["readable_metrics"].items():
            for kind in ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound"):
                assert mine["readable_metrics"][column][kind] == said[kind], (column, kind)


WHERE: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("int = 34", lambda row: row["int"] == 34),
    ("int < 0", lambda row: row["int"] is not None and row["int"] < 0),
    ("int IS NULL", lambda row: row["int"] is None),
    ("long >= 34 AND long < 1000", lambda row: row["long"] is not None and 34 <= row["long"] < 1000),
    ("money = -0.01", lambda row: str(row["money"]) == "-0.01"),
    ("day <= DATE '1969-12-31'", lambda row: row["day"] is not None and row["day"] <= dt.date(1969, 12, 31)),
    (
        "at >= TIMESTAMP_NTZ '1969-12-31 23:59:59.999999' AND at < TIMESTAMP_NTZ '1970-01-01 00:00:01'",
        lambda row: row["at"] in (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1)),
    ),
    ("`Straße` = 'null'", lambda row: row["Straße"] == "null"),
    ("`Straße` LIKE '日%'", lambda row: (row["Straße"] or "").startswith("日")),
    ("`Straße` IS NOT NULL AND `Straße` <> ''", lambda row: bool(row["Straße"])),
    ("`Straße` IN ('', '🦆🦆🦆')", lambda row: row["Straße"] in ("", "🦆🦆🦆")),
    ("double < 0", lambda row: row["double"] is not None and row["double"] < 0),
    ("yes = false", lambda row: row["yes"] is False),
]


def test_java_prunes_our_files_as_its_own(catalog: IcebergCatalog, iceberg_spark: IcebergSpark, tmp_path: Path) -> None:
    """Few partition fields and many rows in a file: what is pruned is pruned by bounds as well."""
    names = {"int": "truncate[10]", "day": "month", "Straße": "truncate[2]"}
    edges = [Edges(one.name, one.type, (names[one.name],) if one.name in names else (), one.values) for one in EDGES]
    schema, spec, rows = every_type(edges, void=False)
    for name in ("d.ours", "d.java"):
        catalog.library.create_table(name, schema, partition_spec=spec)
    insert(catalog, "d.ours", rows)
    iceberg_spark.insert(tmp_path, "d.java", for_spark(rows))
    partitions = [
        {row["file_path"]: canonical(row["partition"]) for row in iceberg_spark.sql(tmp_path, query).to_pylist()}
        for query in (f"SELECT file_path, partition FROM iceberg.d.{name}.files" for name in ("ours", "java"))
    ]
    everything = rows.to_pylist()
    pruned = 0
    for where, holds in WHERE:
        expected = sorted(row["id"] for row in everything if holds(row))
        found = iceberg_spark.sql(tmp_path, f"SELECT id FROM iceberg.d.ours WHERE {where} ORDER BY id")
        assert found.column("id").to_pylist() == expected, where
        ours, java = (
            sorted(map(repr, (files[path] for path in iceberg_spark.planned(tmp_path, f"d.{name}", where))))
            for name, files in zip(("ours", "java"), partitions, strict=True)
        )
        assert ours == java, where
        pruned += len(ours) < len(partitions[0])
    assert pruned >= 8
