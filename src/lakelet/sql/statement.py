"""A statement as its handler receives it: tokens and parameter values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakelet.sql.engine.frames import Frames
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of

# Values for `$name` or for `?` and `$1`.
Params = Mapping[str, object] | Sequence[object] | None


@dataclass(frozen=True, slots=True)
class Statement:
    """The words of a statement with the values for its parameters; `frames` are data frames it may name as tables."""

    reader: WordReader
    params: Params = None
    frames: Frames = field(default_factory=Frames)

    @property
    def source(self) -> str:
        """The whole statement as it was written."""
        words = self.reader.words
        return self.reader.source(0, len(words))

    @property
    def placed_source(self) -> str:
        """The same, padded with blanks for the text before it, so that positions in it are positions in the whole text."""
        return self.reader.source_in_place(0, len(self.reader.words))


def used_params(expression: str, params: Params) -> Params:
    """The parameters that an expression uses: DuckDB refuses unused ones."""
    if not params:
        return None
    names = [word.text[1:] for word in words_of(expression) if word.kind == "parameter"]
    if not names:
        return None
    if isinstance(params, Mapping):
        return {name: params[name] for name in names if name in params}
    return params
