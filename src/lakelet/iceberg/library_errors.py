"""Errors of pyiceberg, SQLAlchemy and the file systems below, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg import exceptions as library

from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)

_KINDS: tuple[tuple[tuple[type[Exception], ...], type[LakeletError]], ...] = (
    ((library.CommitStateUnknownException,), CommitUnknownError),
    ((library.CommitFailedException, library.WaitingForLockException), ConflictError),
    (
        (
            library.NoSuchTableError,
            library.NoSuchNamespaceError,
            library.NoSuchIdentifierError,
            library.NoSuchViewError,
        ),
        NotFoundError,
    ),
    ((library.TableAlreadyExistsError, library.NamespaceAlreadyExistsError), AlreadyExistsError),
    (
        (library.UnauthorizedError, library.ForbiddenError, library.AuthorizationExpiredError, library.OAuthError),
        PermissionDeniedError,
    ),
    ((library.RESTError, ConnectionError, TimeoutError), UnavailableError),
    ((FileNotFoundError,), NotFoundError),
    ((PermissionError,), PermissionDeniedError),
    ((OSError,), UnavailableError),
    (
        (
            library.ValidationError,
            library.ValidationException,
            library.NamespaceNotEmptyError,
            library.NotInstalledError,
            library.ResolveError,
            ValueError,
            TypeError,
            NotImplementedError,
        ),
        InvalidError,
    ),
)


@contextmanager
def lakelet_errors(what: str) -> Iterator[None]:
    """Raises what goes wrong inside as an error of ours that begins with `what`, such as "table ice.shop.orders"."""
    try:
        yield
    except LakeletError:
        raise
    except Exception as error:
        raise _translated(error, what) from error


def _translated(error: Exception, what: str) -> Exception:
    if type(error).__module__.startswith(("sqlalchemy.", "requests.")):
        return UnavailableError(f"{what}: the catalog does not answer: {_first_line(error)}")
    for kinds, made in _KINDS:
        if isinstance(error, kinds):
            return made(f"{what}: {_first_line(error)}")
    return error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
