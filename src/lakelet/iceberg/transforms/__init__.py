"""Partition transforms over whole Arrow arrays; see `transform`."""

from lakelet.iceberg.transforms.transform import PartitionTransform, transform_of

__all__ = ["PartitionTransform", "transform_of"]
