"""Parsers of clauses shared by several statements: literals, options, partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lakelet.catalog.names import matching
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.options import PARTITION_DEFAULT_NAME, TableOptions, check_options
from lakelet.sql.lexer.errors import SqlError, UnknownNameError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.table.write.table_commit import partition_spec

_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMPTZ")
# The table's comment, which may be given as an option but is stored separately.
COMMENT_KEY = "comment"


@contextmanager
def placed(reader: WordReader, word: Word) -> Iterator[None]:
    """Adds the position of a word in the statement to InvalidError and NotFoundError."""
    try:
        yield
    except (SqlError, UnknownNameError):
        raise
    except InvalidError as error:
        raise SqlError(str(error), reader.text, word.start) from error
    except NotFoundError as error:
        raise UnknownNameError(str(error), reader.text, word.start) from error


# ---------------------------------------------------------------------- literals


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as text, None for NULL, and its word."""

    text: str | None
    word: Word


def read_literal(reader: WordReader, what: str = "a literal") -> Literal:
    """Reads a literal: text, a number, TRUE, FALSE, NULL, or a time such as DATE '2026-01-01'."""
    word = reader.peek()
    if word.kind == "string":
        reader.take()
        return Literal(_bytes_text(reader, word) if reader.text[word.start] in "xX" else word.text, word)
    if word.keyword in _TYPED and reader.peek(1).kind == "string":
        reader.take()
        return Literal(reader.string(), word)
    if word.keyword in ("TRUE", "FALSE", "NULL"):
        reader.take()
        return Literal(None if word.keyword == "NULL" else word.keyword.lower(), word)
    sign = "-" if reader.accept("-") else ""
    if not sign:
        reader.accept("+")
    if reader.peek().kind != "number":
        raise reader.error(what)
    digits = reader.take().text.replace("_", "")
    return Literal(sign + (str(int(digits, 0)) if digits[:2].lower() in ("0x", "0b") else digits), word)


def _bytes_text(reader: WordReader, word: Word) -> str:
    """Decode X'…' as UTF-8, for schemas store bytes as text."""
    try:
        return bytes.fromhex(word.text[2:-1]).decode()
    except ValueError as error:
        raise SqlError(
            "expected bytes that are UTF-8 text, two hexadecimal digits each", reader.text, word.start
        ) from error


# ---------------------------------------------------------------------- options


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """Options of a statement, and the table's comment if it is one of them."""

    values: dict[str, str]
    comment: str | None = None


def read_options(reader: WordReader) -> GivenOptions:
    """Reads ('key' = 'value', …), with known keys and valid values."""

    def check(key: str, text: str) -> None:
        if key != COMMENT_KEY:
            check_options({key: text})

    values = read_pairs(reader, "option", "an option cannot be NULL: RESET takes it back to its default", check)
    comment = values.pop(COMMENT_KEY, None)
    return GivenOptions(values, comment)


def read_pairs(
    reader: WordReader, what: str, no_null: str, check: Callable[[str, str], None] = lambda *_: None
) -> dict[str, str]:
    """Reads ('key' = 'value', …); `no_null` is the error for NULL, and `check` may refuse a value."""
    found: dict[str, str] = {}

    def read() -> None:
        word = reader.peek()
        key = read_option_name(reader)
        reader.expect("=")
        text = read_literal(reader, "a text in quotes").text
        if text is None:
            raise SqlError(no_null, reader.text, word.start)
        if key in found:
            raise SqlError(f"{what} '{key}' is given twice", reader.text, word.start)
        with placed(reader, word):
            check(key, text)
        found[key] = text

    reader.listed(read)
    return found


def read_option_name(reader: WordReader) -> str:
    """Reads the name of an option: a text, or a plain name."""
    if reader.peek().kind == "string":
        return reader.string()
    return ".".join(reader.name_parts("the name of an option in quotes"))


def read_table_query(reader: WordReader) -> tuple[tuple[int, int], bool]:
    """Reads the query after AS, up to the end: its word range, and whether WITH DATA applies."""
    first, behind, with_data = reader.place, len(reader.words), True
    last = [word.keyword for word in reader.words[-3:]]
    if last == ["WITH", "NO", "DATA"]:
        behind, with_data = behind - 3, False
    elif last[1:] == ["WITH", "DATA"]:
        behind -= 2
    if behind <= first:
        raise reader.error("a query")
    reader.place = len(reader.words)
    return (first, behind), with_data


# ---------------------------------------------------------------------- partitions


def read_partition(reader: WordReader) -> dict[Word, Literal]:
    """Reads (column = value, …)."""
    found: dict[Word, Literal] = {}

    def read() -> None:
        word = reader.peek()
        name = reader.name("a partition column")
        if any(other.text.lower() == name.lower() for other in found):
            raise SqlError(f"partition column {name!r} is given twice", reader.text, word.start)
        reader.expect("=")
        found[word] = read_literal(reader)

    reader.listed(read)
    return found


def resolve_partition(
    reader: WordReader, given: dict[Word, Literal], schema: TableSchema, table: str
) -> dict[str, object]:
    """Convert literals to the partition columns' types; SqlError at an invalid one."""
    unknown = TableOptions(schema.options).get(PARTITION_DEFAULT_NAME)
    spec: dict[str, object] = {}
    for word, literal in given.items():
        if not schema.partition_keys:
            raise SqlError(f"table {table!r} is not partitioned", reader.text, word.start)
        name = matching(word.text, schema.partition_keys)
        if name is None:
            hint = nearest(word.text, schema.partition_keys)
            raise SqlError(f"{word.text!r} is no partition column of {table!r}{hint}", reader.text, word.start)
        text = None if literal.text == unknown else literal.text
        with placed(reader, literal.word):
            spec.update(partition_spec({name: text}, schema))
    return spec


def no_such_partition(spec: dict[str, object], table: str) -> NotFoundError:
    """The error if no partition matches."""
    return NotFoundError(f"table {table!r} has no partition {partition_words(spec)}")


def partition_words(spec: dict[str, object]) -> str:
    """A partition as text for a message."""
    return ", ".join(f"{key} = {'NULL' if value is None else value}" for key, value in spec.items())


def read_if_exists(reader: WordReader) -> bool:
    """Reads an optional IF EXISTS."""
    return reader.accept("IF", "EXISTS")


def read_dependents(reader: WordReader) -> None:
    """Reads an optional CASCADE or RESTRICT, which change nothing: views are checked when they are read, as in DuckDB."""
    if not reader.accept("CASCADE"):
        reader.accept("RESTRICT")


def read_if_not_exists(reader: WordReader) -> bool:
    """Reads an optional IF NOT EXISTS."""
    return reader.accept("IF", "NOT", "EXISTS")
