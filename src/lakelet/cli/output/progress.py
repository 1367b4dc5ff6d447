"""Progress bars and spinners on standard error, on a terminal; nothing for programs and pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from lakelet.cli.output.output import Output, console

if TYPE_CHECKING:
    from lakelet.sql.files.file_formats import Tell


@contextmanager
def byte_bar(output: Output, doing: str) -> Iterator[Tell]:
    """A progress bar in bytes, with the row count beside it."""
    if not watched(output):
        yield lambda done, total, rows: None
        return
    from rich.progress import (  # noqa: PLC0415 - only who watches needs it.
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task(doing, total=None, rows=0)
        yield lambda done, total, rows: bars.update(task, completed=done, total=total, rows=rows)


@contextmanager
def row_bar(output: Output, doing: str) -> Iterator[Tell]:
    """A progress bar in rows."""
    if not watched(output):
        yield lambda done, total, rows: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - as above.

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task(doing, total=None, rows=0)
        yield lambda done, total, rows: bars.update(task, completed=done, total=total, rows=rows)


def spinner(output: Output, doing: str) -> AbstractContextManager[object]:
    """A spinner for work of unknown length."""
    return console(stderr=True).status(f"{doing} …") if watched(output) else nullcontext()


def watched(output: Output) -> bool:
    """Whether progress is shown: standard error is a terminal and the output is not for programs."""
    return not output.for_programs and sys.stderr.isatty()
