"""`lakelet export`: the rows of a table or a query into a file, or to standard output."""

from __future__ import annotations

import os
import sys

from lakelet.cli.call import Call
from lakelet.cli.interrupts import stopped_by_interrupt
from lakelet.cli.look.amounts import shown_bytes
from lakelet.cli.output.progress import row_bar
from lakelet.sql.files.export import STDOUT, Target, export_query, export_rows
from lakelet.sql.session import Session


def run_export(call: Call, source: str, target: Target) -> None:
    """Writes the file and reports its row count."""
    session = Session(call.lake)
    try:
        # Only the name of a table is looked up: a query names its own.
        query = export_query(call.lake if len(source.split()) > 1 else call.existing_lake, source)
        to_stdout = target.path == STDOUT
        with stopped_by_interrupt(session.interrupt), row_bar(call.output, "exporting") as tell:
            rows = export_rows(session, query, target, tell, sys.stdout.buffer if to_stdout else None)
    finally:
        session.close()
    if not to_stdout:
        size = os.path.getsize(target.path)
        shown: object = size if call.output.for_programs else shown_bytes(size)
        call.output.values(f"exported to {target.path}", {"rows": rows, "bytes": shown})
