"""The table from error kinds to codes."""

import re
from http import HTTPStatus
from pathlib import Path

import pytest

from lakelet import error_codes, errors
from lakelet.commit.conflict.conflicts import SequenceConflictError
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.error_codes import ERROR_CODES, codes_of
from lakelet.errors import ConflictError, InternalError, InvalidError, LakeletError, NotFoundError
from lakelet.sql.lexer.errors import SqlError

_KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LakeletError) and kind is not LakeletError
]
# https://grpc.github.io/grpc/core/md_doc_statuscodes.html
_GRPC = {
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
}


def test_every_kind_has_codes() -> None:
    assert set(ERROR_CODES) == set(_KINDS)


def test_codes_are_distinct_and_mean_an_error() -> None:
    assert len({one.code for one in ERROR_CODES.values()}) == len(ERROR_CODES)
    for codes in ERROR_CODES.values():
        assert 400 <= HTTPStatus(codes.http_status) < 600
        assert codes.grpc_status in _GRPC
        # 2, 130 and 141 are the command line's own.
        assert codes.exit_status == 1


@pytest.mark.parametrize("kind", _KINDS)
def test_who_is_to_blame_is_the_same_on_both_wires(kind: type[LakeletError]) -> None:
    """A client repeats what is UNAVAILABLE, and mends what is its own fault."""
    codes = codes_of(kind)
    blamed = codes.grpc_status in {
        *("INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "ABORTED"),
        *("RESOURCE_EXHAUSTED", "UNAUTHENTICATED"),
    }
    assert (codes.http_status < 500) is blamed
    assert (codes.http_status == 503) is (codes.grpc_status == "UNAVAILABLE")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SqlError("wrong", "SELECT", 0), InvalidError),
        (SequenceConflictError, ConflictError),
        (SnapshotExpiredError, NotFoundError),
        (ZeroDivisionError("a defect"), InternalError),
        (LakeletError("of no kind"), InternalError),
    ],
)
def test_an_error_has_the_codes_of_its_kind(error: BaseException, kind: type[LakeletError]) -> None:
    assert codes_of(error) == ERROR_CODES[kind]


def test_the_tables_for_people_are_this_one() -> None:
    expected = {
        (kind.__name__, one.code, str(one.exit_status), str(one.http_status), one.grpc_status)
        for kind, one in ERROR_CODES.items()
    }
    shown = re.findall(r"^    (\w+Error) +(\S+) +(\d+) +(\d+) +(\S+)$", error_codes.__doc__ or "", re.MULTILINE)
    assert set(shown) == expected
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    listed = re.findall(r"^\| `(\w+Error)` \| (\d+) \|", page, re.MULTILINE)
    assert set(listed) == {(name, status) for name, _, status, _, _ in expected}
