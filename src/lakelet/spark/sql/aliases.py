"""Choose the names of the lake's tables in the SQL text sent to Spark, which knows them as frames without a database.

    SELECT shop.orders.id FROM shop.orders                           ->   orders.id, from a frame called orders
    SELECT shop.orders.id FROM shop.orders JOIN old.orders USING (k) ->   `shop.orders`.id, from one called `shop.orders`

A table keeps its own name, so that `orders.id` means it as well. Only where a statement says `shop.orders.id`, and `orders` may
be something else too (a table of another database, a view, an alias), the table is called by both its names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.sql.lexer.spark_references import Reference, names_something, references
from lakelet.sql.lexer.spark_words import Word

# Database and table in lower case, before them the catalog where it is named.
TableKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Qualifier:
    """`database.table` or `catalog.database.table` before a column: the table, and the span of text."""

    key: TableKey
    start: int
    end: int


def key_of(reference: Reference) -> TableKey:
    """The key that references to one table share with its qualifiers."""
    names = (reference.catalog, reference.database, reference.table)
    return tuple(name.lower() for name in names if name is not None)


def qualifiers(words: Sequence[Word], known: Sequence[Reference]) -> list[Qualifier]:
    """The spans where columns are qualified by database and table, for the tables that the statement reads."""
    tables = {key_of(reference) for reference in known}
    found = []
    for place, word in enumerate(words):
        for count in {len(key) for key in tables}:
            names, dots = words[place : place + 2 * count : 2], words[place + 1 : place + 2 * count : 2]
            if place + 2 * count >= len(words) or not all(name.is_name for name in names):
                continue
            key = tuple(name.text.lower() for name in names)
            dotted = all(dot.keyword == "." for dot in dots)
            if dotted and key in tables and not names_something(words, place) and not _inside(word, known):
                found.append(Qualifier(key, word.start, names[-1].end))
    return found


def aliases(words: Sequence[Word], known: Sequence[Reference]) -> Mapping[TableKey, str]:
    """The name of each table; InvalidError where a bare `orders.id` would be ambiguous."""
    found = {key_of(reference): reference.table for reference in known}
    named = qualifiers(words, known)
    for key in {qualifier.key for qualifier in named}:
        table = key[-1]
        alone, qualifies = _bare_uses(words, table, [*references(words), *named])
        others = [one for one in references(words) if one.after != "INTO" and one.table.lower() == table]
        if not alone and {key_of(one) for one in others} == {key}:
            continue
        if qualifies:
            raise InvalidError(
                f"{table!r} may mean {'.'.join(key)} or something else of that name in this statement: "
                "give both an alias and name their columns by it"
            )
        found[key] = ".".join(key)
    return found


def _bare_uses(words: Sequence[Word], table: str, spans: Sequence[Reference | Qualifier]) -> tuple[bool, bool]:
    """Whether a table's name occurs outside of those spans: by itself, and before a column."""
    alone = qualifies = False
    for place, word in enumerate(words):
        if not word.is_name or word.text.lower() != table or _inside(word, spans):
            continue
        is_first = not names_something(words, place)
        before_column = is_first and place + 1 < len(words) and words[place + 1].keyword == "."
        alone, qualifies = alone or not before_column, qualifies or before_column
    return alone, qualifies


def _inside(word: Word, spans: Sequence[Reference | Qualifier]) -> bool:
    return any(span.start <= word.start < span.end for span in spans)
