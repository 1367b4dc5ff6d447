"""A scan of a served table with what its writer has buffered, also while the writer is being closed."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.realtime.read.pinned_memtables import with_pinned
from lakelet.realtime.read.writer_scan import WriterScan
from lakelet.realtime.row_writer import RowWriter
from lakelet.table import Table
from lakelet.table.read.condition import Condition


def buffered_scan(table: Table, writer: RowWriter, where: Condition | None = None) -> WriterScan:
    """The rows that the writer sees. One that takes no rows any more still has those that it has not committed."""
    try:
        return writer.scan(where=where)
    except InvalidError:
        if not writer.status().closed:
            raise
        # Rows first, then the snapshot, as ever.
        pinned = writer.pin()
        return with_pinned(table.scan(where=where), pinned)
