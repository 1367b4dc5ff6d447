"""The column changes of ALTER TABLE: parsed from words, applied to a schema.

A change is a function from the old schema to the new one. It resolves its columns in that very schema, so that a statement keeps
its meaning after a concurrent schema change, and an error points at the offending word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.types import DataType, with_nullable
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.definition.column_words import (
    ColumnDefinition,
    ColumnPath,
    Place,
    read_column,
    read_path,
    read_place,
    with_part,
)
from lakelet.sql.statements.definition.default_words import Default, Expression, GivenDefault, read_default
from lakelet.sql.statements.definition.type_words import read_type
from lakelet.sql.statements.text.clauses import Literal, placed

Change = Callable[[TableSchema], TableSchema]
_ASPECTS = ("TYPE", "SET", "DROP", "COMMENT", "FIRST", "AFTER")


def in_order(changes: Sequence[Change]) -> Change:
    """Compose changes, applied in order."""

    def change(schema: TableSchema) -> TableSchema:
        for one in changes:
            schema = one(schema)
        return schema

    return change


def added(columns: Sequence[ColumnDefinition], *, if_not_exists: bool) -> Change:
    """Add columns."""

    def add(column: ColumnDefinition) -> Change:
        def change(schema: TableSchema) -> TableSchema:
            path = column.path
            if if_not_exists and path.exists(schema):
                return schema
            names = path.new(schema)
            after, first = (None, False) if column.place is None else column.place.arguments(path, schema)
            literal = column.as_field().default
            with placed(path.reader, column.name):
                with_column = evolution.add_column(
                    schema, names, column.type, default=literal, comment=column.comment, after=after, first=first
                )
                if column.expression is None:
                    return with_column
                return evolution.change_default_expression(with_column, names, column.expression)

        return change

    return in_order([add(column) for column in columns])


def dropped(paths: Sequence[ColumnPath], *, if_exists: bool) -> Change:
    """Drop columns."""

    def drop(path: ColumnPath) -> Change:
        def change(schema: TableSchema) -> TableSchema:
            if if_exists and not path.exists(schema):
                return schema
            names = path.resolve(schema)
            with placed(path.reader, path.words[-1]):
                return evolution.drop_column(schema, names)

        return change

    return in_order([drop(path) for path in paths])


def renamed(reader: WordReader) -> Change:
    """Reads `a TO b`, which renames a column."""
    path = read_path(reader)
    reader.expect("TO")
    word = reader.peek()
    return _rename(path, reader.name("the new name of the column"), word)


def _rename(path: ColumnPath, new_name: str, word: Word) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        names = path.resolve(schema)
        if new_name.lower() != names[-1].lower():
            ColumnPath(path.reader, (*path.words[:-1], word)).new(schema)
        with placed(path.reader, path.words[-1]):
            return evolution.rename_column(schema, names, new_name)

    return change


def read_listed(reader: WordReader, read: Callable[[WordReader], Change]) -> Change:
    """Reads one or more changes, with or without parentheses around them."""
    if reader.at("("):
        return in_order(reader.listed(lambda: read(reader)))
    found = [read(reader)]
    while reader.accept(","):
        found.append(read(reader))
    return in_order(found)


def read_changed(reader: WordReader) -> Change:
    """Reads a column and its change, in the syntax of ALTER COLUMN."""
    path = read_path(reader)
    if reader.peek().keyword not in _ASPECTS:
        raise reader.error("TYPE, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, COMMENT, FIRST or AFTER")
    changes = []
    while reader.peek().keyword in _ASPECTS:
        changes.append(_read_aspect(reader, path))
    return in_order(changes)


def _read_aspect(reader: WordReader, path: ColumnPath) -> Change:
    word = reader.peek()
    if reader.accept("TYPE") or reader.accept("SET", "DATA", "TYPE"):
        at = reader.peek()
        change = _type(path, read_type(reader), at)
        if reader.at("USING"):
            raise SqlError(
                "USING: a column changes by a cast that keeps every value, without an expression",
                reader.text,
                reader.peek().start,
            )
        return change
    if reader.accept("SET", "NOT", "NULL"):
        return _nullability(path, word, nullable=False)
    if reader.accept("DROP", "NOT", "NULL"):
        return _nullability(path, word, nullable=True)
    if reader.accept("SET", "DEFAULT"):
        return _default(path, read_default(reader))
    if reader.accept("DROP", "DEFAULT"):
        return _default(path, GivenDefault(Literal(None, word)))
    if reader.accept("COMMENT"):
        return _comment(path, reader.string())
    if word.keyword in ("FIRST", "AFTER"):
        return _move(path, read_place(reader))
    reader.take()
    raise reader.error("NOT NULL or DEFAULT" if word.keyword == "DROP" else "DATA TYPE, NOT NULL or DEFAULT")


def read_modified(reader: WordReader, *, renames: bool) -> Change:
    """Reads a column's new definition, in the syntax of MODIFY; with `renames` its new name first, in that of CHANGE.

    The definition has the whole type, so a column without NOT NULL becomes nullable; comment, default and position are kept
    where it has none.
    """
    start = reader.place
    path = read_path(reader)
    if reader.peek().keyword in _ASPECTS and reader.peek(1).keyword not in (",", ")"):
        reader.place = start
        return read_changed(reader)
    if not renames:
        reader.place = start
        return _redefine(path, read_column(reader, alters=True))
    definition = read_column(reader, alters=True)
    change = _redefine(path, replace(definition, path=path))
    if len(definition.path.words) > 1:
        raise SqlError("the new name of a column has one part", reader.text, definition.path.words[0].start)
    return in_order([change, _rename(path, definition.name.text, definition.name)])


def _redefine(path: ColumnPath, definition: ColumnDefinition) -> Change:
    changes = [_type(path, definition.type, path.words[-1], redefines=True)]
    if definition.default is not None:
        changes.append(_default(path, GivenDefault(definition.default)))
    if definition.comment is not None:
        changes.append(_comment(path, definition.comment))
    if definition.place is not None:
        changes.append(_move(path, definition.place))
    return in_order(changes)


def one_of_column(reader: WordReader, words: Sequence[Word], comment: str | None) -> Change:
    """A comment on the column that these words name."""
    return _comment(ColumnPath(reader, tuple(words)), comment)


# ---------------------------------------------------------------------- each aspect


def _type(path: ColumnPath, data_type: DataType, word: Word, *, redefines: bool = False) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        names, old = path.resolve(schema), path.field(schema).type
        is_key = len(names) == 1 and names[0] in schema.primary_keys
        keeps = data_type.nullable and not (redefines and not is_key)
        with placed(path.reader, word):
            return _with_type(schema, path, with_nullable(data_type, old.nullable) if keeps else data_type)

    return change


def _nullability(path: ColumnPath, word: Word, *, nullable: bool) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        with placed(path.reader, word):
            return _with_type(schema, path, with_nullable(path.field(schema).type, nullable))

    return change


def _with_type(schema: TableSchema, path: ColumnPath, data_type: DataType) -> TableSchema:
    """Change the type of a column, its NOT NULL included. An element of an array or a map is changed with the whole type."""
    names, old = path.resolve(schema), path.field(schema).type
    if len(names) > 1:
        whole = with_part(path.parent().field(schema).type, names[-1], data_type)
        if whole is not None:
            return _with_type(schema, path.parent(), whole)
    if with_nullable(data_type, True) != with_nullable(old, True):
        schema = evolution.change_type(schema, names, data_type)
    if data_type.nullable != old.nullable:
        schema = evolution.change_nullability(schema, names, nullable=data_type.nullable)
    return schema


def _default(path: ColumnPath, given: GivenDefault) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        names = path.resolve(schema)
        default: Default = given.written
        with placed(path.reader, default.word):
            if len(names) == 1 and isinstance(default, Expression):
                default = given.of_type(path.reader, path.field(schema).type, names[0])
            if isinstance(default, Expression):
                return evolution.change_default_expression(schema, names, default.text)
            return evolution.change_default(schema, names, default.text)

    return change


def _comment(path: ColumnPath, text: str | None) -> Change:
    return lambda schema: evolution.change_comment(schema, path.resolve(schema), text)


def _move(path: ColumnPath, place: Place) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        names = path.resolve(schema)
        after, first = place.arguments(path, schema)
        with placed(path.reader, place.after or path.words[-1]):
            return evolution.move_column(schema, names, after=after, first=first)

    return change
