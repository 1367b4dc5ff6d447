"""The prompt at a terminal: history, completion, colours, and multi-line input until the statement is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from lakelet.cli.shell.backslash import is_own_command
from lakelet.cli.shell.completion import suggest
from lakelet.cli.shell.lake_names import KeptNames
from lakelet.cli.shell.statement_run import Shell
from lakelet.cli.statements import complete_part


def prompted(shell: Shell) -> Iterator[str]:
    """The typed statements, one by one, until Ctrl-D. Ctrl-C discards the current input."""
    names = KeptNames(shell)
    session: PromptSession[str] = PromptSession(
        history=_history(),
        lexer=PygmentsLexer(SqlLexer),
        completer=_LakeCompleter(names),
        complete_in_thread=True,
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        key_bindings=_bindings(),
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "…".rjust(width - 1) + " ",
    )
    while True:
        try:
            text = session.prompt(HTML("<ansicyan>{}</ansicyan>> ").format(shell.database))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip():
            yield text
            names.forget()


def is_whole(text: str) -> bool:
    """Whether the input is complete: it ends with a semicolon, or is a command of the shell, or empty."""
    bare = text.strip()
    if not bare or is_own_command(bare):
        return True
    ready, waiting = complete_part(text)
    return bool(ready) and not waiting.strip()


def history_path() -> str:
    """The path of the history file, in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "lakelet", "history")


class _LakeCompleter(Completer):
    def __init__(self, names: KeptNames) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        found = suggest(document.text_before_cursor, self._names, document.text_after_cursor)
        for text in found.texts:
            yield Completion(text, start_position=-found.length)


def _history() -> History:
    path = history_path()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # Statements may contain secrets: only the user may read the file.
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
