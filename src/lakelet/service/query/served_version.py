"""The version of a served table that one query reads: what is committed, and what its writer has buffered, at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakelet.realtime.read.pinned_memtables import with_pinned
from lakelet.realtime.read.writer_scan import WriterScan
from lakelet.service.query.buffered_scan import buffered_scan
from lakelet.service.query.served_table import OtherWriters, ServedTable, ServedTables
from lakelet.service.tables.table_layout import HIDDEN
from lakelet.sql.sandbox.sandbox_table import PAYLOAD, SandboxTable


@dataclass(frozen=True, slots=True)
class ServedVersions:
    """Opens the newest versions of served tables for the sandbox. What stands in the way of a whole answer is in `warnings`."""

    served: ServedTables
    others: OtherWriters | None = None
    warnings: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """The names of the tables."""
        return self.served.names()

    def open(self, name: str) -> SandboxTable:
        """The newest version of a table."""
        table = self.served.open(name)
        buffered = self.buffered(table)
        scan = table.table.scan() if buffered is None else buffered.scan
        names = [one.lower() for one in scan.schema.names]
        return SandboxTable(
            table.name,
            scan,
            buffered,
            hidden=tuple(one for one in scan.schema.names if table.hides_day and one in HIDDEN),
            lacks_payload=table.hides_day and PAYLOAD not in names,
        )

    def buffered(self, table: ServedTable) -> WriterScan | None:
        """What the writers of all nodes see; None where there is none."""
        # Those of others come first: whatever they commit from now on is in the snapshot that is read below, or pinned.
        pinned = () if self.others is None else self.others.pinned(table, self.warnings)
        own = _buffered(table)
        if not pinned:
            return own
        return with_pinned(table.table.scan() if own is None else own, pinned)


def _buffered(table: ServedTable) -> WriterScan | None:
    """What the writer sees; None where there is none."""
    writer = table.writer
    return None if writer is None else buffered_scan(table.table, writer)
