"""Find what a query reads: the names after FROM and JOIN, with STREAM(name) where only new rows are read.

    SELECT * FROM STREAM(raw_orders) r JOIN shop.countries c USING (country)
      ->  raw_orders, as a stream; shop.countries, as a whole

Works on tokens: whether a name is one of the pipeline, of the warehouse or of Spark is resolved by the graph. Names of
common table expressions of the query are none of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import Read
from lakelet.sql.lexer.spark_references import is_suffix, tables_read
from lakelet.sql.lexer.spark_words import Word, words_of

_STREAM = re.compile(r"\s*STREAM\s*\((.*)\)\s*\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a query reads, its parts, and the span of text that says so. `alone` is whether TABLE comes before it."""

    parts: tuple[str, ...]
    streaming: bool
    start: int
    end: int
    alone: bool = False

    @property
    def name(self) -> str:
        """The parts with dots between them."""
        return ".".join(self.parts)


def named_inputs(text: str) -> list[Named]:
    """The names that a query reads, in their order; InvalidError where the text is no SQL."""
    words = words_of(text)
    common = _common_tables(words)
    found = tables_read(words, _named_at)
    return [one for one in found if len(one.parts) > 1 or not any(name.covers(one) for name in common)]


def read_of(text: str, argument: str | None = None) -> Read:
    """What a Python step reads: `orders`, or `STREAM(orders)`. The argument is called like it unless said otherwise."""
    match = _STREAM.match(text)
    name = (match[1] if match else text).strip()
    called = argument or name.split(".")[-1]
    if not name or not called.isidentifier():
        raise InvalidError(f"reads {text!r}: expected a name, or STREAM(name), and an argument that Python can have")
    return Read(called, name, match is not None)


def quoted(name: str) -> str:
    """A part of a name in backticks."""
    return f"`{name.replace('`', '``')}`"


def _named_at(words: Sequence[Word], place: int, after: str) -> tuple[Named | None, int]:
    if words[place].keyword in ("WITH", "VALUES"):
        # A query in parentheses begins here.
        return None, place + 1
    if words[place].keyword == "STREAM":
        streamed = _streamed(words, place, after)
        if streamed is not None:
            return streamed
    parts, behind = _parts(words, place)
    if behind < len(words) and words[behind].keyword == "(":
        return None, behind
    return Named(parts, False, words[place].start, words[behind - 1].end, after == "TABLE"), behind


def _streamed(words: Sequence[Word], place: int, after: str) -> tuple[Named | None, int] | None:
    """The name of STREAM(name) or STREAM name; None where STREAM is itself a name."""
    following = words[place + 1] if place + 1 < len(words) else None
    if following is None:
        return None
    if following.keyword == "(" and place + 2 < len(words) and words[place + 2].is_name:
        parts, behind = _parts(words, place + 2)
        if behind < len(words) and words[behind].keyword == ")":
            return Named(parts, True, words[place].start, words[behind].end, after == "TABLE"), behind + 1
        return None
    if following.is_name and not following.in_grammar:
        parts, behind = _parts(words, place + 1)
        return Named(parts, True, words[place].start, words[behind - 1].end, after == "TABLE"), behind
    return None


def _parts(words: Sequence[Word], place: int) -> tuple[tuple[str, ...], int]:
    parts = [words[place].text]
    place += 1
    while place + 1 < len(words) and words[place].keyword == "." and words[place + 1].is_name:
        parts.append(words[place + 1].text)
        place += 2
    while is_suffix(words, place):
        # A system table or a branch, shop.orders$snapshots, is none of the pipeline's own.
        parts[-1] += f"${words[place + 1].text}"
        place += 2
    return tuple(parts), place


@dataclass(frozen=True, slots=True)
class _CommonTable:
    """A common table expression: its name in lower case, and the span of text in which it hides a table of that name."""

    name: str
    start: int
    end: int

    def covers(self, one: Named) -> bool:
        return one.parts[0].lower() == self.name and self.start <= one.start < self.end


def _common_tables(words: Sequence[Word]) -> list[_CommonTable]:
    """Common table expressions: `name AS (`, or `name (columns) AS (`, after WITH or a comma. Each is known behind its own query,
    which may read a table of the same name, up to the end of the parentheses that it is in; a recursive one also within."""
    closing, around = _parentheses(words)
    found = []
    for place, word in enumerate(words):
        if not word.is_name or place == 0 or words[place - 1].keyword not in ("WITH", "RECURSIVE", ","):
            continue
        behind = place + 1
        if behind < len(words) and words[behind].keyword == "(":
            behind = closing.get(behind, len(words)) + 1
        if [one.keyword for one in words[behind : behind + 2]] != ["AS", "("]:
            continue
        last = closing.get(behind + 1, len(words) - 1)
        outer = around[place]
        end = words[-1].end if outer is None or outer not in closing else words[closing[outer]].start
        recursive = any(one.keyword == "RECURSIVE" for one in words[:place])
        found.append(_CommonTable(word.text.lower(), word.start if recursive else words[last].end, end))
    return found


def _parentheses(words: Sequence[Word]) -> tuple[dict[int, int], list[int | None]]:
    """The place where each parenthesis is closed, and for every word the parenthesis that it is in."""
    closing: dict[int, int] = {}
    around: list[int | None] = []
    opened: list[int] = []
    for place, word in enumerate(words):
        if word.keyword == ")" and opened:
            closing[opened.pop()] = place
        around.append(opened[-1] if opened else None)
        if word.keyword == "(":
            opened.append(place)
    return closing, around
