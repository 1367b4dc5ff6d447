"""Read VALUES of plain literals without a query.

    VALUES (1, 'a'), (-2, NULL)      c0: int32 [1, -2], c1: string ["a", NULL]

Place in the data path: before `insert_values`, which generates a query for everything else. Starting a query takes longer than
writing one row. The types are those that DuckDB gives to the same literals: an integer of 32 bits, or of 64 where one of a
column needs them, and text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.rows.insert_words import ValuesRow
from lakelet.sql.statements.text.query_text import Span

_is_integer = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII).fullmatch
_OTHER = object()


def literal_rows(words: Sequence[Word], text: str, rows: Sequence[ValuesRow]) -> pa.Table | None:
    """The rows of VALUES in the words of a statement's text; None unless all are integers, text or NULL, and every column has
    a type."""
    columns = []
    for spans in zip(*(row.values for row in rows), strict=True):
        values = [_value(words, text, span) for span in spans]
        kind = _type_of(values)
        if kind is None:
            return None
        columns.append(pa.array(values, kind))
    return pa.Table.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])


def _value(words: Sequence[Word], text: str, span: Span | None) -> object:
    """The value of a literal, None for NULL; `_OTHER` for any other expression."""
    if span is None:
        return _OTHER
    first, count = words[span.first], span.behind - span.first
    is_signed = count == 2 and first.keyword in ("-", "+")
    word = words[span.first + 1] if is_signed else first
    if count != 1 + is_signed:
        return _OTHER
    if word.kind == "number" and _is_integer(word.text):
        return -int(word.text) if is_signed and first.text == "-" else int(word.text)
    if is_signed:
        return _OTHER
    if word.kind == "string":
        # Escapes, bytes and dollar quotes are DuckDB's business, and so is text that ends in the middle for some readers.
        return word.text if text[word.start] == "'" and word.text.isprintable() else _OTHER
    return None if word.keyword == "NULL" else _OTHER


def _type_of(values: Sequence[object]) -> pa.DataType | None:
    """The type of a column; None where it is not known from integers or text alone."""
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, str) for value in given):
        return pa.string()
    numbers = [value for value in given if isinstance(value, int)]
    if not numbers or len(numbers) != len(given):
        return None
    for bits, kind in ((32, pa.int32()), (64, pa.int64())):
        if -(1 << bits - 1) <= min(numbers) and max(numbers) < 1 << bits - 1:
            return kind
    return None
