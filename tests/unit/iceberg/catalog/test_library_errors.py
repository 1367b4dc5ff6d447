"""Conversion of errors of other libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from pyiceberg.exceptions import RESTError, ServerError

import lakelet
from lakelet.errors import InvalidError, LakeletError, NotFoundError, UnavailableError
from lakelet.iceberg.catalog.library_errors import first_line, lakelet_errors, refused_status, without_secrets


def answered(status: int, kind: type[Exception] = RESTError, text: str = "said") -> Exception:
    """What pyiceberg raises for an answer of a REST catalog."""
    response = requests.Response()
    response.status_code = status
    error = kind(text)
    error.__cause__ = requests.HTTPError(response=response)
    return error


@pytest.mark.parametrize(
    ("status", "expected", "refused"),
    [
        (404, NotFoundError, True),
        (405, InvalidError, True),
        (422, InvalidError, True),
        (429, UnavailableError, True),
        (408, UnavailableError, False),
        (499, UnavailableError, False),
    ],
)
def test_answers_without_a_kind_of_their_own(status: int, expected: type[LakeletError], *, refused: bool) -> None:
    error = answered(status)
    with pytest.raises(expected, match=r"^table t: said$"), lakelet_errors("table t"):
        raise error
    assert refused_status(error) == (status if refused else None)


def test_a_partition_that_no_folder_can_be_called_after(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t (id INT, p STRING) USING iceberg PARTITIONED BY (p)")
    with pytest.raises(InvalidError, match="longer than the file system allows"):
        lake.sql(f"INSERT INTO iceberg.db.t VALUES (1, 'a'), (2, '{'x' * 300}')")
    assert lake.sql("SELECT * FROM iceberg.db.t").rows() == []
    assert not list(tmp_path.rglob("*.parquet"))


def test_what_is_no_refusal() -> None:
    assert refused_status(answered(503, ServerError)) is None
    assert refused_status(RESTError("without an answer")) is None
    assert refused_status(ValueError("of another kind")) is None


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no adapter for 'ftp://user:pw@host/x'", "no adapter for 'ftp://***@host/x'"),
        ("url: /v1?Token=pw&x=1", "url: /v1?Token=***&x=1"),
        ("bad header b'Bearer pw'", "bad header b'Bearer ***'"),
        ("http://host:80/a@b: no", "http://host:80/a@b: no"),
    ],
)
def test_secrets_are_left_out(said: str, shown: str) -> None:
    assert without_secrets(said) == shown


def test_pages_become_one_line() -> None:
    assert first_line(RESTError("502:\n<html>\n")) == "502:"
    assert len(first_line(RESTError("x" * 10_000))) == 501
    assert first_line(RESTError("")) == "RESTError"
