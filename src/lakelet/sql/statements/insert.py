"""INSERT INTO and INSERT OVERWRITE: stream the rows of a query, converted to the table's types, into one write.

    query ─ converted by DuckDB ─ batches ─ table.write ─ one commit

Rows stream, and nothing is visible before all of them are written: a value that does not convert inserts nothing. An overwrite
replaces the partition that PARTITION names in full; otherwise the partitions of the new rows, or with the option
`dynamic-partition-overwrite` off all partitions that match PARTITION.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.catalog.names import matching
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import DYNAMIC_PARTITION_OVERWRITE, MERGE_ENGINE, TableOptions
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import iceberg_handler
from lakelet.sql.iceberg.names import is_iceberg
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_values import check_defaults
from lakelet.sql.statements.change.insert_conflict import run_conflict
from lakelet.sql.statements.change.returned_rows import ReturnedRows
from lakelet.sql.statements.change.row_change import check_distinct_keys
from lakelet.sql.statements.rows.conversions import converted, fits_as_is
from lakelet.sql.statements.rows.insert_values import ValuesQuery
from lakelet.sql.statements.rows.insert_words import Insert, ValuesRow, read_insert
from lakelet.sql.statements.rows.literal_rows import literal_rows
from lakelet.sql.statements.text.query_text import QueryText
from lakelet.sql.statements.text.spans import Target

_ROWS = "__lakelet_rows"


def run_insert(context: Context, statement: Statement) -> SqlResult:
    """Inserts rows; returns the last committed snapshot and the row count."""
    insert = read_insert(statement)
    if is_iceberg(insert.parts):
        return iceberg_handler(context, "insert:run_insert")(context, statement, insert)
    target = Target(context, insert.parts, insert.given_alias)
    table = target.table
    schema = table.schema
    defaults = ColumnDefaults.now(schema, table.home.clock)
    given = InsertRows(context, statement, insert, schema, table.name, defaults)
    fixed = given.fixed()
    returned = returned_rows(context, statement, insert, schema) if insert.conflict is None else None
    rows = given.rows(fixed)
    mode, partition = _mode(context, insert, schema, fixed)
    with rows.result as result:
        counted = CountedRows(result, rows.columns, {} if partition else fixed, schema)
        counted.fill(defaults, given.left_open(rows.columns), fixed)
        if insert.conflict is not None:
            return run_conflict(context, statement, insert, target, counted.batches(), (*rows.columns, *fixed))
        made = table.write(counted.returning(returned), mode=mode, partition=partition, missing="default")
    if returned is not None:
        return returned.result()
    return SqlResult.changed(None if made is None else made.id, counted.rows)


def returned_rows(context: Context, statement: Statement, insert: Insert, schema: TableSchema) -> ReturnedRows | None:
    """The collector of RETURNING rows, if the statement has RETURNING."""
    if insert.returning is None:
        return None
    engine = TableOptions(schema.options).get(MERGE_ENGINE) if schema.primary_keys else "deduplicate"
    if engine != "deduplicate":
        raise InvalidError(
            f"RETURNING: what becomes of a row of {'.'.join(insert.parts)} is known when it is read ('{MERGE_ENGINE.name}' = "
            f"'{engine}')"
        )
    return ReturnedRows(context, statement, insert.returning, insert.parts[-1], insert.parts, schema.fields)


def _mode(
    context: Context, insert: Insert, schema: TableSchema, fixed: Mapping[str, Any]
) -> tuple[str, Mapping[str, object] | None]:
    """The write mode, and the partition that is overwritten."""
    if not insert.overwrites:
        return "append", None
    keys = schema.partition_keys
    if keys and len(fixed) < len(keys) and is_dynamic(context, schema.options):
        return "overwrite_partitions", None
    return "overwrite", fixed or None


def is_dynamic(context: Context, options: Mapping[str, str]) -> bool:
    """Whether an overwrite replaces only partitions it has rows for: the session's setting, else the table's option."""
    chosen = context.settings.get(DYNAMIC_PARTITION_OVERWRITE.name)
    found = options if chosen is None else {DYNAMIC_PARTITION_OVERWRITE.name: chosen}
    return TableOptions(found).get(DYNAMIC_PARTITION_OVERWRITE)


@dataclass(frozen=True, slots=True)
class InsertRows:
    """The rows of an INSERT in the types of a table's columns, of any kind of table."""

    context: Context
    statement: Statement
    insert: Insert
    schema: TableSchema
    table: str
    defaults: ColumnDefaults = LITERALS

    def fixed(self) -> dict[str, Any]:
        """The values that PARTITION gives to columns."""
        found: dict[str, Any] = {}
        named: set[str] = set()
        for one in self.insert.partition:
            name = matching(one.word.text, self.schema.partition_keys)
            if name is None:
                hint = nearest(one.word.text, self.schema.partition_keys)
                raise self._error(f"{one.word.text!r} is no partition column of {self.table}{hint}", one.word)
            if name in named:
                raise self._error(f"partition column {name!r} is given twice", one.word)
            named.add(name)
            if one.value is None:
                continue
            field = self.schema.field(name)
            text = QueryText(self.statement).add("SELECT (").add_span(one.value).add(") AS x")
            value = converted("x", text.schema(self.context).field(0).type, field)
            batch = (
                text.inside(f"SELECT {value} AS {quoted(name)} FROM (", ")")
                .run(self.context)
                .to_arrow()
                .to_batches()[0]
            )
            found[name] = RowCaster([field]).cast(batch).column(0)[0].as_py()
        return found

    # ------------------------------------------------------------------ rows

    def rows(self, fixed: Mapping[str, Any]) -> QueriedRows:
        """The rows and their target columns, without those that PARTITION gives a value."""
        insert = self.insert
        if insert.query is None and not insert.values:
            check_defaults(self.schema, self.defaults, dict.fromkeys(fixed, True))
            names = [name for name in self.schema.names if name not in fixed]
            row = pa.table({name: self.defaults.array(self.schema.field(name), 1) for name in names})
            return QueriedRows(names, SqlResult.of_table(row))
        try:
            return self._literal(fixed) or self._queried(self._query(insert.values, fixed), fixed)
        except SqlError:
            raise
        except InvalidError as error:
            if insert.values:
                self._locate(insert.values, fixed, error)
            raise

    def _literal(self, fixed: Mapping[str, Any]) -> QueriedRows | None:
        """The rows of VALUES where they are plain literals of the columns' types, which need no query."""
        insert, reader = self.insert, self.statement.reader
        if not insert.values or insert.by_name or insert.common is not None:
            return None
        names = self.columns(None, fixed)
        if any(len(row.values) != len(names) for row in insert.values):
            return None
        rows = literal_rows(reader.words, reader.text, insert.values)
        fields = [self.schema.field(name) for name in names]
        if rows is None or not all(fits_as_is(kind, one) for kind, one in zip(rows.schema.types, fields, strict=True)):
            return None
        check_defaults(self.schema, self.defaults, dict.fromkeys((*names, *fixed), True))
        return QueriedRows(names, _widened(SqlResult.of_table(rows), fields))

    def _queried(self, query: QueryText, fixed: Mapping[str, Any]) -> QueriedRows:
        with ExitStack() as opened:
            literals = opened.enter_context(query.run(self.context)) if query.is_literal else None
            given = query.schema(self.context) if literals is None else literals.schema
            names = self.columns(given.names, fixed)
            check_defaults(self.schema, self.defaults, dict.fromkeys((*names, *fixed), True))
            fields = [self.schema.field(name) for name in names]
            if literals is not None and all(
                fits_as_is(kind, one) for kind, one in zip(given.types, fields, strict=True)
            ):
                # Most literals need no conversion by a second query.
                opened.pop_all()
                return QueriedRows(names, _widened(literals, fields))
        places = [f"c{place}" for place in range(len(names))]
        values = [converted(place, kind, field) for place, kind, field in zip(places, given.types, fields, strict=True)]
        if values != places:
            aliases = f") AS {_ROWS}({', '.join(places)})"
            items = ", ".join(f"{value} AS {place}" for value, place in zip(values, places, strict=True))
            query = query.inside(f"SELECT {items} FROM (", aliases)
        return QueriedRows(names, query.run(self.context))

    def _query(self, values: Sequence[ValuesRow], fixed: Mapping[str, Any]) -> QueryText:
        if self.insert.query is not None:
            text = QueryText(self.statement)
            if self.insert.common is not None:
                text.add_span(self.insert.common).add(" ")
            return text.add_span(self.insert.query)
        names = self.columns(None, fixed)
        for row in values:
            if len(row.values) != len(names):
                raise self._error(
                    f"expected {len(names)} values for {', '.join(names)}, found {len(row.values)}", row.word
                )
        fields = [self.schema.field(name) for name in names]
        query = ValuesQuery(self.context, self.statement, fields, self.insert.common, self.defaults)
        return query.query(values)

    def columns(self, given: Sequence[str] | None, fixed: Mapping[str, Any]) -> list[str]:
        """The target columns of the rows, in order; `given` are the column names of the query, if it is one."""
        if self.insert.by_name and given is not None:
            return self._by_name(given, fixed)
        if self.insert.by_name:
            raise InvalidError("BY NAME goes with a query whose columns have names, and VALUES have none")
        if self.insert.columns is None:
            names = [name for name in self.schema.names if name not in fixed]
        else:
            names = [self._column(word, fixed) for word in self.insert.columns]
        if given is not None and len(given) != len(names):
            raise InvalidError(f"expected {len(names)} columns for {', '.join(names)}, found {len(given)}")
        return names

    def _by_name(self, given: Sequence[str], fixed: Mapping[str, Any]) -> list[str]:
        names = []
        for name in given:
            found = matching(name, self.schema.names)
            if found is None:
                raise InvalidError(f"{self.table} has no column {name!r}{nearest(name, self.schema.names)}")
            if found in names or found in fixed:
                raise InvalidError(f"column {found!r} is given twice")
            names.append(found)
        return names

    def _column(self, word: Word, fixed: Mapping[str, Any]) -> str:
        found = matching(word.text, self.schema.names)
        if found is None:
            hint = nearest(word.text, self.schema.names)
            raise self._error(f"{self.table} has no column {word.text!r}{hint}", word)
        if found in fixed:
            raise self._error(f"column {found!r} has its value from PARTITION", word)
        return found

    def left_open(self, names: Sequence[str]) -> list[tuple[Field, NDArray[np.bool_]]]:
        """The columns for which VALUES has DEFAULT, and in which rows."""
        found = []
        for place, name in enumerate(names):
            field = self.schema.field(name)
            if self.defaults.has(field):
                rows = np.array([row.values[place] is None for row in self.insert.values], np.bool_)
                if rows.any():
                    found.append((field, rows))
        return found

    # ------------------------------------------------------------------ errors

    def _locate(self, values: Sequence[ValuesRow], fixed: Mapping[str, Any], error: InvalidError) -> None:
        """Locates the value in VALUES that does not convert, by bisecting the rows."""
        rows = list(values)
        while len(rows) > 1:
            half = rows[: len(rows) // 2]
            rows = half if self._fails(half, fixed) else rows[len(rows) // 2 :]
        names = self.columns(None, fixed)
        for name, value in zip(names, rows[0].values, strict=True):
            if value is None:
                continue
            text = QueryText(self.statement).add("SELECT (").add_span(value).add(") AS c0")
            try:
                kind = text.schema(self.context).field(0).type
                text.inside(f"SELECT {converted('c0', kind, self.schema.field(name))} FROM (", ")").run(
                    self.context
                ).rows()
            except SqlError:
                raise
            except InvalidError as found:
                word = self.statement.reader.words[value.first]
                raise self._error(str(found), word) from error

    def _fails(self, rows: Sequence[ValuesRow], fixed: Mapping[str, Any]) -> bool:
        try:
            self._queried(self._query(rows, fixed), fixed).result.rows()
        except InvalidError:
            return True
        return False

    def _error(self, message: str, word: Word) -> SqlError:
        return SqlError(message, self.statement.reader.text, word.start)


def _widened(rows: SqlResult, fields: Sequence[Field]) -> SqlResult:
    """Rows whose integers get the widths of their columns."""
    names = rows.schema.names
    schema = pa.schema([(name, to_arrow(field.type)) for name, field in zip(names, fields, strict=True)])
    return SqlResult(schema, lambda: (batch.cast(schema) for batch in rows.to_batches()), close=rows.close)


@dataclass(frozen=True, slots=True)
class QueriedRows:
    """Rows of a query, and their target columns."""

    columns: Sequence[str]
    result: SqlResult


class CountedRows:
    """Batches of a query under the names of the table's columns, with those of a static partition added, and the row count."""

    def __init__(
        self, result: SqlResult, columns: Sequence[str], fixed: Mapping[str, Any], schema: TableSchema
    ) -> None:
        self._result = result
        self._columns = list(columns)
        self._schema = schema
        self._fixed = {name: pa.scalar(value, to_arrow(schema.field(name).type)) for name, value in fixed.items()}
        self._defaults = LITERALS
        self._left_out: Sequence[Field] = ()
        self._left_open: Sequence[tuple[Field, NDArray[np.bool_]]] = ()
        self.rows = 0

    def fill(
        self, defaults: ColumnDefaults, left_open: Sequence[tuple[Field, NDArray[np.bool_]]], given: Container[str]
    ) -> None:
        """Makes `batches` fill in defaults: of columns with DEFAULT in some rows, and of columns that neither the rows nor the
        caller (`given`) have."""
        self._defaults = defaults
        self._left_open = left_open
        self._left_out = [one for one in self._schema.fields if one.name not in given]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, counted as they are read."""
        names = [*self._columns, *self._fixed]
        for batch in self._result.to_batches():
            first, self.rows = self.rows, self.rows + batch.num_rows
            constants = [pa.repeat(value, batch.num_rows) for value in self._fixed.values()]
            whole = pa.RecordBatch.from_arrays([*batch.columns, *constants], names)
            for column, rows in self._left_open:
                whole = self._defaults.replaced(whole, column, rows[first : self.rows])
            yield self._defaults.filled(whole, self._left_out)

    def returning(self, returned: ReturnedRows | None) -> Iterator[pa.RecordBatch]:
        """The rows, which are passed to RETURNING, if there is one, with all columns of the table."""
        if returned is None:
            yield from self.batches()
            return
        caster, count = RowCaster(self._schema.fields), 0
        names = list(self._schema.primary_keys)
        keys = []
        for batch in self.batches():
            cast = caster.cast(batch, first_row=count)
            count += batch.num_rows
            returned.add(cast)
            if names:
                keys.append(cast.select(names))
            yield cast
        # Of several rows with one key only the last would be visible.
        check_distinct_keys(keys, "INSERT")
