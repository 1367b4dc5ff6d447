"""`lakelet import`: load files into a table, with a progress bar on a terminal."""

from __future__ import annotations

from lakelet.cli.call import Call
from lakelet.cli.interrupts import stopped_by_interrupt
from lakelet.cli.output.progress import byte_bar
from lakelet.errors import NotFoundError
from lakelet.sql.files.import_files import ImportFiles, import_files
from lakelet.sql.session import Session
from lakelet.table import Table


def run_import(call: Call, name: str, request: ImportFiles) -> None:
    """Imports all rows of the files and reports how many."""
    session = Session(call.lake)
    try:
        target = _existing(call, name) if request.new is None else name
        with byte_bar(call.output, "importing") as tell, stopped_by_interrupt(session.interrupt):
            done = import_files(session, target, request, tell)
    finally:
        session.close()
    call.output.values(
        f"imported into {done.table}", {"files": done.files, "rows": done.rows, "snapshot": done.snapshot_id}
    )


def _existing(call: Call, name: str) -> Table:
    try:
        return call.table(name)
    except NotFoundError as error:
        raise NotFoundError(
            f"{error}; --create makes the table, and its database where that is not there either, from what the files hold "
            "(SQL: CREATE DATABASE, CREATE TABLE)"
        ) from error
