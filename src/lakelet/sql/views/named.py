"""Inline the views that a query names as subqueries, and map positions back to the text as it was written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakelet.catalog.names import TableName
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.errors import SqlError, UnknownNameError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.query.parse_tree import Reference
from lakelet.sql.temporary.objects import TemporaryView
from lakelet.sql.temporary.view_text import TemporaryViewText
from lakelet.sql.views.expand import ViewText, view_source

Edit = tuple[int, int, str]
# Keywords followed by a whole query rather than a FROM item.
_QUERIES = ("SUMMARIZE", "DESCRIBE", "DESC")
_BEFORE_NAMES = ("FROM", "JOIN", "PIVOT", "UNPIVOT", "USING", "TABLE", *_QUERIES)
# Keywords followed by a list of something other than tables.
_NO_TABLES = frozenset(("SELECT", "SET", "BY", "VALUES", "RETURNING", "WHERE", "ON", "HAVING", "THEN", "DISTINCT"))


class ViewNamed(Exception):
    """Raised when a name in a query resolves to a view, which is then inlined."""

    def __init__(
        self, name: TableName, *, temporary: TemporaryView | None = None, uses: Sequence[Reference] = ()
    ) -> None:
        super().__init__(name.full)
        self.name = name
        # The temporary view, if it is one, and the references to it.
        self.temporary = temporary
        self.uses = uses


def mentions(words: Sequence[Word], view: TableName, database: str) -> list[Word]:
    """The mentions of a view in a text without a parse tree; unqualified names resolve in `database`."""
    found = []
    common = _common_names(words)
    for number, word in enumerate(words):
        behind = words[number + 1].keyword if number + 1 < len(words) else ""
        before = words[number - 1].keyword if number else ""
        long = behind == "." and number + 2 < len(words)
        if not long and word.text.lower() in common:
            continue
        named = (word.text, words[number + 2].text) if long else (database, word.text)
        is_it = tuple(part.lower() for part in named) == (view.database.lower(), view.table.lower())
        if word.is_name and is_it and (before in _BEFORE_NAMES or (before == "," and _lists_tables(words, number - 1))):
            found.append(word)
    return found


def _common_names(words: Sequence[Word]) -> set[str]:
    """The names of common table expressions in a text, in lower case: `WITH a AS (…), b (x, y) AS MATERIALIZED (…)`."""
    found: set[str] = set()
    if not any(word.keyword == "WITH" for word in words):
        return found
    reader = WordReader("", words)
    for number, word in enumerate(words[1:], 1):
        if not word.is_name or words[number - 1].keyword not in ("WITH", "RECURSIVE", ","):
            continue
        reader.place = number + 1
        if reader.accept("("):
            while reader.peek().is_name or reader.at(","):
                reader.take()
            reader.accept(")")
        if reader.accept("AS"):
            reader.accept("NOT")
            reader.accept("MATERIALIZED")
            found |= {word.text.lower()} if reader.at("(") else set()
    return found


def _lists_tables(words: Sequence[Word], comma: int) -> bool:
    """Whether a comma separates tables rather than columns or values."""
    depth = 0
    for word in reversed(words[:comma]):
        depth += (word.keyword == ")") - (word.keyword == "(")
        if depth < 0 or (depth == 0 and word.keyword in _NO_TABLES):
            return False
        if depth == 0 and word.keyword in ("FROM", "USING"):
            return True
    return False


class NamedViews:
    """The text of one query, with its views inlined so far."""

    def __init__(self, context: Context, text: str) -> None:
        self._context = context
        self._original = text
        self._edits: list[Edit] = []

    def put_in(self, found: ViewNamed, uses: Iterable[Sequence[Reference]], placed: Placed, space: Space) -> str:
        """The text with every mention of a view replaced by its query; `placed` maps the parsed text to the one before it."""
        view = found.name
        if placed.text != self._inside().changed:
            # Something else was inlined before: positions refer to that text from now on.
            self._original, self._edits = placed.text, []
        inside = self._inside()
        words = words_of(inside.changed)
        if found.temporary is not None:
            query = TemporaryViewText(self._context, space).of(found.temporary)
            places = {placed.original(use.place) for use in found.uses if use.place is not None}
        else:
            query = ViewText(self._context, space).of(self._context.names.view(view), view.full)
            places = {place for one in uses for use in one if (place := self._place(use, view, placed)) is not None}
        if not places:
            database = view.database if found.temporary is not None else self._context.database
            places = {word.start for word in mentions(words, view, database)}
        if not places:
            raise InvalidError(f"view {view.full!r} cannot stand where the query names it")
        for place in places:
            self._edits.append(self._edit(inside, words, place, query))
        self._edits.sort()
        return self._inside().changed

    def placed(self, later: Placed) -> Placed:
        """Map edits of the text with views inlined to edits of the original text."""
        if not self._edits:
            return later
        found: list[Edit] = []
        waiting = list(later.edits)
        shift = 0
        for start, end, new in self._edits:
            begin = start + shift
            before = [edit for edit in waiting if edit[1] <= begin]
            within = [
                edit for edit in waiting if begin <= edit[0] and edit[1] <= begin + len(new) and edit not in before
            ]
            waiting = [edit for edit in waiting if edit not in before and edit not in within]
            found += [(first - shift, last - shift, text) for first, last, text in before]
            inner = tuple((first - begin, last - begin, text) for first, last, text in within)
            found.append((start, end, Placed(new, inner).changed))
            shift += len(new) - (end - start)
        found += [(first - shift, last - shift, text) for first, last, text in waiting]
        return Placed(self._original, tuple(found))

    def placed_error(self, error: BaseException) -> BaseException:
        """The error with its position in the original text."""
        if not self._edits or not isinstance(error, (SqlError, UnknownNameError)):
            return error
        inside = self._inside()
        if error.text != inside.changed:
            return error
        lines = inside.changed.split("\n")[: error.line - 1]
        place = sum(len(line) + 1 for line in lines) + error.column - 1
        return type(error)(error.reason, self._original, inside.original(len(inside.changed[:place].encode())))

    def _inside(self) -> Placed:
        return Placed(self._original, tuple(self._edits))

    def _place(self, use: Reference, view: TableName, placed: Placed) -> int | None:
        """The position of a reference to the view in the text with the views so far."""
        parts = [part.lower() for part in use.parts]
        if parts not in ([view.table.lower()], [view.database.lower(), view.table.lower()]) or use.place is None:
            return None
        if len(parts) == 1 and view.database.lower() != self._context.database.lower():
            return None
        return placed.original(use.place)

    def _edit(self, inside: Placed, words: Sequence[Word], place: int, query: str) -> Edit:
        """The edit of the original text that replaces the name at a position."""
        reader = WordReader(inside.changed, words)
        reader.place = next(number for number, word in enumerate(words) if word.end > place)
        before = words[reader.place - 1].keyword if reader.place else ""
        start = reader.peek().start
        name = reader.name_parts("the name of a view")[-1]
        end = words[reader.place - 1].end
        if before in _QUERIES:
            new = f"SELECT * FROM ({query}) AS {quoted(name)}"
        elif before == "TABLE":
            new = f"SELECT * FROM ({query}) AS {quoted(name)}"
            start = max(word.start for word in words if word.keyword == "TABLE" and word.end <= place)
        elif before in ("PIVOT", "UNPIVOT"):
            new = f"({query})"
        else:
            new = view_source(query, name, reader)
        first = inside.original(len(inside.changed[:start].encode()))
        last = inside.original(len(inside.changed[:end].encode()))
        return first, last, new
