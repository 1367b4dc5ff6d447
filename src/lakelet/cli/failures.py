"""Error output and exit codes of failed commands.

0  done      2  the command line is invalid
130  Ctrl-C      141  the output pipe is closed, as in `lakelet sql … | head`

An error is printed on one line with its kind; its exit code is that of `lakelet.error_codes`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from lakelet.cli.output.output import Output
from lakelet.error_codes import codes_of
from lakelet.errors import (
    CommitUnknownError,
    ConflictError,
    InternalError,
    LakeletError,
    PermissionDeniedError,
    UnavailableError,
)

SENSELESS, BROKEN_PIPE = 2, 141
_HINTS: dict[type[LakeletError], str] = {
    ConflictError: "nothing was changed; run it again",
    CommitUnknownError: "look at lakelet history before you run it again",
    UnavailableError: "it may work later; see that the address and the options such as s3.endpoint are right",
    PermissionDeniedError: "see that the user or the access key may read and write there",
    InternalError: "this is a defect of Lakelet; --debug shows where",
}


@contextmanager
def reported(output: Output, *, debug: bool) -> Iterator[None]:
    """Turns errors within a block into a line on standard error and an exit code."""
    try:
        yield
    except (typer.Exit, typer.TyperException):
        raise
    except BrokenPipeError:
        silence()
        raise typer.Exit(BROKEN_PIPE) from None
    except Exception as error:
        tell(error, output, debug=debug)
        raise typer.Exit(codes_of(error).exit_status) from error


def tell(error: Exception, output: Output, *, debug: bool = False) -> None:
    """Print an error on one line; for an invalid statement with a caret at the position."""
    if debug:
        traceback.print_exception(error)
    if not isinstance(error, LakeletError):
        error = InternalError(f"{type(error).__name__}: {error}")
    message = str(error)
    hint = next((text for kind, text in _HINTS.items() if isinstance(error, kind)), None)
    more = _place(error)
    if hint is not None and output.for_programs:
        more = {**more, "hint": hint}
    elif hint is not None:
        message = f"{message} ({hint})"
    output.error(type(error).__name__, message, more)
    if more.get("line") and not output.for_programs:
        from lakelet.cli.statements import PLACED_ERRORS, pointer  # noqa: PLC0415 - only errors of SQL come here.

        # An error that a service has told of has a place, and no text to point into.
        if isinstance(error, PLACED_ERRORS):
            print(pointer(error), file=sys.stderr)


def silence() -> None:
    """Keep Python from writing to a closed pipe at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _place(error: LakeletError) -> dict[str, object]:
    """The position of an error in a statement. SQL errors are recognised by their attributes: importing their module is slow."""
    if hasattr(error, "line") and hasattr(error, "column"):
        return {"line": error.line, "column": error.column}
    return {}
