"""Distinguish names that differ in case alone: two objects to a lake, one to DuckDB.

    SELECT * FROM d.Src JOIN d.src USING (id)                              what is written
    SELECT * FROM "Src#1" AS "Src" JOIN "src#2" AS "src" USING (id)        what DuckDB sees, each name a table of its own

A name resolves to its exact match, else to the only case-insensitive match. Columns of one table that differ in case alone
cannot be distinguished in DuckDB, and are refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.parse_tree import Reference
from lakelet.sql.query.stand_in import stand_in

Edit = tuple[int, int, str]


def check_columns_apart(names: Sequence[str], table: str) -> None:
    """InvalidError if two columns of a table differ in case alone, which DuckDB cannot distinguish."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            raise InvalidError(
                f"{table}: columns {other!r} and {name!r} differ in case alone, and SQL takes both for one; rename one of them, "
                "or read with scan(columns=…)"
            )


@dataclass(frozen=True, slots=True)
class UniqueNames:
    """Edits that replace table names by unique ones, and the written name of each replacement."""

    edits: tuple[Edit, ...]
    stand_ins: Mapping[str, tuple[str, ...]]


def unique_names(
    groups: Iterable[Sequence[tuple[Reference, Hashable]]], words: Sequence[Word], placed: Placed
) -> UniqueNames:
    """Give each table of a query a unique name. A group has the uses of a name in any case, each with what it resolves to."""
    edits: list[Edit] = []
    stand_ins: dict[str, tuple[str, ...]] = {}
    starts = {word.start: place for place, word in enumerate(words)}
    for group in groups:
        made: dict[Hashable, str] = {}
        for use, meaning in group:
            at = None if use.place is None else starts.get(placed.original(use.place))
            if at is None:
                spelled = sorted({".".join(other.parts) for other, _ in group})
                raise InvalidError(f"{' and '.join(spelled)} differ in case alone: name them in a FROM of their own")
            name = made.setdefault(meaning, stand_in(use.parts[-1], "#", words, stand_ins))
            stand_ins.setdefault(name, use.parts)
            called = "" if use.node.get("alias") else f" AS {quoted(use.parts[-1])}"
            edits.append((words[at].start, words[_last(words, at)].end, f"{quoted(name)}{called}"))
    return UniqueNames(tuple(edits), stand_ins)


def _last(words: Sequence[Word], at: int) -> int:
    """The last word of a dotted name."""
    while at + 2 < len(words) and words[at + 1].keyword == "." and words[at + 2].is_name:
        at += 2
    return at
