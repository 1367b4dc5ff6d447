"""Parse column definitions, and paths to columns.

    price DECIMAL(10, 2) NOT NULL DEFAULT 0 COMMENT 'in euros'
    created TIMESTAMP DEFAULT current_timestamp
    address.city STRING AFTER street

Names are case-insensitive unless case distinguishes two columns, as in queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelet.catalog.names import matching
from lakelet.model.schema import TableSchema
from lakelet.model.types import Array, DataType, Field, Map, Multiset, Row, with_nullable
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.definition.default_words import Default, Expression, read_default
from lakelet.sql.statements.definition.type_words import read_type
from lakelet.sql.statements.refused import CONSTRAINTS, OBJECTS

_REFUSED = {
    **{word: CONSTRAINTS[word] for word in ("UNIQUE", "CHECK", "REFERENCES")},
    "GENERATED": "a table has no computed columns",
    "AS": "a table has no computed columns",
    "METADATA": "a table has no metadata columns; system tables show what is known of its files",
    "COLLATE": "text is compared by its UTF-8 bytes, there are no collations",
    "AUTO_INCREMENT": OBJECTS["SEQUENCE"],
    "USING": "a column changes by a cast that keeps every value, without an expression",
}


def at_bare_name(reader: WordReader) -> bool:
    """Whether a column's name without a type comes next."""
    return reader.peek().is_name and reader.peek(1).keyword in (",", ")")


def check_of_query(reader: WordReader, names: Sequence[Word], *, is_query: bool) -> None:
    """SqlError at a name without a type if no query provides it, or at a duplicate."""
    if names and not is_query:
        behind = next(word for word in reader.words if word.start >= names[0].end)
        raise reader.error("a type", behind)
    seen: set[str] = set()
    for word in names:
        if word.text.lower() in seen:
            raise SqlError(f"column {word.text!r} is given twice", reader.text, word.start)
        seen.add(word.text.lower())


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A path to a column: the words after the first lead to a nested field."""

    reader: WordReader
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The path with dots."""
        return ".".join(word.text for word in self.words)

    def resolve(self, schema: TableSchema) -> tuple[str, ...]:
        """The path in the table's own spelling; SqlError at the word that does not resolve."""
        names, _ = self._go(schema, self.words)
        return names

    def field(self, schema: TableSchema) -> Field:
        """The column itself; an element of an array or a map is a nullable field of that name."""
        names, data_type = self._go(schema, self.words)
        parents, siblings = self._inside(schema)
        found = next((field for field in siblings if field.name == names[-1]), None)
        assert parents == names[:-1]
        return found or Field(-1, names[-1], data_type)

    def parent(self) -> ColumnPath:
        """The path of the parent."""
        return ColumnPath(self.reader, self.words[:-1])

    def place_of(self, schema: TableSchema, neighbour: Word) -> str:
        """The sibling after which to put the column."""
        _, siblings = self._inside(schema)
        found = matching(neighbour.text, [field.name for field in siblings])
        if found is None:
            raise self._unknown(neighbour, siblings)
        return found

    def new(self, schema: TableSchema) -> tuple[str, ...]:
        """The path of a new column; SqlError if one of that name exists."""
        parents, siblings = self._inside(schema)
        name = self.words[-1]
        if not siblings:
            raise SqlError(
                f"column {'.'.join(parents)!r} is no ROW, to which fields can be added", self.reader.text, name.start
            )
        if any(field.name.lower() == name.text.lower() for field in siblings):
            raise SqlError(f"column {self.text!r} exists", self.reader.text, name.start)
        return (*parents, name.text)

    def exists(self, schema: TableSchema) -> bool:
        """Whether there is such a column; its parents must exist."""
        _, siblings = self._inside(schema)
        return matching(self.words[-1].text, [field.name for field in siblings]) is not None

    def _inside(self, schema: TableSchema) -> tuple[tuple[str, ...], Sequence[Field]]:
        """The path of the parent, and its fields."""
        if len(self.words) == 1:
            return (), schema.fields
        parents, data_type = self._go(schema, self.words[:-1])
        return parents, data_type.fields if isinstance(data_type, Row) else ()

    def _go(self, schema: TableSchema, words: Sequence[Word]) -> tuple[tuple[str, ...], DataType]:
        current: DataType = Row(schema.fields)
        names: list[str] = []
        for word in words:
            parts = _parts(current)
            name = matching(word.text, list(parts))
            if name is None:
                if not parts:
                    where = ".".join(names)
                    raise SqlError(
                        f"column {where!r} is {current}, which has nothing inside", self.reader.text, word.start
                    )
                raise self._unknown(word, [Field(-1, part, parts[part]) for part in parts])
            names.append(name)
            current = parts[name]
        return tuple(names), current

    def _unknown(self, word: Word, there: Sequence[Field]) -> SqlError:
        hint = nearest(word.text, [field.name for field in there])
        return SqlError(f"column {word.text!r} is not there{hint}", self.reader.text, word.start)


def read_path(reader: WordReader) -> ColumnPath:
    """Reads the name of a column, or a path into one."""
    words = [_name(reader)]
    while reader.accept("."):
        words.append(_name(reader))
    return ColumnPath(reader, tuple(words))


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a column: first, or after another."""

    after: Word | None = None

    def arguments(self, path: ColumnPath, schema: TableSchema) -> tuple[str | None, bool]:
        """The neighbour, and whether the column is first."""
        return (None, True) if self.after is None else (path.place_of(schema, self.after), False)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A parsed column definition."""

    path: ColumnPath
    type: DataType
    default: Default | None = None
    comment: str | None = None
    key: Word | None = None
    place: Place | None = None

    @property
    def name(self) -> Word:
        """Its name."""
        return self.path.words[-1]

    def as_field(self) -> Field:
        """The column for a new table, without an expression as its default."""
        literal = None if self.default is None or isinstance(self.default, Expression) else self.default.text
        return Field(-1, self.name.text, self.type, self.comment, literal)

    @property
    def expression(self) -> str | None:
        """Its default expression."""
        return self.default.text if isinstance(self.default, Expression) else None


def read_column(reader: WordReader, *, alters: bool = False) -> ColumnDefinition:
    """Reads a definition. With `alters` it may be of a nested field, and have a position."""
    path = read_path(reader) if alters else ColumnPath(reader, (_name(reader),))
    if reader.peek().keyword in _REFUSED:
        raise _refused(reader)
    data_type = read_type(reader)
    default = comment = key = place = None
    while True:
        word = reader.peek()
        if reader.accept("NOT", "NULL"):
            data_type = with_nullable(data_type, False)
        elif default is None and reader.accept("DEFAULT"):
            default = read_default(reader).of_type(reader, data_type, path.text)
        elif comment is None and reader.accept("COMMENT"):
            comment = reader.string()
        elif reader.at("PRIMARY") and not alters:
            reader.expect("PRIMARY", "KEY")
            reader.accept("NOT", "ENFORCED")
            key = word
        elif place is None and alters and word.keyword in ("FIRST", "AFTER"):
            place = read_place(reader)
        elif word.keyword in _REFUSED:
            raise _refused(reader)
        elif not reader.accept("NULL"):
            return ColumnDefinition(path, data_type, default, comment, key, place)


def read_place(reader: WordReader) -> Place:
    """Reads FIRST or AFTER column."""
    return Place(_name(reader)) if reader.one_of("FIRST", "AFTER") == "AFTER" else Place()


def _name(reader: WordReader) -> Word:
    word = reader.peek()
    reader.name("the name of a column")
    return word


def with_part(data_type: DataType, name: str, part: DataType) -> DataType | None:
    """An ARRAY, MULTISET or MAP with another type inside it; None for any other type."""
    match data_type:
        case Array() | Multiset():
            return replace(data_type, element=part)
        case Map():
            return replace(data_type, key=part) if name == "key" else replace(data_type, value=part)
        case _:
            return None


def _parts(data_type: DataType) -> dict[str, DataType]:
    """The nested types of a type, by their names in paths."""
    match data_type:
        case Row(fields):
            return {field.name: field.type for field in fields}
        case Array(element) | Multiset(element):
            return {"element": element}
        case Map(key, value):
            return {"key": key, "value": value}
        case _:
            return {}


def _refused(reader: WordReader) -> SqlError:
    word = reader.peek()
    return SqlError(f"{word.keyword}: {_REFUSED[word.keyword]}", reader.text, word.start)
