"""Prepare a stranger's query: check its tree, register its tables, resolve the names of payload fields, and bind it.

    text ─ parsed, every node on a list ─ tables opened once each ─ edited, parsed and checked again ─ bound ─ rows

A name is that of a common table expression, of a table that is served, with or without `default.`, or of one of three tables of
`information_schema`. There is no other: nothing is looked up in DuckDB's catalog, in the file system or in the program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakelet.catalog.names import DEFAULT_DATABASE, only_match
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InternalError, InvalidError, LakeletError
from lakelet.model.near_names import nearest
from lakelet.model.types import Field, Kind
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.engine.engine_errors import Placed, has_kind
from lakelet.sql.lexer.errors import SqlError, UnknownNameError
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.query.conditions import pruning_texts
from lakelet.sql.query.parse_tree import Node, Reference, references
from lakelet.sql.query.plans import Plans
from lakelet.sql.query.query_words import default_names, is_duckdbs
from lakelet.sql.query.relation import Rows
from lakelet.sql.query.shortcuts import all_counted, counted, limited
from lakelet.sql.query.table_view import TableView
from lakelet.sql.sandbox.allow_list import RESERVED, check_tree, refused
from lakelet.sql.sandbox.day_conditions import DAY, with_days
from lakelet.sql.sandbox.hidden_columns import Edit, names_column, star_edits
from lakelet.sql.sandbox.listed_tables import LISTINGS, SCHEMA
from lakelet.sql.sandbox.payload_names import PayloadNames
from lakelet.sql.sandbox.payload_use import named_parts, narrowed
from lakelet.sql.sandbox.sandbox_table import SandboxTable, SandboxTables
from lakelet.sql.statement import Params

_LISTING = "lakelet_listing_{name}"
# A query with more bare names of payload fields than this is refused: each costs a binding.
_MOST_NAMES = 50
# Conditions of a longer text prune nothing: they are parsed in Python, while nothing else of the process runs.
_LONGEST_PRUNED = 1 << 15


@dataclass(slots=True)
class SandboxedQuery:
    """A query being prepared in a space of its own, which the caller closes."""

    space: Space
    text: str
    params: Params
    tables: SandboxTables
    plans: Plans
    has_zone: bool = False
    # Rows under names of ours, which stand for no table.
    given: Mapping[str, Rows] = field(default_factory=dict)
    placed: Placed = field(init=False)
    _tree: Node = field(init=False, default_factory=dict)
    _words: Sequence[Word] = field(init=False, default=())
    _uses: list[Reference] = field(init=False, default_factory=list)
    # The table of each reference, by the identity of its node, and the views of all tables.
    _meant: dict[int, SandboxTable] = field(init=False, default_factory=dict)
    _opened: dict[str, SandboxTable] = field(init=False, default_factory=dict)
    _views: list[TableView] = field(init=False, default_factory=list)
    # The views of listings that were put into the text.
    _listed: set[str] = field(init=False, default_factory=set)

    def prepare(self) -> None:
        """Check the query and find its tables, whose rows are not there before `register`."""
        self.space.on_error(self._explain)
        for name, rows in self.given.items():
            if not name.startswith(RESERVED):
                raise InternalError(f"expected a name that begins with {RESERVED}, found {name!r}")
            self._listed.add(name)
            self.space.add_temporary(name, f"FROM {self.space.add_rows(rows)}")
        self._words = words_of(self.text)
        edits = list(default_names(self._words, ()))
        self._parse(edits)
        listings = self._find_tables()
        edits += self._star_edits()
        edits += self._listing_edits(listings)
        names = PayloadNames(self._tree, self._uses, self._meant, self.placed)
        edits += names.value_edits(self._words)
        if len(edits) > len(self.placed.edits):
            self._parse(edits)
            self._find_tables()
        self.space.use(DEFAULT_DATABASE)
        for word in names.value_words():
            self.space.hide_function(DEFAULT_DATABASE, word)

    def register(self, tables: Collection[SandboxTable] | None = None) -> None:
        """Register the rows of the tables, or of some of them."""
        for name, table in self._opened.items():
            if tables is None or any(table is one for one in tables):
                self._add(name, table)

    def register_without_rows(self) -> None:
        """Register the tables as if they had no rows, so that the query can be bound, and its types be known."""
        for name, table in self._opened.items():
            self.space.add_view(DEFAULT_DATABASE, name, table.empty_sql(with_hidden=self._names_hidden(table)))

    def bind(self) -> Any:
        """The bound query. Names that DuckDB does not find are looked for among the fields of payloads."""
        for _ in range(_MOST_NAMES):
            try:
                return self.space.relation(self.placed.changed, self.params, self.placed)
            except InvalidError as error:
                names = PayloadNames(self._tree, self._uses, self._meant, self.placed)
                edits = names.edits_at(error.start, self._words) if isinstance(error, SqlError) else []
                if not edits:
                    raise names.explained(error) from error
                self._parse([*self.placed.edits, *edits])
                self._find_tables()
        raise InvalidError(f"the query names more than {_MOST_NAMES} payload fields without `payload.`")

    @property
    def tree(self) -> Node:
        """The parse tree of the query as it is now."""
        return self._tree

    def tables_by_name(self) -> dict[str, SandboxTable]:
        """The tables by the last parts of their names in the text, in lower case; without those whose names may be another's."""
        found: dict[str, SandboxTable] = {}
        doubtful = set()
        for use in self._uses:
            name, table = use.parts[-1].lower(), self._meant[id(use.node)]
            if found.setdefault(name, table) is not table:
                doubtful.add(name)
        return {name: table for name, table in found.items() if name not in doubtful}

    def shown_columns(self, table: SandboxTable) -> list[str]:
        """The columns of a table's view."""
        return table.shown(with_hidden=self._names_hidden(table))

    def hidden_columns(self, table: SandboxTable) -> tuple[str, ...]:
        """The columns that a table's view lacks."""
        return () if self._names_hidden(table) else table.hidden

    def as_shown(self, table: SandboxTable) -> SandboxTable:
        """The table as any text about it names it: what is hidden is so from all of the text."""
        return replace(table, hidden=self.hidden_columns(table))

    @property
    def is_long(self) -> bool:
        """Whether reading its conditions would take longer than what they prune."""
        return len(self.text) > _LONGEST_PRUNED

    def count(self) -> SqlResult | None:
        """The result of a plain count, answered from the plan; None for any other query."""
        if self.is_long or len(self._opened) != 1 or len(self._uses) != 1:
            return None
        (table,) = self._opened.values()
        if table.has_buffered_rows:
            return all_counted(self._tree, table.count)
        return counted(self._tree, self._views[0], self._comparable(table.scan.schema.fields), self.params)

    # ------------------------------------------------------------------ names

    def _parse(self, edits: Sequence[Edit]) -> None:
        self.placed = Placed(self.text, tuple(sorted(edits)))
        self._tree = check_tree(self.space.tree(self.placed.changed), self.placed)

    def _find_tables(self) -> list[tuple[Reference, str]]:
        """Find the table of every reference; returns those to listings."""
        self._uses, self._meant = [], {}
        listings = []
        served = self.tables.names()
        for use in references(self._tree):
            parts = use.parts
            if len(parts) == 2 and parts[0].lower() == SCHEMA and parts[1].lower() in LISTINGS:
                listings.append((use, parts[1].lower()))
                continue
            if len(parts) == 1 and parts[0] in self._listed:
                continue
            name = self._served(use, served)
            if name not in self._opened:
                self._opened[name] = self.tables.open(name)
            self._uses.append(use)
            self._meant[id(use.node)] = self._opened[name]
        return listings

    def _served(self, use: Reference, served: Sequence[str]) -> str:
        parts, written = use.parts, ".".join(use.parts)
        if len(parts) == 1 or (len(parts) == 2 and parts[0].lower() == DEFAULT_DATABASE):
            found = only_match(parts[-1], served, "table")
            if found is not None:
                return found
        if len(parts) > 2 or is_duckdbs(parts):
            raise refused(f"{written!r}, which is no table of the service,")
        message = f"table {written!r} is not served{nearest(parts[-1], served)}"
        raise UnknownNameError(message, self.text, self.placed.original(use.place or 0))

    def _star_edits(self) -> list[Edit]:
        hidden = {
            node: [name for name in table.hidden if names_column(self._words, name)]
            for node, table in self._meant.items()
        }
        return star_edits(self._tree, self._uses, hidden, self._words, self.placed)

    def _listing_edits(self, listings: Sequence[tuple[Reference, str]]) -> list[Edit]:
        edits = []
        for use, name in listings:
            start = self.placed.original(use.place or 0)
            named = [word for word in self._words if word.start >= start and word.is_name][:2]
            # The name that its columns are qualified by stays the same.
            alias = "" if use.node.get("alias") else f" AS {name}"
            edits.append((named[0].start, named[1].end, f"{_listing_name(name)}{alias}"))
        for name in {name for _, name in listings}:
            self._listed.add(_listing_name(name))
            self.space.add_temporary(_listing_name(name), f"FROM {self.space.add_frame(LISTINGS[name](self.tables))}")
        return edits

    # ------------------------------------------------------------------ rows

    def _add(self, name: str, table: SandboxTable) -> None:
        view = table.committed(self.plans, self.pruning(table), limited(self._tree, self._uses_of(table)))
        self._views.append(view)
        part = self._payload_part(table, view)
        sql = table.view_sql(self.space, view, part, with_hidden=self._names_hidden(table))
        self.space.add_view(DEFAULT_DATABASE, name, sql)

    def pruning(self, table: SandboxTable) -> tuple[str, ...]:
        """Conditions on a table: of them every needed row satisfies one, if there are any."""
        if self.is_long:
            return ()
        fields = self._comparable(table.scan.schema.fields)
        texts = pruning_texts(self._uses_of(table), fields, self.params)
        return with_days(texts, table.scan.schema.fields) if DAY in table.hidden else texts

    def _uses_of(self, table: SandboxTable) -> list[Reference]:
        return [use for use in self._uses if self._meant[id(use.node)] is table]

    def _names_hidden(self, table: SandboxTable) -> bool:
        return any(names_column(self._words, column) for column in table.hidden)

    def _payload_part(self, table: SandboxTable, view: TableView) -> Field | None:
        """The part of a table's payload that the query uses, where the rest of it would be read for nothing."""
        payload = table.payload
        parts = named_parts(self._tree) if payload is not None and table.is_converted(view) else None
        return None if payload is None or parts is None else narrowed(payload, parts)

    def _comparable(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The columns on which conditions can be pushed down: pruning ignores the zone of a query."""
        if not self.has_zone:
            return fields
        return tuple(one for one in fields if getattr(one.type, "kind", None) is not Kind.TIMESTAMP_LTZ)

    def _explain(self, error: BaseException) -> BaseException | None:
        """The LakeletError of a file, if DuckDB's error is about one."""
        text = str(error)
        for view in self._views:
            if has_kind(error) and not any(path in text for path in view.paths):
                continue
            try:
                view.blame(error)
            except LakeletError as found:
                return found
        return None


def _listing_name(name: str) -> str:
    return _LISTING.format(name=name)
