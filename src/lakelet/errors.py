"""Every error a caller of Lakelet can meet.

    LakeletError
    ├── InvalidError            the request is wrong: unknown option, wrong type, forbidden schema change
    ├── NotFoundError           the table, snapshot, tag, column or file does not exist
    ├── AlreadyExistsError      something of that name exists
    ├── ConflictError           another writer changed what this commit relied on; nothing was committed
    ├── CommitUnknownError      the outcome of the commit is unknown: the store did not answer, and reading it back failed
    ├── CorruptionError         a file exists but its bytes do not decode, or contradict the metadata
    ├── UnavailableError        the store or a service did not answer; the same call may succeed later
    ├── OverloadedError         a service has more requests than it can hold; this one was not taken, and may be sent again
    ├── TooLargeError           the request is larger than a limit; the same request never succeeds
    ├── PermissionDeniedError   the store or the service refused the caller
    ├── UnauthenticatedError    a service does not know who the caller is
    └── InternalError           a defect of Lakelet itself

A message names the path or identifier, what was expected and what was found. A new kind is added
only when a caller would act differently on it.
"""


class LakeletError(Exception):
    """The root of all errors raised on purpose."""


class InvalidError(LakeletError):
    """The request is invalid, whatever the state of the table."""


class NotFoundError(LakeletError):
    """What the request names does not exist."""


class AlreadyExistsError(LakeletError):
    """What the request would create exists already."""


class ConflictError(LakeletError):
    """A concurrent change made this commit impossible; nothing of it is visible."""


class CommitUnknownError(LakeletError):
    """The outcome of the commit is unknown; its files were left in place."""


class CorruptionError(LakeletError):
    """Stored bytes do not decode, or decode to something impossible."""


class UnavailableError(LakeletError):
    """A store or service failed to answer; for a write the outcome is unknown, unless it says that nothing was done, or when
    to come back, which says the same."""

    def __init__(self, *args: object, nothing_done: bool = False, retry_after_seconds: float | None = None) -> None:
        super().__init__(*args)
        self.nothing_done = nothing_done or retry_after_seconds is not None
        self.retry_after_seconds = retry_after_seconds


class OutcomeUnknownError(LakeletError):
    """Another node of the service was asked to write and did not answer: whether it did is unknown."""


class OverloadedError(LakeletError):
    """The service holds as many requests as it can; nothing of this one was done."""

    def __init__(self, message: str, *, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TooLargeError(LakeletError):
    """The request is larger than a limit of the service; nothing of it was done."""


class PermissionDeniedError(LakeletError):
    """The store or service refused the caller's credentials or rights."""


class UnauthenticatedError(LakeletError):
    """The request has no credentials, or unknown ones."""


class InternalError(LakeletError):
    """An invariant of Lakelet does not hold."""
