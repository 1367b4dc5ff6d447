import duckdb
import pyarrow as pa
import pytest

from lakelet.errors import (
    InternalError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from lakelet.sql.engine.engine_errors import Placed, lakelet_error, parser_error
from lakelet.sql.lexer.errors import SqlError


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (duckdb.BinderException("Binder Error: no such column"), InvalidError, "no such column"),
        (duckdb.ConversionException("Conversion Error: cannot"), InvalidError, "cannot"),
        (duckdb.OutOfRangeException("Out of Range Error: too big"), InvalidError, "too big"),
        (duckdb.InternalException("INTERNAL Error: oh"), InternalError, "oh"),
        (duckdb.PermissionException("Permission Error: no"), PermissionDeniedError, "no"),
        (duckdb.IOException("IO Error: disk"), UnavailableError, "disk"),
        (duckdb.IOException('IO Error: No files found that match "x"'), NotFoundError, "No files found"),
        (duckdb.OutOfMemoryException("Out of Memory Error: full"), UnavailableError, "full"),
        (duckdb.InterruptException("Interrupt Error: Interrupted!"), UnavailableError, "interrupted"),
        (pa.ArrowInvalid("Conversion Error: bad number"), InvalidError, "bad number"),
        (pa.ArrowInvalid("INTERNAL Error: oh"), InternalError, "oh"),
        (OSError("disk"), UnavailableError, "disk"),
    ],
)
def test_errors_become_ours(error: BaseException, expected: type[LakeletError], message: str) -> None:
    found = lakelet_error(error)
    assert type(found) is expected
    assert message in str(found)
    assert "Error:" not in str(found)


def test_json_gives_the_message_on_one_line_and_the_place() -> None:
    told = 'Binder Error: {"exception_type":"Binder","exception_message":"no column\\nCandidates: a\\n\\nLINE 1","position":"7"}'
    found = lakelet_error(duckdb.BinderException(told), Placed("SELECT x"))
    assert isinstance(found, SqlError)
    assert (found.reason, found.column) == ("no column; Candidates: a", 8)


def test_the_names_of_spaces_are_not_shown() -> None:
    assert str(lakelet_error(duckdb.BinderException('Binder Error: "lakelet_12.shop.t"'))) == '"shop.t"'


def test_a_parser_error_is_shown_at_its_place() -> None:
    found = parser_error({"error_message": "syntax error", "position": "9"}, Placed("SELECT 1\nx"))
    assert isinstance(found, SqlError)
    assert (found.line, found.column) == (2, 1)
    assert not isinstance(parser_error({"error_message": "syntax error"}, Placed("")), SqlError)


def test_places_in_a_changed_text_are_found_in_the_original() -> None:
    placed = Placed("aé bb cc", ((3, 5, "LONGER"), (6, 8, "")))
    assert placed.changed == "aé LONGER "
    # In bytes, of which é has two.
    assert [placed.original(place) for place in (0, 1, 3, 4, 9, 10, 11)] == [0, 1, 2, 3, 3, 5, 8]
