"""Whether rows are left in the logs of any table below a folder of logs."""

from __future__ import annotations

import os

from lakelet.errors import LakeletError
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.wal_folder import log_numbers, read_log


def logs_root(wal_folder: object) -> str:
    """The folder that the logs of all tables are in."""
    return os.path.dirname(wal_path(wal_folder, "any"))


def leftover_logs(wal_folder: object) -> list[str]:
    """The paths of logs with records, or that cannot be read; empty ones only say how numbers go on. A log that is deleted
    meanwhile is committed."""
    root, found = logs_root(wal_folder), []
    try:
        tables = sorted(entry.path for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    for table in tables:
        for number in log_numbers(table):
            path = os.path.join(table, f"wal-{number}.log")
            try:
                is_empty = not len(read_log(path).records)
            except LakeletError:
                is_empty = not os.path.exists(path)
            if not is_empty:
                found.append(path)
    return found
