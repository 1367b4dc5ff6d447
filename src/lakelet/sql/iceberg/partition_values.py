"""Resolve PARTITION (column = value, …) of Iceberg tables, which takes identity partition columns only."""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.catalog.names import matching
from lakelet.iceberg.schema.partition_terms import shown_terms
from lakelet.iceberg.table import IcebergTable
from lakelet.model.literals import parse_literal
from lakelet.model.schema import TableSchema
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.text.clauses import Literal, placed


def partition_column(reader: WordReader, word: Word, table: IcebergTable, schema: TableSchema) -> str:
    """The identity partition column of that name; SqlError at the word if there is none."""
    found = matching(word.text, schema.partition_keys)
    if found is not None:
        return found
    name, column = table.full_name, matching(word.text, schema.names)
    made = [term for term in shown_terms(table) if term.column == (column,) or term.name == word.text]
    if made:
        reason = f"{name} is partitioned by {made[0]}: PARTITION names columns that partition by their own value"
    elif column is None:
        reason = f"{name} has no column {word.text!r}{nearest(word.text, schema.partition_keys or schema.names)}"
    else:
        hint = nearest(word.text, schema.partition_keys) if schema.partition_keys else ""
        reason = f"{word.text!r} is no partition column of {name}{hint}"
    raise SqlError(reason, reader.text, word.start)


def resolve_values(
    reader: WordReader, given: Mapping[Word, Literal], table: IcebergTable, schema: TableSchema
) -> dict[str, object]:
    """Convert literals to the columns' types; SqlError at an invalid one."""
    found: dict[str, object] = {}
    for word, literal in given.items():
        name = partition_column(reader, word, table, schema)
        if literal.text is None:
            found[name] = None
            continue
        with placed(reader, literal.word):
            value = parse_literal(literal.text, schema.field(name).type, f"partition column {name!r}")
        found[name] = value.as_py()
    return found
