"""What DuckDB says went wrong, as errors of Lakelet: one line, the kind a caller can act on, the place in the text."""

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
# The catalog of one query, in which its tables are shown, and the one of the session's temporary tables.
_SPACE = re.compile(r"\blakelet_\d+\.|\blakelet_temporary\.main\.|\blakelet_temporary\.")
# Columns and tables that statements are made of, and nobody has written: among the names that DuckDB suggests, and elsewhere.
_OWN = r'"?(?:temp\.)?(?:main\.)?(?:"?\w+"?\.)?(?:__lakelet_\w+|lakelet_rows_\d+)"?'
_SUGGESTED = re.compile(rf"(?<=: ){_OWN}, |, {_OWN}|\s*(?:Candidate [\w ]+:|Did you mean:?) {_OWN}(?:\?|$)")
_NAMED = re.compile(_OWN)
# A remedy that is none here: only some settings can be changed.
_ADVICE = re.compile(r'\s*(?:Use|You can use|Consider) "SET [^"]*"[^.]*\.?')
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
    """A text that was changed here and there before DuckDB saw it: `edits` are (start, end, new text) of the original."""

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
        """The place in the original text of a place, in bytes, in the changed one."""
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
    """The error of ours that says the same. `shift` is how many bytes stood before the text."""
    if isinstance(error, duckdb.InterruptException):
        return UnavailableError("the query was interrupted")
    if isinstance(error, OSError) and _PREFIX.match(str(error)):
        # What goes wrong behind the first rows comes through an Arrow stream, as a text.
        return lakelet_error(_inner(error), placed, shift=shift)
    message, place = _told(str(error))
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
    """Whether DuckDB says of which kind an error is; of a file that makes no sense it does not."""
    if isinstance(error, OSError) or type(error) is duckdb.Error:
        return _PREFIX.match(str(error)) is not None
    return True


def parser_error(tree: dict[str, object], placed: Placed) -> LakeletError:
    """What a query that does not parse is answered with."""
    message, place = _line(str(tree.get("error_message"))), tree.get("position")
    if isinstance(place, str) and place.isdigit():
        return SqlError(message, placed.text, placed.original(int(place)))
    return InvalidError(message)


def _told(text: str) -> tuple[str, int | None]:
    """The message and the place, in bytes, out of DuckDB's text, which holds JSON."""
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
    """A message on one line."""
    head = _ADVICE.sub("", _SPACE.sub("", message.split("\n\nLINE ", 1)[0]))
    head = _NAMED.sub("the table", _SUGGESTED.sub("", head))
    if _NO_ROWID.search(head):
        return "a table has no rowid: its rows have no numbers; row_number() OVER (ORDER BY …) gives them some"
    parts = [part.strip() for part in head.splitlines() if part.strip()]
    return " ".join(part if part.endswith((".", "!", "?", ":")) else f"{part};" for part in parts).rstrip(";")


def _inner(error: BaseException) -> BaseException:
    """An error of DuckDB's that came out through an Arrow stream, by the kind that its text names."""
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
