"""Classify a catalog's error: was the commit refused, did it conflict, or is its outcome unknown.

REFUSED    it is certainly not committed, and the same request cannot be committed later
LOST       it is certainly not committed; recomputed from the new head it may be
UNKNOWN    the request may have been applied, or may still be
"""

from __future__ import annotations

from enum import Enum

from pyiceberg import exceptions as library
from pyiceberg.catalog import Catalog

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.library_errors import refused_status

_LOST = (
    library.CommitFailedException,
    library.WaitingForLockException,
    library.TooManyRequestsError,
)
# Not 503: a proxy between client and catalog also returns it for requests that got through.
_REFUSED = (
    library.NoSuchTableError,
    library.NoSuchNamespaceError,
    library.NoSuchIdentifierError,
    library.NamespaceNotEmptyError,
    library.NamespaceAlreadyExistsError,
    library.TableAlreadyExistsError,
    library.ForbiddenError,
    library.UnauthorizedError,
    library.AuthorizationExpiredError,
    library.OAuthError,
    library.BadRequestError,
    library.ValidationError,
    library.NotInstalledError,
    # Refused by `trust`, before anything is sent.
    InvalidError,
    TypeError,
    NotImplementedError,
)
_NOT_SENT = ("NewConnectionError", "ConnectionRefusedError", "gaierror", "NameResolutionError")


class Outcome(Enum):
    """How a request ended."""

    REFUSED = "refused"
    LOST = "lost"
    UNKNOWN = "unknown"


def outcome_of(error: Exception, catalog: Catalog) -> Outcome:
    """How a request ended that raised this."""
    if isinstance(error, library.CommitStateUnknownException):
        return Outcome.UNKNOWN
    if isinstance(error, _LOST):
        return Outcome.LOST
    # pyiceberg applies the change before it sends anything: a number that another branch has taken meanwhile is an error there.
    # A response that does not parse is not covered by this.
    if isinstance(error, ValueError) and not isinstance(error, OSError) and "pydantic" not in type(error).__module__:
        return Outcome.LOST
    if isinstance(error, _REFUSED) or refused_status(error) is not None or never_sent(error):
        return Outcome.REFUSED
    inner = getattr(error, "orig", None)
    if type(inner).__module__ == "sqlite3":
        # SQLite runs in this process: a statement that fails has changed nothing.
        return Outcome.LOST if "locked" in str(inner) else Outcome.REFUSED
    if isinstance(error, OSError) and _writes_metadata_first(error, catalog):
        return Outcome.REFUSED
    return Outcome.UNKNOWN


def never_sent(error: BaseException) -> bool:
    """Whether a request never reached the catalog, for there was no connection."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        if type(one).__name__ in _NOT_SENT:
            return True
        waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return False


def _writes_metadata_first(error: OSError, catalog: Catalog) -> bool:
    """Whether a file error means that the catalog's pointer was not touched yet: a SQL catalog writes the metadata file first,
    and errors of the database are of another kind."""
    return type(catalog).__name__ == "SqlCatalog" and not type(error).__module__.startswith("requests")
