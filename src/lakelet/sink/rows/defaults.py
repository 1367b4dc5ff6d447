"""Fill in column defaults of incoming rows: literals of the schema, and expressions of an option.

The current time of expressions is one moment for a whole write, the caller's: rows that are cast again, in another process or
because a commit is retried after a conflict, get the same. Volatile expressions are evaluated for every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.clock import Clock
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_kinds import is_bytes
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.default_expressions import default_expressions, misplaced_expression
from lakelet.model.literals import parse_literal
from lakelet.model.schema import TableSchema
from lakelet.model.types import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Atomic, DataType, Field, Kind
from lakelet.predicate.default_expression import DefaultExpression, evaluated
from lakelet.predicate.duck import type_name
from lakelet.sink.rows.conversion import convert_array
from lakelet.sink.rows.value_checks import check_values

_TYPES = pa.types
_MICRO = 6


@dataclass(frozen=True, slots=True)
class ColumnDefaults:
    """The defaults of a table's columns for one write. `expressions` are by column, `now_ms` is their time."""

    expressions: Mapping[str, str] = field(default_factory=dict)
    now_ms: int = 0

    @classmethod
    def of(cls, schema: TableSchema, now_ms: int) -> ColumnDefaults:
        """The defaults of a schema at a moment."""
        return cls(default_expressions(schema), now_ms)

    @classmethod
    def now(cls, schema: TableSchema, clock: Clock) -> ColumnDefaults:
        """The defaults of a schema at this moment; the clock is read only where there are expressions."""
        expressions = default_expressions(schema)
        return cls(expressions, clock.now_ms()) if expressions else LITERALS

    def has(self, column: Field) -> bool:
        """Whether a column has a default."""
        return column.default is not None or column.name in self.expressions

    def array(self, column: Field, rows: int) -> pa.Array:
        """The default for a number of rows, NULL where the column has none; InvalidError where its expression gives no value of
        the column's type."""
        text = self.expressions.get(column.name)
        if column.default is not None:
            return pa.repeat(parse_literal(column.default, column.type, _where(column)), rows)
        if text is None or not rows:
            return pa.nulls(rows, to_arrow(column.type))
        expression = checked_expression(column, text)
        sql = f"CAST({self._bound(expression, column)} AS {_duck_type(column.type)})"
        values = _of_type(evaluated(sql, rows if expression.volatile else 1, _where(column)), column)
        return values if expression.volatile else pa.repeat(values[0], rows)

    def row(self, columns: Sequence[Field]) -> pa.Table:
        """One row of those defaults that are the same for all rows, NULL for the others."""
        volatile = self.volatile(columns)
        return pa.table(
            {one.name: LITERALS.array(one, 1) if one in volatile else self.array(one, 1) for one in columns}
        )

    def replaced(self, batch: pa.RecordBatch, column: Field, rows: NDArray[np.bool_]) -> pa.RecordBatch:
        """A batch in which some rows get the default of a column."""
        count = int(rows.sum())
        if not count:
            return batch
        place, values = batch.schema.get_field_index(column.name), self.array(column, count)
        before = batch.column(place)
        if pa.types.is_null(before.type):
            before = pa.nulls(len(before), values.type)
        after = pc.replace_with_mask(before, pa.array(rows), values.cast(before.type))
        return batch.set_column(place, pa.field(column.name, after.type), after)

    def volatile(self, columns: Sequence[Field]) -> list[Field]:
        """The columns whose defaults differ from row to row."""
        return [
            one
            for one in columns
            if one.default is None
            and one.name in self.expressions
            and checked_expression(one, self.expressions[one.name]).volatile
        ]

    def filled(self, batch: pa.RecordBatch, columns: Sequence[Field]) -> pa.RecordBatch:
        """The rows with the missing columns that have default expressions added."""
        for one in columns:
            if one.name in self.expressions and one.name not in batch.schema.names:
                values = self.array(one, batch.num_rows)
                batch = batch.append_column(pa.field(one.name, values.type), values)
        return batch

    def _bound(self, expression: DefaultExpression, column: Field) -> str:
        match column.type:
            case Atomic(kind, digits) if kind in (Kind.TIME, *TIMESTAMPS):
                return expression.bound(self.now_ms, digits)
            case _:
                return expression.bound(self.now_ms)


LITERALS = ColumnDefaults()


def check_default_expressions(schema: TableSchema) -> None:
    """InvalidError for a default expression that does not parse, is not allowed, or is not of its column's type."""
    wrong = misplaced_expression(schema)
    if wrong is not None:
        raise InvalidError(wrong)
    defaults = ColumnDefaults.of(schema, schema.time_ms)
    for name in defaults.expressions:
        defaults.array(schema.field(name), 1)


def checked_expression(column: Field, text: str) -> DefaultExpression:
    """Parse the expression of a column; InvalidError where it does not parse or has a type that does not fit."""
    return _checked(column.name, column.type, text)


def folded(column: Field, text: str) -> str | None:
    """The literal that a constant expression folds to, which all engines understand; None where it is not constant.
    InvalidError where the expression does not fit the column."""
    if not checked_expression(column, text).constant:
        return None
    value = ColumnDefaults({column.name: text}).array(column, 1)[0]
    found = value.as_py()
    if found is None or isinstance(found, bytes):
        return None
    literal = str(found).lower() if isinstance(found, bool) else str(found)
    try:
        return literal if parse_literal(literal, column.type, _where(column)).equals(value) else None
    except InvalidError:
        return None


@lru_cache(maxsize=512)
def _checked(name: str, data_type: DataType, text: str) -> DefaultExpression:
    where = f"default of column {name!r}"
    if not isinstance(data_type, Atomic):
        raise InvalidError(f"{where}: a column of type {data_type} takes no default")
    expression = DefaultExpression.parse(name, text)
    # Of two rows, so that aggregates and set-returning functions are distinguished from scalar values.
    found = evaluated(expression.bound(0), 2, where).type
    if not _fits(found, data_type):
        raise InvalidError(
            f"{where}: expected a value of type {data_type}, found {text} of type {found}; CAST(… AS …) converts it"
        )
    return expression


def _fits(found: pa.DataType, wanted: Atomic) -> bool:
    """Whether values of a type are stored as they are, or an error says that they cannot be."""
    kind = wanted.kind
    if _TYPES.is_null(found):
        return True
    if kind in STRINGS:
        return not (is_bytes(found) or _TYPES.is_nested(found))
    if kind in BINARIES:
        return is_bytes(found)
    if kind is Kind.BOOLEAN:
        return bool(_TYPES.is_boolean(found))
    is_exact = _TYPES.is_integer(found) or _TYPES.is_decimal(found)
    if kind in INTEGERS:
        return bool(is_exact and getattr(found, "scale", 0) == 0)
    if kind is Kind.DECIMAL:
        return bool(is_exact and getattr(found, "scale", 0) <= wanted.scale)
    if kind in FLOATS:
        return bool(is_exact or _TYPES.is_floating(found))
    if kind is Kind.TIME:
        return bool(_TYPES.is_time(found))
    if kind in TIMESTAMPS:
        is_fine = _TYPES.is_timestamp(found) and found.unit == "ns"
        return bool(_TYPES.is_date(found) or _TYPES.is_timestamp(found)) and (not is_fine or wanted.precision > _MICRO)
    return bool(_TYPES.is_date(found))


def _of_type(values: pa.Array, column: Field) -> pa.Array:
    try:
        values = convert_array(values, to_arrow(column.type))
        check_values(values, column.type, column.name)
    except (pa.ArrowException, InvalidError) as error:
        raise InvalidError(f"{_where(column)}: {error}") from error
    return values


def _duck_type(data_type: DataType) -> str:
    """The type in which DuckDB gives values; of times the finest that a column's digits may need."""
    arrow = to_arrow(data_type)
    if _TYPES.is_timestamp(arrow) and arrow.unit != "ns":
        arrow = pa.timestamp("us", arrow.tz)
    return type_name(arrow)


def _where(column: Field) -> str:
    return f"default of column {column.name!r}"
