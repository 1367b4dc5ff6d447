"""Open a shell and run its loop: with a prompt on a terminal, else over the lines of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from lakelet.catalog import Lake
from lakelet.cli.output.output import Output
from lakelet.cli.shell.backslash import Quit, is_own_command, run_backslash
from lakelet.cli.shell.statement_run import Shell
from lakelet.cli.statements import complete_part

# Yields texts of complete statements, or one line with a command of the shell, until the user leaves.
Texts: TypeAlias = Iterable[str]


def open_shell(lake: Lake, output: Output, *, database: str | None, debug: bool) -> bool:
    """Runs a shell to its end; returns whether a statement failed, which matters only in non-interactive use."""
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    shell = Shell(lake, output, interactive=interactive, debug=debug)
    try:
        if database is not None:
            shell.use(database)
        if interactive:
            from lakelet.cli.shell.prompt import prompted  # noqa: PLC0415 - only a terminal needs it.

            shell.timing = True
            print(f"Lakelet at {lake.location}. Type help for the shell's commands, exit to leave.")
            _run(shell, prompted(shell))
        else:
            _run(shell, _whole(sys.stdin))
    finally:
        shell.close()
    return shell.failed and not interactive


def _run(shell: Shell, texts: Texts) -> None:
    with suppress(Quit):
        for text in texts:
            try:
                if is_own_command(text):
                    _run_own(shell, text)
                else:
                    shell.run_text(text)
            except KeyboardInterrupt:
                # The signal came between two statements.
                if not shell.interactive:
                    raise
                shell.tell_interrupted()


def _run_own(shell: Shell, line: str) -> None:
    try:
        run_backslash(shell, line)
    except (Quit, BrokenPipeError):
        raise
    except Exception as error:
        shell.tell(error)


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """The statements of a stream of lines, as soon as they are complete; the last one may lack its semicolon."""
    waiting = ""
    for line in lines:
        if not waiting.strip() and is_own_command(line):
            yield line
            continue
        ready, waiting = complete_part(waiting + line)
        if ready:
            yield ready
        if is_own_command(waiting):
            yield waiting
            waiting = ""
    if waiting.strip():
        yield waiting
