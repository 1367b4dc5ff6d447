"""The shell's own commands, which begin with a backslash and need no semicolon.

`exit`, `quit` and `help` alone on a line are commands too. A line that begins with a dot is taken for a command of DuckDB's or
SQLite's shell: no statement begins so, and waiting for its semicolon would look like silence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakelet.cli.look.describe import describe_table, list_tables
from lakelet.cli.output.result_forms import FORMS
from lakelet.cli.shell.statement_run import Shell
from lakelet.cli.sql_command import read_text
from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.lexer.errors import nearest

_SWITCH = {"on": True, "off": False}
_PLAIN = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
_DOTTED = {
    ".exit": "\\q",
    ".quit": "\\q",
    ".help": "\\?",
    ".tables": "\\dt",
    ".schema": "\\d",
    ".databases": "\\l",
    ".timer": "\\timing",
    ".read": "\\i",
}


class Quit(Exception):
    """Raised to leave the shell."""


@dataclass(frozen=True, slots=True)
class Backslash:
    """A command: its arguments, its help and its function."""

    argument: str
    meaning: str
    run: Callable[[Shell, str], None]


def is_own_command(text: str) -> bool:
    """Whether a line is one of the shell's own commands rather than SQL."""
    return text.lstrip().startswith(("\\", ".")) or _plain_word(text) in _PLAIN


def run_backslash(shell: Shell, line: str) -> None:
    """Runs one of the commands; NotFoundError names the nearest."""
    line = _PLAIN.get(_plain_word(line), line)
    name, _, rest = line.strip().rstrip(";").partition(" ")
    command = BACKSLASHES.get(_DOTTED.get(name.lower(), name))
    if command is None:
        raise NotFoundError(f"{name!r} is no command of the shell{nearest(name, (*BACKSLASHES, *_DOTTED))}")
    argument = rest.strip()
    if argument and not command.argument:
        raise InvalidError(f"{name} takes nothing more, found {argument!r}")
    command.run(shell, argument)


def _plain_word(text: str) -> str:
    return text.strip().rstrip(";").rstrip().lower()


def _describe(shell: Shell, name: str) -> None:
    if not name:
        _tables(shell, "")
        return
    parts = name.split(".")
    describe_table(shell.session.context.table(parts), shell.output)


def _tables(shell: Shell, database: str) -> None:
    list_tables(shell.lake, shell.output, database or None)


def _databases(shell: Shell, _: str) -> None:
    rows = [(name, len(shell.lake.tables(name)), name == shell.database) for name in shell.lake.databases()]
    shell.output.rows(f"Databases of {shell.lake.location}", ("database", "tables", "in use"), rows)


def _use(shell: Shell, database: str) -> None:
    if not database:
        raise InvalidError("\\c needs the name of a database")
    shell.use(database)


def _timing(shell: Shell, text: str) -> None:
    shell.timing = _switched("\\timing", text, shell.timing)
    shell.output.note(f"timing is {'on' if shell.timing else 'off'}")


def _expanded(shell: Shell, text: str) -> None:
    shell.expanded = _switched("\\x", text, shell.expanded)
    shell.output.note(f"a line for each value is {'on' if shell.expanded else 'off'}")


def _form(shell: Shell, text: str) -> None:
    if text and text not in FORMS:
        raise InvalidError(f"\\f {text}: expected one of {', '.join(FORMS)}")
    shell.form = text or "table"
    shell.output.note(f"results are written as {shell.form}")


def _limit(shell: Shell, text: str) -> None:
    if text and not text.isdigit():
        raise InvalidError(f"\\limit {text}: expected a number of rows, 0 for all")
    shell.limit = int(text) if text else None


def _output(shell: Shell, path: str) -> None:
    shell.send_to(path or None)


def _include(shell: Shell, path: str) -> None:
    if not path:
        raise InvalidError("\\i needs the name of a file")
    shell.run_text(read_text(path))


def _help(shell: Shell, _: str) -> None:
    shell.output.rows(
        "Commands of the shell; everything else is SQL and ends with a semicolon",
        ("command", "meaning"),
        [(f"{name} {command.argument}".strip(), command.meaning) for name, command in BACKSLASHES.items()],
    )


def _quit(shell: Shell, _: str) -> None:
    raise Quit


def _switched(name: str, text: str, now: bool) -> bool:
    if not text:
        return not now
    if text.lower() not in _SWITCH:
        raise InvalidError(f"{name} {text}: expected on or off")
    return _SWITCH[text.lower()]


BACKSLASHES = {
    "\\d": Backslash("[TABLE]", "describe a table, or list all tables", _describe),
    "\\dt": Backslash("[DATABASE]", "list the tables of a database, or of all", _tables),
    "\\l": Backslash("", "list the databases", _databases),
    "\\c": Backslash("DATABASE", "use a database", _use),
    "\\timing": Backslash("[on|off]", "show how long statements take", _timing),
    "\\x": Backslash("[on|off]", "write each value on a line of its own", _expanded),
    "\\f": Backslash("[FORM]", f"write results as {', '.join(FORMS)}", _form),
    "\\limit": Backslash("[N]", "show at most N rows of a result, 0 for all", _limit),
    "\\o": Backslash("[FILE]", "send results to a file, or to the screen again", _output),
    "\\i": Backslash("FILE", "run the statements of a file", _include),
    "\\?": Backslash("", "show this", _help),
    "\\q": Backslash("", "leave, as Ctrl-D and exit do", _quit),
}
