"""Run a query: resolve and plan every table it names, register them in DuckDB, and run the text there.

    text ─ versions replaced by names of their own ─ parsed by DuckDB ─ tables resolved, pruned by WHERE, planned ─ rows

A name resolves, in this order, to a common table expression of the query; a relation or frame passed by the caller; a temporary
table or view; a table of the lake, one of its branches or system tables; a data frame in the caller's code; a file or something
of DuckDB's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakelet.catalog.names import SYSTEM_DATABASE, TableName, only_match
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.model.types import Field, Kind
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.engine.engine_errors import Placed, has_kind, parser_error
from lakelet.sql.engine.frames import Frames
from lakelet.sql.iceberg.query_names import (
    ICEBERG_PARTS,
    folded,
    has_long_names,
    has_stars,
    name_edits,
    named_by_words,
    schema_name,
    star_edits,
)
from lakelet.sql.lexer.errors import UnknownNameError
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.metadata_cache.traces import Traces, trace_of, traced
from lakelet.sql.query.case_names import check_columns_apart, unique_names
from lakelet.sql.query.conditions import pruning_texts
from lakelet.sql.query.incremental import Incremental, incrementals
from lakelet.sql.query.parse_tree import Node, Reference, functions, references
from lakelet.sql.query.query_words import check_only_reads, default_names, is_duckdbs, is_file, named_tables
from lakelet.sql.query.relation import Deferred, Relation, Rows, as_arrow, column_names
from lakelet.sql.query.shortcuts import all_counted, counted, limited
from lakelet.sql.query.table_functions import check_functions, expanded
from lakelet.sql.query.table_lists import add_listing, is_listing, shown_tables
from lakelet.sql.query.time_travel import Travel, travels
from lakelet.sql.statement import Params, used_params
from lakelet.sql.temporary.objects import TEMPORARY, table_sql
from lakelet.sql.views.named import NamedViews, ViewNamed, mentions

if TYPE_CHECKING:
    from lakelet.sql.iceberg.names import IcebergName
    from lakelet.sql.iceberg.table_view import IcebergView
    from lakelet.sql.query.table_view import TableView
    from lakelet.table.read.table_scan import TableScan


def run_query(
    context: Context, text: str, params: Params, frames: Frames, relations: Mapping[str, Relation]
) -> SqlResult:
    """The rows of a query."""
    query = Query(context, text, params, frames, relations)
    query.prepare()
    try:
        count = query.count()
        if count is not None:
            query.space.close()
            return count
    except BaseException:
        query.space.close()
        raise
    return query.space.result(query.placed.changed, params, query.placed)


@dataclass(slots=True)
class Query:
    """A query being prepared for DuckDB."""

    context: Context
    text: str
    params: Params
    frames: Frames
    relations: Mapping[str, Relation]
    # Further edits of the text before DuckDB sees it; the text may have had views expanded by then.
    edits: Callable[[str, Sequence[Word]], list[tuple[int, int, str]]] = field(default=lambda _, __: [])
    placed: Placed = field(init=False)
    space: Space = field(init=False)
    views: list[tuple[str, TableView | IcebergView]] = field(init=False, default_factory=list)
    uses: dict[tuple[str, ...], list[Reference]] = field(init=False, default_factory=dict)
    traces: Traces | None = field(init=False, default=None)
    _tree: Node = field(init=False, default_factory=dict)
    # Tables of Iceberg catalogs, by the schema and name under which DuckDB sees them.
    _iceberg: dict[tuple[str, ...], tuple[str, ...]] = field(init=False, default_factory=dict)
    # Whether the query reads a listing of tables.
    _lists: bool = field(init=False, default=False)
    # The written names of tables that were given unique names.
    _written_names: Mapping[str, tuple[str, ...]] = field(init=False, default_factory=dict)

    def prepare(self) -> None:
        """Registers every table in a new space, which the caller closes."""
        named = NamedViews(self.context, self.text)
        while True:
            self.space = self.context.engine.space()
            self.space.on_error(self._explain)
            try:
                self._show_tables()
                self.placed = named.placed(self.placed)
                return
            except ViewNamed as view:
                # Start over with the view's query in the text, which may name further tables.
                self.text = named.put_in(view, self.uses.values(), self.placed, self.space)
                self.space.close()
                self.views, self.uses, self._iceberg, self._written_names = [], {}, {}, {}
            except BaseException as error:
                self.space.close()
                told = named.placed_error(error)
                if told is error:
                    raise
                raise told from error

    def _show_tables(self) -> None:
        self.text = expanded(self.text, self._value)
        words = words_of(self.text)
        check_functions(self.text, words)
        check_only_reads(self.text, words)
        if is_listing(words):
            self.text = shown_tables(self.text)
            words = words_of(self.text)
            self._lists = is_listing(words)
        found, edits = travels(self.text, words, self._value)
        changes, more = incrementals(self.text, words, self._value)
        replaced = [*edits, *more, *self.edits(self.text, words)]
        if has_stars(words):
            replaced += star_edits(words, self.context.lake.catalogs.names())
        self._parse(words, replaced)
        iceberg = self._iceberg_names(words)
        if iceberg or any(len(travel.parts) == ICEBERG_PARTS for travel in found):
            tables = {*iceberg, *(one.parts for one in references(self._tree))}
            replaced += name_edits(words, tables, found, replaced)
            self._parse(words, replaced)
            self._iceberg = {folded((schema_name(parts), parts[-1])): parts for parts in iceberg}
            self._iceberg |= {(schema_name(parts), parts[-1]): parts for parts in iceberg}
        self._find_uses(words)
        self._make_unique(words, replaced)
        self.space.use(self.context.database)
        for travel in found:
            self._add_travel(travel)
        for change in changes:
            self._add_changes(change)
        stand_ins = {name.lower() for name in (*(one.stand_in for one in found), *(one.stand_in for one in changes))}
        for uses in self._same_tables(stand_ins):
            self._add(uses)
        if self._lists:
            shown = {(parts[-2] if len(parts) > 1 else self.context.database.lower(), parts[-1]) for parts in self.uses}
            add_listing(self.space, self.context, words, shown)
        if self._reads_only_the_lake():
            self.space.keep_footers()

    def _parse(self, words: Sequence[Word], replaced: Sequence[tuple[int, int, str]]) -> None:
        self.placed = Placed(self.text, tuple(sorted((*replaced, *default_names(words, replaced)))))
        self._tree = self.space.tree(self.placed.changed)
        self.context.profile.check_query(self._tree)

    def _iceberg_names(self, words: Sequence[Word]) -> set[tuple[str, ...]]:
        """The tables of Iceberg catalogs that the query names."""
        if not self._tree.get("error"):
            found = {one.parts for one in references(self._tree) if len(one.parts) == ICEBERG_PARTS}
            return {parts for parts in found if not is_duckdbs(parts)}
        if self._tree.get("error_type") == "parser" or not has_long_names(words):
            return set()
        return named_by_words(words, self.context.lake.catalogs.names())

    def count(self) -> SqlResult | None:
        """The result of a plain count, answered from the plan."""
        from lakelet.sql.query.table_view import TableView  # noqa: PLC0415 - a query without tables does without.

        if len(self.views) != 1:
            return None
        view = self.views[0][1]
        if not isinstance(view, TableView):
            return all_counted(self._tree, view.count)
        return counted(self._tree, view, self._comparable(view.scan.schema.fields), self.params)

    def _find_uses(self, words: Sequence[Word]) -> None:
        if self._tree.get("error"):
            if self._tree.get("error_type") == "parser":
                raise parser_error(self._tree, self.placed)
            # DuckDB gives no parse tree for PIVOT and the like, which it splits into statements: any name may be a table's.
            for parts in (*named_tables(words), *self._iceberg):
                self._use(Reference(parts, {"optional": True}, None))
            return
        if len(self._tree["statements"]) != 1:
            raise InvalidError("expected one query, found several")
        for reference in references(self._tree):
            self._use(reference)

    def _make_unique(self, words: Sequence[Word], replaced: list[tuple[int, int, str]]) -> None:
        """Gives tables whose names differ in case alone unique names."""
        groups = []
        for uses in self._same_tables(()):
            # With a listing, the tables that are read get unique names too: the listing has them under their own.
            listed = self._lists and all(use.place is not None for use in uses)
            if listed or len({self._spelled(use.parts) for use in uses}) > 1:
                meant = [(use, self._meaning(use.parts)) for use in uses]
                if len({meaning for _, meaning in meant if meaning is not None}) > (0 if listed else 1):
                    groups.append(meant)
        if groups:
            unique = unique_names(groups, words, self.placed)
            replaced[:] = [
                edit for edit in replaced if not any(start <= edit[0] < end for start, end, _ in unique.edits)
            ]
            replaced += unique.edits
            self._parse(words, replaced)
            self._written_names = unique.stand_ins
            self.uses.clear()
            self._find_uses(words)

    def _spelled(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        return parts if len(parts) > 1 else (self.context.database, *parts)

    def _meaning(self, parts: tuple[str, ...]) -> Hashable:
        """What a name resolves to, None for an unknown one."""
        if len(parts) == 1:
            given = only_match(parts[0], self.relations, "relation")
            if given is not None:
                return ("relation", given)
            frame = self.frames.given_name(parts[0])
            if frame is not None:
                return ("frame", frame)
        temporary = self._temporary(parts)
        if temporary is not None:
            return (TEMPORARY, temporary)
        found = self._found(parts)
        return ("variable", parts[0]) if found is None and self._outer(parts) is not None else found

    def _found(self, parts: tuple[str, ...]) -> TableName | IcebergName | None:
        """The table of a name, in the spelling of the lake or the catalog."""
        iceberg = self._iceberg.get(parts) or self._iceberg.get(folded(parts))
        try:
            if iceberg is None:
                return self.context.names.find(self.context.table_name(parts))
            from lakelet.sql.iceberg.names import find_iceberg, iceberg_name  # noqa: PLC0415 - it loads pyiceberg.

            return find_iceberg(self.context, iceberg_name(self.context, iceberg))
        except (InvalidError, NotFoundError):
            return None

    def _use(self, reference: Reference) -> None:
        self.uses.setdefault(tuple(part.lower() for part in reference.parts), []).append(reference)

    # ------------------------------------------------------------------ names

    def _same_tables(self, stand_ins: Collection[str]) -> list[list[Reference]]:
        """The uses of each table: a table of the database in use has two names, and is registered once for both."""
        found: dict[tuple[str, ...], list[Reference]] = {}
        for parts, uses in self.uses.items():
            if parts[-1] in stand_ins:
                continue
            key = parts
            if self._temporary(parts) is not None:
                key = (TEMPORARY, parts[-1])
            elif len(parts) == 1 and _folded(self.relations, parts[0]) is None and not self.frames.has(parts[0]):
                key = (self.context.database.lower(), *parts)
            found.setdefault(key, []).extend(uses)
        return list(found.values())

    def _reads_only_the_lake(self) -> bool:
        """Whether all files that the query reads are the lake's own, which are immutable."""
        from lakelet.sql.query.table_view import TableView  # noqa: PLC0415 - a query without tables does without.

        if self._tree.get("error") or any(True for _ in functions(self._tree)) or any(map(is_duckdbs, self.uses)):
            return False
        return bool(self.views) and all(isinstance(view, TableView) for _, view in self.views)

    def _add(self, uses: Sequence[Reference]) -> None:
        """Resolves a name and registers it in DuckDB."""
        shown = uses[0].parts
        written = self._written_names.get(shown[-1], shown)
        relation: object | None = None
        if len(written) == 1:
            relation = _folded(self.relations, written[0])
            if relation is None:
                relation = self.frames.given(written[0])
        is_given = relation is not None
        if relation is None:
            temporary = self._temporary(written)
            if temporary is not None:
                self._add_temporary(temporary, uses, shown[-1])
                return
            if is_duckdbs(written) and not self._is_lakes(written):
                self.context.profile.check_outside(written)
                return
            relation = self._relation(written, uses)
        if relation is None:
            return
        query = self._relation_sql(relation, uses, ".".join(written))
        if is_given or shown != written:
            self.space.add_temporary(shown[-1], query)
        else:
            self.space.add_view(shown[0] if len(shown) == 2 else self.context.database, shown[-1], query)

    def _temporary(self, parts: tuple[str, ...]) -> str | None:
        """The temporary table or view that a name resolves to; a passed relation or frame shadows it."""
        if not self.context.temporary or (len(parts) == 1 and self._is_given(parts[0])):
            return None
        return self.context.temporary.find(parts)

    def _is_given(self, name: str) -> bool:
        return _folded(self.relations, name) is not None or self.frames.has(name)

    def _add_temporary(self, name: str, uses: Sequence[Reference], shown: str) -> None:
        view = self.context.temporary.view(name)
        if view is not None:
            found = TableName(TEMPORARY, view.name)
            if "optional" in uses[0].node and not mentions(words_of(self.text), found, TEMPORARY):
                return
            raise ViewNamed(found, temporary=view, uses=uses)
        if (name.lower(),) in self.uses and self._is_given(name):
            raise InvalidError(
                f"{name!r} is both a temporary table and a relation that was handed over: rename one of them"
            )
        self.space.add_temporary(shown, f"SELECT * FROM {table_sql(name)}")

    def _is_lakes(self, written: tuple[str, ...]) -> bool:
        """Whether the lake has a table of the same name as one of DuckDB's own."""
        if len(written) > 1 or is_file(written[0]):
            return False
        try:
            return self.context.names.find(self.context.table_name(written)) is not None
        except InvalidError:
            return False

    def _relation(self, written: tuple[str, ...], uses: Sequence[Reference]) -> Any:
        optional = "optional" in uses[0].node
        # A statement that changes a table reads it, under any of its names, in the version that it changes.
        pinned = self._pinned(written)
        if pinned is not None:
            return pinned
        iceberg = self._iceberg.get(written) or self._iceberg.get(folded(written))
        if iceberg is not None:
            return self._iceberg_relation(iceberg, uses)
        try:
            name = self.context.table_name(written)
            if name.database.lower() == SYSTEM_DATABASE and self.context.names.find(name) is None:
                from lakelet.sql.system import global_relation  # noqa: PLC0415 - most queries name none.

                return global_relation(self.context, name.table)
            return self._opened(name, ".".join(written))
        except (NotFoundError, InvalidError) as error:
            view = self._view(written)
            if view is not None and (not optional or mentions(words_of(self.text), view, self.context.database)):
                raise ViewNamed(view) from None
            outer = self._outer(written)
            if outer is not None:
                return outer
            if optional:
                return None
            place = uses[0].place
            if isinstance(error, InvalidError) or place is None:
                raise
            raise UnknownNameError(str(error), self.text, self.placed.original(place)) from error

    def _view(self, written: tuple[str, ...]) -> TableName | None:
        """The view of the lake of that name, if any."""
        try:
            return self.context.names.find_view(self.context.table_name(written))
        except (InvalidError, NotFoundError):
            return None

    def _pinned(self, written: tuple[str, ...]) -> Relation | None:
        """The pinned version of the table that the statement changes, if the name resolves to this table."""
        spelled = ".".join(self._spelled(written))
        alike = [name for name in self.relations if name.lower() == spelled.lower()]
        if not alike or spelled in alike:
            return self.relations[spelled] if alike else None
        found = self._found(written)
        if found is None:
            return None
        full = found.full if isinstance(found, TableName) else f"{found.catalog}.{found.full}"
        return next((self.relations[name] for name in alike if name.split("$")[0] == full), None)

    def _iceberg_relation(
        self, parts: tuple[str, ...], uses: Sequence[Reference], travel: Travel | None = None
    ) -> object:
        from lakelet.sql.iceberg.iceberg_relation import iceberg_relation  # noqa: PLC0415 - it loads pyiceberg.

        try:
            return iceberg_relation(self.context, parts, travel, trace_of(self.traces, ".".join(parts)))
        except NotFoundError as error:
            place = uses[0].place if uses else None
            if place is None:
                raise
            raise UnknownNameError(str(error), self.text, self.placed.original(place)) from error

    def _opened(self, name: TableName, written: str) -> Relation:
        if name.system is not None:
            from lakelet.sql.system import system_relation  # noqa: PLC0415 - most queries name none.

            return system_relation(self.context, name)
        return traced(self.context.names.open(name), self.traces, written).scan()

    def _outer(self, written: tuple[str, ...]) -> object | None:
        """A data frame in a variable of the caller's code."""
        return self.frames.variable(written[0]) if len(written) == 1 else None

    def _add_travel(self, travel: Travel) -> None:
        uses = self.uses.get((travel.stand_in.lower(),), ())
        if len(travel.parts) == ICEBERG_PARTS:
            version = self._iceberg_relation(travel.parts, uses, travel)
            self.space.add_temporary(travel.stand_in, self._relation_sql(version, uses, ".".join(travel.parts)))
            return
        if self._temporary(travel.parts) is not None:
            raise InvalidError(f"{'.'.join(travel.parts)!r} is temporary, and has no versions")
        name = self.context.table_name(travel.parts)
        found: Relation
        if name.system is not None:
            from lakelet.sql.system import system_relation  # noqa: PLC0415 - most queries name none.
            from lakelet.sql.system.version import Version  # noqa: PLC0415

            found = system_relation(self.context, name, Version(travel.version, travel.timestamp))
        else:
            table = traced(self.context.names.open(name), self.traces, name.full)
            found = table.scan(version=travel.version, timestamp=travel.timestamp)
        self.space.add_temporary(travel.stand_in, self._relation_sql(found, uses, name.full))

    def _add_changes(self, change: Incremental) -> None:
        name = self.context.table_name(change.parts)
        table = self.context.names.open(name)
        rows = change.relation(table, name.system)
        self.space.add_temporary(change.stand_in, self._relation_sql(rows, (), table.name))

    # ------------------------------------------------------------------ rows

    def _relation_sql(self, relation: object, uses: Sequence[Reference], name: str) -> str:
        # Imported lazily: a query without tables needs none of this.
        from lakelet.sql.query.table_view import scanned_sql, table_view  # noqa: PLC0415
        from lakelet.table.read.table_scan import TableScan  # noqa: PLC0415

        check_columns_apart(column_names(relation), name)
        if isinstance(relation, Rows):
            return f"SELECT * FROM {self.space.add_rows(relation)}"
        if isinstance(relation, Deferred):
            texts = pruning_texts(uses, self._comparable(relation.fields), self.params)
            made = relation.view(self.context, texts)
            self.views.append((name, made))
            return made.sql(self.space)
        if not isinstance(relation, TableScan):
            return f"SELECT * FROM {self.space.add_frame(as_arrow(relation, name))}"
        if relation.where is not None or relation.limit is not None:
            return scanned_sql(relation, self.space)
        texts = ()
        plain = relation.fallback is None
        if plain:
            texts = pruning_texts(uses, self._comparable(relation.schema.fields), self.params)
            limit = limited(self._tree, uses)
            if limit is not None:
                relation = replace(relation, limit=limit)
        view = (
            self.context.plans.view(relation, texts, _location(relation))
            if plain and self.context.is_cached
            else table_view(relation, texts, _location(relation), None)
        )
        self.views.append((name, view))
        return view.sql(self.space)

    def _comparable(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The columns on which conditions can be pushed down."""
        if "TimeZone" not in self.context.settings:
            return fields
        # A text is then a timestamp in the session's zone, which pruning ignores.
        zoned = Kind.TIMESTAMP_LTZ
        return tuple(one for one in fields if getattr(one.type, "kind", None) is not zoned)

    def _value(self, expression: str) -> object:
        """The value of an expression without tables."""
        self.context.profile.check_value(expression, self.space.tree)
        return self.space.value(expression, used_params(expression, self.params))

    def _explain(self, error: BaseException) -> BaseException | None:
        """The LakeletError of a file, if DuckDB's error is about one."""
        text = str(error)
        for _, view in self.views:
            if has_kind(error) and not any(path in text for path in view.paths):
                continue
            try:
                view.blame(error)
            except LakeletError as found:
                return found
        return None


def _location(scan: TableScan) -> str | None:
    """The path of the store for DuckDB; None where DuckDB cannot reach it."""
    location = scan.home.store.location.rstrip("/")
    return location if location.startswith("/") else None


def _folded(given: Mapping[str, Relation], name: str) -> Relation | None:
    found = only_match(name, given, "relation")
    return None if found is None else given[found]
