"""Errors for data files that a snapshot names and the store lacks; `expired_file` decides which of them to raise."""

from __future__ import annotations

from lakelet.errors import CorruptionError, NotFoundError


class MissingFileError(CorruptionError):
    """A file is missing that the table still names."""


class SnapshotExpiredError(NotFoundError):
    """The version that was being read was expired meanwhile. The newest one can be read instead."""
