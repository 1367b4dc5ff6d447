"""Lakelet: a lakehouse in Python.

import lakelet
lake = lakelet.connect("./warehouse")
"""

from lakelet.catalog import Lake, connect
from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    CorruptionError,
    InternalError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
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
    "PermissionDeniedError",
    "Table",
    "UnavailableError",
    "connect",
]
