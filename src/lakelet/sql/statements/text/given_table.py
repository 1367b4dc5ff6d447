"""Tables and databases named in a statement, with the position of the name, at which errors are reported."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.catalog.names import DEFAULT_DATABASE, SYSTEM_DATABASE, TableName
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.text.clauses import placed
from lakelet.storage.paths import check_name
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table named in a statement; its existence is checked lazily."""

    context: Context
    reader: WordReader
    name: TableName
    word: Word

    @property
    def shown(self) -> str:
        """database.table as it is written, with the branch if it has one."""
        return self.name.full if self.name.branch is None else f"{self.name.full}$branch_{self.name.branch}"

    def find(self) -> TableName | None:
        """The name in the spelling of the lake, None if there is no such table."""
        return self.context.names.find(self.name)

    def existing(self) -> TableName:
        """The name in the spelling of the lake; NotFoundError names the nearest."""
        with placed(self.reader, self.word):
            return self.context.names.existing(self.name)

    def open(self) -> Table:
        """The table, on its branch; NotFoundError names the nearest."""
        with placed(self.reader, self.word):
            return self.context.names.open(self.name)


def read_table(context: Context, reader: WordReader) -> GivenTable:
    """Reads the name of a table, which need not exist; a system table is refused."""
    word = reader.peek()
    return given_table(context, reader, reader.name_parts("the name of a table"), word)


def given_table(context: Context, reader: WordReader, parts: tuple[str, ...], word: Word) -> GivenTable:
    """The table of a parsed name, which begins at this word."""
    with placed(reader, word):
        name = context.table_name(parts)
        if name.system is not None or name.database.lower() == SYSTEM_DATABASE:
            raise InvalidError(f"{'.'.join(parts)!r} names a system table, which can only be read")
    return GivenTable(context, reader, name, word)


def read_new_table(context: Context, reader: WordReader) -> TableName:
    """Reads the name of a new table, in a database that exists or is created with it."""
    given = read_table(context, reader)
    name, word = given.name, given.word
    if name.branch is not None:
        raise SqlError("a branch is made by CALL sys.create_branch", reader.text, word.start)
    with placed(reader, word):
        check_name(name.table, "table")
        if name.database in (context.database, DEFAULT_DATABASE) and name.database not in context.lake.databases():
            return name
        return TableName(context.names.database(name.database), name.table)


def read_database(context: Context, reader: WordReader) -> str:
    """Reads the name of an existing database."""
    word = reader.peek()
    name = reader.name("the name of a database")
    with placed(reader, word):
        return context.names.database(name)


def newest_schema(table: Table) -> TableSchema:
    """The newest schema, also of a table that cannot be read because of an option set by another engine: it can be shown, and
    the option removed."""
    return latest_schema(table.home)
