"""Lexer of Spark SQL: tokens with their positions, so that parts of a statement are replaced and the rest is kept as it is."""

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
    """Spark's tokenizer without commands whose rest is kept as one string."""

    class Tokenizer(Spark.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


class _QuotedNames(_AllWords):
    """The same where text in double quotes is a name."""

    class Tokenizer(_AllWords.Tokenizer):
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']


_WORD = re.compile(r"\w+\Z")
_HINT_START, _HINT_END = "/*+", "*/"


@dataclass(frozen=True, slots=True)
class Word:
    """A token (word, name, literal or sign): its text, and its position in the statement (`end` is exclusive).

    `in_grammar` is whether SQL has a use for the word; it may be a name all the same, as `date` is.
    """

    text: str
    kind: Kind
    start: int
    end: int
    in_grammar: bool = False

    @property
    def keyword(self) -> str:
        """The keyword or sign; empty for literals and quoted names."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def is_name(self) -> bool:
        """Whether it may be part of a name."""
        return self.kind in ("word", "quoted")


def words_of(text: str, *, quotes_names: bool = False) -> list[Word]:
    """The tokens of a statement, without comments; InvalidError for an unterminated literal or comment.

    `quotes_names` is whether text in double quotes is a name, as spark.sql.ansi.doubleQuotedIdentifiers says, or a literal.
    """
    return _read(text, 0, len(text), _QuotedNames() if quotes_names else _AllWords())


def _read(text: str, begin: int, behind: int, dialect: Spark) -> list[Word]:
    """The tokens of a part of the text."""
    try:
        tokens = dialect.tokenize(text[begin:behind])
    except SqlglotError as error:
        raise InvalidError(f"the statement cannot be read: {error}") from error
    found: list[Word] = []
    for token in tokens:
        start = begin + token.start
        # 10L is three tokens, a number and its conversion, all at the same position.
        if not found or start >= found[-1].end:
            found += _words(token, text, start, begin + token.end + 1, dialect)
    return found


def _words(token: Token, text: str, start: int, end: int, dialect: Spark) -> list[Word]:
    source = text[start:end]
    if token.token_type is TokenType.HINT:
        inner, last = start + len(_HINT_START), end - len(_HINT_END)
        return [
            Word(_HINT_START, "symbol", start, inner),
            *_read(text, inner, last, dialect),
            Word(_HINT_END, "symbol", last, end),
        ]
    if token.token_type is TokenType.NUMBER:
        return [Word(source, "number", start, end)]
    if token.token_type is TokenType.IDENTIFIER:
        if source.startswith('"') and "\\" in source:
            raise InvalidError(f"the statement cannot be read: {source} has a backslash; put the name in backticks")
        return [Word(token.text, "quoted", start, end)]
    if source.endswith(("'", '"')):
        # Literals in all their spellings: 'x', r'x', X'1F'.
        return [Word(token.text, "string", start, end)]
    known = token.token_type is not TokenType.VAR
    # GROUP BY and their like are one token.
    return [
        Word(
            part.group(),
            "word" if _WORD.match(part.group()) else "symbol",
            start + part.start(),
            start + part.end(),
            known,
        )
        for part in re.finditer(r"\S+", source)
    ]
