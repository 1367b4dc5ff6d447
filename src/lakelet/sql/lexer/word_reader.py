"""A cursor over the words of a statement, on which the parsers of Lakelet's own statements are built.

reader.expect("DROP", "TABLE")
if_exists = reader.accept("IF", "EXISTS")
name = reader.name_parts("a table")
reader.finish()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.words import Word

T = TypeVar("T")
_NOT_A_LINE_END = re.compile(r"[^\n]")
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class WordReader:
    """The words of one statement and the current position. `place` may be set back to backtrack."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.place = 0
        end = words[-1].end if words else 0
        self._end = Word("", "end", end, end)

    def peek(self, ahead: int = 0) -> Word:
        """The next word, or one after it; a word of kind "end" at the end."""
        place = self.place + ahead
        return self.words[place] if place < len(self.words) else self._end

    def take(self) -> Word:
        """Consumes and returns the next word."""
        word = self.peek()
        self.place += 1
        return word

    def at(self, *keywords: str) -> bool:
        """Whether these keywords or signs come next."""
        return all(self.peek(ahead).keyword == keyword for ahead, keyword in enumerate(keywords))

    def accept(self, *keywords: str) -> bool:
        """Reads these keywords if they come next."""
        if not self.at(*keywords):
            return False
        self.place += len(keywords)
        return True

    def expect(self, *keywords: str) -> None:
        """Reads these keywords; SqlError at anything else."""
        for keyword in keywords:
            if not self.accept(keyword):
                raise self.error(keyword)

    def one_of(self, *keywords: str) -> str:
        """Reads one of these keywords and returns it."""
        for keyword in keywords:
            if self.accept(keyword):
                return keyword
        raise self.error(f"{', '.join(keywords[:-1])} or {keywords[-1]}")

    def name(self, what: str = "a name") -> str:
        """Reads one name, quoted or not."""
        if not self.peek().is_name:
            raise self.error(what)
        return self.take().text

    def name_parts(self, what: str = "a name") -> tuple[str, ...]:
        """Reads a name of one or more parts, as in database.table."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return tuple(parts)

    def string(self, what: str = "a text in quotes") -> str:
        """Reads a text literal."""
        if self.peek().kind != "string":
            raise self.error(what)
        return self.take().text

    def integer(self, what: str = "a whole number") -> int:
        """Reads a whole number, possibly negative."""
        sign = -1 if self.accept("-") else 1
        word = self.peek()
        if word.kind != "number" or not word.text.replace("_", "").isdigit():
            raise self.error(what)
        return sign * int(self.take().text)

    def listed(self, read: Callable[[], T], what: str = "(") -> list[T]:
        """Reads `( item, item, … )`, at least one; a trailing comma is allowed, as in DuckDB."""
        if not self.accept("("):
            raise self.error(what)
        found = [read()]
        while self.accept(",") and not self.at(")"):
            found.append(read())
        self.expect(")")
        return found

    def expression(self, *stops: str) -> str:
        """Reads source text up to one of these keywords or signs, a closing parenthesis of an outer pair, or the end.

        Parenthesised text never stops it. SqlError if the expression is empty.
        """
        first = self.place
        depth = 0
        while self.place < len(self.words):
            keyword = self.peek().keyword
            if depth == 0 and (keyword in stops or keyword in _CLOSING):
                break
            depth += (keyword in _OPENING) - (keyword in _CLOSING)
            self.place += 1
        if depth:
            raise self.error("a closing parenthesis")
        if self.place == first:
            raise self.error("an expression")
        return self.source(first, self.place)

    def source(self, first: int, behind: int) -> str:
        """The text of the words from one place up to another."""
        return self.text[self.words[first].start : self.words[behind - 1].end] if behind > first else ""

    def source_in_place(self, first: int, behind: int) -> str:
        """The same, padded with blanks for the text before it, so that positions in it are positions in the whole text."""
        return _NOT_A_LINE_END.sub(" ", self.text[: self.words[first].start]) + self.source(first, behind)

    def rest(self) -> str:
        """Reads the rest, as source text."""
        first, self.place = self.place, len(self.words)
        return self.source(first, self.place)

    @property
    def at_end(self) -> bool:
        """Whether all has been read."""
        return self.place >= len(self.words)

    def finish(self) -> None:
        """SqlError unless all has been read."""
        if not self.at_end:
            raise self.error("the end of the statement")

    def error(self, expected: str, word: Word | None = None) -> SqlError:
        """The SqlError at the next word (or this one): what was expected, and what was found."""
        found = word or self.peek()
        shown = "the end" if found.kind == "end" else self.text[found.start : found.end]
        return SqlError(f"expected {expected}, found {shown}", self.text, found.start)
