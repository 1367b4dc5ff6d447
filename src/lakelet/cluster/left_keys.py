"""Idempotency keys that nodes leave behind in the warehouse when they end, for those that are there afterwards.

    service/keys/{folder of the table's logs}@{node}@{time in ms}@{part}    JSON: [[name, time_ms, note], …], bytes in hexadecimal

A node writes them when all its rows are committed and before it leaves, in parts of bounded size. Who has not seen them takes
them into its own log folder. They are deleted when the last of their keys has not been valid for a day.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator

from lakelet.clock import Clock
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.wal.wal_group import WalKey
from lakelet.realtime.wal.key_file import VALID_MS, KeyFile
from lakelet.realtime.wal.leftover_logs import logs_root
from lakelet.storage.store import ObjectStore

_FOLDER = "service/keys"


class LeftKeys:
    """The keys that were left in a warehouse; for threads."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def leave(self, node: str, wal_folder: object) -> None:
        """Leave the valid keys of all tables below a folder of logs behind, durably when it returns."""
        now_ms, root = self._clock.now_ms(), logs_root(wal_folder)
        try:
            folders = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return
        for folder in folders:
            file = KeyFile(os.path.join(root, folder))
            try:
                for number, keys in enumerate(file.valid(now_ms)):
                    data = json.dumps([(key.name.hex(), key.time_ms, key.note.hex()) for key in keys]).encode()
                    self._store.put(f"{_FOLDER}/{folder}@{node}@{now_ms}@{number}", data)
            finally:
                file.close()

    def parts(self, folder: str) -> Iterator[list[WalKey]]:
        """What was left of a table, in parts, each of them once: it counts as seen when the next one is asked for."""
        now_ms = self._clock.now_ms()
        with self._lock:
            for one in self._store.list_folder(_FOLDER).files:
                name = one.path.rpartition("/")[2]
                table, _, rest = name.partition("@")
                time = rest.split("@")[1] if rest.count("@") == 2 else ""
                if not time.isdecimal() or name in self._seen:
                    continue
                if int(time) < now_ms - 2 * VALID_MS:
                    self._store.delete([one.path])
                elif table == folder:
                    if (keys := self._read(one.path)) is not None:
                        yield keys
                    self._seen.add(name)

    def _read(self, path: str) -> list[WalKey] | None:
        try:
            found = json.loads(self._store.get(path))
            return [WalKey(bytes.fromhex(name), int(time_ms), bytes.fromhex(note)) for name, time_ms, note in found]
        except NotFoundError:
            # Another node has deleted it meanwhile, for it is old.
            return None
        except (ValueError, TypeError) as error:
            raise CorruptionError(f"{path}: expected keys of requests, found: {error}") from None
