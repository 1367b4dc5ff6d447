"""The partitions that a compaction covers: those with given values, those that match a condition, idle ones.

    [{"dt": "2026-01-01"}, {"dt": "2026-01-02"}]       either of the two
    "dt >= '2026-01-01' AND h < 8"                     a condition on partition columns
    idle for "1 d"                                     no new file for a day

All given conditions must hold. Only manifests are read, and these only where idleness is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.changes import partition_mask
from lakelet.commit.conflict.conflicts import PartitionFilter
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.compaction import Scope
from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.predicate.row_filter import row_filter
from lakelet.storage.home import TableHome
from lakelet.table.write.table_commit import partition_spec

Partitions: TypeAlias = Mapping[str, object] | Sequence[Mapping[str, object]]
_PLACE = "__lakelet_place"


def partition_scope(
    partition: Partitions | None,
    schema: TableSchema,
    *,
    where: str | None = None,
    idle: tuple[TableHome, timedelta] | None = None,
) -> Scope:
    """The partitions that match all of the conditions, or all."""
    filters: list[PartitionFilter] = []
    if partition is not None:
        wanted = [partition] if isinstance(partition, Mapping) else partition
        specs = [partition_spec(one, schema) for one in wanted]
        filters.append(lambda rows: _any(len(rows), [partition_mask(rows, schema, spec) for spec in specs]))
    if where is not None:
        filters.append(_matching(where, schema))
    if idle is not None:
        filters.append(partial(_among, _idle_partitions(*idle)))
    if not filters:
        return Scope()
    return Scope(partitions=lambda rows: np.logical_and.reduce([found(rows) for found in filters]))


def _any(count: int, masks: Sequence[Mask]) -> Mask:
    found: Mask = np.logical_or.reduce([np.zeros(count, np.bool_), *masks])
    return found


def _matching(where: str, schema: TableSchema) -> PartitionFilter:
    from lakelet.predicate.where import parse_where  # noqa: PLC0415 - the parser takes half a second to load.

    fields = [schema.field(name) for name in schema.partition_keys]
    if not fields:
        raise InvalidError(f"where {where!r}: the table has no partitions to choose from")
    condition = row_filter(parse_where(where, fields), fields)

    def matching(rows: pa.Array) -> Mask:
        columns = dict(zip(schema.partition_keys, decode_rows(rows, schema.partition_types), strict=True))
        batch = pa.RecordBatch.from_pydict({**columns, _PLACE: pa.array(np.arange(len(rows)))})
        mask = np.zeros(len(rows), np.bool_)
        mask[condition.apply(batch).column(_PLACE).to_numpy()] = True
        return mask

    return matching


def _idle_partitions(home: TableHome, length: timedelta) -> pa.Array:
    """The partitions of the newest version whose newest file is older than that."""
    snapshot = latest_snapshot(home)
    if snapshot is None:
        return pa.array([], pa.binary())
    entries = live_entries(home, snapshot_manifests(home, snapshot), columns=["_CREATION_TIME"])
    newest = entries.group_by("_PARTITION").aggregate([("_CREATION_TIME", "max")])
    before_ms = home.clock.now_ms() - length // timedelta(milliseconds=1)
    idle = newest.filter(pc.less(newest.column("_CREATION_TIME_max"), before_ms))
    return idle.column("_PARTITION").combine_chunks()


def _among(partitions: pa.Array, rows: pa.Array) -> Mask:
    found: Mask = pc.is_in(rows, value_set=partitions).to_numpy(zero_copy_only=False)
    return found
