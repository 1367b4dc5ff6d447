"""Partition values of every type are found again: what was written, read back from a manifest, is the same partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from tests.unit.iceberg.commit.tables import NAME, check_sums, new_catalog, rows_of, set_partitions, write

CASES: list[tuple[PrimitiveType, list[Any], list[str]]] = [
    (BooleanType(), [True, False, None], ["identity"]),
    (IntegerType(), [-(2**30), -1, 0, 7, None], ["identity", "bucket[5]", "truncate[3]"]),
    (LongType(), [-(2**62), -1, 0, 2**62, None], ["identity", "bucket[5]", "truncate[3]"]),
    (FloatType(), [0.1, -0.0, 0.0, float("inf"), float("nan"), None], ["identity"]),
    (DoubleType(), [0.1, -0.0, 0.0, 1e300, float("nan"), None], ["identity"]),
    (
        DecimalType(9, 2),
        [Decimal("-1.50"), Decimal("0.00"), Decimal("99.99"), None],
        ["identity", "bucket[5]", "truncate[7]"],
    ),
    (DecimalType(38, 10), [Decimal("-1.5"), Decimal(10) ** 20, None], ["identity", "bucket[5]", "truncate[7]"]),
    (StringType(), ["", "null", "a/b=c d", "日本語", "😀x", None], ["identity", "bucket[5]", "truncate[2]"]),
    (BinaryType(), [b"", b"\x00\xff", b"abcdef", None], ["identity", "bucket[5]", "truncate[2]"]),
    (FixedType(3), [b"abc", b"\x00\xff\x01", None], ["identity", "bucket[5]"]),
    (UUIDType(), [UUID(int=1).bytes, UUID(int=2**127).bytes, None], ["identity", "bucket[5]"]),
    (DateType(), [date(1969, 12, 31), date(2024, 2, 29), None], ["identity", "bucket[5]", "year", "month", "day"]),
    (TimeType(), [time(0, 0), time(23, 59, 59, 999999), None], ["identity", "bucket[5]"]),
    (
        TimestampType(),
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 13), None],
        ["identity", "bucket[5]", "year", "month", "day", "hour"],
    ),
    (
        TimestamptzType(),
        [datetime(1969, 12, 31, 23, 59, tzinfo=UTC), datetime(2024, 2, 29, 13, tzinfo=UTC), None],
        ["identity", "bucket[5]", "year", "month", "day", "hour"],
    ),
]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("kind", "values", "transform"),
    [(kind, values, transform) for kind, values, transforms in CASES for transform in transforms],
    ids=lambda one: str(one) if not isinstance(one, list) else "",
)
def test_every_partition_is_found_again(kind: PrimitiveType, values: list[Any], transform: str, tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", kind))
    catalog.library.create_table(NAME, schema)
    table = catalog.table(NAME)
    set_partitions(table, {"p": transform})
    arrow = pa.schema([("id", pa.int64()), ("p", table.metadata.schema().as_arrow().field("p").type)])
    stored = arrow.field("p").type
    plain = pa.binary(16) if isinstance(kind, UUIDType) else stored

    def rows(first: int) -> pa.Table:
        numbers = list(range(first, first + len(values)))
        return pa.table({"id": pa.array(numbers, pa.int64()), "p": pa.array(values, plain)})

    write(table, rows(0))
    write(table, rows(100))
    rewrite_manifests(table)
    write(table, rows(200), "overwrite_partitions")
    assert sorted(one["id"] for one in rows_of(table)) == rows(200).column("id").to_pylist()  # type: ignore[type-var]
    check_sums(table)
    if transform == "identity":
        given = UUID(bytes=values[0]) if isinstance(kind, UUIDType) else values[0]
        write(table, rows(300).slice(0, 1), "overwrite", {"p": given})
        assert len(rows_of(table)) == len(values)
        write(table, [], "overwrite", {"p": None})
        assert len(rows_of(table)) == len(values) - 1
