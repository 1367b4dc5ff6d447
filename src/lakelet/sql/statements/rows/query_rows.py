"""The columns and rows of a query for CREATE TABLE AS.

A DuckDB type that a table does not support arrives in Arrow as another one, at any depth: if that changes the meaning it is
refused, and if it holds the same values the result notes the stored type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError

_WIDEST = pa.decimal128(38, 0)
_LEAST, _MOST = Decimal("-" + "9" * 38), Decimal("9" * 38)
_STATE, _JSON = "AGGREGATE_STATE", "JSON"
# DuckDB's types that a table does not support, and alternatives.
_REFUSED = {
    _STATE: "finalize(…) gives the value of a state",
    "BIT": "CAST it to STRING",
    "TIME WITH TIME ZONE": "CAST it to TIME",
    "INTERVAL": "CAST it to STRING, or take its parts as numbers",
    "UNION": "take its members as columns",
    "VARIANT": "CAST it to STRING",
    "GEOMETRY": "ST_AsText(…) or ST_AsWKB(…) gives its text or bytes",
    "BIGNUM": "CAST it to STRING or DECIMAL",
}
# Types that a table does not support, and the types that store all their values.
_STORED = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "HUGEINT": "DECIMAL(38, 0)",
    "UHUGEINT": "DECIMAL(38, 0)",
    "UUID": "STRING",
    _JSON: "STRING",
    "ENUM": "STRING",
}
_NESTED = ("LIST", "ARRAY", "STRUCT", "MAP")


def table_columns(result: SqlResult, given: Sequence[str]) -> SqlResult:
    """The rows of a query under the column names of the new table; InvalidError if a table cannot have such columns.

    As in DuckDB: `given` are names for the first columns, and without any, duplicate names get a number (`a`, `a_1`).
    """
    names = _given_names(result.columns, given) if given else _numbered_names(result.columns)
    for name, column in zip(names, result.schema, strict=True):
        if pa.types.is_null(column.type):
            raise InvalidError(f"column {name!r} of the query is NULL without a type: CAST gives it one")
    if names == list(result.columns):
        return result
    schema = pa.schema([column.with_name(name) for name, column in zip(names, result.schema, strict=True)])
    return SqlResult(
        schema,
        lambda: (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in result.to_batches()),
        close=result.close,
        duck_types=result.duck_types,
    )


def _given_names(columns: Sequence[str], given: Sequence[str]) -> list[str]:
    if len(given) > len(columns):
        raise InvalidError(f"expected names for at most the {len(columns)} columns of the query, found {len(given)}")
    names = [*given, *columns[len(given) :]]
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InvalidError(f"column {name!r} is given twice, by its name here or by the query")
        seen.add(name.lower())
    return names


def _numbered_names(columns: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    names = []
    for column in columns:
        name, number = column, 0
        while name.lower() in seen:
            number += 1
            name = f"{column}_{number}"
        seen.add(name.lower())
        names.append(name)
    return names


def stored_types(result: SqlResult) -> str:
    """A note, to append to a message, on columns that are stored as another type; InvalidError for unsupported types that would
    silently change their meaning."""
    said: list[str] = []
    for name, duck_type in zip(result.columns, result.duck_types, strict=False):
        for leaf in _leaves(duck_type):
            if leaf in _REFUSED:
                raise InvalidError(
                    f"column {name!r} of the query is {duck_type}, which a table does not have: {_REFUSED[leaf]}"
                )
            if leaf in _STORED:
                note = f"{name}: {leaf} is stored as {_STORED[leaf]}"
                said += [] if note in said else [note]
    return "".join(f"; {note}" for note in said)


def _leaves(duck_type: Any) -> Iterator[str]:
    """The leaf types of a DuckDB type."""
    shown = str(duck_type)
    name = str(duck_type.id).upper()
    if shown in (_STATE, _JSON):
        # Aliases of other types, which DuckDB's type id does not distinguish.
        yield shown
    elif name in _NESTED:
        children: Sequence[tuple[str, Any]] = duck_type.children
        for _, child in children:
            if not isinstance(child, int):
                yield from _leaves(child)
    else:
        yield name


class CheckedRows:
    """Rows, counted and checked as they are read: DuckDB's HUGEINT arrives as DECIMAL(38, 0) even with 39 digits."""

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self.rows = 0
        self._schema = schema
        self._batches = batches
        self._widest = [field.name for field in schema if field.type == _WIDEST]

    def reader(self) -> pa.RecordBatchReader:
        """A reader of the rows, for one pass."""
        return pa.RecordBatchReader.from_batches(self._schema, self._counting())

    @property
    def counted(self) -> str:
        """The row count, for a message."""
        return f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"

    def _counting(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches():
            for name in self._widest:
                least, most = pc.min_max(batch.column(name)).values()
                # The absolute value of the least number of 128 bits would overflow.
                if most.is_valid and not _LEAST <= least.as_py() <= most.as_py() <= _MOST:
                    raise InvalidError(f"column {name!r} of the query has more than the 38 digits of a DECIMAL")
            self.rows += batch.num_rows
            yield batch
