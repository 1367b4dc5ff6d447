"""Fill DuckDB's catalog functions with the lake's tables, for programs that inspect DuckDB.

    SELECT table_schema, table_name FROM information_schema.tables
    FROM duckdb_columns() WHERE table_name = 'orders'                 FROM pragma_table_info('shop.orders')

Only a query that names one of these listings gets them filled: with empty tables of the right columns, made from schemas alone.
Macros of the same names in the query's catalog show it as `lakelet`, and hide those of concurrent queries; what DuckDB builds on
them (information_schema, pg_catalog, SHOW ALL TABLES) follows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from lakelet.catalog.names import TableName
from lakelet.errors import LakeletError
from lakelet.model.schema import TableSchema
from lakelet.sql.context import Context
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.statements.definition.type_text import default_text, written_expressions
from lakelet.sql.temporary.objects import TEMPORARY, table_sql

CATALOG = "lakelet"
_ABOUT_ONE = frozenset(("pragma_table_info", "pragma_show"))
_LISTS = frozenset(
    (
        *(
            "duckdb_tables",
            "duckdb_columns",
            "duckdb_views",
            "duckdb_schemas",
            "duckdb_databases",
            "duckdb_constraints",
        ),
        *("duckdb_indexes", "information_schema", "pg_catalog", "sqlite_master", "sqlite_schema"),
        *("current_database", "current_catalog", "current_schemas"),
        *(
            "pg_class",
            "pg_attribute",
            "pg_namespace",
            "pg_tables",
            "pg_views",
            "pg_type",
            "pg_constraint",
            "pg_database",
        ),
        *("pragma_database_size",),
    )
)
_IN_USE = f"(table_schema = current_schema() OR table_catalog = '{TEMPORARY}')"
_NAMES = _LISTS | _ABOUT_ONE
# Functions of DuckDB with a column `database_name`, and whether there is one `schema_name` too.
_FUNCTIONS = {
    "duckdb_tables": True,
    "duckdb_columns": True,
    "duckdb_views": True,
    "duckdb_constraints": True,
    "duckdb_indexes": True,
    "duckdb_schemas": True,
    "duckdb_databases": False,
}


def is_listing(words: Sequence[Word]) -> bool:
    """Whether a query reads a listing of tables."""
    return any(_is_list(words, place) for place in range(len(words)))


def shown_tables(text: str) -> str:
    """The text with `(SHOW TABLES FROM d)`, which depends on the catalog's own name, rewritten as a query."""
    words = words_of(text)
    for place in range(len(words) - 3):
        inside = [word.keyword for word in words[place : place + 4]]
        if inside[:2] != ["(", "SHOW"] or inside[2] != "TABLES":
            continue
        named = inside[3] in ("FROM", "IN") and place + 5 < len(words)
        end = place + (5 if named else 3)
        if words[end].keyword == ")":
            query = tables_query(words[place + 4].text if named else None)
            return shown_tables(f"{text[: words[place].end]}{query}{text[words[end].start :]}")
    return text


def tables_query(database: str | None = None) -> str:
    """The query for the tables of a database; without one, of that in use and the temporary ones."""
    inside = f"table_schema = {literal(database)}" if database is not None else _IN_USE
    return f"SELECT table_name AS name FROM information_schema.tables WHERE {inside} ORDER BY ALL"


def add_listing(space: Space, context: Context, words: Sequence[Word], shown: Collection[tuple[str, str]]) -> None:
    """Fill DuckDB's listings. `shown` are the tables registered already, by database and name in lower case."""
    lake = context.lake
    databases = lake.databases()
    # The database in use first: its schema exists already.
    places = _Places(sorted(databases, key=lambda one: one != context.database), shown)
    asked, temporary = _asked(context, words)
    some = asked or [] if asked or temporary else None
    for database, name in _every(databases, lake.tables) if some is None else some:
        # Errors of one table are reported when it is read.
        with suppress(LakeletError):
            schema = lake.table(f"{database}.{name}").schema
            place = places.of(database, name) if some is None else database
            if place is not None:
                space.add_table(place, name, _columns(schema), schema.comment, _comments(schema))
    for database, name in _every(databases, lake.views) if some is None else some:
        with suppress(LakeletError):
            if some is not None and context.names.find(TableName(database, name)) is not None:
                continue
            columns = context.query(f"SELECT * FROM {quoted(database)}.{quoted(name)} LIMIT 0").to_arrow()
            place = places.of(database, name) if some is None else database
            if place is not None:
                space.add_view(place, name, f"SELECT * FROM {space.add_frame(columns)}")
    views = list(context.temporary.names(views=True))
    for name in temporary if some is not None else views:
        if name in views:
            columns = context.query(f"SELECT * FROM {TEMPORARY}.{quoted(name)} LIMIT 0").to_arrow()
            space.add_temporary(name, f"SELECT * FROM {space.add_frame(columns)}")
        else:
            space.add_temporary(name, f"SELECT * FROM {table_sql(name)}")
    space.name_catalog(CATALOG, _FUNCTIONS, places.schemas, views)


class _Places:
    """The catalog schema of each table: its database, or a substitute where DuckDB cannot distinguish two names.

    d.t -> d     d.T -> "d#1"     D.t -> "D#2"
    """

    def __init__(self, databases: Sequence[str], shown: Collection[tuple[str, str]]) -> None:
        # The database under which each schema is shown.
        self.schemas: dict[str, str] = {}
        self._own: dict[str, str] = {}
        self._shown = set(shown)
        self._taken: set[tuple[str, str]] = set()
        for database in databases:
            self._own[database] = (
                database if database.lower() not in map(str.lower, self.schemas) else self._new(database)
            )
            self.schemas[self._own[database]] = database

    def of(self, database: str, name: str) -> str | None:
        """The schema for a table, None for one that is registered already."""
        if (database.lower(), name.lower()) in self._shown:
            return None
        alike = [schema for schema, shown in self.schemas.items() if shown == database]
        schema = next((one for one in alike if (one.lower(), name.lower()) not in self._taken), None)
        if schema is None:
            schema = self._new(database)
            self.schemas[schema] = database
        self._taken.add((schema.lower(), name.lower()))
        return schema

    def _new(self, database: str) -> str:
        return f"{database}#{len(self.schemas)}"


def _is_list(words: Sequence[Word], place: int) -> bool:
    word = words[place]
    if word.keyword == "SHOW":
        return True
    return word.is_name and word.text.lower() in _NAMES


def _asked(context: Context, words: Sequence[Word]) -> tuple[list[tuple[str, str]], list[str]]:
    """The tables that the query inspects by name, and the temporary ones; none where it reads whole listings."""
    found: list[tuple[str, str]] = []
    temporary: list[str] = []
    for place in range(len(words)):
        if not _is_list(words, place):
            continue
        is_text = place + 2 < len(words) and words[place + 1].keyword == "(" and words[place + 2].kind == "string"
        if words[place].text.lower() not in _ABOUT_ONE or not is_text:
            return [], []
        parts = [word.text for word in words_of(words[place + 2].text) if word.is_name]
        own = context.temporary.find(parts) if parts else None
        if own is not None:
            temporary.append(own)
            continue
        name = context.table_name(parts) if 1 <= len(parts) <= 2 else None
        there = None if name is None else context.names.find(name) or context.names.find_view(name)
        if there is not None:
            found.append((there.database, there.table))
    return found, temporary


def _every(databases: Sequence[str], named: Callable[[str], list[str]]) -> Iterator[tuple[str, str]]:
    return ((database, name) for database in databases for name in named(database))


def _columns(schema: TableSchema) -> str:
    """The columns as CREATE TABLE has them; of those that differ in case alone the first."""
    first: dict[str, str] = {}
    expressions = written_expressions(schema)
    for field in schema.fields:
        is_key = field.name in schema.primary_keys
        null = "" if field.type.nullable and not is_key else " NOT NULL"
        default = default_text(field, expressions)
        shown = "" if default is None else f" DEFAULT {default}"
        first.setdefault(field.name.lower(), f"{quoted(field.name)} {duck_type(field.type)}{null}{shown}")
    key = ", ".join(quoted(name) for name in schema.primary_keys)
    return ", ".join((*first.values(), *((f"PRIMARY KEY ({key})",) if key else ())))


def _comments(schema: TableSchema) -> dict[str, str]:
    return {field.name: field.description for field in schema.fields if field.description}
