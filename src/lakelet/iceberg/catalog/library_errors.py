"""Convert errors of pyiceberg, of catalog drivers and of file systems into LakeletErrors.

Every call of the library is inside `lakelet_errors`: a catalog that is down, refuses the caller or has no driver here is
reported in one line that begins with the object of the call, and never as a page of another library's frames. Secrets that a
message quotes, such as those in an address, are left out.
"""

from __future__ import annotations

import errno
import re
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
            library.NoSuchPropertyException,
        ),
        NotFoundError,
    ),
    ((library.TableAlreadyExistsError, library.NamespaceAlreadyExistsError), AlreadyExistsError),
    (
        (
            library.UnauthorizedError,
            library.ForbiddenError,
            library.AuthorizationExpiredError,
            library.OAuthError,
            library.SignError,
        ),
        PermissionDeniedError,
    ),
    ((library.BadRequestError,), InvalidError),
    ((library.RESTError, library.DynamoDbError, ConnectionError, TimeoutError), UnavailableError),
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
            ImportError,
        ),
        InvalidError,
    ),
)


# Of a REST catalog's answers that pyiceberg has no kind for: those after which the request may still be carried out.
_UNDECIDED = (408, 499)
_STATUSES: dict[int, type[LakeletError]] = {404: NotFoundError, 429: UnavailableError}
# A proxy may answer with a page in a single line.
_SHOWN = 500
# What a message may quote of an address or a header: user:password@, parameters that hold secrets, tokens.
_QUOTED = (
    (re.compile(r"(?<=//)[^/@\s'\"]*:[^/@\s'\"]*(?=@)"), "***"),
    (
        re.compile(r"([?&][^=&\s]*(?:secret|password|token|credential|key)[^=&\s]*=)[^&/\s'\"]+", re.IGNORECASE),
        r"\1***",
    ),
    (re.compile(r"\b(Bearer|Basic) +[^\s'\"]+"), r"\1 ***"),
)


def refused_status(error: BaseException) -> int | None:
    """The status of an answer of a REST catalog that says that a request was not carried out and why not, for which pyiceberg has
    no error of its own; None for everything else."""
    status = getattr(getattr(error.__cause__, "response", None), "status_code", None)
    if type(error) is not library.RESTError or not isinstance(status, int):
        return None
    return status if 400 <= status < 500 and status not in _UNDECIDED else None


def without_secrets(text: str) -> str:
    """A message of another library without the passwords and tokens that it quotes."""
    for pattern, shown in _QUOTED:
        text = pattern.sub(shown, text)
    return text


@contextmanager
def lakelet_errors(what: str) -> Iterator[None]:
    """Converts errors of the block into a LakeletError that begins with `what`, such as "table ice.shop.orders"."""
    try:
        yield
    except LakeletError:
        raise
    except Exception as error:
        raise _translated(error, what) from error


def _translated(error: Exception, what: str) -> Exception:
    status = refused_status(error)
    if status is not None:
        return _STATUSES.get(status, InvalidError)(f"{what}: {first_line(error)}")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        # As of a partition whose value is long; a retry does not help.
        return InvalidError(f"{what}: a part of the path is longer than the file system allows")
    for kinds, made in _KINDS:
        if isinstance(error, kinds) and not _is_driver(error):
            return made(f"{what}: {first_line(error)}")
    found = _driver_kind(error)
    if found is None:
        return error
    says = {UnavailableError: "the catalog does not answer", PermissionDeniedError: "the catalog refused the caller"}
    return found(f"{what}: {says.get(found, 'the catalog cannot be opened')}: {first_line(error)}")


# Libraries between pyiceberg and a catalog. Some of their errors are kinds of OSError or ValueError too.
_DRIVERS = ("sqlalchemy", "requests", "urllib3", "thrift", "botocore", "boto3", "google", "psycopg2", "pydantic")
# Error kinds by the names of the drivers' error classes; the first match is used.
_SAID: tuple[tuple[tuple[str, ...], type[LakeletError]], ...] = (
    (("NoCredentials", "PartialCredentials", "Forbidden", "AccessDenied", "TokenRetrieval"), PermissionDeniedError),
    (("ArgumentError", "NoSuchModule", "InvalidURL", "MissingSchema", "InvalidSchema", "NoRegion"), InvalidError),
    (("ValidationError", "ProfileNotFound", "ParamValidation"), InvalidError),
    (("IntegrityError",), ConflictError),
)
# Servers' messages about a wrong password; only the message tells, for databases have one error class for all that.
_REFUSED = ("password", "authentication failed", "access denied", "permission denied", "accessdenied", "not authorized")


def _is_driver(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in _DRIVERS


def _driver_kind(error: Exception) -> type[LakeletError] | None:
    """The error kind of a driver's error; None for an error of no driver, which is a defect and is not converted."""
    if not _is_driver(error) and not type(error).__module__.startswith("pydantic_core"):
        return None
    name = type(error).__name__
    for words, made in _SAID:
        if any(word in name for word in words):
            return made
    text = str(error).lower()
    return PermissionDeniedError if any(word in text for word in _REFUSED) else UnavailableError


def first_line(error: BaseException) -> str:
    """The message of another library's error, cut to one line of bounded length, without secrets."""
    lines = [line.strip() for line in without_secrets(str(error)).strip().splitlines()]
    if not lines:
        return type(error).__name__
    # pydantic has the number of findings in the first line and the findings in those below.
    text = "; ".join(lines[:3]) if "validation error" in lines[0] else lines[0]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
