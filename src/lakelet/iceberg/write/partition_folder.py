"""The folder of a partition's files: `name=value/…` below the table's data, as in pyiceberg's location providers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pyiceberg.partitioning import PartitionFieldValue, PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from lakelet.iceberg.transforms.transform import partition_path
from lakelet.iceberg.write.partition_groups import PartitionColumn


class KnownPartition(PartitionKey):
    """A partition whose values are those of manifests already. pyiceberg's own computes them from rows, and gives up where a
    spec has two fields of one column."""

    def __init__(
        self, spec: PartitionSpec, schema: Schema, columns: Sequence[PartitionColumn], values: tuple[Any, ...]
    ) -> None:
        fields = [PartitionFieldValue(field, value) for field, value in zip(spec.fields, values, strict=True)]
        super().__init__(fields, spec, schema)
        texts = [
            "null" if column.transform is None else column.transform.to_human_string(value)
            for column, value in zip(columns, values, strict=True)
        ]
        object.__setattr__(self, "_path", partition_path(spec, texts))
        object.__setattr__(self, "_record", Record(*values))

    @cached_property
    def partition(self) -> Record:
        """The values."""
        found: Record = self.__dict__["_record"]
        return found

    def to_path(self) -> str:
        """The folder."""
        return str(self.__dict__["_path"])
