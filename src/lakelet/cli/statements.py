"""Split SQL text into statements, with error positions in the whole text and the parameter values of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lakelet.errors import InvalidError
from lakelet.sql.lexer.errors import SqlError, UnknownNameError, nearest
from lakelet.sql.lexer.words import Word, statements_of, words_of

# Errors with a position in the text.
PlacedError: TypeAlias = SqlError | UnknownNameError
PLACED_ERRORS = (SqlError, UnknownNameError)


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a text: its offset, its text and its parameters."""

    start: int
    text: str
    parameters: frozenset[str]


def cut(text: str) -> list[StatementText]:
    """Split a text into statements; SqlError at an unterminated literal, name or comment."""
    return [_statement(text, words) for words in statements_of(text)]


def complete_part(text: str) -> tuple[str, str]:
    """Split partial input into the complete statements, up to the last semicolon, and the incomplete rest."""
    try:
        words = words_of(text)
    except SqlError:
        return _before_unended(text)
    ends = [word.end for word in words if word.keyword == ";"]
    return (text[: ends[-1]], text[ends[-1] :]) if ends else ("", text)


def placed_error(error: PlacedError, whole: str, statement: StatementText) -> PlacedError:
    """The same error with its position in the whole text."""
    lines = statement.text.split("\n")
    inside = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    placed = type(error)(error.reason, whole, statement.start + inside)
    return placed.with_traceback(error.__traceback__)


def pointer(error: PlacedError) -> str:
    """The line of the error with a caret below the token."""
    lines = error.text.split("\n")
    line = lines[error.line - 1] if error.line <= len(lines) else ""
    indent = "".join("\t" if letter == "\t" else " " for letter in line[: error.column - 1])
    return f"  {line}\n  {indent}^"


def parameter_values(pairs: Mapping[str, str]) -> dict[str, object]:
    """Parameters as the command line gives them: numbers, true, false, null and texts in double quotes are what they are in
    JSON, anything else is a text."""
    return {name: _value(text) for name, text in pairs.items()}


def values_for(statement: StatementText, values: Mapping[str, object]) -> dict[str, object] | None:
    """The parameter values of a statement; None where it has no parameters."""
    missing = sorted(statement.parameters - set(values))
    if missing:
        raise InvalidError(f"parameter ${missing[0]} has no value: give --param {missing[0]}=VALUE")
    return {name: values[name] for name in sorted(statement.parameters)} or None


def check_all_used(statements: list[StatementText], values: Mapping[str, object]) -> None:
    """InvalidError for a value that no statement uses."""
    asked = frozenset[str]().union(*(statement.parameters for statement in statements))
    unknown = sorted(set(values) - asked)
    if unknown:
        raise InvalidError(f"no statement has a parameter ${unknown[0]}{nearest(unknown[0], asked)}")


def _statement(text: str, words: list[Word]) -> StatementText:
    names = frozenset(word.text[1:] for word in words if word.kind == "parameter" and word.text != "?")
    return StatementText(words[0].start, text[words[0].start : words[-1].end], names)


def _before_unended(text: str) -> tuple[str, str]:
    """The complete statements before an unterminated literal or comment: the longest prefix of the text that ends in `;`."""
    for place in _semicolons(text):
        try:
            words_of(text[: place + 1])
        except SqlError:
            continue
        return text[: place + 1], text[place + 1 :]
    return "", text


def _semicolons(text: str) -> Iterator[int]:
    place = text.rfind(";")
    while place >= 0:
        yield place
        place = text.rfind(";", 0, place)


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, str | int | float | bool) else text
