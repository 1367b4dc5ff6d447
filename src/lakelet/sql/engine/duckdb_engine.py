"""The DuckDB engine of a session: one instance, and for each query an isolated space in it.

    space = engine.space()
    space.add_view("shop", "orders", "SELECT … FROM read_parquet([…])")
    space.use("shop")
    space.result("SELECT count(*) FROM orders")

A space is a cursor with an attached in-memory catalog whose schemas are the lake's databases, so that names in a query are found
as they are written and two queries at once, of different snapshots, never see each other's tables. It lives until the
rows have been read or the result is closed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.clock import SystemClock
from lakelet.errors import InvalidError, LakeletError
from lakelet.predicate.instance import open_instance
from lakelet.sql.engine.engine_errors import Placed, lakelet_error
from lakelet.sql.engine.unsigned_results import exact_in_arrow
from lakelet.sql.lexer.quotes import listed, literal, quoted
from lakelet.sql.query.relation import Rows
from lakelet.sql.statement import Params
from lakelet.storage.spill_folder import engine_folder

BATCH_ROWS = 122_880
# The version of DuckDB.
ENGINE: str = duckdb.__version__
# How often, and how long, a close looks for the end of interrupted queries.
_CLOSE_LOOKS, _CLOSE_SECONDS = 500, 0.02
_CLOCK = SystemClock()
_LOG = logging.getLogger(__name__)
_SETTINGS = {
    # Tables come from the lake and from frames passed by the caller; the session resolves variables of the calling code.
    "python_enable_replacements": "false",
    "errors_as_json": "true",
}
_EXPLAIN = "EXPLAIN "
_FRAME = re.compile(r"lakelet_rows_\d+", re.IGNORECASE)
_CATALOG = "lakelet_{number}"
# The database of the session's temporary tables; errors never show it (`engine_errors`).
TEMPORARY_DATABASE = "lakelet_temporary"


class Engine:
    """One DuckDB instance, opened on the first query."""

    def __init__(self, limits: Mapping[str, str] | None = None) -> None:
        """`limits` are settings applied to DuckDB, in this order, once it is open."""
        self._limits = dict(limits or {})
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._database: duckdb.DuckDBPyConnection | None = None
        self._changed: dict[str, str] = {}
        self._spaces: weakref.WeakSet[Space] = weakref.WeakSet()

    def space(self, *, has_tables: bool = True) -> Space:
        """A space for one query; without tables it has no catalog, which takes longer to create than a few literals to read."""
        with self._lock:
            cursor = self._instance().cursor()
            number = next(self._numbers)
        catalog = _CATALOG.format(number=number) if has_tables else None
        space = Space(cursor, catalog, dict(self._changed))
        with self._lock:
            self._spaces.add(space)
        return space

    def _instance(self) -> duckdb.DuckDBPyConnection:
        if self._database is None:
            database = open_instance(settings={**_SETTINGS, "temp_directory": engine_folder()})
            for name, value in self._limits.items():
                database.execute(f"SET GLOBAL {quoted(name)} = {value}")
            self._database = database
        return self._database

    def attach_temporary(self) -> None:
        """Attach the database of temporary tables, once; it is dropped with the instance."""
        with self._lock:
            self._instance().execute(f"ATTACH IF NOT EXISTS ':memory:' AS {TEMPORARY_DATABASE}")

    def interrupt(self) -> None:
        """Interrupts all running queries; any thread may call it."""
        with self._lock:
            spaces = list(self._spaces)
        for space in spaces:
            space.interrupt()

    def set(self, name: str, value: str) -> None:
        """Changes a setting of DuckDB for all queries that follow; LakeletError where it has no such setting."""
        with self.space() as space:
            space.run(f"SET {quoted(name)} = {literal(value)}")
        self._changed[name] = value

    def reset(self, name: str) -> None:
        """Resets a setting of DuckDB to its default."""
        self._changed.pop(name, None)
        # Without a space: the setting may be the reason that none can be created.
        with self._lock:
            cursor = self._instance().cursor()
        try:
            cursor.execute(f"RESET {quoted(name)}")
        except duckdb.Error as error:
            raise lakelet_error(error) from error
        finally:
            cursor.close()

    def close(self) -> None:
        """Closes the DuckDB instance, and interrupts the queries that still run in it. Where one of them does not end, its
        end closes the instance."""
        with self._lock:
            database, self._database = self._database, None
        if database is None:
            return
        with self._interrupting():
            for _ in range(_CLOSE_LOOKS):
                try:
                    database.close()
                    return
                except duckdb.ResourceInUseException:
                    # A query that was interrupted takes a moment to end.
                    _CLOCK.sleep(_CLOSE_SECONDS)
        _LOG.warning("a query does not end, and DuckDB stays open until it does")

    @contextlib.contextmanager
    def _interrupting(self) -> Iterator[None]:
        """Interrupts all running queries again and again during a block: an interrupt between two statements is forgotten, and
        DuckDB's own close may wait for one that runs."""
        over = threading.Event()

        def interrupt() -> None:
            self.interrupt()
            while not over.wait(_CLOSE_SECONDS):
                self.interrupt()

        if not len(self._spaces):
            yield
            return
        thread = threading.Thread(target=interrupt, name="lakelet-close", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def check_free(name: str) -> None:
    """InvalidError for a name reserved for the rows that a query registers, which share a namespace with its temporary views."""
    if _FRAME.fullmatch(name):
        raise InvalidError(f"{name!r}: names that begin with lakelet_rows_ are kept for queries")


def _temporary_rows(function: str, views: Collection[str]) -> tuple[str, str]:
    """SQL that selects the rows of a catalog function about temporary objects, and the columns replaced in them."""
    tables = f"database_name = {literal(TEMPORARY_DATABASE)}"
    named = {"duckdb_views": "view_name", "duckdb_columns": "table_name"}.get(function)
    is_view = (
        f" OR (database_name = 'temp' AND {named} IN (SELECT unnest({listed(views)}::VARCHAR[])))" if named else ""
    )
    instead = f", (temporary OR {tables}) AS temporary" if function == "duckdb_tables" else ""
    return ("" if function in ("duckdb_databases", "duckdb_schemas") else f" OR {tables}{is_view}"), instead


class Space:
    """A cursor and a catalog for one query; the catalog is None where it names no table."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, catalog: str | None, settings: Mapping[str, str]) -> None:
        self._cursor = cursor
        self._catalog = catalog
        self._numbers = itertools.count(1)
        self._schemas = {"main"}
        self._failures: list[BaseException] = []
        self._readers: list[pa.RecordBatchReader] = []
        self._explain: Callable[[BaseException], BaseException | None] = lambda _: None
        try:
            if catalog is not None:
                cursor.execute(f"ATTACH ':memory:' AS {catalog}")
                cursor.execute(f"USE {catalog}")
            for name, value in settings.items():
                cursor.execute(f"SET {quoted(name)} = {literal(value)}")
        except duckdb.Error as error:
            cursor.close()
            raise lakelet_error(error) from error

    # ------------------------------------------------------------------ visible names

    def use(self, schema: str) -> None:
        """Sets the schema in which unqualified names are resolved."""
        self._schema(schema)
        self.run(f"USE {self._catalog}.{quoted(schema)}")

    def add_view(self, schema: str, name: str, query: str) -> None:
        """Creates a view of a query."""
        self._schema(schema)
        self.run(f"CREATE OR REPLACE VIEW {self._catalog}.{quoted(schema)}.{quoted(name)} AS {query}")

    def hide_function(self, schema: str, name: str) -> None:
        """Hide a function of DuckDB without arguments behind one that needs an argument, so that it cannot be called."""
        self._schema(schema)
        self.run(f"CREATE MACRO {self._catalog}.{quoted(schema)}.{quoted(name)}(no_such_column) AS no_such_column")

    def add_temporary(self, name: str, query: str) -> None:
        """Creates a temporary view, which shadows all others of its unqualified name."""
        check_free(name)
        self.run(f"CREATE OR REPLACE TEMPORARY VIEW {quoted(name)} AS {query}")

    def add_rows(self, rows: Rows) -> str:
        """Registers rows; returns the name to use in FROM."""
        from lakelet.read.duckdb_relation import scan_dataset  # noqa: PLC0415 - Arrow's datasets load pandas, where it is there.

        return self.add_frame(scan_dataset(rows.schema, rows.read, self._failures.append))

    def add_frame(self, frame: object) -> str:
        """Registers Arrow data or a data frame; returns the name to use in FROM."""
        name = f"lakelet_rows_{next(self._numbers)}"
        try:
            self._cursor.register(name, frame)
        except (duckdb.Error, pa.ArrowException) as error:
            raise self._error(error) from error
        return f"temp.main.{name}"

    def add_table(self, schema: str, name: str, columns: str, comment: str | None, comments: Mapping[str, str]) -> None:
        """Creates an empty table, for listings of tables."""
        self._schema(schema)
        full = f"{self._catalog}.{quoted(schema)}.{quoted(name)}"
        statements = [f"CREATE TABLE IF NOT EXISTS {full} ({columns})"]
        if comment:
            statements.append(f"COMMENT ON TABLE {full} IS {literal(comment)}")
        statements += [f"COMMENT ON COLUMN {full}.{quoted(one)} IS {literal(told)}" for one, told in comments.items()]
        # A column that DuckDB does not accept, such as one of a dropped user-defined type, leaves the table out of the listing.
        with contextlib.suppress(InvalidError):
            self.run("; ".join(statements))

    def name_catalog(
        self, name: str, functions: Mapping[str, bool], schemas: Mapping[str, str], temporary: Collection[str]
    ) -> None:
        """Redefines DuckDB's catalog functions to show this space's catalog alone, under a name (their column `database_name`).
        Where they have a `schema_name`, only these schemas are shown, each under the name it maps to; of temporary objects
        the session's tables and the views `temporary`."""
        assert self._catalog is not None
        for schema in schemas:
            self._schema(schema)
        own = f"database_name = {literal(self._catalog)}"
        for function, has_schema in functions.items():
            among = f" AND schema_name IN (SELECT unnest({listed(schemas)}::VARCHAR[]))" if has_schema else ""
            more, instead = _temporary_rows(function, temporary)
            cases = [f"WHEN {literal(one)} THEN {literal(shown)}" for one, shown in schemas.items() if one != shown]
            if has_schema and cases:
                instead += f", CASE schema_name {' '.join(cases)} ELSE schema_name END AS schema_name"
            once = " QUALIFY row_number() OVER (PARTITION BY schema_name ORDER BY oid) = 1"
            self.run(
                f"CREATE MACRO {self._catalog}.main.{function}() AS TABLE SELECT * FROM "
                f"(SELECT * REPLACE (if({own}, {literal(name)}, 'temp') AS database_name{instead}) "
                f"FROM system.main.{function}() WHERE ({own}{among}){more}){once if function == 'duckdb_schemas' else ''}"
            )
        for function in ("current_database", "current_catalog"):
            self.run(f"CREATE MACRO {self._catalog}.main.{function}() AS {literal(name)}")

    def keep_footers(self) -> None:
        """Caches the footers of the Parquet files that the query reads, across queries: for immutable files only. A file that
        is overwritten within the same second would be read with the old footer."""
        self.run("SET SESSION parquet_metadata_cache = true")

    def on_error(self, explain: Callable[[BaseException], BaseException | None]) -> None:
        """Sets the function that translates an error of DuckDB about a file."""
        self._explain = explain

    def _schema(self, name: str) -> None:
        if name.lower() not in self._schemas:
            self.run(f"CREATE SCHEMA IF NOT EXISTS {self._catalog}.{quoted(name)}")
            self._schemas.add(name.lower())

    # ------------------------------------------------------------------ running

    def tree(self, query: str) -> dict[str, Any]:
        """DuckDB's parse tree of a query, or its syntax error (`error`)."""
        serialize = "SELECT json_serialize_sql($1, skip_null := true, skip_empty := true, skip_default := true)"
        found: dict[str, Any] = json.loads(self.run(serialize, [query])[0][0])
        return found

    def text_of(self, tree: Mapping[str, Any]) -> str:
        """The text of a parse tree; InvalidError where one of its constants has a NUL, at which DuckDB would end it."""
        written = json.dumps(tree)
        if "\\u0000" in written:
            raise InvalidError("a text with a NUL cannot be written into a query")
        return str(self.run("SELECT json_deserialize_sql($1)", [written])[0][0])

    def run(self, text: str, params: Params = None, placed: Placed | None = None) -> list[tuple[Any, ...]]:
        """Runs a statement and gives all its rows."""
        try:
            return self._cursor.execute(text, params).fetchall() if params else self._cursor.execute(text).fetchall()
        except duckdb.Error as error:
            raise self._error(error, placed) from error

    def table(self, text: str, params: Params = None, placed: Placed | None = None) -> pa.Table:
        """Runs a statement and gives all its rows as Arrow; a table without columns where it gives none."""
        try:
            found: duckdb.DuckDBPyRelation | None = self._cursor.sql(text, params=params or None)
            return pa.table({}) if found is None else exact_in_arrow(found).to_arrow_table()
        except duckdb.Error as error:
            raise self._placed_error(text, error, placed or Placed(text)) from error
        except pa.ArrowException as error:
            raise self._error(error, placed) from error

    def bind(self, placed: Placed) -> None:
        """Bind a query without reading rows; raises the errors in its names and types."""
        try:
            self._cursor.execute(f"{_EXPLAIN}{placed.changed}")
        except duckdb.Error as error:
            raise lakelet_error(error, placed, shift=len(_EXPLAIN)) from error

    def value(self, expression: str, params: Params = None) -> object:
        """The value of an expression. It is fetched through Arrow: DuckDB's own conversion needs `pytz` for TIMESTAMPTZ."""
        text = f"SELECT {expression}"
        try:
            found = self._cursor.sql(text, params=params) if params else self._cursor.sql(text)
            value: object = exact_in_arrow(found).to_arrow_table().column(0)[0].as_py()
            return value
        except (duckdb.Error, pa.ArrowException) as error:
            raise self._error(error) from error

    def result(self, query: str, params: Params, placed: Placed) -> SqlResult:
        """The rows of a query; the space is closed when they have been read."""
        try:
            relation = self.relation(query, params, placed)
            return self.rows_of(relation, placed)
        except BaseException:
            self.close()
            raise

    def relation(self, query: str, params: Params, placed: Placed) -> duckdb.DuckDBPyRelation:
        """A query that is bound, and has not run."""
        try:
            return self._cursor.sql(query, params=params) if params else self._cursor.sql(query)
        except duckdb.Error as error:
            raise self._placed_error(query, error, placed, params) from error

    def from_arrow(self, table: pa.Table) -> duckdb.DuckDBPyRelation:
        """Arrow rows as a bound query."""
        return self._cursor.from_arrow(table)

    def rows_of(self, relation: duckdb.DuckDBPyRelation, placed: Placed, batch_rows: int = BATCH_ROWS) -> SqlResult:
        """The rows of a bound query; the space is closed when they have been read."""
        try:
            reader = exact_in_arrow(relation).to_arrow_reader(batch_rows)
            self._readers.append(reader)
        except duckdb.Error as error:
            raise self._placed_error(placed.changed, error, placed) from error
        except pa.ArrowException as error:
            # A type nested more deeply than Arrow's schemas allow.
            raise InvalidError(f"the columns of the result cannot be given: {error}") from error
        types = relation.types
        return SqlResult(reader.schema, lambda: self._batches(reader, placed), close=self.close, duck_types=types)

    def _batches(self, reader: pa.RecordBatchReader, placed: Placed) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                except (duckdb.Error, pa.ArrowException, OSError) as error:
                    raise self._error(error, placed) from error
                if batch.num_rows:
                    yield batch
        finally:
            reader.close()

    def _placed_error(self, query: str, error: duckdb.Error, placed: Placed, params: Params = None) -> BaseException:
        """The error with its position in the text, which relations do not report."""
        if isinstance(error, (duckdb.BinderException, duckdb.CatalogException)):
            try:
                self._cursor.execute(f"{_EXPLAIN}{query}", params or None)
            except duckdb.Error as found:
                if type(found) is type(error):
                    return lakelet_error(found, placed, shift=len(_EXPLAIN))
        return self._error(error, placed)

    def _error(self, error: BaseException, placed: Placed | None = None) -> BaseException:
        """The LakeletError for an error of DuckDB: that of our reader, if it failed."""
        for failure in self._failures:
            if isinstance(failure, LakeletError):
                return failure
        return self._explain(error) or lakelet_error(error, placed)

    def close(self) -> None:
        """Drops the catalog and the cursor."""
        cursor = self._cursor
        for reader in self._readers:
            # An open one would hold the catalog.
            reader.close()
        self._readers.clear()
        try:
            if self._catalog is not None:
                cursor.execute("USE memory")
                cursor.execute(f"DETACH {self._catalog}")
        except duckdb.Error:
            # A partly read result holds the catalog; it is dropped with the instance.
            pass
        finally:
            cursor.close()

    def interrupt(self) -> None:
        """Interrupts the running query."""
        # A cursor closed concurrently runs nothing.
        with contextlib.suppress(duckdb.Error):
            self._cursor.interrupt()

    def __enter__(self) -> Space:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
