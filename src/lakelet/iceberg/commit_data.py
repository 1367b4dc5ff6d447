"""The commit data of a written file: a writer reports it, the driver makes a manifest entry of it.

    file_path, row_count, file_size, file_content, partition_values    as in the design
    split_offsets, column_sizes, value/null/NaN counts, bounds         by field id, for pruning

A partition value is in the form of manifests: days as a number, timestamps in microseconds, NULL as None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record


@dataclass(frozen=True, slots=True)
class CommitData:
    """A written, uncommitted data file."""

    file_path: str
    row_count: int
    file_size: int
    spec_id: int
    partition_values: tuple[Any, ...] = ()
    file_content: str = "DATA"
    split_offsets: tuple[int, ...] = ()
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    sort_order_id: int | None = None

    def data_file(self) -> DataFile:
        """The entry for a manifest."""
        return DataFile.from_args(
            content=DataFileContent[self.file_content],
            file_path=self.file_path,
            file_format=FileFormat.PARQUET,
            partition=Record(*self.partition_values),
            record_count=self.row_count,
            file_size_in_bytes=self.file_size,
            column_sizes=dict(self.column_sizes),
            value_counts=dict(self.value_counts),
            null_value_counts=dict(self.null_value_counts),
            nan_value_counts=dict(self.nan_value_counts),
            lower_bounds=dict(self.lower_bounds),
            upper_bounds=dict(self.upper_bounds),
            key_metadata=None,
            split_offsets=list(self.split_offsets) or None,
            equality_ids=None,
            sort_order_id=self.sort_order_id,
            spec_id=self.spec_id,
        )
