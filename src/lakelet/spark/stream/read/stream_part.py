"""What one task of a micro-batch reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from lakelet.spark.read.change_tasks import ChangeRead
from lakelet.table.read.change_unit import ChangeUnit


class StreamPart(InputPartition):
    """Change units, with everything that reading them takes: a task knows nothing of the process that planned it."""

    def __init__(self, read: ChangeRead, units: Sequence[ChangeUnit]) -> None:
        super().__init__(None)
        self.shared = read
        self.units = tuple(units)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the task."""
        return self.shared.rows(self.units)
