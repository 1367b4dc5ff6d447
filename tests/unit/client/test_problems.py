"""Errors of a service come back as the kinds that it raised."""

from http.client import HTTPMessage
from typing import Any

import pytest

from lakelet.client.connections import HttpAnswer
from lakelet.client.problems import error_of, retry_after_of
from lakelet.error_codes import ERROR_CODES
from lakelet.errors import (
    ConflictError,
    InternalError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from lakelet.service.rest.problem import problem_of
from lakelet.sql.lexer.errors import SqlError
from tests.unit.moving_clock import MovingClock


def answer_of(status: int, body: bytes, *headers: tuple[Any, Any]) -> HttpAnswer:
    message = HTTPMessage()
    for name, value in headers:
        message[name] = value
    return HttpAnswer(status, message, body)


def sent(error: Exception) -> HttpAnswer:
    """What the service answers to an error."""
    status, headers, body = problem_of(error, "r-1")
    return answer_of(status, body, *((name.decode(), value.decode()) for name, value in headers))


@pytest.mark.parametrize("kind", list(ERROR_CODES))
def test_every_kind_comes_back(kind: type[LakeletError]) -> None:
    answer = sent(kind("table 'ü' is odd"))
    found = error_of(answer, retry_after_of(answer, MovingClock()))
    assert type(found) is kind
    # What fails in the service is told by its kind alone.
    assert answer.status >= 500 or str(found) == "table 'ü' is odd"
    assert found.__dict__["request_id"] == "r-1"


def test_a_place_in_a_statement_comes_back() -> None:
    given = SqlError("expected a table", "SELECT *\nFROM", 10)
    found = error_of(sent(given), None)
    assert isinstance(found, InvalidError)
    assert (found.__dict__["line"], found.__dict__["column"]) == (given.line, given.column) == (2, 2)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidError), (401, UnauthenticatedError), (403, PermissionDeniedError), (404, NotFoundError),
        (302, InvalidError), (405, InvalidError), (413, TooLargeError), (409, InvalidError), (418, InvalidError),
        (500, InternalError), (502, UnavailableError), (503, UnavailableError), (504, UnavailableError),
        (507, InternalError),
    ],
)  # fmt: skip
def test_answers_of_others_have_the_kind_of_their_status(status: int, kind: type[LakeletError]) -> None:
    for body, content_type in ((b"<html>\xff", "text/html"), (b"{", "application/problem+json"), (b"[]", "text/plain")):
        found = error_of(answer_of(status, body, ("content-type", content_type)), None)
        assert type(found) is kind
        assert str(status) in str(found)


def test_an_unknown_code_has_the_kind_of_its_status() -> None:
    problem = ("content-type", "application/problem+json; charset=utf-8")
    found = error_of(answer_of(404, b'{"code": "gone-for-good", "title": "Gone"}', problem), None)
    assert (type(found), str(found)) == (NotFoundError, "Gone")
    found = error_of(answer_of(409, b'{"code": "conflict", "detail": "again"}', problem), None)
    assert type(found) is ConflictError


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "²", ""])
def test_a_retry_after_that_is_none(text: str) -> None:
    assert retry_after_of(answer_of(503, b"", ("retry-after", text)), MovingClock()) is None
