"""Values of partitions as folders show them."""

from __future__ import annotations

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import DayTransform, IdentityTransform

from lakelet.iceberg.transforms.transform import partition_path


def test_names_and_values_are_escaped() -> None:
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "a/b"), PartitionField(2, 1001, DayTransform(), "ts_day")
    )
    assert partition_path(spec, ["x=1 y", "2026-01-01"]) == "a%2Fb=x%3D1+y/ts_day=2026-01-01"
    assert partition_path(PartitionSpec(), []) == ""
