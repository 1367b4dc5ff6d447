import json
from dataclasses import replace

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform, VoidTransform
from pyiceberg.types import DecimalType, ListType, LongType, NestedField, StringType, StructType, TimestampType

from lakelet.errors import InvalidError
from lakelet.iceberg.write.write_plan import WritePlan
from lakelet.spark.iceberg.distribution import distribution_mode, routing_settings
from lakelet.spark.iceberg.fields import SortedField, TransformedField, partition_fields, sort_fields
from tests.unit.iceberg.ice_tables import spec_of

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "a.b", StructType(NestedField(3, "ts", TimestampType()), NestedField(4, "d", DecimalType(9, 2)))),
    NestedField(5, "tags", ListType(6, StringType())),
)


def plan(*fields: object, order: SortOrder | None = None, properties: dict[str, str] | None = None) -> WritePlan:
    spec = spec_of(*fields)  # type: ignore[arg-type]
    return WritePlan(
        table="ice.db.t",
        job="j",
        schema_json=SCHEMA.model_dump_json(),
        partition_specs_json={0: json.dumps({"spec-id": 0, "fields": []}), 4: spec.model_dump_json()},
        partition_spec_id=4,
        sort_order_json=(order or SortOrder(order_id=0)).model_dump_json(),
        location="file:///t",
        target_file_size=100,
        file_format="parquet",
        compression="zstd",
        properties=properties or {},
        io_properties={"s3.secret-access-key": "very-secret"},
    )


def test_fields_of_the_spec_of_the_job() -> None:
    made = plan(
        (1, BucketTransform(16), "b"),
        (3, DayTransform(), "day"),
        (4, TruncateTransform(50), "trunc"),
        (1, VoidTransform(), "gone"),
    )
    assert partition_fields(made) == (
        TransformedField(("id",), "long", "bucket", 16),
        TransformedField(("a.b", "ts"), "timestamp", "day"),
        TransformedField(("a.b", "d"), "decimal(9, 2)", "truncate", 50),
    )
    assert partition_fields(replace(made, partition_spec_id=0)) == ()


def test_fields_of_the_sort_order() -> None:
    order = SortOrder(
        SortField(1, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),
        SortField(3, DayTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
    )
    assert sort_fields(plan(order=order)) == (
        SortedField(TransformedField(("id",), "long", "identity"), descending=True, nulls_last=True),
        SortedField(TransformedField(("a.b", "ts"), "timestamp", "day"), descending=False, nulls_last=False),
    )


def test_how_rows_are_spread() -> None:
    bucket = (1, BucketTransform(16), "b")
    assert distribution_mode(plan(bucket)) == "hash"
    assert distribution_mode(plan()) == "none"
    assert distribution_mode(plan((1, VoidTransform(), "gone"))) == "none"
    assert distribution_mode(plan(bucket, properties={"write.distribution-mode": "RANGE"})) == "range"
    with pytest.raises(InvalidError, match=r"ice\.db\.t.*'sideways'"):
        distribution_mode(plan(properties={"write.distribution-mode": "sideways"}))
    assert routing_settings(plan()) == {}
    assert routing_settings(plan(bucket)) == {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "200"}
    assert "very-secret" not in repr(plan())
