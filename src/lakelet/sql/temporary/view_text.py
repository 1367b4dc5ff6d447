"""Expand a temporary view into a subquery, qualifying every name that could resolve differently there.

    v = SELECT id FROM orders JOIN t USING (id)     ->     SELECT id FROM "shop"."orders" JOIN temp."t" USING (id)

Table names resolve in the database in use when the view was created; nested views are expanded. Files, functions and data frames
are left alone: the view is the session's own, and may read what its queries may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelet.catalog.names import split_name
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.query.parse_tree import references
from lakelet.sql.query.time_travel import travels
from lakelet.sql.temporary.objects import TEMPORARY, TemporaryView
from lakelet.sql.views.expand import ViewText, view_source

Edit = tuple[int, int, str]
_MOST_LETTERS = 1 << 20


@dataclass(slots=True)
class TemporaryViewText:
    """Expands temporary views for one query."""

    context: Context
    space: Space
    _letters: int = field(init=False, default=0)

    def of(self, view: TemporaryView, above: tuple[str, ...] = ()) -> str:
        """The expanded query of a view; InvalidError if it cannot be used as a subquery."""
        inside = (*above, view.name)
        if view.name in above:
            raise InvalidError(f"temporary view {view.name!r} reads itself: {' -> '.join(inside)}")
        words = words_of(view.query)
        found, edits = travels(view.query, words, self.space.value)
        placed = Placed(view.query, tuple(sorted(edits)))
        tree = self.space.tree(placed.changed)
        if tree.get("error"):
            raise InvalidError(
                f"temporary view {view.name!r}: expected one query, of columns that are known: PIVOT … ON … IN (…) names them"
            )
        versions = {travel.stand_in: travel.parts for travel in found}
        places = {placed.original(one.place): one.parts for one in references(tree) if one.place is not None}
        spelled = []
        for place, parts in sorted(places.items()):
            edit = self._edit(view, words, place, versions.get(parts[-1], parts), inside)
            spelled += [] if edit is None else [edit]
        text = Placed(view.query, tuple(spelled)).changed
        self._letters += len(text)
        if self._letters > _MOST_LETTERS:
            raise InvalidError(
                f"temporary view {inside[0]!r} is more than {_MOST_LETTERS:,} letters long with the views in it"
            )
        return text

    def _edit(
        self, view: TemporaryView, words: Sequence[Word], place: int, parts: tuple[str, ...], inside: tuple[str, ...]
    ) -> Edit | None:
        """The edit that qualifies or expands a name, None for names outside the session and the lake."""
        reader = WordReader(view.query, words)
        reader.place = next(number for number, word in enumerate(words) if word.end > place)
        if not reader.peek().is_name:
            # A quoted file name.
            return None
        start = reader.peek().start
        reader.name_parts("the name of a table")
        end = words[reader.place - 1].end
        temporary = self.context.temporary.find(parts)
        if temporary is not None:
            inner = self.context.temporary.view(temporary)
            if inner is None:
                return start, end, f"{TEMPORARY}.{quoted(parts[-1])}"
            return start, end, view_source(self.of(inner, inside), parts[-1], reader)
        names = self.context.names
        try:
            name = split_name(parts, view.database)
            table, stored = names.find(name), names.find_view(name)
        except InvalidError:
            return None
        if table is not None:
            return start, end, f"{quoted(table.database)}.{quoted(parts[-1])}"
        if stored is None:
            return None
        text = ViewText(self.context, self.space).of(names.view(stored), stored.full)
        return start, end, view_source(text, parts[-1], reader)
