"""Translate DuckDB's errors into Lakelet's: one line, an error kind that a caller can act on, the position in the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from lakelet.errors import (
    InternalError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from lakelet.sql.lexer.errors import SqlError

_PREFIX = re.compile(r"^[A-Z][\w-]*(?: [\w-]+)* Error: ")
# The catalog of one query, which holds its tables, and that of the session's temporary tables.
_SPACE = re.compile(r"\blakelet_\d+\.|\blakelet_temporary\.main\.|\blakelet_temporary\.")
# Internal columns and tables of generated queries: among the names that DuckDB suggests, and elsewhere.
_OWN = r'"?(?:temp\.)?(?:main\.)?(?:"?\w+"?\.)?(?:__lakelet_\w+|lakelet_rows_\d+)"?'
_SUGGESTED = re.compile(rf"(?<=: ){_OWN}, |, {_OWN}|\s*(?:Candidate [\w ]+:|Did you mean:?) {_OWN}(?:\?|$)")
_NAMED = re.compile(_OWN)
# Advice that does not apply here: only some settings can be changed.
_ADVICE = re.compile(r'\s*(?:Use|You can use|Consider) "SET [^"]*"[^.]*\.?')
# The cast of a result's UHUGEINT (`sql/engine/unsigned_results`), at no place of the text, or one of the text.
_UNSIGNED = re.compile(r"Type UINT128 with value (\d+) can't be cast .* destination type INT128\b")
_NO_ROWID = re.compile(r'(?:column|named) "rowid"(?: not found)?', re.IGNORECASE)
_KINDS: tuple[tuple[type[BaseException], type[LakeletError]], ...] = (
    (duckdb.InternalException, InternalError),
    (duckdb.FatalException, InternalError),
    (duckdb.PermissionException, PermissionDeniedError),
    (duckdb.HTTPException, UnavailableError),
    (duckdb.IOException, UnavailableError),
    (duckdb.OutOfMemoryException, UnavailableError),
    (OSError, UnavailableError),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A query text edited before DuckDB sees it: `edits` are (start, end, new text) of the original."""

    text: str
    edits: tuple[tuple[int, int, str], ...] = field(default=())

    @property
    def changed(self) -> str:
        """The text that DuckDB sees."""
        parts, place = [], 0
        for start, end, new in self.edits:
            parts += [self.text[place:start], new]
            place = end
        return "".join((*parts, self.text[place:]))

    def original(self, byte_place: int) -> int:
        """Map a byte offset in the edited text to a position in the original."""
        place = len(self.changed.encode()[:byte_place].decode(errors="ignore"))
        shift = 0
        for start, end, new in self.edits:
            if place < start + shift:
                break
            if place < start + shift + len(new):
                return start
            shift += len(new) - (end - start)
        return min(place - shift, len(self.text))


def lakelet_error(error: BaseException, placed: Placed | None = None, *, shift: int = 0) -> LakeletError:
    """The LakeletError for an error of DuckDB. `shift` is the number of bytes before the text."""
    if isinstance(error, duckdb.InterruptException):
        return UnavailableError("the query was interrupted")
    if isinstance(error, OSError) and _PREFIX.match(str(error)):
        # An error after the first rows is raised by the Arrow stream, as a text.
        return lakelet_error(_inner(error), placed, shift=shift)
    message, place = _parsed_message(str(error))
    huge = _UNSIGNED.search(message)
    if huge is not None:
        return InvalidError(
            f"the UHUGEINT {huge[1]} is greater than any HUGEINT, and than what a result holds; CAST it to VARCHAR"
        )
    for theirs, ours in _KINDS:
        if isinstance(error, theirs):
            if isinstance(error, duckdb.IOException) and "No files found" in message:
                return NotFoundError(message)
            return ours(message)
    if isinstance(error, pa.ArrowException):
        return lakelet_error(_inner(error), placed, shift=shift)
    if place is not None and placed is not None:
        return SqlError(message, placed.text, placed.original(max(place - shift, 0)))
    return InvalidError(message)


def has_kind(error: BaseException) -> bool:
    """Whether DuckDB reports the kind of an error; for a corrupt file it does not."""
    if isinstance(error, OSError) or type(error) is duckdb.Error:
        return _PREFIX.match(str(error)) is not None
    return True


def parser_error(tree: dict[str, object], placed: Placed) -> LakeletError:
    """The error for a query that does not parse."""
    message, place = _line(str(tree.get("error_message"))), tree.get("position")
    if isinstance(place, str) and place.isdigit():
        return SqlError(message, placed.text, placed.original(int(place)))
    return InvalidError(message)


def _parsed_message(text: str) -> tuple[str, int | None]:
    """Parse the message and the position, in bytes, from DuckDB's error text, which holds JSON."""
    bare = _PREFIX.sub("", text)
    if bare.startswith("{"):
        try:
            found = json.loads(bare)
        except ValueError:
            return _line(bare), None
        place = found.get("position")
        return _line(str(found.get("exception_message"))), int(place) if place is not None else None
    return _line(bare), None


def _line(message: str) -> str:
    """A message on one line, without internal names."""
    head = _ADVICE.sub("", _SPACE.sub("", message.split("\n\nLINE ", 1)[0]))
    head = _NAMED.sub("the table", _SUGGESTED.sub("", head))
    if _NO_ROWID.search(head):
        return "a table has no rowid: its rows have no numbers; row_number() OVER (ORDER BY …) gives them some"
    parts = [part.strip() for part in head.splitlines() if part.strip()]
    return " ".join(part if part.endswith((".", "!", "?", ":")) else f"{part};" for part in parts).rstrip(";")


def _inner(error: BaseException) -> BaseException:
    """The DuckDB error raised through an Arrow stream, of the kind that its text names."""
    text = str(error)
    for name, kind in (
        ("Conversion", duckdb.ConversionException),
        ("IO Error", duckdb.IOException),
        ("Interrupt", duckdb.InterruptException),
        ("Out of Memory", duckdb.OutOfMemoryException),
        ("INTERNAL", duckdb.InternalException),
    ):
        if name in text[:120]:
            return kind(text)
    return duckdb.InvalidInputException(text)
