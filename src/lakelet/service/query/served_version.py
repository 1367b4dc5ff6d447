"""The version of a served table that one query reads: what is committed, and what its writer has buffered, at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import InvalidError, UnavailableError
from lakelet.realtime.read.writer_scan import WriterScan
from lakelet.service.query.served_table import ServedTable, ServedTables
from lakelet.sql.sandbox.sandbox_table import PAYLOAD, SandboxTable

_DAY = "dt"


@dataclass(frozen=True, slots=True)
class ServedVersions:
    """Opens the newest versions of served tables for the sandbox."""

    served: ServedTables

    def names(self) -> list[str]:
        """The names of the tables."""
        return self.served.names()

    def open(self, name: str) -> SandboxTable:
        """The newest version of a table."""
        table = self.served.open(name)
        buffered = _buffered(table)
        scan = table.table.scan() if buffered is None else buffered.scan
        names = [one.lower() for one in scan.schema.names]
        return SandboxTable(
            table.name,
            scan,
            buffered,
            hidden=tuple(one for one in scan.schema.names if table.hides_day and one == _DAY),
            lacks_payload=table.hides_day and PAYLOAD not in names,
        )


def _buffered(table: ServedTable) -> WriterScan | None:
    """What the writer sees; None where there is none, or where it is closed and all its rows are committed."""
    writer = table.writer
    if writer is None:
        return None
    try:
        return writer.scan()
    except InvalidError as error:
        status = writer.status()
        if not status.closed:
            raise
        if any(memtable.rows for memtable in status.memtables):
            # Without them the table would lose rows from one query to the next.
            raise UnavailableError(
                f"table {table.name!r} is being closed, and has rows that are not committed"
            ) from error
        return None
