"""The tables that wait for a backup, in files of this machine, so that a restart goes on where the process ended.

    <folder of logs>/backup-queue/<table>.json    {"table": "default.events", "since_ms": …, "attempts": 2, "error": "…"}

A pass mirrors whatever is newest, so that one entry a table says everything. An entry that a crash of the machine has torn is
left out: a service looks at every table with backups when it starts.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from urllib.parse import quote

from lakelet.realtime.settings import wal_path
from lakelet.storage.disk.system_errors import SystemErrors

_FOLDER = "backup-queue"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class WaitingTable:
    """A table that waits: since when, how often it was tried, and why it failed last."""

    table: str
    since_ms: int
    attempts: int = 0
    error: str = ""


class RetryQueue:
    """The entries of one service; used by one thread."""

    def __init__(self, wal_folder: object) -> None:
        self.folder = wal_path(wal_folder, _FOLDER)

    def load(self) -> list[WaitingTable]:
        """All entries that can be read, the oldest first."""
        found = []
        names = sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []
        for name in names:
            if not name.endswith(_SUFFIX):
                continue
            with suppress(OSError, ValueError, TypeError), open(os.path.join(self.folder, name), "rb") as file:
                found.append(WaitingTable(**json.loads(file.read())))
        return sorted(found, key=lambda one: one.since_ms)

    def put(self, waiting: WaitingTable) -> None:
        """Keep an entry, in place of an older one of its table."""
        path = self._path(waiting.table)
        with SystemErrors(self.folder):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:
                file.write(json.dumps(asdict(waiting)))
            os.replace(f"{path}.tmp", path)

    def remove(self, table: str) -> None:
        """Remove the entry of a table that is backed up."""
        with SystemErrors(self.folder), suppress(FileNotFoundError):
            os.unlink(self._path(table))

    def _path(self, table: str) -> str:
        return os.path.join(self.folder, quote(table, safe="") + _SUFFIX)
