"""List and drop the partitions of a table.

Partitions are those of the live files of the newest snapshot. Dropping is one commit that replaces them by nothing: it removes
whatever they hold when it is committed, and older snapshots still have the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakelet.commit.changes import partition_mask
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.request import Overwrite
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.partition_path import partition_text
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import PARTITION_DEFAULT_NAME, TableOptions
from lakelet.table.table import Table


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its BinaryRow bytes, and the text of each of its columns, None for NULL."""

    row: bytes
    values: Mapping[str, str | None]

    def name(self, schema: TableSchema) -> str:
        """The partition as text: `k=v/k=v`."""
        missing = TableOptions(schema.options).get(PARTITION_DEFAULT_NAME)
        return "/".join(f"{key}={missing if text is None else text}" for key, text in self.values.items())


def live_partitions(
    table: Table, schema: TableSchema, specs: Sequence[Mapping[str, object]] = ({},)
) -> list[Partition]:
    """The partitions of a partitioned table that match one of the specs, in the order of their values."""
    snapshot = table.latest_snapshot()
    if snapshot is None:
        return []
    threads = ManifestSettings.of(TableOptions(schema.options)).threads
    entries = live_entries(table.home, snapshot_manifests(table.home, snapshot), columns=[], threads=threads)
    rows = entries.column("_PARTITION").combine_chunks().unique()
    mask = np.zeros(len(rows), bool)
    for spec in specs:
        mask |= partition_mask(rows, schema, spec)
    found = [(decode_row(row, schema.partition_types), row) for row in rows.filter(pa.array(mask)).to_pylist()]
    found.sort(key=lambda one: [(value is None, value) for value in one[0]])
    return [Partition(row, _texts(values, schema)) for values, row in found]


def drop_partitions(table: Table, partitions: Sequence[Partition]) -> Snapshot | None:
    """Drop these partitions in one commit; None where they no longer have rows."""
    rows = frozenset(partition.row for partition in partitions)
    return replace(table.new_commit(), replaces=Overwrite(None, rows)).commit(()) if rows else None


def _texts(values: Sequence[object], schema: TableSchema) -> dict[str, str | None]:
    columns = zip(schema.partition_fields, values, strict=True)
    return {
        field.name: None if value is None else partition_text(field.type, value, legacy=False)
        for field, value in columns
    }
