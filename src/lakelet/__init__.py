"""Lakelet: a lakehouse in Python.

import lakelet
lake = lakelet.connect("./warehouse")
"""

from typing import TYPE_CHECKING

from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    CorruptionError,
    InternalError,
    InvalidError,
    LakeletError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from lakelet.session_factory import provide_sessions
from lakelet.writer_factory import provide_writers

if TYPE_CHECKING:
    from lakelet.catalog import Lake, connect
    from lakelet.table import Table

__all__ = [
    "AlreadyExistsError",
    "CommitUnknownError",
    "ConflictError",
    "CorruptionError",
    "InternalError",
    "InvalidError",
    "Lake",
    "LakeletError",
    "NotFoundError",
    "OverloadedError",
    "PermissionDeniedError",
    "Table",
    "TooLargeError",
    "UnauthenticatedError",
    "UnavailableError",
    "connect",
]

_HOMES = {"Lake": "lakelet.catalog", "Table": "lakelet.table", "connect": "lakelet.catalog"}


def __getattr__(name: str) -> object:
    """Load the public names of Lakelet at their first use, so that the command line starts at once."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - as below.

        return version("lakelet")
    if name not in _HOMES:
        raise AttributeError(f"module 'lakelet' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above.

    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def _new_session(lake: object) -> object:
    from importlib import import_module  # noqa: PLC0415 - as above.

    return import_module("lakelet.sql.session").Session(lake)


provide_sessions(_new_session)


def _new_writer(for_asyncio: bool, home: object, wal_folder: object, options: object) -> object:
    from importlib import import_module  # noqa: PLC0415 - as above.

    opened = import_module("lakelet.realtime.open")
    return (opened.open_async_writer if for_asyncio else opened.open_writer)(home, wal_folder, options)


provide_writers(_new_writer)
