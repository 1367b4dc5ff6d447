"""ALTER TABLE, COMMENT ON and RENAME TABLE: each one atomic schema change.

    ADD [COLUMN | COLUMNS] …     DROP [COLUMN | COLUMNS] …    RENAME [COLUMN] a TO b     RENAME TO t
    ALTER [COLUMN] a TYPE … | SET NOT NULL | DROP NOT NULL | SET DEFAULT … | DROP DEFAULT | COMMENT … | FIRST | AFTER b
    MODIFY [COLUMN] a BIGINT …   CHANGE [COLUMN] a b BIGINT …
    SET (…)   RESET (…)   COMMENT …   DROP PARTITION (…)

Several columns of one statement make one schema version. Names are resolved against the schema that the change is applied to,
which may be newer than the one read first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lakelet.catalog.names import TableName
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError, InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.options import find_option
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg, iceberg_handler
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.definition.column_changes import (
    Change,
    added,
    dropped,
    one_of_column,
    read_changed,
    read_listed,
    read_modified,
    renamed,
)
from lakelet.sql.statements.definition.column_words import read_column, read_path
from lakelet.sql.statements.text.clauses import (
    COMMENT_KEY,
    Literal,
    no_such_partition,
    placed,
    read_if_exists,
    read_option_name,
    read_options,
    read_partition,
    resolve_partition,
)
from lakelet.sql.statements.text.given_table import GivenTable, given_table, newest_schema, read_table
from lakelet.storage.paths import check_name
from lakelet.table import Table
from lakelet.table.upkeep.partitions import drop_partitions, live_partitions

T = TypeVar("T")
_REFUSED = {
    ("ADD", "PARTITION"): "a partition is there as soon as it has rows",
    ("ADD", "PRIMARY"): "a table has the primary key it was made with: rows are stored by it",
    ("ADD", "CONSTRAINT"): "a table has the primary key it was made with and checks nothing else",
    ("ADD", "WATERMARK"): "a table has no watermarks; every snapshot may have one",
    ("DROP", "PRIMARY"): "a table has the primary key it was made with: rows are stored by it",
    ("DROP", "CONSTRAINT"): "a table has the primary key it was made with and checks nothing else",
    ("DROP", "WATERMARK"): "a table has no watermarks; every snapshot may have one",
    ("RENAME", "PARTITION"): "the values of a partition are those of its rows; UPDATE changes them",
    ("SET", "LOCATION"): "the location of a table follows from its name",
    ("SET", "SCHEMA"): "RENAME TO database.table moves a table",
    ("SET", "PARTITIONED"): "a table has the partitions it was made with: rows are stored by them",
    ("RECOVER",): "partitions are read from snapshots, there is nothing to recover",
}


def run_alter(context: Context, statement: Statement) -> SqlResult:
    """ALTER TABLE."""
    reader = statement.reader
    reader.expect("ALTER")
    if not reader.at("TABLE"):
        raise reader.error("TABLE")
    reader.take()
    if_exists = read_if_exists(reader)
    if at_iceberg(reader):
        return iceberg_handler(context, "alter:run_alter")(context, statement, if_exists=if_exists)
    given = read_table(context, reader)
    for keywords, reason in _REFUSED.items():
        if reader.at(*keywords) and not (len(keywords) > 1 and _is_column_word(reader)):
            raise SqlError(f"{' '.join(keywords)}: {reason}", reader.text, reader.peek().start)
    if reader.at("RENAME", "TO") and reader.peek(2).keyword != "TO":
        reader.take()
        return _rename_table(given, if_exists=if_exists)
    if reader.at("DROP", "PARTITION", "(") or reader.at("DROP", "IF", "EXISTS", "PARTITION", "("):
        return _drop_partitions(given, if_exists=if_exists)
    change = _read_change(reader)
    reader.finish()
    if if_exists and given.find() is None:
        return _missing(given)
    return _altered(given, change)


def run_comment(context: Context, statement: Statement) -> SqlResult:
    """COMMENT ON TABLE t IS 'text' and COMMENT ON COLUMN t.c IS 'text'; NULL removes a comment."""
    reader = statement.reader
    reader.expect("COMMENT", "ON")
    if reader.one_of("TABLE", "COLUMN") == "TABLE":
        if at_iceberg(reader):
            return iceberg_handler(context, "alter:run_comment")(context, statement)
        given = read_table(context, reader)
        text = read_comment(reader)
        reader.finish()
        return _altered(given, lambda _: table_comment(text))
    word = reader.peek()
    parts = reader.name_parts("the name of a column")
    if len(parts) > 3 and _column_begin(context, parts) is None:
        reader.place -= 2 * len(parts) - 1
        return iceberg_handler(context, "alter:run_column_comment")(context, statement)
    words = tuple(found for found in reader.words[: reader.place] if found.start >= word.start and found.is_name)
    text = read_comment(reader)
    reader.finish()
    if len(parts) < 2:
        raise SqlError("expected table.column or database.table.column", reader.text, word.start)
    inside = _column_begin(context, parts) or min(len(parts) - 1, 2)
    given = given_table(context, reader, parts[:inside], word)
    return _altered(given, lambda _: one_of_column(reader, words[inside:], text))


def run_rename(context: Context, statement: Statement) -> SqlResult:
    """RENAME TABLE a TO b."""
    reader = statement.reader
    reader.expect("RENAME", "TABLE")
    if at_iceberg(reader):
        return iceberg_handler(context, "alter:run_rename")(context, statement)
    return _rename_table(read_table(context, reader), if_exists=False)


# ---------------------------------------------------------------------- running


_ChangeOf = Callable[[Table], Change]


def _altered(given: GivenTable, change_of: _ChangeOf) -> SqlResult:
    table = given.open()
    before = newest_schema(table).id
    after = table.alter(change_of(table))
    if after.id == before:
        return SqlResult.done(f"table {given.shown} stays as it is")
    return SqlResult.done(f"altered table {given.shown}, schema {after.id}")


def _missing(given: GivenTable) -> SqlResult:
    return SqlResult.done(f"table {given.shown} does not exist")


def _rename_table(given: GivenTable, *, if_exists: bool) -> SqlResult:
    """Reads TO and the new name."""
    context, reader = given.context, given.reader
    if given.name.branch is not None:
        raise SqlError("a branch is renamed by CALL sys.rename_branch", reader.text, reader.peek().start)
    reader.expect("TO")
    at = reader.peek()
    parts = reader.name_parts("the new name of the table")
    reader.finish()
    if if_exists and given.find() is None:
        return _missing(given)
    there = given.existing()
    with placed(reader, at):
        # A new name without a database is in the old one.
        asked = context.table_name(parts if len(parts) > 1 else (there.database, *parts))
        if asked.branch is not None or asked.system is not None:
            raise InvalidError(f"{'.'.join(parts)!r} is no name of a table")
        check_name(asked.table, "table")
        new = TableName(context.names.database(asked.database), asked.table)
    other = context.names.find(new)
    if other is not None and other.full != there.full:
        raise AlreadyExistsError(f"table {other.full!r} exists in {context.lake.location}")
    context.lake.rename_table(there.full, new.full)
    return SqlResult.done(f"renamed table {there.full} to {new.full}")


def _drop_partitions(target: GivenTable, *, if_exists: bool) -> SqlResult:
    reader = target.reader
    reader.expect("DROP")
    if_there = read_if_exists(reader)
    given: list[dict[Word, Literal]] = []
    while not given or reader.accept(","):
        reader.expect("PARTITION")
        given.append(read_partition(reader))
    reader.finish()
    if if_exists and target.find() is None:
        return _missing(target)
    table = target.open()
    schema = newest_schema(table)
    chosen = []
    for words in given:
        spec = resolve_partition(reader, words, schema, target.shown)
        found = live_partitions(table, schema, [spec])
        if not found and not if_there:
            raise no_such_partition(spec, target.shown)
        chosen += found
    drop_partitions(table, chosen)
    count = len({partition.row for partition in chosen})
    return SqlResult.done(f"dropped {count} {'partition' if count == 1 else 'partitions'} of table {target.shown}")


# ---------------------------------------------------------------------- reading


def _is_column_word(reader: WordReader) -> bool:
    """Whether a keyword after ADD, DROP and the like is the name of a column after all: `DROP primary`, `ADD partition INT`."""
    second, third = reader.peek(1), reader.peek(2)
    match reader.peek().keyword:
        case "DROP":
            return third.kind == "end" or third.keyword == ","
        case "ADD":
            expected = {"PARTITION": ("(",), "PRIMARY": ("KEY",), "WATERMARK": ("FOR",)}
            return second.keyword in expected and third.keyword not in expected[second.keyword]
        case "RENAME":
            return third.keyword == "TO"
    return False


def _read_change(reader: WordReader) -> _ChangeOf:
    if reader.at("SET"):
        return _read_set(reader)
    if reader.at("RESET") or reader.at("UNSET"):
        return _read_reset(reader)
    change = read_schema_change(reader)
    return lambda _: change


def read_schema_change(reader: WordReader) -> Change:
    """Reads a change of columns, or of the table's comment."""
    word = reader.peek()
    match word.keyword:
        case "ADD":
            return _read_add(reader)
        case "DROP":
            return _read_drop(reader)
        case "RENAME":
            reader.take()
            reader.accept("COLUMN")
            return renamed(reader)
        case "ALTER":
            reader.take()
            reader.accept("COLUMN")
            return read_listed(reader, read_changed)
        case "MODIFY" | "CHANGE":
            reader.take()
            reader.accept("COLUMN") or reader.accept("COLUMNS")
            return read_listed(reader, lambda inner: read_modified(inner, renames=word.keyword == "CHANGE"))
        case "COMMENT":
            reader.take()
            reader.accept("=")
            return table_comment(reader.string())
        case _:
            raise reader.error("ADD, DROP, RENAME, ALTER, MODIFY, CHANGE, SET, RESET or COMMENT")


def _read_add(reader: WordReader) -> Change:
    reader.expect("ADD")
    reader.accept("COLUMN") or reader.accept("COLUMNS")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    columns = _several(reader, lambda: read_column(reader, alters=True))
    return added(columns, if_not_exists=if_not_exists)


def _read_drop(reader: WordReader) -> Change:
    reader.expect("DROP")
    reader.accept("COLUMN") or reader.accept("COLUMNS")
    if_exists = read_if_exists(reader)
    return dropped(_several(reader, lambda: read_path(reader)), if_exists=if_exists)


def _several(reader: WordReader, read: Callable[[], T]) -> Sequence[T]:
    """Reads one or more items, with or without parentheses around them."""
    if reader.at("("):
        return reader.listed(read)
    found = [read()]
    while reader.accept(","):
        found.append(read())
    return found


def _read_set(reader: WordReader) -> _ChangeOf:
    reader.expect("SET")
    reader.accept("TBLPROPERTIES") or reader.accept("OPTIONS")
    if not reader.at("("):
        raise reader.error("options in parentheses, such as ('bucket' = '4')")
    word = reader.peek()
    given = read_options(reader)

    def change_of(table: Table) -> Change:
        def change(schema: TableSchema) -> TableSchema:
            with placed(reader, word):
                changed = table.with_options(schema, given.values)
            return changed if given.comment is None else evolution.change_table_comment(changed, given.comment)

        return change

    return change_of


def _read_reset(reader: WordReader) -> _ChangeOf:
    reader.take()
    reader.accept("TBLPROPERTIES") or reader.accept("OPTIONS")
    if_exists = read_if_exists(reader)
    keys: dict[str, Word] = {}

    def read() -> None:
        word = reader.peek()
        keys[read_option_name(reader)] = word

    reader.listed(read, "the names of options in parentheses")

    def change_of(table: Table) -> Change:
        def change(schema: TableSchema) -> TableSchema:
            for key, word in keys.items():
                known = key in schema.options or find_option(key) is not None
                if key != COMMENT_KEY and not known and not if_exists:
                    hint = nearest(key, schema.options)
                    raise SqlError(f"option '{key}' is not set{hint}", reader.text, word.start)
            with placed(reader, next(iter(keys.values()))):
                changed = table.with_options(schema, {key: None for key in keys if key != COMMENT_KEY})
            return evolution.change_table_comment(changed, None) if COMMENT_KEY in keys else changed

        return change

    return change_of


def read_comment(reader: WordReader) -> str | None:
    """Reads IS and a comment, or NULL."""
    reader.expect("IS")
    return None if reader.accept("NULL") else reader.string()


def table_comment(text: str | None) -> Change:
    """A comment on the table."""
    return lambda schema: evolution.change_table_comment(schema, text)


def _column_begin(context: Context, parts: Sequence[str]) -> int | None:
    """The index at which the column begins in table.column or database.table.column; None if there is no such table."""
    for tables in (2, 1):
        if len(parts) > tables and context.names.find(context.table_name(parts[:tables])) is not None:
            return tables
    return None
