"""The state of a shell, and running typed statements."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO

from lakelet.catalog import Lake
from lakelet.cli.failures import tell
from lakelet.cli.interrupts import stopped_by_interrupt
from lakelet.cli.output.output import Output
from lakelet.cli.output.result_forms import write_result
from lakelet.cli.statements import PLACED_ERRORS, StatementText, cut, placed_error
from lakelet.clock import SystemClock
from lakelet.errors import InvalidError
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.session import Session


class Shell:
    """Runs statements and holds the output settings. An error is reported, and the shell continues."""

    def __init__(self, lake: Lake, output: Output, *, interactive: bool = False, debug: bool = False) -> None:
        self.lake = lake
        self.debug = debug
        # Whether the shell is interactive, which continues after Ctrl-C.
        self.interactive = interactive
        self.output = output
        self.session = Session(lake)
        self.timing = False
        self.expanded = False
        self.form = "object" if output.for_programs else "table"
        self.limit: int | None = None
        self.failed = False
        self._clock = SystemClock()
        self._file: TextIO | None = None

    @property
    def out(self) -> TextIO:
        """The stream of results."""
        return self._file or sys.stdout

    @property
    def database(self) -> str:
        """The database in use."""
        return self.session.context.database

    def use(self, database: str) -> None:
        """Makes a database the one in use."""
        self.session.run(f"USE {quoted(database)}").close()

    def send_to(self, path: str | None) -> None:
        """Sends results to a file from now on, or to the screen again."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if path is not None:
            try:
                self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the next \o.
            except OSError as error:
                raise InvalidError(f"results cannot go to {path!r}: {error.strerror}") from error

    def run_text(self, text: str) -> None:
        """Runs every statement of a text; an error is reported and the next statement still runs."""
        try:
            statements = cut(text)
        except SqlError as error:
            self.tell(error)
            return
        for statement in statements:
            self._run(statement, text)

    def tell(self, error: Exception) -> None:
        """Reports an error."""
        self.failed = True
        sys.stdout.flush()
        tell(error, self.output, debug=self.debug)

    def close(self) -> None:
        """Closes the session and the output file."""
        self.send_to(None)
        self.session.close()

    def _run(self, statement: StatementText, whole: str) -> None:
        started = self._clock.monotonic()
        try:
            with stopped_by_interrupt(self.session.interrupt):
                result = self.session.run(statement.text)
                form = "vertical" if self.expanded and self.form == "table" else self.form
                write_result(result, form, self.out, self.limit)
        except KeyboardInterrupt:
            if not self.interactive:
                raise
            self.tell_interrupted()
        except PLACED_ERRORS as error:
            self.tell(placed_error(error, whole, statement))
        except BrokenPipeError:
            raise
        except Exception as error:
            self.tell(error)
        if self.timing and not self.output.for_programs:
            with contextlib.suppress(KeyboardInterrupt):
                print(f"{(self._clock.monotonic() - started) * 1000:,.0f} ms")

    def tell_interrupted(self) -> None:
        """Reports that a statement was interrupted."""
        self.failed = True
        sys.stdout.flush()
        self.output.error("Interrupted", "the statement was stopped; what it had not committed is not there")
