"""Iceberg tables named in a statement, with the position of the name, at which errors are reported."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.table import IcebergTable
from lakelet.sql.context import Context
from lakelet.sql.iceberg.names import IcebergName, catalog_of, find_iceberg, iceberg_name, open_iceberg
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.text.clauses import placed


@dataclass(frozen=True, slots=True)
class GivenIceberg:
    """An Iceberg table named in a statement; its existence is checked lazily."""

    context: Context
    reader: WordReader
    name: IcebergName
    word: Word

    @property
    def shown(self) -> str:
        """catalog.database.table as it is written, with the branch if it has one."""
        return self.name.shown if self.name.branch is None else f"{self.name.shown}$branch_{self.name.branch}"

    @property
    def catalog(self) -> IcebergCatalog:
        """The catalog of the table."""
        with placed(self.reader, self.word):
            return catalog_of(self.context, self.name)

    def find(self) -> IcebergName | None:
        """The name in the spelling of the catalog, None if there is no such table."""
        with placed(self.reader, self.word):
            return find_iceberg(self.context, self.name)

    def open(self) -> IcebergTable:
        """The table; NotFoundError names the nearest."""
        with placed(self.reader, self.word):
            return open_iceberg(self.context, self.name)

    def no_branch(self, instead: str) -> None:
        """SqlError if the name has a branch, where the statement needs a whole table."""
        if self.name.branch is not None:
            raise SqlError(instead, self.reader.text, self.word.start)


def read_iceberg(context: Context, reader: WordReader) -> GivenIceberg:
    """Reads catalog.database.table, which need not exist; a system table is refused."""
    word = reader.peek()
    return given_iceberg(context, reader, reader.name_parts("the name of a table"), word)


def given_iceberg(context: Context, reader: WordReader, parts: tuple[str, ...], word: Word) -> GivenIceberg:
    """The table of a parsed name, which begins at this word."""
    with placed(reader, word):
        name = iceberg_name(context, parts)
        if name.system is not None:
            raise InvalidError(f"{'.'.join(parts)!r} names a system table, which can only be read")
    return GivenIceberg(context, reader, name, word)
