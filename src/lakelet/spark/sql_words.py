"""Spark SQL as a list of words with their places: a statement is changed here and there and otherwise stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lakelet.errors import InvalidError

Kind = Literal["word", "quoted", "string", "number", "symbol"]


class _AllWords(Spark):
    """Spark's SQL without statements of which only the first word is read."""

    class Tokenizer(Spark.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


_WORD = re.compile(r"\w+\Z")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, name, literal or sign: what it says, and where it stands in the text (`end` is behind it)."""

    text: str
    kind: Kind
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """What the word is if it is a keyword or a sign; nothing for literals and quoted names."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def is_name(self) -> bool:
        """Whether it may be part of a name."""
        return self.kind in ("word", "quoted")


def words_of(text: str) -> list[Word]:
    """The words of a statement, without comments; InvalidError where a literal or a comment does not end."""
    try:
        tokens = _AllWords().tokenize(text)
    except SqlglotError as error:
        raise InvalidError(f"the statement cannot be read: {error}") from error
    return [word for token in tokens for word in _words(token, text)]


def _words(token: Token, text: str) -> list[Word]:
    start, end = token.start, token.end + 1
    source = text[start:end]
    if token.token_type is TokenType.STRING:
        return [Word(token.text, "string", start, end)]
    if token.token_type is TokenType.NUMBER:
        return [Word(source, "number", start, end)]
    if source.startswith("`"):
        return [Word(token.text, "quoted", start, end)]
    # GROUP BY and their like are one token.
    return [
        Word(part.group(), "word" if _WORD.match(part.group()) else "symbol", start + part.start(), start + part.end())
        for part in re.finditer(r"\S+", source)
    ]
