"""A scan of a table as a job wants it: one version, fixed before the first task starts, with the job's own options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import pyarrow.compute as pc

from lakelet.spark.opened_table import open_table
from lakelet.table.read.table_scan import TableScan

Where: TypeAlias = str | pc.Expression | None


def pinned_scan(
    warehouse: str | os.PathLike[str],
    table: str,
    *,
    columns: Sequence[str] | None,
    where: Where,
    version: int | str | None,
    timestamp: datetime | str | int | None,
    tag: str | None,
    branch: str | None,
    options: Mapping[str, str] | None,
) -> TableScan:
    """A scan of the newest version, or of the one named by snapshot id, time or tag."""
    return open_table(warehouse, table, options, branch).scan(
        columns, where, version=version, timestamp=timestamp, tag=tag
    )
