"""Generate the query of UPDATE, DELETE and MERGE: one row for each changed row, with its new values.

    SELECT <clause>, <place>, <value of each column>
    FROM (SELECT <clause>, <place>, <columns kept>, <expressions as written> FROM <target>[, <source>] [WHERE …])

The inner query holds the statement's own expressions, each once and under the names it was written for (that of MERGE is in
`merge_query`); the outer one converts their values to the columns' types. Pure text: nothing is run here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakelet.lsm.engine.row_update import RowUpdate, row_update
from lakelet.model.schema import TableSchema
from lakelet.model.types import TIMESTAMPS, Atomic, Field, Kind, Row
from lakelet.options import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER, TableOptions
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_clauses import Action, Change
from lakelet.sql.statements.change.change_values import ChangeValues, Default, Fields, Given, Kept, Value, givens
from lakelet.sql.statements.change.conflict_query import ConflictQuery
from lakelet.sql.statements.change.folded_update import check_settable, lost_values, lower
from lakelet.sql.statements.change.merge_keys import may_insert_known_keys
from lakelet.sql.statements.change.merge_query import MergeQuery, add_written
from lakelet.sql.statements.rows.conversions import converted
from lakelet.sql.statements.text.internal_names import InternalNames
from lakelet.sql.statements.text.query_text import QueryText, Span


@dataclass(slots=True)
class ChangeQuery:
    """The query of a statement on one schema of its target. `places` says whether target rows are read with their positions,
    `source_columns` names the columns of the source of a MERGE."""

    statement: Statement
    change: Change
    schema: TableSchema
    names: InternalNames
    places: bool
    source_columns: Sequence[str] = ()
    # Replacement texts for whole rows used as values.
    instead: Mapping[int, str] | None = None
    # Whether Arrow stores the target's timestamps in other units than queries use.
    has_coarse: bool = True
    defaults: ColumnDefaults = LITERALS
    _values: list[dict[str, Value]] = field(init=False)
    _update: RowUpdate | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        values = ChangeValues(self.statement, self.change, self.schema, self.names, self.defaults, self.source_columns)
        self._values = [values.of(number) for number in range(len(self.change.clauses))]
        updates = self._updates()
        if updates and self.schema.primary_keys:
            what = f"{self.change.name}: {self.change.target.shown}"
            update = self._update = row_update(self.schema, what)
            if update is not None:
                for number in updates:
                    check_settable(update, self._assigned(number), what)

    def defaulted(self) -> dict[str, frozenset[int]]:
        """The numbers of the clauses that set each column to its default."""
        found = {
            name: frozenset(
                number for number, values in enumerate(self._values) if isinstance(values.get(name), Default)
            )
            for name in self.schema.names
        }
        return {name: numbers for name, numbers in found.items() if numbers}

    # ------------------------------------------------------------------ the statement's own part

    def inner(self) -> QueryText:
        """The inner query."""
        change, names = self.change, self.names
        text = begun(self.statement, change, self.instead)
        if change.joins:
            kept = [(place, name) for place, name in enumerate(self.schema.names)]
            if change.given is not None:
                written = [self._written(values) for values in self._values]
                conflict = ConflictQuery(
                    change, names, self._target_rows(), kept, written, self.source_columns, self.schema.primary_keys
                )
                return conflict.add_to(text)
            merge = MergeQuery(
                change, names, self._target_rows(), kept, [self._written(values) for values in self._values],
                self.source_columns,
            )  # fmt: skip
            return merge.add_to(text)
        target = quoted(change.target.alias)
        text.add(f"SELECT 0 AS {names.clause}")
        if self.places:
            text.add(f", {target}.{names.file}, {target}.{names.row}")
        for name in self._kept():
            text.add(f", {target}.{quoted(name)} AS {self._kept_name(name)}")
        for one in self._written(self._values[0]):
            assert isinstance(one.written, Span)
            add_written(text.add(", "), one, names)
            text.add(f" AS {one.name}")
        text.add(" FROM ")
        if change.source is not None:
            # In front of the target, whose columns are not in scope there: DuckDB lets a subquery see what is left of it, so that
            # a misspelt column in USING (SELECT …) would be the target's, and match every row.
            text.add_span(change.source).add(", ")
        text.add(f"{self._target_rows()} AS {target}")
        if change.where is not None:
            text.add(" WHERE (").add_span(change.where).add(")")
        return text

    def _target_rows(self) -> str:
        coarse = [one for one in self.schema.fields if self.has_coarse and self.places and _is_coarse(one)]
        if not coarse:
            return self.names.target
        casts = ", ".join(f"CAST({quoted(one.name)} AS {duck_type(one.type)}) AS {quoted(one.name)}" for one in coarse)
        return f"(SELECT * REPLACE ({casts}) FROM {self.names.target})"

    def _written(self, values: dict[str, Value]) -> list[Given]:
        """The distinct expressions that a clause needs from the inner query."""
        found = {one.name: one for value in values.values() for one in givens(value)}
        return list(found.values())

    # ------------------------------------------------------------------ values in the columns' types

    def outer(self, inner: QueryText, types: pa.Schema) -> QueryText:
        """The outer query, given the column types of the inner one."""
        names = self.names
        items = [names.clause]
        if self.places:
            items += [names.file, names.row]
        needed = any(self._values)
        for one in self.schema.fields if needed else ():
            items.append(f"{self._combined(self._column_values(one, types), one)} AS {quoted(one.name)}")
        older = self._older(types)
        if older is not None:
            items.append(f"{older} AS {names.older}")
        lost = self._lost(types)
        if lost is not None:
            items.append(f"{lost} AS {names.lost}")
        if self.change.joins:
            chosen = [name for name in types.names if name.startswith(names.chosen_stem)]
            clause = f"COALESCE({', '.join(f'{name}.{names.clause}' for name in chosen)})"
            inner = inner.inside(f"SELECT *, {clause} AS {names.clause} FROM (", "\n)")
            made = inner.inside(f"SELECT {', '.join(items)} FROM (", f"\n) WHERE {names.clause} IS NOT NULL")
            return self._with_taken(made)
        # A row is deleted once, however many rows of USING match it.
        once = self.change.source is not None and self.change.clauses[0].action is Action.DELETE
        select = f"SELECT DISTINCT ON ({names.file}, {names.row})" if once else "SELECT"
        return inner.inside(f"{select} {', '.join(items)} FROM (", "\n)")

    def _with_taken(self, changed: QueryText) -> QueryText:
        """The changed rows, with a flag for inserted ones whose key exists already, where that is possible."""
        names, keys = self.names, self.schema.primary_keys
        if not may_insert_known_keys(self.change, keys, self._values, self.statement.reader.words):
            return changed
        inserts = [str(number) for number, one in enumerate(self.change.clauses) if one.action is Action.INSERT]
        same = " AND ".join(f"{names.target}.{quoted(key)} = {names.rows}.{quoted(key)}" for key in keys)
        exists = f"EXISTS (SELECT 1 FROM {names.target} WHERE {same})"
        test = f"{names.clause} IN ({', '.join(inserts)}) AND {exists}"
        return changed.inside(f"SELECT *, {test} AS {names.taken} FROM (", f"\n) AS {names.rows}")

    def _column_values(self, one: Field, types: pa.Schema) -> list[str | None]:
        """The SQL of a column's new value, by clause."""
        return [
            self._converted(number, one, values[one.name], self._kept_name(one.name), types)
            if one.name in values
            else None
            for number, values in enumerate(self._values)
        ]

    def _converted(self, number: int, one: Field, value: Value, kept: str, types: pa.Schema) -> str:
        match value:
            case Kept():
                return kept
            case Default():
                return default_value(one, self.defaults, self.names.defaults)
            case Fields(values):
                assert isinstance(one.type, Row)
                parts = (
                    f"{quoted(inner.name)} := "
                    + self._converted(
                        number, inner, values.get(inner.name, Kept()), f"{kept}.{quoted(inner.name)}", types
                    )
                    for inner in one.type.fields
                )
                return f"struct_pack({', '.join(parts)})"
            case _:
                name, kind = self._found(number, value, types)
                return converted(name, kind, one)

    def _found(self, number: int, value: Given, types: pa.Schema) -> tuple[str, pa.DataType]:
        """The column of the inner query that holds a value, and its type."""
        if self.change.joins:
            chosen = self.names.chosen(self.change.clauses[number].when.name)
            name, kind = f"{chosen}.{value.name}", types.field(chosen).type.field(value.name).type
        else:
            name, kind = value.name, types.field(value.name).type
        if not value.parts:
            return name, kind
        if kind.num_fields != value.parts:
            assert isinstance(value.written, Span)
            place = self.statement.reader.words[value.written.first].start
            message = f"expected a query of {value.parts} columns, found {kind.num_fields}"
            raise SqlError(message, self.statement.reader.text, place)
        return f"struct_extract_at({name}, {value.part + 1})", kind.field(value.part).type

    def _combined(self, values: Sequence[str | None], one: Field) -> str:
        if len(values) == 1 and values[0] is not None:
            return values[0]
        cases = "".join(f" WHEN {number} THEN {value}" for number, value in enumerate(values) if value is not None)
        return f"CASE {self.names.clause}{cases} END" if cases else f"CAST(NULL AS {duck_type(one.type)})"

    def _older(self, types: pa.Schema) -> str | None:
        """SQL for whether an update lowers the sequence field of a row, so that the merge would ignore the update."""
        options = TableOptions(self.schema.options)
        names = [name for name in options.get(SEQUENCE_FIELD) or () if self.schema.primary_keys]
        descending = options.get(SEQUENCE_FIELD_SORT_ORDER) == "descending"
        cases = ""
        for number in self._updates():
            if set(names) & set(self._assigned(number)):
                test = lower(names, partial(self._new, number, types), self._old, descending=descending)
                cases += f" WHEN {number} THEN {test}"
        return f"CASE {self.names.clause}{cases} ELSE FALSE END" if cases else None

    def _lost(self, types: pa.Schema) -> str | None:
        """SQL for the value of an update that would change nothing in a table that merges rows."""
        cases, update = "", self._update
        if update is None:
            return None
        for number in self._updates():
            volatile = [one.name for one in self.defaults.volatile(self.schema.fields)]
            values = self._values[number]
            assigned = [
                name
                for name in self._assigned(number)
                # Such a default is filled in after the query.
                if not (isinstance(values[name], Default) and name in volatile)
            ]
            new = partial(self._new, number, types)
            found = lost_values(update, assigned, self.schema.names, new, self._old)
            if found is not None:
                cases += f" WHEN {number} THEN {found}"
        return f"CASE {self.names.clause}{cases} END" if cases else None

    def _updates(self) -> list[int]:
        """The numbers of the clauses that update rows."""
        return [number for number, one in enumerate(self.change.clauses) if one.action is Action.UPDATE]

    def _assigned(self, number: int) -> list[str]:
        """The columns that a clause gives values to."""
        return [name for name, value in self._values[number].items() if not isinstance(value, Kept)]

    def _new(self, number: int, types: pa.Schema, name: str) -> str:
        return self._converted(number, self.schema.field(name), self._values[number][name], self._old(name), types)

    def _old(self, name: str) -> str:
        return self._kept_name(name)

    def _kept(self) -> list[str]:
        """The target's columns whose values the outer query needs."""
        kept = {name for values in self._values for name, value in values.items() if isinstance(value, (Kept, Fields))}
        if self.schema.primary_keys:
            sequence = TableOptions(self.schema.options).get(SEQUENCE_FIELD)
            kept.update(sequence or ())
        if self._update is not None:
            kept.update(name for number in self._updates() for name in self._assigned(number))
            kept.update(name for group in self._update.groups for name in group.columns)
        return [name for name in self.schema.names if name in kept]

    def _kept_name(self, name: str) -> str:
        return self.names.kept(self.schema.names.index(name))


def begun(statement: Statement, change: Change, instead: Mapping[int, str] | None = None) -> QueryText:
    """A query text that begins with the statement's common table expressions."""
    text = QueryText(statement, change.target.qualifier, instead)
    return text if change.common is None else text.add_span(change.common).add(" ")


def source_query(statement: Statement, change: Change) -> QueryText:
    """A query over the source of a statement alone."""
    assert change.source is not None
    return begun(statement, change).add("SELECT * FROM ").add_span(change.source)


def default_value(one: Field, defaults: ColumnDefaults, relation: str) -> str:
    """SQL for the default of a column, read from a relation of one row: NULL for a volatile default, which is filled in after
    the query. So no text stored in a table is part of a query, and no setting of the session changes a default."""
    source = f"(SELECT {quoted(one.name)} FROM {relation})" if defaults.has(one) else "NULL"
    return f"CAST({source} AS {duck_type(one.type)})"


def _is_coarse(one: Field) -> bool:
    """Whether Arrow stores a column in another unit than queries use."""
    return isinstance(one.type, Atomic) and (one.type.kind in TIMESTAMPS or one.type.kind is Kind.TIME)
