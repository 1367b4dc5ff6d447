"""Errors of the operating system as Lakelet's own, with the path.

Place in the data path: around every call of the local store into the system.
"""

import errno

from lakelet.errors import InvalidError, LakeletError, NotFoundError, PermissionDeniedError, UnavailableError


class SystemErrors:
    """A context that raises the system's errors as ours, with the path; a class, for there is one around every call."""

    __slots__ = ("_full",)

    def __init__(self, full: str) -> None:
        self._full = full

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise _own_error(self._full, error) from error


def _own_error(full: str, error: OSError) -> LakeletError:
    match error:
        case FileNotFoundError():
            return NotFoundError(f"{full} does not exist")
        case PermissionError():
            return PermissionDeniedError(f"{full}: the file system refused access ({error.strerror})")
        case NotADirectoryError():
            return NotFoundError(f"{full} does not exist: expected a folder, found a file")
        case IsADirectoryError():
            return NotFoundError(f"{full} is a folder; expected a file")
    if error.errno == errno.ENAMETOOLONG:
        return InvalidError(f"{full}: a part of the path is longer than the file system allows")
    return UnavailableError(f"{full}: {error.strerror or error}")
