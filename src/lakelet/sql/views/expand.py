"""Expand a stored view into a subquery, with every name in it qualified.

    shop.v = SELECT id FROM orders WHERE …    ->    SELECT id FROM "shop"."orders" WHERE …

Names resolve in the view's own database, then in the one in use when it was created, whatever database the reader uses: a
qualified name is no common table expression, data frame or file of the outer query. Nested views are expanded the same way, up to
limits of depth and size that no honest view needs. The expanded text is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelet.catalog.names import TableName, split_name
from lakelet.catalog.views import View
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.query.parse_tree import references
from lakelet.sql.query.time_travel import alias_follows, travels
from lakelet.sql.views.check import check_tree

_MOST_DEEP = 32
_MOST_LETTERS = 1 << 20


@dataclass(slots=True)
class ViewText:
    """Expands views for one query."""

    context: Context
    space: Space
    # Whether the view is being created, and may name no temporary object of the session.
    is_new: bool = False
    _letters: int = field(init=False, default=0)
    # Of views inside others, by name and depth: the text, and the letters that it counts with the views in it.
    _inner: dict[tuple[str, int], tuple[str, int]] = field(init=False, default_factory=dict)

    def of(self, view: View, name: str, above: tuple[str, ...] = ()) -> str:
        """The expanded query of a view, over tables only; InvalidError if it does anything else."""
        if name in above:
            raise InvalidError(f"view {name!r} reads itself: {' -> '.join((*above, name))}")
        if len(above) >= _MOST_DEEP:
            raise InvalidError(f"view {above[0]!r}: more than {_MOST_DEEP} views inside each other")
        text = self._spelled(view, name, (*above, name))
        self._count(len(text), (*above, name)[0])
        if not above:
            self._parsed(text, name)
        return text

    def _parsed(self, text: str, name: str) -> tuple[Placed, list[tuple[int, tuple[str, ...]]]]:
        """The text as DuckDB sees it, checked, and the positions of its table names."""
        words = words_of(text)
        found, edits = travels(text, words, lambda expression: _literal(expression, name))
        placed = Placed(text, tuple(sorted(edits)))
        tree = self.space.tree(placed.changed)
        check_tree(tree, name)
        versions = {travel.stand_in: travel.parts for travel in found}
        named = []
        for one in references(tree):
            if one.place is None:
                raise InvalidError(f"view {name!r}: the place of {'.'.join(one.parts)!r} is not known")
            named.append((placed.original(one.place), versions.get(one.parts[-1], one.parts)))
        return placed, named

    def _spelled(self, view: View, name: str, above: tuple[str, ...]) -> str:
        words = words_of(view.query)
        _, named = self._parsed(view.query, name)
        for _, parts in named if self.is_new and len(above) == 1 else ():
            if self.context.temporary.find(parts) is not None:
                raise InvalidError(
                    f"view {name!r}: {'.'.join(parts)!r} is a temporary table or view of this session, which the lake does not "
                    f"have; CREATE TEMP VIEW reads it, {view.database}.{parts[-1]} names a table of the lake"
                )
        edits = [
            self._edit(view, words, place, self._meant(parts, view, name), above, name) for place, parts in set(named)
        ]
        return Placed(view.query, tuple(sorted(edits))).changed

    def _meant(self, parts: tuple[str, ...], view: View, name: str) -> TableName:
        if len(parts) > 2:
            raise InvalidError(f"view {name!r}: a view reads tables of the lake, not {'.'.join(parts)!r} of a catalog")
        own = None if view.home is None or len(parts) > 1 else split_name(parts, view.home)
        if own is not None and own.full.lower() != name.lower():
            names = self.context.names
            if names.find(own) is not None or names.find_view(own) is not None:
                return own
        return split_name(parts, view.database)

    def _edit(
        self, view: View, words: Sequence[Word], place: int, meant: TableName, above: tuple[str, ...], name: str
    ) -> tuple[int, int, str]:
        reader = WordReader(view.query, words)
        reader.place = next(number for number, word in enumerate(words) if word.end > place)
        first = reader.peek()
        parts = reader.name_parts("the name of a table")
        end = words[reader.place - 1].end
        names = self.context.names
        table = names.find(meant)
        if table is not None:
            return first.start, end, f"{quoted(table.database)}.{quoted(parts[-1])}"
        inner = names.find_view(meant)
        if inner is None:
            names.existing(meant)
            raise InvalidError(f"view {name!r}: {meant.full!r} is neither a table nor a view")
        text = self._inner_text(inner, above)
        return first.start, end, view_source(text, parts[-1], reader)

    def _inner_text(self, view: TableName, above: tuple[str, ...]) -> str:
        """The expanded query of a view inside others, computed once however often it is named; it counts every time."""
        known = self._inner.get((view.full, len(above)))
        if known is None or view.full in above:
            before = self._letters
            text = self.of(self.context.names.view(view), view.full, above)
            self._inner[view.full, len(above)] = text, self._letters - before
            return text
        text, letters = known
        self._count(letters, above[0])
        return text

    def _count(self, letters: int, name: str) -> None:
        self._letters += letters
        if self._letters > _MOST_LETTERS:
            raise InvalidError(f"view {name!r} is more than {_MOST_LETTERS:,} letters long with the views in it")


def view_source(text: str, name: str, reader: WordReader) -> str:
    """The subquery for a view in FROM, under its own name unless an alias follows in the text."""
    return f"({text})" if alias_follows(reader) else f"({text}) AS {quoted(name)}"


def _literal(expression: str, name: str) -> object:
    """The literal version in a view; an expression is refused, for it would be evaluated before it is checked."""
    words = [
        word for word in words_of(expression) if word.keyword not in ("(", ")", "TIMESTAMP", "DATE", "TIMESTAMPTZ")
    ]
    if len(words) == 1 and words[0].kind == "string":
        return words[0].text
    if len(words) == 1 and words[0].kind == "number" and words[0].text.isdigit():
        return int(words[0].text)
    raise InvalidError(f"view {name!r}: a version in a view is a number or a text in quotes, found {expression}")
