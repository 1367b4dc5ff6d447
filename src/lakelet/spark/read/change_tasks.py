"""What the tasks of a read of changes do: change units, packed so that the changes of a key are in one task and in order.

Spark runs the tasks of a job at once and promises no order between them. So all units of a bucket go to one task; whoever applies
the rows by key finds them in the order of the snapshots. Rows of a first version, and of append tables without buckets, have no
such order, and are spread by size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.predicate.row_filter import RowFilter
from lakelet.spark.read.merge_scan import balanced_parts, small_batches
from lakelet.spark.types import arrow_of_spark, to_spark_arrow
from lakelet.storage.home import TableHome
from lakelet.table.follow.change_stream import upserts
from lakelet.table.read.change_reader import ChangeReader
from lakelet.table.read.change_unit import ChangeUnit, UnitKind, in_lanes
from lakelet.table.read.changes import ROW_KIND, with_kinds

_TASK_BYTES = 8 << 20
_OPEN_BYTES = 1 << 16


@dataclass(frozen=True)
class ChangeRead:
    """What all tasks share: the table, the columns, the condition, and whether rows come with their kinds."""

    home: TableHome
    schema: TableSchema
    fields: tuple[Field, ...]
    keep: RowFilter
    changelog: bool

    def rows(self, units: Sequence[ChangeUnit]) -> Iterator[pa.RecordBatch]:
        """The rows of units in Spark's types, in batches that the JVM takes one at a time."""
        schema = pa.schema([pa.field(ROW_KIND, pa.string()), *arrow_of_spark(self.fields)])
        for kinds, rows in ChangeReader(self.home, self.schema).read(units):
            marked = with_kinds(kinds, rows) if self.changelog else rows.filter(upserts(kinds))
            kept = self.keep.apply(marked)
            for piece in small_batches(kept):
                converted = to_spark_arrow(piece, self.fields)
                if not self.changelog:
                    yield converted
                    continue
                yield pa.RecordBatch.from_arrays([piece.column(ROW_KIND), *converted.columns], schema=schema)


def change_parts(schema: TableSchema, units: Sequence[ChangeUnit], parallelism: int = 1) -> list[list[ChangeUnit]]:
    """The units of each task; none where there is no unit."""
    if not units:
        return []
    unordered = bucket_mode(schema) is BucketMode.BUCKET_UNAWARE or units[0].kind is UnitKind.INITIAL
    groups = [[unit] for unit in units] if unordered else in_lanes(units)
    costs = [sum(_bytes(unit) for unit in group) for group in groups]
    parts = balanced_parts(groups, costs, max(parallelism, -(-sum(costs) // _TASK_BYTES)))
    return [[unit for group in part for unit in group] for part in parts]


def _bytes(unit: ChangeUnit) -> int:
    """Bytes to read, also of files that two versions share: comparing them reads both."""
    return sum(max(file.size, _OPEN_BYTES) for split in (*unit.before, *unit.after) for file in split.files)
