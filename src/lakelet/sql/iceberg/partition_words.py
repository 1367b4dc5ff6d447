"""Parse partition terms of statements.

region                      the column itself; also identity(region)
years(ts) months(ts) days(ts) hours(ts)      also in the singular, as year(ts)
bucket(16, id)   truncate(4, s)              also bucket(id, 16) and truncate(s, 4)
void(x)                                      NULL for all rows: a field that partitions nothing
bucket(16, id) AS shard                      under a name of its own
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.iceberg.schema.partition_terms import PartitionTerm
from lakelet.model.schema import TableSchema
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.definition.column_words import ColumnPath, read_path

_PLAIN = {
    "IDENTITY": "identity",
    "YEAR": "year",
    "YEARS": "year",
    "MONTH": "month",
    "MONTHS": "month",
    "DAY": "day",
    "DAYS": "day",
    "DATE": "day",
    "HOUR": "hour",
    "HOURS": "hour",
    "DATE_HOUR": "hour",
    "VOID": "void",
}
_NUMBERED = {"BUCKET": "bucket", "TRUNCATE": "truncate"}
_KNOWN = ("identity", "years", "months", "days", "hours", "bucket", "truncate", "void")


@dataclass(frozen=True, slots=True)
class GivenTerm:
    """A parsed term and its position; its column is resolved later against a schema."""

    word: Word
    path: ColumnPath
    transform: str
    name: str | None = None

    @property
    def is_column(self) -> bool:
        """Whether it is a name alone, which may also be that of a partition field."""
        return self.transform == "identity" and self.name is None

    def term(self, schema: TableSchema) -> PartitionTerm:
        """The term with its column in the table's spelling; SqlError at an unknown column."""
        return PartitionTerm(self.path.resolve(schema), self.transform, self.name)


def read_term(reader: WordReader) -> GivenTerm:
    """Reads a term and its alias."""
    word = reader.peek()
    if reader.peek(1).keyword != "(" or word.kind != "word":
        return _named(reader, word, read_path(reader), "identity")
    reader.take()
    reader.expect("(")
    if word.keyword in _PLAIN:
        path = read_path(reader)
        reader.expect(")")
        return _named(reader, word, path, _PLAIN[word.keyword])
    if word.keyword not in _NUMBERED:
        raise SqlError(
            f"{word.text}(…): no partitions are made by it{nearest(word.text, _KNOWN)}", reader.text, word.start
        )
    number_first = reader.peek().kind == "number" or reader.at("-")
    at = reader.peek()
    if number_first:
        number = reader.integer()
        reader.expect(",")
        path = read_path(reader)
    else:
        path = read_path(reader)
        reader.expect(",")
        at = reader.peek()
        number = reader.integer()
    reader.expect(")")
    if not 0 < number < 2**31:
        raise SqlError(f"expected a number from 1 to {2**31 - 1}, found {number}", reader.text, at.start)
    return _named(reader, word, path, f"{_NUMBERED[word.keyword]}[{number}]")


def _named(reader: WordReader, word: Word, path: ColumnPath, transform: str) -> GivenTerm:
    name = reader.name("the name of the partition field") if reader.accept("AS") else None
    return GivenTerm(word, path, transform, name)
