"""ALTER TABLE, COMMENT ON and RENAME TABLE of Iceberg tables, and branches and tags: each one commit in the catalog.

    ADD | DROP PARTITION FIELD term [AS name]        REPLACE PARTITION FIELD term WITH term [AS name]
    ADD, DROP, RENAME, ALTER, MODIFY, CHANGE columns, COMMENT: as for the lake's own tables
    SET [TBLPROPERTIES] (…)   UNSET [TBLPROPERTIES] (…)   RENAME TO t
    CREATE | DROP BRANCH | TAG name [AS OF VERSION snapshot] [RETAIN n DAYS]

A change is checked against the schema that it is applied to, which may be newer than the one read first.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError, InvalidError
from lakelet.iceberg.branches import create_branch, create_tag, drop_branch, drop_tag
from lakelet.iceberg.schema.alteration import PartitionChange, alter_columns, alter_partitioning, alter_properties
from lakelet.iceberg.schema.partition_terms import PartitionTerm
from lakelet.iceberg.table import IcebergTable
from lakelet.model.schema import TableSchema
from lakelet.sql.context import Context
from lakelet.sql.iceberg.given_iceberg import GivenIceberg, given_iceberg, read_iceberg
from lakelet.sql.iceberg.names import iceberg_database
from lakelet.sql.iceberg.partition_words import GivenTerm, read_term
from lakelet.sql.iceberg.table_words import read_properties
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.alter import read_comment, read_schema_change, table_comment
from lakelet.sql.statements.definition.column_changes import one_of_column
from lakelet.sql.statements.text.clauses import placed, read_if_exists, read_if_not_exists, read_option_name
from lakelet.storage.paths import check_name

_REFUSED = {
    (
        "ADD",
        "PARTITION",
        "(",
    ): "a partition is there as soon as it has rows; ADD PARTITION FIELD changes how they are made",
    (
        "DROP",
        "PARTITION",
        "(",
    ): "TRUNCATE TABLE t PARTITION (…) empties one; DROP PARTITION FIELD changes how they are made",
    ("ADD", "PRIMARY", "KEY"): "an Iceberg table checks no keys",
    ("ADD", "CONSTRAINT"): "an Iceberg table checks no constraints",
    ("SET", "LOCATION"): "a table stays where its files are",
    ("SET", "IDENTIFIER"): "rows are not identified by columns here",
    (
        "WRITE",
    ): "how rows are spread and sorted when they are written is said by 'write.distribution-mode' and the sort order "
    "that other engines set",
    ("REPLACE", "BRANCH"): "CALL sys.iceberg_fast_forward moves a branch",
    ("REPLACE", "TAG"): "drop the tag first, so that it is plain that it moves",
}
_UNITS = {"DAY": "days", "DAYS": "days", "HOUR": "hours", "HOURS": "hours", "MINUTE": "minutes", "MINUTES": "minutes"}


def run_alter(context: Context, statement: Statement, *, if_exists: bool) -> SqlResult:
    """ALTER TABLE, from the table's name on."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    for keywords, reason in _REFUSED.items():
        if reader.at(*keywords):
            raise SqlError(f"{' '.join(keywords).removesuffix(' (')}: {reason}", reader.text, reader.peek().start)
    if reader.at("RENAME", "TO") and reader.peek(2).keyword != "TO":
        reader.take()
        return _rename(given, if_exists=if_exists)
    is_ref = reader.peek(1).keyword in ("BRANCH", "TAG") and reader.peek(2).is_name
    if is_ref and reader.accept("CREATE"):
        return _create_ref(given, reader.take())
    if is_ref and reader.accept("DROP"):
        return _drop_ref(given, reader.take())
    given.no_branch("columns and partitions are those of the whole table: name it without the branch")
    at = reader.peek()
    if reader.peek(1).keyword == "PARTITION" and reader.peek(2).keyword == "FIELD":
        fields = _read_field_change(reader)
        reader.finish()
        return _altered(given, at, if_exists, lambda table: alter_partitioning(table, fields))
    if at.keyword in ("SET", "UNSET", "RESET"):
        return _alter_properties(given, at, if_exists)
    change = read_schema_change(reader)
    reader.finish()
    return _altered(given, at, if_exists, lambda table: alter_columns(table, change))


def run_comment(context: Context, statement: Statement) -> SqlResult:
    """COMMENT ON TABLE, from the table's name on."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    given.no_branch("a comment is that of the whole table")
    text = read_comment(reader)
    reader.finish()
    return _altered(given, given.word, False, lambda table: alter_columns(table, table_comment(text)))


def run_column_comment(context: Context, statement: Statement) -> SqlResult:
    """COMMENT ON COLUMN, from the name on: catalog.database.table.column, or a path into a column."""
    reader = statement.reader
    word = reader.peek()
    first = reader.place
    parts = reader.name_parts("the name of a column")
    words = [one for one in reader.words[first : reader.place] if one.is_name]
    text = read_comment(reader)
    reader.finish()
    given = given_iceberg(context, reader, parts[:3], word)
    change = one_of_column(reader, words[3:], text)
    return _altered(given, word, False, lambda table: alter_columns(table, change))


def run_rename(context: Context, statement: Statement) -> SqlResult:
    """RENAME TABLE, from the table's name on."""
    return _rename(read_iceberg(context, statement.reader), if_exists=False)


def run_create_ref(context: Context, statement: Statement) -> SqlResult:
    """CREATE BRANCH or TAG … ON catalog.database.table, from BRANCH or TAG on."""
    reader = statement.reader
    kind = reader.take()
    start = reader.place
    read_if_not_exists(reader)
    reader.name(f"the name of a {kind.text.lower()}")
    reader.expect("ON")
    given = read_iceberg(context, reader)
    behind, reader.place = reader.place, start
    return _create_ref(given, kind, behind)


def run_drop_ref(context: Context, statement: Statement) -> SqlResult:
    """DROP BRANCH or TAG … ON catalog.database.table, from BRANCH or TAG on."""
    reader = statement.reader
    kind = reader.take()
    start = reader.place
    read_if_exists(reader)
    reader.name(f"the name of a {kind.text.lower()}")
    reader.expect("ON")
    given = read_iceberg(context, reader)
    behind, reader.place = reader.place, start
    return _drop_ref(given, kind, behind)


# ---------------------------------------------------------------------- running


def _altered(
    given: GivenIceberg, at: Word, if_exists: bool, alter: Callable[[IcebergTable], IcebergTable | None]
) -> SqlResult:
    if if_exists and given.find() is None:
        return SqlResult.done(f"table {given.shown} does not exist")
    table = given.open()
    with placed(given.reader, at):
        after = alter(table)
    if after is None:
        return SqlResult.done(f"table {given.shown} stays as it is")
    return SqlResult.done(f"altered table {given.shown}")


def _alter_properties(given: GivenIceberg, at: Word, if_exists: bool) -> SqlResult:
    reader = given.reader
    keyword = reader.take().keyword
    reader.accept("TBLPROPERTIES") or reader.accept("PROPERTIES") or reader.accept("OPTIONS")
    if keyword == "SET":
        if not reader.at("("):
            raise reader.error("properties in parentheses, such as ('write.target-file-size-bytes' = '134217728')")
        sets = read_properties(reader)
        reader.finish()
        return _altered(given, at, if_exists, lambda table: alter_properties(table, sets))
    if_there = read_if_exists(reader)
    keys: dict[str, Word] = {}

    def read() -> None:
        word = reader.peek()
        keys[read_option_name(reader)] = word

    reader.listed(read, "the names of properties in parentheses")
    reader.finish()

    def unset(table: IcebergTable) -> IcebergTable | None:
        there = table.properties
        for key, word in keys.items():
            if key not in there and not if_there:
                raise SqlError(f"property '{key}' is not set{nearest(key, there)}", reader.text, word.start)
        return alter_properties(table, dict.fromkeys(keys))

    return _altered(given, at, if_exists, unset)


def _rename(given: GivenIceberg, *, if_exists: bool) -> SqlResult:
    """Reads TO and the new name, which is of the same catalog."""
    reader = given.reader
    given.no_branch("a branch cannot be renamed: create another and drop this one")
    reader.expect("TO")
    at = reader.peek()
    parts = reader.name_parts("the new name of the table")
    reader.finish()
    there = given.find()
    if there is None:
        if if_exists:
            return SqlResult.done(f"table {given.shown} does not exist")
        given.open()
        there = given.name
    with placed(reader, at):
        # Parts missing in the new name stay as before.
        before = (there.catalog, there.database)[: max(3 - len(parts), 0)]
        new = given_iceberg(given.context, reader, (*before, *parts), at).name
        if new.catalog != there.catalog:
            raise InvalidError(f"a table cannot move from catalog {there.catalog} to {new.catalog}")
        check_name(new.table, "table")
        database = iceberg_database(given.catalog, new.database)
    name = f"{database}.{new.table}"
    if given.catalog.table_exists(name) and name != there.full:
        raise AlreadyExistsError(f"table {f'{there.catalog}.{name}'!r} exists")
    if name != there.full:
        given.catalog.rename_table(there.full, name)
    return SqlResult.done(f"renamed table {there.shown} to {there.catalog}.{name}")


def _create_ref(given: GivenIceberg, kind: Word, behind: int | None = None) -> SqlResult:
    """Reads a name and what follows; `behind` is the position after ON and the table, if they follow the name."""
    reader = given.reader
    given.no_branch("branches and tags are those of the whole table: name it without the branch")
    if_not_exists = read_if_not_exists(reader)
    at = reader.peek()
    name = reader.name(f"the name of a {kind.text.lower()}")
    if behind is not None:
        reader.place = behind
    snapshot = None
    if reader.accept("AS", "OF", "VERSION") or reader.accept("FOR", "VERSION", "AS", "OF"):
        snapshot = reader.integer("the id of a snapshot")
    keep = None
    if reader.accept("RETAIN"):
        number = reader.integer()
        unit = reader.one_of(*_UNITS)
        keep = timedelta(**{_UNITS[unit]: number})
    if reader.at("WITH"):
        raise SqlError(
            "WITH SNAPSHOT RETENTION: how long snapshots are kept is said when they expire",
            reader.text,
            reader.peek().start,
        )
    reader.finish()
    table = given.open()
    create = create_branch if kind.keyword == "BRANCH" else create_tag
    with placed(reader, at):
        found = create(table, name, snapshot_id=snapshot, if_not_exists=if_not_exists, keep=keep)
    return SqlResult.done(f"{kind.text.lower()} {name} of table {given.shown} is at snapshot {found}")


def _drop_ref(given: GivenIceberg, kind: Word, behind: int | None = None) -> SqlResult:
    reader = given.reader
    given.no_branch("branches and tags are those of the whole table: name it without the branch")
    if_exists = read_if_exists(reader)
    at = reader.peek()
    name = reader.name(f"the name of a {kind.text.lower()}")
    if behind is not None:
        reader.place = behind
    reader.finish()
    table = given.open()
    drop = drop_branch if kind.keyword == "BRANCH" else drop_tag
    with placed(reader, at):
        gone = drop(table, name, if_exists=if_exists)
    what = f"{kind.text.lower()} {name} of table {given.shown}"
    return SqlResult.done(f"dropped {what}" if gone else f"{what} does not exist")


# ---------------------------------------------------------------------- reading


def _read_field_change(reader: WordReader) -> Callable[[TableSchema], PartitionChange]:
    """Reads ADD, DROP or REPLACE PARTITION FIELD."""
    kind = reader.one_of("ADD", "DROP", "REPLACE")
    reader.expect("PARTITION", "FIELD")
    first = read_term(reader)
    if kind == "ADD":
        return lambda schema: PartitionChange(added=[first.term(schema)])
    if first.name is not None:
        raise SqlError("AS: a field that goes needs no name", reader.text, first.word.start)
    if kind == "DROP":
        return lambda schema: PartitionChange(dropped=[_dropped(first, schema)])
    reader.expect("WITH")
    second = read_term(reader)
    return lambda schema: PartitionChange([_dropped(first, schema)], [second.term(schema)])


def _dropped(given: GivenTerm, schema: TableSchema) -> PartitionTerm | str:
    """The partition field to drop: by its name if only a name is given, else by its term."""
    return given.path.text if given.is_column else given.term(schema)
