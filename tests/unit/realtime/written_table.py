"""A table with writers: its rows, its logs, and a writer that ends as if its process were killed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lakelet
from lakelet.realtime.row_writer import RowWriter
from lakelet.table import Table

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING"), ("x", "DOUBLE")]
# However busy the machine is: a thread that has not done it by then does not do it.
WAIT_SECONDS = 300


class WrittenTable:
    """A table `d.t` in a folder, with its logs beside the warehouse."""

    def __init__(
        self,
        folder: Path,
        *,
        columns: Sequence[tuple[str, str]] = COLUMNS,
        key: Sequence[str] = ("id",),
        partitions: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.logs = folder / "wal"
        lake = lakelet.connect(str(folder / "warehouse"))
        lake.create_database("d", if_not_exists=True)
        given = {"bucket": "2"} if options is None else dict(options)
        lake.create_table("d.t", columns, primary_key=list(key), partitioned_by=list(partitions), options=given)

    @property
    def table(self) -> Table:
        """The table, opened anew."""
        return lakelet.connect(str(self.folder / "warehouse")).table("d.t")

    def writer(self, options: Mapping[str, str] | None = None) -> RowWriter:
        """A writer with the logs of this table."""
        writer: RowWriter = self.table.writer(wal_folder=self.logs, options=options)
        return writer

    def rows(self) -> list[tuple[Any, ...]]:
        """The committed rows, sorted."""
        return sorted_rows(self.table.scan().to_arrow())

    def log_names(self) -> list[str]:
        """The files of the folder of logs."""
        (own,) = os.listdir(self.logs)
        return sorted(os.listdir(self.logs / own))

    def log_folder(self) -> Path:
        """The folder of the table's logs."""
        (own,) = os.listdir(self.logs)
        return self.logs / own


def sorted_rows(data: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table as tuples, sorted."""
    return sorted((tuple(row.values()) for row in data.to_pylist()), key=repr)


def kill(writer: RowWriter) -> None:
    """End a writer without a flush: its files are closed and its lock released, as the system does for a dead process."""
    writer._closed = True
    writer._log.refuse()
    writer._worker.stop()
    writer._log.close()
    writer._folder.close()
    writer._known.close()
