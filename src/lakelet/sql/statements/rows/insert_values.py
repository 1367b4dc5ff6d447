"""Generate the query of VALUES, in which every value keeps its written type.

    VALUES ('2026-01-01'), (DATE '2026-01-02')     into DATE: both are the dates they say
    VALUES (1), ('02')                             into STRING: '1' and '02'

DuckDB gives a column of VALUES one type, that of the first row if it can, and '02' would become the number 2. Where a column
mixes types, each of its values is therefore converted to the table's type by itself; where it does not, which is nearly
always, the rows are used as written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.types import Field
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sql.context import Context
from lakelet.sql.statement import Statement
from lakelet.sql.statements.rows.conversions import converted
from lakelet.sql.statements.rows.insert_words import ValuesRow
from lakelet.sql.statements.text.query_text import QueryText, Span

_TYPED_AT_ONCE = 500
_NULL = "null"
_Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ValuesQuery:
    """The rows of VALUES for columns of a table, with NULL for DEFAULT."""

    context: Context
    statement: Statement
    fields: Sequence[Field]
    common: Span | None = None
    defaults: ColumnDefaults = LITERALS

    def query(self, rows: Sequence[ValuesRow]) -> QueryText:
        """The rows as a query."""
        text = self._begun().add("VALUES ")
        written = self._written_classes(rows)
        types = self._mixed_types(rows, written)
        if self.common is None and all(found is not None for found in written.values()):
            text.of_literals()
        for number, row in enumerate(rows):
            text.add(", (" if number else "(")
            for place, one in enumerate(self.fields):
                text.add(", " if place else "")
                self._add(text, row.values[place], one, types.get((number, place)))
            text.add(")")
        return text

    def _begun(self) -> QueryText:
        text = QueryText(self.statement)
        return text if self.common is None else text.add_span(self.common).add(" ")

    def _add(self, text: QueryText, value: Span | None, one: Field, kind: pa.DataType | None) -> None:
        if value is None:
            if not one.type.nullable and not self.defaults.has(one):
                raise InvalidError(f"column {one.name!r} is NOT NULL and has no default, and needs a value")
            # Filled in after the query: a default in each of many rows would be a subquery in each.
            text.add("NULL")
        elif kind is None:
            text.add_span(value)
        else:
            text.add(f"(SELECT {converted('x', kind, one)} FROM (SELECT (").add_span(value).add(") AS x))")

    def _written_classes(self, rows: Sequence[ValuesRow]) -> dict[_Cell, str | None]:
        return {
            (number, place): self._written_class(value)
            for number, row in enumerate(rows)
            for place, value in enumerate(row.values)
        }

    def _mixed_types(self, rows: Sequence[ValuesRow], written: Mapping[_Cell, str | None]) -> dict[_Cell, pa.DataType]:
        """The types of all values in columns that mix them."""
        types = self._types(rows, [cell for cell, found in written.items() if found is None])
        classes: list[set[str]] = [set() for _ in self.fields]
        for cell, found in written.items():
            classes[cell[1]].add(_class_of(types[cell]) if found is None else found)
        mixed = {place for place, found in enumerate(classes) if len(found - {_NULL}) > 1}
        if not mixed:
            return {}
        cells = [cell for cell in written if cell[1] in mixed and rows[cell[0]].values[cell[1]] is not None]
        return self._types(rows, cells)

    def _written_class(self, value: Span | None) -> str | None:
        """The type class of a literal; None for an expression, whose type only DuckDB knows."""
        if value is None:
            return _NULL
        words = list(self.statement.reader.words[value.first : value.behind])
        if len(words) == 2 and words[0].keyword in ("-", "+"):
            del words[0]
        if len(words) != 1:
            return None
        word = words[0]
        if word.kind == "string" and self.statement.reader.text[word.start] not in "xX":
            return "text"
        if word.kind == "number":
            is_hex = word.text[:2].lower() in ("0x", "0b")
            return None if "e" in word.text.lower() and not is_hex else "exact"
        return _NULL if word.keyword == "NULL" else None

    def _types(self, rows: Sequence[ValuesRow], cells: Sequence[_Cell]) -> dict[_Cell, pa.DataType]:
        found: dict[_Cell, pa.DataType] = {}
        for start in range(0, len(cells), _TYPED_AT_ONCE):
            some = cells[start : start + _TYPED_AT_ONCE]
            text = self._begun().add("SELECT ")
            for number, (row, place) in enumerate(some):
                value = rows[row].values[place]
                assert value is not None
                text.add(", (" if number else "(").add_span(value).add(f") AS c{number}")
            found.update(zip(some, text.schema(self.context).types, strict=True))
        return found


def _class_of(kind: pa.DataType) -> str:
    """The class of a type; DuckDB combines types of one class without loss."""
    if pa.types.is_null(kind):
        return _NULL
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return "exact"
    return str(kind)
