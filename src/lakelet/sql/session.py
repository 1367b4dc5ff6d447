"""A session: the database in use and the settings, from one statement to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType

from lakelet.catalog.lake import Lake
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.model.text import check_text
from lakelet.sql.context import Context
from lakelet.sql.dispatch import run_statement
from lakelet.sql.engine.frames import Frames
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import statements_of
from lakelet.sql.profile import LOCAL, SqlProfile
from lakelet.sql.statement import Params, Statement


class Session:
    """Runs statements against a lake, in order, if the profile allows them."""

    def __init__(self, lake: Lake, profile: SqlProfile = LOCAL) -> None:
        self.context = Context(lake, profile)

    def run(
        self,
        text: str,
        params: Params = None,
        frames: Mapping[str, object] | None = None,
        caller: FrameType | None = None,
    ) -> SqlResult:
        """Runs the statements of a text, separated by semicolons, and returns the result of the last.

        `params` are values for `$name`, or for `?` and `$1`; `frames` are data that can be named like tables, besides the
        variables of `caller`.
        """
        check_text(text, "the statement")
        _check_given(params, frames)
        statements = statements_of(text)
        if not statements:
            raise InvalidError("the statement is empty")
        visible = Frames(frames, caller if self.context.profile.variables else None)
        result: SqlResult | None = None
        for words in statements:
            if result is not None:
                result.close()
            try:
                result = run_statement(self.context, Statement(WordReader(text, words), params, visible))
            except RecursionError as error:
                raise InvalidError("the statement is nested too deeply") from error
        assert result is not None
        return result

    def interrupt(self) -> None:
        """Interrupts the running query; any thread may call it, and the session stays usable."""
        self.context.engine.interrupt()

    def close(self) -> None:
        """Closes the engine, which drops temporary tables and views."""
        self.context.temporary.clear()
        self.context.engine.close()


def _check_given(params: object, frames: object) -> None:
    """InvalidError for parameters or frames of another form, such as a single value."""
    if params is not None and not (isinstance(params, (Mapping, Sequence)) and not isinstance(params, (str, bytes))):
        raise InvalidError(
            f"params: expected a mapping for $name, or a list for ? and $1, such as [{params!r}], found {type(params).__name__}"
        )
    if frames is not None and not isinstance(frames, Mapping):
        raise InvalidError(f"frames: expected a mapping of names to data, found {type(frames).__name__}")
