"""The parser of type text: `DECIMAL(10, 2) NOT NULL`, `MAP<STRING, ARRAY<INT>>`, `ROW<a INT, b STRING>`.

One small recursive-descent parser serves schema files (whose atomic types are such text) and the
types of `create_table`, `add_column` and SQL. Inner fields of a ROW get the id -1; they are numbered when
the type becomes part of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lakelet.errors import InvalidError
from lakelet.model.types import (
    MAX_DEPTH,
    MAX_LENGTH,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
    with_nullable,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^']|'')*')|(?P<word>[^\W]\w*|\d+)|(?P<mark>[<>(),:]))"
)
_ALIASES = {
    "INTEGER": Kind.INT,
    "LONG": Kind.BIGINT,
    "BOOL": Kind.BOOLEAN,
    "REAL": Kind.FLOAT,
    "DEC": Kind.DECIMAL,
    "NUMERIC": Kind.DECIMAL,
}
_DEFAULT_PRECISION = {
    Kind.DECIMAL: 10,
    Kind.CHAR: 1,
    Kind.VARCHAR: MAX_LENGTH,
    Kind.BINARY: 1,
    Kind.VARBINARY: MAX_LENGTH,
    Kind.TIME: 0,
    Kind.TIMESTAMP: 6,
    Kind.TIMESTAMP_LTZ: 6,
}
_RANGES = {
    Kind.DECIMAL: (1, 38),
    Kind.CHAR: (1, MAX_LENGTH),
    Kind.VARCHAR: (1, MAX_LENGTH),
    Kind.BINARY: (1, MAX_LENGTH),
    Kind.VARBINARY: (1, MAX_LENGTH),
    Kind.TIME: (0, 9),
    Kind.TIMESTAMP: (0, 9),
    Kind.TIMESTAMP_LTZ: (0, 9),
}


@lru_cache(maxsize=1024)
def parse_type(text: str) -> DataType:
    """The type that `text` describes, or an InvalidError with the position of the first syntax error."""
    parser = _Parser(text)
    data_type = parser.parse()
    parser.expect_end()
    return data_type


def kind_of(name: str) -> Kind | None:
    """The kind of atomic type with that name or alias, in capitals."""
    return _ALIASES.get(name) or (Kind[name] if name in Kind.__members__ else None)


def atomic_type(kind: Kind, numbers: Sequence[int]) -> Atomic:
    """An atomic type with these parameters, which are valid, or with its default ones."""
    precision = numbers[0] if numbers else _DEFAULT_PRECISION.get(kind, 0)
    return Atomic(kind, precision, numbers[1] if len(numbers) > 1 else 0)


def wrong_parameters(kind: Kind, numbers: Sequence[int]) -> str | None:
    """What is expected instead of these parameters of a type, None where they are valid."""
    if len(numbers) > (2 if kind is Kind.DECIMAL else 1 if kind in _DEFAULT_PRECISION else 0):
        return f"fewer parameters of {kind.value}"
    low, high = _RANGES.get(kind, (0, 0))
    if numbers and not low <= numbers[0] <= high:
        return f"a precision or length of {kind.value} between {low} and {high}"
    if len(numbers) > 1 and numbers[1] > numbers[0]:
        return f"a scale of at most {numbers[0]}"
    return None


@dataclass(slots=True)
class _Token:
    text: str
    at: int
    quoted: bool = False


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(at, "a type")
            start = match.end() - len(match[0].lstrip())
            if match["quoted"]:
                self.tokens.append(_Token(match["quoted"][1:-1].replace("``", "`"), start, quoted=True))
            elif match["text"]:
                self.tokens.append(_Token(match["text"], start, quoted=True))
            else:
                self.tokens.append(_Token(match["word"] or match["mark"], start))
            at = match.end()
        self.next = 0
        self.depth = 0

    def error(self, at: int, expected: str) -> InvalidError:
        found = self.text[at:].strip()[:20] or "the end"
        return InvalidError(f"type {self.text!r}: expected {expected} at position {at}, found {found!r}")

    def peek(self, *words: str) -> bool:
        following = self.tokens[self.next : self.next + len(words)]
        return [t.text.upper() for t in following] == list(words) and not any(t.quoted for t in following)

    def take(self, *words: str) -> bool:
        if not self.peek(*words):
            return False
        self.next += len(words)
        return True

    def position(self) -> int:
        return self.tokens[self.next].at if self.next < len(self.tokens) else len(self.text)

    def need(self, word: str) -> None:
        if not self.take(word):
            raise self.error(self.position(), repr(word))

    def token(self, expected: str) -> _Token:
        if self.next >= len(self.tokens):
            raise self.error(len(self.text), expected)
        self.next += 1
        return self.tokens[self.next - 1]

    def expect_end(self) -> None:
        if self.next < len(self.tokens):
            raise self.error(self.position(), "the end")

    def parse(self) -> DataType:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InvalidError(f"type {self.text[:40]!r}…: expected at most {MAX_DEPTH} types inside one another")
        data_type = self.body()
        self.depth -= 1
        if self.take("NOT", "NULL"):
            return with_nullable(data_type, False)
        self.take("NULL")
        return data_type

    def body(self) -> DataType:
        at = self.position()
        name = self.token("a type").text.upper()
        match name:
            case "ARRAY":
                return Array(self.bracketed())
            case "MULTISET":
                return Multiset(self.bracketed())
            case "MAP":
                self.need("<")
                key = self.parse()
                self.need(",")
                value = self.parse()
                self.need(">")
                return Map(key, value)
            case "ROW" | "STRUCT":
                return Row(self.row_fields())
            case "STRING" | "TEXT":
                return Atomic(Kind.VARCHAR, MAX_LENGTH)
            case "BYTES":
                return Atomic(Kind.VARBINARY, MAX_LENGTH)
            case "DOUBLE":
                self.take("PRECISION")
                return Atomic(Kind.DOUBLE)
        kind = kind_of(name)
        if kind is None:
            raise self.error(at, "a known type such as INT, STRING, DECIMAL(p, s), ARRAY<…>")
        return self.atomic(kind, at)

    def atomic(self, kind: Kind, at: int) -> Atomic:
        numbers = self.numbers()
        wrong = wrong_parameters(kind, numbers)
        if wrong is not None:
            raise self.error(at, wrong)
        if kind is Kind.TIMESTAMP:
            if self.take("WITH", "LOCAL", "TIME", "ZONE"):
                kind = Kind.TIMESTAMP_LTZ
            else:
                self.take("WITHOUT", "TIME", "ZONE")
        elif kind is Kind.TIME:
            self.take("WITHOUT", "TIME", "ZONE")
        return atomic_type(kind, numbers)

    def numbers(self) -> list[int]:
        if not self.take("("):
            return []
        found: list[int] = []
        while not found or self.take(","):
            at = self.position()
            word = self.token("a number").text
            if not word.isdigit():
                raise self.error(at, "a number")
            found.append(int(word))
        self.need(")")
        return found

    def bracketed(self) -> DataType:
        self.need("<")
        element = self.parse()
        self.need(">")
        return element

    def row_fields(self) -> tuple[Field, ...]:
        close = ")" if self.take("(") else ">"
        if close == ">":
            self.need("<")
        fields: list[Field] = []
        while not fields or self.take(","):
            name = self.token("a field name")
            if name.text in "<>(),:" and not name.quoted:
                raise self.error(name.at, "a field name")
            self.take(":")
            data_type = self.parse()
            comment = None
            if self.take("COMMENT") or (self.next < len(self.tokens) and self.tokens[self.next].text.startswith("'")):
                comment = self.token("a comment").text[1:-1].replace("''", "'")
            fields.append(Field(-1, name.text, data_type, comment))
        self.need(close)
        return tuple(fields)
