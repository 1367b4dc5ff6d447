"""The query of UPDATE, DELETE and MERGE: one row for each row that changes, with what it becomes.

    SELECT <clause>, <place>, <value of each column>
    FROM (SELECT <clause>, <place>, <columns kept>, <expressions as written> FROM <target> [JOIN <source> ON …] [WHERE …])

The inner query holds the statement's own expressions, each once and under the names it was written for; the outer one converts
their values to the columns' types. Pure text: nothing is run here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.types import TIMESTAMPS, Atomic, Field, Kind
from lakelet.options import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER, TableOptions
from lakelet.sql.duck_types import duck_type
from lakelet.sql.errors import SqlError, nearest
from lakelet.sql.names import matching
from lakelet.sql.quoting import quoted
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change_clauses import Action, Change, Clause, When
from lakelet.sql.statements.conversions import converted
from lakelet.sql.statements.query_text import QueryText, Span
from lakelet.sql.words import Word
from lakelet.table.located_rows import FILE, ROW

TARGET = "__lakelet_target"
DEFAULTS = "__lakelet_defaults"
CLAUSE = "__lakelet_clause"
OLDER = "__lakelet_older"
_SOURCE = "__lakelet_source"
_JOINS = {(False, False): "JOIN", (True, False): "RIGHT JOIN", (False, True): "LEFT JOIN", (True, True): "FULL JOIN"}


@dataclass(frozen=True, slots=True)
class _Kept:
    """The column stays as it is."""


@dataclass(frozen=True, slots=True)
class _Default:
    """The column gets its default."""


@dataclass(frozen=True, slots=True)
class _Named:
    """The column gets the value of one of the source's."""

    column: str


_Value = Span | _Kept | _Default | _Named


@dataclass(slots=True)
class ChangeQuery:
    """The query of a statement on one schema of its target. `places` says whether rows of the target come with their places,
    `source_columns` names the columns of the source where the statement takes all of them."""

    statement: Statement
    change: Change
    schema: TableSchema
    places: bool
    source_columns: Sequence[str] = ()
    # Whether Arrow holds the target's moments in other units than queries see them in.
    has_coarse: bool = True
    _values: list[dict[str, _Value]] = field(init=False)

    def __post_init__(self) -> None:
        self._values = [self._clause_values(clause) for clause in self.change.clauses]

    # ------------------------------------------------------------------ the statement's own part

    def inner(self) -> QueryText:
        """What is looked up."""
        text = self._begun()
        text.add("SELECT ")
        self._add_clause(text)
        if self.places:
            text.add(f", {self._target}.{FILE}, {self._target}.{ROW}")
        for name in self._kept():
            text.add(f", {self._target}.{quoted(name)} AS {self._kept_name(name)}")
        for number, values in enumerate(self._values):
            for name, value in values.items():
                self._add_value(text, number, name, value)
        text.add(f" FROM {self._target_rows()} AS {self._target}")
        self._add_source(text)
        return text

    def source(self) -> QueryText:
        """The source by itself."""
        assert self.change.source is not None
        text = self._begun()
        return text.add("SELECT * FROM ").add_span(self.change.source)

    def _begun(self) -> QueryText:
        text = QueryText(self.statement, self.change.target.qualifier)
        if self.change.common is not None:
            text.add_span(self.change.common).add(" ")
        return text

    @property
    def _target(self) -> str:
        return quoted(self.change.target.alias)

    @property
    def _source_alias(self) -> str:
        return quoted(self.change.source_alias or _SOURCE)

    def _target_rows(self) -> str:
        coarse = [one for one in self.schema.fields if self.has_coarse and self.places and _is_coarse(one)]
        if not coarse:
            return TARGET
        casts = ", ".join(f"CAST({quoted(one.name)} AS {duck_type(one.type)}) AS {quoted(one.name)}" for one in coarse)
        return f"(SELECT * REPLACE ({casts}) FROM {TARGET})"

    def _add_clause(self, text: QueryText) -> None:
        """Which clause a row falls under."""
        if self.change.on is None:
            text.add(f"0 AS {CLAUSE}")
            return
        is_new, is_alone = f"{self._target}.{ROW} IS NULL", f"{self._source_alias}.{_SOURCE} IS NULL"
        text.add(f"CASE WHEN {is_new} THEN ")
        self._add_choice(text, When.NOT_MATCHED)
        text.add(f" WHEN {is_alone} THEN ")
        self._add_choice(text, When.NOT_MATCHED_BY_SOURCE)
        text.add(" ELSE ")
        self._add_choice(text, When.MATCHED)
        text.add(f" END AS {CLAUSE}")

    def _add_choice(self, text: QueryText, when: When) -> None:
        """The first clause of a kind whose condition holds."""
        chosen = [(number, clause) for number, clause in enumerate(self.change.clauses) if clause.when is when]
        text.add("CASE")
        for number, clause in chosen:
            text.add(" WHEN ")
            if clause.condition is None:
                text.add("TRUE")
            else:
                text.add("(").add_span(clause.condition).add(")")
            text.add(f" THEN {'NULL' if clause.action is Action.NOTHING else number}")
        text.add(" WHEN FALSE THEN 0 END")

    def _add_value(self, text: QueryText, number: int, name: str, value: _Value) -> None:
        if isinstance(value, (_Kept, _Default)):
            return
        # An expression counts only for rows of its clause, and may not be worked out for others.
        before, after = ("", "") if self.change.on is None else (f"CASE WHEN {CLAUSE} = {number} THEN ", " END")
        text.add(f", {before}(")
        if isinstance(value, Span):
            text.add_span(value)
        else:
            text.add(f"{self._source_alias}.{quoted(value.column)}")
        text.add(f"){after} AS {self._value_name(number, name)}")

    def _add_source(self, text: QueryText) -> None:
        change = self.change
        if change.on is not None and change.source is not None:
            kinds = {clause.when for clause in change.clauses}
            join = _JOINS[When.NOT_MATCHED in kinds, When.NOT_MATCHED_BY_SOURCE in kinds]
            text.add(f" {join} (SELECT *, TRUE AS {_SOURCE} FROM ").add_span(change.source)
            text.add(f") AS {self._source_alias} ON (").add_span(change.on).add(")")
            return
        if change.source is not None:
            text.add(", ").add_span(change.source)
        if change.where is not None:
            text.add(" WHERE (").add_span(change.where).add(")")

    # ------------------------------------------------------------------ values in the columns' types

    def outer(self, inner: QueryText, types: pa.Schema) -> QueryText:
        """What changes, given the types of what is looked up."""
        items = [CLAUSE]
        if self.places:
            items += [FILE, ROW]
        needed = any(self._values)
        for one in self.schema.fields if needed else ():
            items.append(f"{self._combined(self._column_values(one, types), one)} AS {quoted(one.name)}")
        older = self._older(types)
        if older is not None:
            items.append(f"{older} AS {OLDER}")
        ending = "" if self.change.on is None else f" WHERE {CLAUSE} IS NOT NULL"
        # However many rows of USING fit a row, it goes once.
        is_joined = self.change.on is None and self.change.source is not None
        once = is_joined and self.change.clauses[0].action is Action.DELETE
        chosen = f"SELECT DISTINCT ON ({FILE}, {ROW})" if once else "SELECT"
        return inner.inside(f"{chosen} {', '.join(items)} FROM (", f"\n){ending}")

    def _column_values(self, one: Field, types: pa.Schema) -> list[str | None]:
        """What a column becomes, by clause."""
        return [
            self._converted(number, one, values[one.name], types) if one.name in values else None
            for number, values in enumerate(self._values)
        ]

    def _converted(self, number: int, one: Field, value: _Value, types: pa.Schema) -> str:
        match value:
            case _Kept():
                return self._kept_name(one.name)
            case _Default():
                return default_value(one)
            case _:
                name = self._value_name(number, one.name)
                return converted(name, types.field(name).type, one)

    def _combined(self, values: Sequence[str | None], one: Field) -> str:
        if len(values) == 1 and values[0] is not None:
            return values[0]
        cases = "".join(f" WHEN {number} THEN {value}" for number, value in enumerate(values) if value is not None)
        return f"CASE {CLAUSE}{cases} END" if cases else f"CAST(NULL AS {duck_type(one.type)})"

    def _older(self, types: pa.Schema) -> str | None:
        """Whether a row gets a lower sequence than it has, by which the merge would drop the change."""
        options = TableOptions(self.schema.options)
        names = [name for name in options.get(SEQUENCE_FIELD) or () if self.schema.primary_keys]
        sign = ">" if options.get(SEQUENCE_FIELD_SORT_ORDER) == "descending" else "<"
        cases = ""
        for number, (clause, values) in enumerate(zip(self.change.clauses, self._values, strict=True)):
            if clause.action is not Action.UPDATE or all(isinstance(values[name], _Kept) for name in names):
                continue
            test = "FALSE"
            for name in reversed(names):
                old = self._kept_name(name)
                new = self._converted(number, self.schema.field(name), values[name], types)
                lower = f"{new} {sign} {old} OR ({new} IS NULL AND {old} IS NOT NULL)"
                test = f"(COALESCE({lower}, FALSE) OR ({new} IS NOT DISTINCT FROM {old} AND {test}))"
            cases += f" WHEN {number} THEN {test}"
        return f"CASE {CLAUSE}{cases} ELSE FALSE END" if cases else None

    # ------------------------------------------------------------------ which column gets what

    def _kept(self) -> list[str]:
        """The target's columns whose values the outer query needs."""
        kept = {name for values in self._values for name, value in values.items() if isinstance(value, _Kept)}
        if self.schema.primary_keys:
            sequence = TableOptions(self.schema.options).get(SEQUENCE_FIELD)
            kept.update(sequence or ())
        return [name for name in self.schema.names if name in kept]

    def _kept_name(self, name: str) -> str:
        return f"__lakelet_kept_{self.schema.names.index(name)}"

    def _value_name(self, number: int, name: str) -> str:
        return f"__lakelet_{number}_{self.schema.names.index(name)}"

    def _clause_values(self, clause: Clause) -> dict[str, _Value]:
        """What each column becomes by a clause; nothing where no row comes of it."""
        match clause.action:
            case Action.UPDATE:
                return {name: _Kept() for name in self.schema.names} | self._assigned(clause)
            case Action.DELETE if self.schema.primary_keys:
                return {name: _Kept() for name in self.schema.names}
            case Action.INSERT:
                return self._inserted(clause)
            case _:
                return {}

    def _assigned(self, clause: Clause) -> dict[str, _Value]:
        keys = self.schema.primary_keys
        if clause.takes_all:
            return {name: self._from_source(name, clause) for name in self.schema.names if name not in keys}
        found: dict[str, _Value] = {}
        for one in clause.assignments:
            name = self._column(one.column)
            if name in keys:
                raise self._error(f"column {name!r} is part of the primary key, which cannot be changed", one.column)
            found[name] = _Default() if one.value is None else one.value
        return found

    def _inserted(self, clause: Clause) -> dict[str, _Value]:
        if clause.takes_all:
            return {name: self._from_source(name, clause) for name in self.schema.names}
        if clause.values is not None:
            if len(clause.values) != len(self.schema.names):
                names = ", ".join(self.schema.names)
                raise self._error(
                    f"expected {len(self.schema.names)} values for {names}, found {len(clause.values)}", clause.word
                )
            given = dict(zip(self.schema.names, clause.values, strict=True))
        else:
            given = {self._column(one.column): one.value for one in clause.assignments}
        check_defaults(self.schema, given)
        values: dict[str, _Value] = {}
        for name in self.schema.names:
            value = given.get(name)
            values[name] = _Default() if value is None else value
        return values

    def _from_source(self, name: str, clause: Clause) -> _Named:
        found = matching(name, self.source_columns)
        if found is None:
            hint = nearest(name, self.source_columns)
            raise self._error(f"the source has no column {name!r}, which * needs{hint}", clause.word)
        return _Named(found)

    def _column(self, word: Word) -> str:
        found = matching(word.text, self.schema.names)
        if found is None:
            hint = nearest(word.text, self.schema.names)
            raise self._error(f"{self.change.target.shown} has no column {word.text!r}{hint}", word)
        return found

    def _error(self, message: str, word: Word | None) -> InvalidError:
        return InvalidError(message) if word is None else SqlError(message, self.statement.reader.text, word.start)


def check_defaults(schema: TableSchema, given: Mapping[str, object]) -> None:
    """InvalidError where a column that cannot be NULL and has no default is left out."""
    for one in schema.fields:
        if given.get(one.name) is None and not one.type.nullable and one.default is None:
            raise InvalidError(f"column {one.name!r} is NOT NULL and has no default, and needs a value")


def default_value(one: Field) -> str:
    """SQL for the default of a column."""
    source = "NULL" if one.default is None else f"(SELECT {quoted(one.name)} FROM {DEFAULTS})"
    return f"CAST({source} AS {duck_type(one.type)})"


def _is_coarse(one: Field) -> bool:
    """Whether Arrow holds a column in another unit than queries see it in."""
    return isinstance(one.type, Atomic) and (one.type.kind in TIMESTAMPS or one.type.kind is Kind.TIME)
