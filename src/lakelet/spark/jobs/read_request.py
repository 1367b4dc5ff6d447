"""What a job reads of a table: one version, fixed before the first task starts, with the job's own options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypedDict

import pyarrow.compute as pc

from lakelet.spark.opened_table import open_table
from lakelet.table.read.table_scan import TableScan

Where: TypeAlias = str | pc.Expression | None


class RowArguments(TypedDict, total=False):
    """Keyword arguments that say which rows of which version are read."""

    where: Where
    version: int | str | None
    timestamp: datetime | str | int | None
    tag: str | None
    branch: str | None


class ReadArguments(RowArguments, total=False):
    """The same, and which columns."""

    columns: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Columns (None: all) of the rows that match, of the newest version or of the one named by snapshot id, time or tag."""

    columns: Sequence[str] | None = None
    where: Where = None
    version: int | str | None = None
    timestamp: datetime | str | int | None = None
    tag: str | None = None
    branch: str | None = None

    def scan(
        self, warehouse: str | os.PathLike[str], table: str, options: Mapping[str, str] | None = None
    ) -> TableScan:
        """A scan of that version of a table."""
        return open_table(warehouse, table, options, self.branch).scan(
            self.columns, self.where, version=self.version, timestamp=self.timestamp, tag=self.tag
        )
