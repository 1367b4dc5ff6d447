"""Rewrite names of Iceberg tables in a query: DuckDB takes the first of three parts for a catalog of its own.

    SELECT ice.shop.orders.id FROM ice.shop.orders JOIN shop.native …      what is written
    SELECT "ice.shop".orders.id FROM "ice.shop".orders JOIN shop.native …  what DuckDB sees: a schema with a dot in its name

The table keeps its own name, so that other references to it stay valid. A table at a version is replaced by a unique name with
the table's name as its alias, by which columns are qualified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.time_travel import Travel

Parts = tuple[str, ...]
Edit = tuple[int, int, str]
ICEBERG_PARTS = 3


def folded(parts: Iterable[str]) -> Parts:
    """A name in lower case."""
    return tuple(part.lower() for part in parts)


def schema_name(parts: Sequence[str]) -> str:
    """The schema under which a query's space registers a table."""
    return ".".join(parts[:-1])


def star_edits(words: Sequence[Word], catalogs: Collection[str]) -> list[Edit]:
    """Edits that replace `ice.shop.orders.*`, which DuckDB does not accept, by `orders.*`."""
    known = {name.lower() for name in catalogs}
    return [
        (words[at].start, words[at + 2 * ICEBERG_PARTS - 2].start, "")
        for at, parts in _dotted(words)
        if len(parts) == ICEBERG_PARTS and parts[0] in known and _is_star(words, at + 2 * ICEBERG_PARTS - 1)
    ]


def has_long_names(words: Sequence[Word]) -> bool:
    """Whether there is a name of three parts or more."""
    return any(len(parts) >= ICEBERG_PARTS for _, parts in _dotted(words))


def has_stars(words: Sequence[Word]) -> bool:
    """Whether a name of three parts is followed by a star."""
    return any(
        len(parts) == ICEBERG_PARTS and _is_star(words, at + 2 * ICEBERG_PARTS - 1) for at, parts in _dotted(words)
    )


def name_edits(
    words: Sequence[Word], tables: Collection[Parts], travels: Sequence[Travel], edits: Sequence[Edit]
) -> list[Edit]:
    """The edits that give each table of three parts a schema of its own, wherever it is named outside of other edits; names of
    two parts that match a native table are left alone."""
    named = {folded(parts) for parts in tables if len(parts) == ICEBERG_PARTS}
    shorter = {parts[1:]: parts for parts in named}
    for native in tables:
        shorter.pop(folded(native), None)
    stood = {folded(travel.parts) for travel in travels if len(travel.parts) == ICEBERG_PARTS}
    made: list[Edit] = []
    for at, parts in _dotted(words):
        begin = words[at].start
        if any(start <= begin < end for start, end, _ in edits):
            continue
        if parts[:ICEBERG_PARTS] in named:
            made.append((begin, words[at + 2].end, quoted(schema_name([words[at].text, words[at + 2].text, ""]))))
        elif parts[:ICEBERG_PARTS] in stood and len(parts) > ICEBERG_PARTS:
            made.append((begin, words[at + 4].end, quoted(words[at + 4].text)))
        elif len(parts) >= ICEBERG_PARTS and parts[:2] in shorter:
            # A qualified column: database.table.column.
            catalog = shorter[parts[:2]][0]
            made.append((begin, words[at].end, quoted(schema_name([catalog, words[at].text, ""]))))
    return made


def named_by_words(words: Sequence[Word], catalogs: Collection[str]) -> set[Parts]:
    """All names that could be tables of a catalog, for texts without a parse tree."""
    known = {name.lower() for name in catalogs}
    return {
        tuple(words[at + 2 * number].text for number in range(ICEBERG_PARTS))
        for at, parts in _dotted(words)
        if len(parts) >= ICEBERG_PARTS and parts[0] in known
    }


def _dotted(words: Sequence[Word]) -> Iterator[tuple[int, Parts]]:
    """Names of several parts: the position of each, and its parts in lower case."""
    at = 0
    while at < len(words):
        if not words[at].is_name or (at and words[at - 1].keyword == "."):
            at += 1
            continue
        end = at
        while end + 2 < len(words) and words[end + 1].keyword == "." and words[end + 2].is_name:
            end += 2
        if end > at:
            yield at, folded(word.text for word in words[at : end + 1 : 2])
        at = end + 1


def _is_star(words: Sequence[Word], at: int) -> bool:
    return at + 1 < len(words) and words[at].keyword == "." and words[at + 1].keyword == "*"
