"""`lakelet sql`: run statements in order and print each result in the chosen format; the first error ends it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakelet.cli.interrupts import stopped_by_interrupt
from lakelet.cli.output.result_forms import write_result
from lakelet.cli.statements import PLACED_ERRORS, check_all_used, cut, parameter_values, placed_error, values_for
from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.session import Session

if TYPE_CHECKING:
    from lakelet.catalog import Lake


def run_sql(
    lake: Lake, text: str, *, form: str, limit: int | None, database: str | None, params: Mapping[str, str]
) -> None:
    """Runs every statement of a text."""
    statements = cut(text)
    if not statements:
        raise InvalidError("there is no statement: give one as an argument, with --file, or on standard input as -")
    values = parameter_values(params)
    check_all_used(statements, values)
    session = Session(lake)
    try:
        if database is not None:
            session.run(f"USE {quoted(database)}")
        for statement in statements:
            try:
                with stopped_by_interrupt(session.interrupt):
                    result = session.run(statement.text, values_for(statement, values))
                    write_result(result, form, sys.stdout, limit)
            except PLACED_ERRORS as error:
                raise placed_error(error, text, statement) from error
    finally:
        session.close()


def given_text(statement: str | None, files: Sequence[str]) -> str:
    """The SQL text of the argument, of files, or of standard input for `-`."""
    parts = [read_text(path) for path in files]
    if statement is not None:
        parts.append(read_text("-") if statement == "-" else statement)
    if not parts:
        if sys.stdin.isatty():
            raise InvalidError("there is no statement: give one as an argument, with --file, or on standard input")
        parts.append(read_text("-"))
    return ";\n".join(parts) if len(parts) > 1 else parts[0]


def read_text(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError as error:
        raise NotFoundError(f"file {path!r} is not there") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"file {path!r} cannot be read as text: {error}") from error
