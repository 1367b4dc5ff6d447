"""Parse INSERT statements as far as needed: the target, and the span of the query.

[WITH …] INSERT INTO | OVERWRITE [TABLE] db.table [PARTITION (dt = '…', hour)] [(columns) | BY NAME] query
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.sql.lexer.spark_references import Reference, reference_at
from lakelet.sql.lexer.spark_words import Word

_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


@dataclass(frozen=True, slots=True)
class Insert:
    """A parsed INSERT. `partition` holds column and SQL text, None for a dynamic one; `query` and `prefix` are spans."""

    target: Reference
    overwrites: bool
    partition: tuple[tuple[str, str | None], ...]
    columns: tuple[str, ...] | None
    by_name: bool
    prefix: tuple[int, int]
    query: tuple[int, int]


def parse_insert(text: str, words: Sequence[Word]) -> Insert | None:
    """The INSERT into a table named by database and table, None where the statement is something else."""
    at = _insert_place(words)
    if at is None or at + 1 >= len(words) or words[at + 1].keyword not in ("INTO", "OVERWRITE"):
        return None
    overwrites = words[at + 1].keyword == "OVERWRITE"
    place = at + 2
    if place < len(words) and words[place].keyword == "TABLE":
        place += 1
    if place >= len(words) or not words[place].is_name:
        return None
    target, place = reference_at(words, place, "INTO")
    if target is None:
        return None
    return _rest(text, words, target, (at, place), overwrites=overwrites)


def _insert_place(words: Sequence[Word]) -> int | None:
    """The position of the INSERT keyword outside of parentheses."""
    depth = 0
    for place, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word.keyword, 0)
        if word.keyword == "INSERT" and depth == 0:
            return place if place == 0 or words[0].keyword == "WITH" else None
    return None


def _rest(text: str, words: Sequence[Word], target: Reference, places: tuple[int, int], *, overwrites: bool) -> Insert:
    """What follows the table's name."""
    at, place = places
    if target.version is not None or target.timestamp is not None:
        raise InvalidError(f"INSERT goes to the newest version, found {text[target.start : target.end]}")
    partition: tuple[tuple[str, str | None], ...] = ()
    columns: tuple[str, ...] | None = None
    by_name = False
    while place < len(words):
        keyword = words[place].keyword
        if keyword == "PARTITION":
            partition, place = _partition(text, words, place + 1)
        elif keyword == "(" and columns is None and not _begins_query(words, place):
            parts, place = _listed(words, place)
            columns = tuple(_one_name(part) for part in parts)
        elif keyword == "BY" and [word.keyword for word in words[place : place + 2]] == ["BY", "NAME"]:
            by_name, place = True, place + 2
        elif keyword in _QUERY_STARTS:
            break
        else:
            found = words[place]
            raise InvalidError(
                f"INSERT: expected PARTITION, columns or a query, found {found.text!r} at character {found.start + 1}"
            )
    if place >= len(words):
        raise InvalidError("INSERT: expected a query or VALUES after the table")
    if columns is not None and by_name:
        raise InvalidError("INSERT: a list of columns and BY NAME do not go together")
    last = words[-2] if words[-1].keyword == ";" else words[-1]
    return Insert(target, overwrites, partition, columns, by_name, (0, words[at].start), (words[place].start, last.end))


def _begins_query(words: Sequence[Word], place: int) -> bool:
    first = next((word.keyword for word in words[place:] if word.keyword != "("), "")
    return first in _QUERY_STARTS


def _partition(text: str, words: Sequence[Word], place: int) -> tuple[tuple[tuple[str, str | None], ...], int]:
    if place >= len(words) or words[place].keyword != "(":
        raise InvalidError("PARTITION: expected (column = value, …)")
    parts, place = _listed(words, place)
    found: list[tuple[str, str | None]] = []
    for part in parts:
        if len(part) == 1:
            found.append((_one_name(part), None))
        elif len(part) > 2 and part[1].keyword == "=":
            found.append((_one_name(part[:1]), text[part[2].start : part[-1].end]))
        else:
            raise InvalidError(f"PARTITION: expected column = value, found {text[part[0].start : part[-1].end]!r}")
    return tuple(found), place


def _listed(words: Sequence[Word], place: int) -> tuple[list[list[Word]], int]:
    """The comma-separated items of a parenthesis, and the position behind it."""
    parts: list[list[Word]] = [[]]
    depth = 0
    for behind, word in enumerate(words[place:], place + 1):
        if word.keyword == "(":
            depth += 1
        elif word.keyword == ")":
            depth -= 1
        if depth == 0:
            if not all(parts):
                raise InvalidError(f"INSERT: something is missing before character {word.start + 1}")
            return parts, behind
        if word.keyword == "," and depth == 1:
            parts.append([])
        elif not (word.keyword == "(" and depth == 1):
            parts[-1].append(word)
    raise InvalidError(f"INSERT: the parenthesis at character {words[place].start + 1} is not closed")


def _one_name(part: Sequence[Word]) -> str:
    if len(part) != 1 or not part[0].is_name:
        raise InvalidError(f"INSERT: expected the name of a column at character {part[0].start + 1}")
    return part[0].text
