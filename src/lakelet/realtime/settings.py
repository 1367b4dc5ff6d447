"""The settings of a row writer, from the table's options and the caller's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.options import (
    MEMTABLE_CONCURRENT_FLUSHES,
    MEMTABLE_FLUSH_THRESHOLD,
    MEMTABLE_MAX_NUMBER,
    MEMTABLE_SIZE,
    MEMTABLE_WAIT_TIMEOUT,
    WAL_SYNC,
    WAL_SYNC_INTERVAL,
    TableOptions,
    check_options,
)

ALWAYS, INTERVAL = "always", "interval"


@dataclass(frozen=True, slots=True)
class RowWriterSettings:
    """Limits of memtables, and when logs are synced."""

    memtable_bytes: int
    flush_bytes: int
    memtables: int
    flushes: int
    wait_seconds: float
    sync: str
    sync_interval_seconds: float

    @staticmethod
    def of(schema: TableSchema, given: Mapping[str, str] | None) -> RowWriterSettings:
        """The settings of a table, some of them overridden."""
        if given is not None and not isinstance(given, Mapping):
            raise InvalidError(f"options: expected a mapping of names to values, found {type(given).__name__}")
        check_options(given or {})
        options = TableOptions({**schema.options, **(given or {})})
        size = options.get(MEMTABLE_SIZE)
        return RowWriterSettings(
            memtable_bytes=size,
            flush_bytes=max(1, int(size * options.get(MEMTABLE_FLUSH_THRESHOLD))),
            memtables=options.get(MEMTABLE_MAX_NUMBER),
            flushes=options.get(MEMTABLE_CONCURRENT_FLUSHES),
            wait_seconds=options.get(MEMTABLE_WAIT_TIMEOUT).total_seconds(),
            sync=options.get(WAL_SYNC),
            sync_interval_seconds=max(0.001, options.get(WAL_SYNC_INTERVAL).total_seconds()),
        )


def wal_path(folder: object, identity: str) -> str:
    """The folder of a table's logs, below the given one or `lakelet/wal` in the user's state folder."""
    if folder is None:
        state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        folder = os.path.join(state, "lakelet", "wal")
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise InvalidError(f"wal_folder: expected the path of a folder, found {folder!r}")
    parent = os.fspath(folder)
    if not isinstance(parent, str) or "://" in parent:
        raise InvalidError(f"wal_folder: expected a folder of this machine, found {folder!r}")
    name = quote(identity, safe="+")
    # A UUID is what whoever prepared the warehouse has written: two dots would be another folder.
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    return os.path.join(os.path.abspath(os.path.expanduser(parent)), name)
