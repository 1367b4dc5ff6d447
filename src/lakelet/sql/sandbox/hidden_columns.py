"""Leave hidden columns out of `SELECT *`, while they can be selected by their names.

    SELECT *, dt FROM users u           ->   SELECT * EXCLUDE (u.dt), dt FROM users u
    SELECT * EXCLUDE (id) FROM users    ->   SELECT * EXCLUDE (users.dt, id) FROM users

A query that does not name the column gets views without it, and needs no edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.parse_tree import Node, Reference
from lakelet.sql.sandbox.allow_list import nodes

Edit = tuple[int, int, str]
_LISTS = ("EXCLUDE", "EXCEPT")


def names_column(words: Sequence[Word], column: str) -> bool:
    """Whether a text names a column, or something else by the same name."""
    return any(word.is_name and word.text.lower() == column.lower() for word in words)


def star_edits(
    tree: Node, uses: Sequence[Reference], hidden: Mapping[int, Sequence[str]], words: Sequence[Word], placed: Placed
) -> list[Edit]:
    """The edits that leave out hidden columns, given for each table reference by the identity of its node."""
    found: list[Edit] = []
    for select in nodes(tree):
        if select.get("type") != "SELECT_NODE":
            continue
        here = [use for use in uses if use.select is select and hidden.get(id(use.node))]
        excluded = [
            (use.alias, name) for use in here for name in hidden[id(use.node)] if not _is_joined_by(select, name)
        ]
        if excluded:
            found += _edits(select, excluded, words, placed)
    return found


def _edits(select: Node, excluded: Sequence[tuple[str, str]], words: Sequence[Word], placed: Placed) -> Iterator[Edit]:
    for item in select.get("select_list", ()):
        if item.get("class") != "STAR" or item.get("columns"):
            continue
        wanted = str(item.get("relation_name") or "").lower()
        listed = [str(one).lower() for one in item.get("exclude_list", ()) if isinstance(one, str)]
        names = [
            f"{quoted(alias)}.{quoted(name)}"
            for alias, name in excluded
            if wanted in ("", alias.lower()) and name.lower() not in listed
        ]
        place = item.get("query_location")
        if names and place is not None:
            yield from _star_edit(placed.original(place), ", ".join(names), words)
        elif names:
            yield from _from_edit(select, ", ".join(names), words, placed)


def _star_edit(start: int, names: str, words: Sequence[Word]) -> Iterator[Edit]:
    """The edit behind the `*` of an item that begins at a position."""
    place = next((at for at, word in enumerate(words) if word.start >= start and word.keyword == "*"), None)
    if place is None:
        return
    after = words[place + 1 : place + 4]
    if not after or after[0].keyword not in _LISTS or len(after) < 2:
        yield words[place].end, words[place].end, f" EXCLUDE ({names})"
    elif after[1].keyword == "(":
        yield after[1].end, after[1].end, f"{names}, "
    else:
        yield after[1].start, after[1].end, f"({names}, {quoted(after[1].text)})"


def _from_edit(select: Node, names: str, words: Sequence[Word], placed: Placed) -> Iterator[Edit]:
    """The edit of `FROM table` without a SELECT, whose star is nowhere in the text."""
    places = [node["query_location"] for node in nodes(select.get("from_table")) if "query_location" in node]
    first = placed.original(min(places)) if places else -1
    before = [word for word in words if word.start < first and word.keyword == "FROM"]
    if before:
        yield before[-1].start, before[-1].start, f"SELECT * EXCLUDE ({names}) "


def _is_joined_by(select: Node, column: str) -> bool:
    """Whether tables are joined by a column of that name, which belongs to all of them then."""
    return any(
        column.lower() in [str(one).lower() for one in node.get("using_columns", ())]
        or node.get("ref_type") == "NATURAL"
        for node in nodes(select.get("from_table"))
    )
