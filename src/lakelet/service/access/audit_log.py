"""The audit log: who did what and when, and how it ended. JSON lines in a file of its own, or among the log's lines.

    {"time": "2026-01-31T10:00:00.000Z", "action": "drop_table", "table": "orders", "result": "ok",
     "caller": "key 1a2b3c4d (ops)", "key": "1a2b3c4d", "peer": "10.0.0.7:40112", "edge": "rest",
     "request_id": "9f0c11aa-17", "ms": 12.4}

    always          changes of tables and keys, deletions, backups and recoveries, queries and their cancelling
    denied          every request without a key or without the right, whatever it was
    writes          counted by caller and table, a line a minute (`count`), a line each, or none

A query is told by the SHA-256 of its text, unless settings ask for the text, which holds values. Payloads, parameters and the
secrets of keys are never in it. A line that cannot be written is told in the log and fails no request.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lakelet.clock import Clock, SystemClock
from lakelet.errors import InvalidError
from lakelet.service.access.caller import Caller
from lakelet.service.timestamps import timestamp_text

_LOG = logging.getLogger("lakelet.audit")
_PRIVATE = 0o600
_MOST_COUNTS = 1000
_DENIED = frozenset(("unauthenticated", "permission-denied"))
_WRITES = frozenset(("write", "write_batch", "write_stream"))
_AUDITED = frozenset(
    (
        *("create_table", "alter_table", "drop_table", "delete_rows"),
        *("trigger_backup", "recover", "verify_backup", "query", "query_arrow", "cancel_query"),
    )
)
# The names of RPCs that are the same operation under another name.
_SAME = {"recover_data": "recover", "query_arrow": "query", "write_one": "write"}
DIGEST, TEXT, NONE, COUNT, EACH = "digest", "text", "none", "count", "each"


class ListedKey(Protocol):
    """What the log tells of an API key."""

    @property
    def name(self) -> str:
        """What the key is for."""

    @property
    def rights(self) -> Mapping[str, str]:
        """Its rights by table."""

    @property
    def revoked_at(self) -> str | None:
        """When it was revoked."""


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """A request that has ended; `result` is `ok` or the code of an error."""

    action: str
    caller: Caller
    edge: str
    peer: str
    request_id: str
    result: str
    seconds: float
    table: str | None = None
    sql: str | None = None


class AuditLog:
    """Writes lines; for any number of threads."""

    def __init__(
        self, path: str | None = None, *, sql: str = DIGEST, writes: str = COUNT, clock: Clock | None = None
    ) -> None:
        self._path = path
        self._sql = sql
        self._writes = writes
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._file = None if path is None else _opened(path)
        self._counts: dict[tuple[str, str, str], list[int]] = {}
        self._counted_since = self._clock.now_ms()
        if path is None:
            # Whatever the level of the other lines is.
            _LOG.setLevel(logging.INFO)

    def request(self, request: AuditedRequest) -> None:
        """Note a request, if it is one that is audited."""
        action = _SAME.get(request.action, request.action)
        if action in _WRITES:
            if self.write(request.caller, request.table, request.result):
                return
        elif request.result not in _DENIED and action not in _AUDITED:
            return
        line: dict[str, object] = {"action": action}
        if request.table is not None:
            line["table"] = request.table
        line |= {
            "result": request.result,
            "caller": request.caller.name,
            "key": request.caller.key_id,
            "peer": request.peer,
            "edge": request.edge,
            "request_id": request.request_id,
            "ms": round(request.seconds * 1000, 3),
        }
        if request.sql is not None and self._sql != NONE:
            if self._sql == TEXT:
                line["sql"] = request.sql
            else:
                line["sql_sha256"] = hashlib.sha256(request.sql.encode(errors="surrogatepass")).hexdigest()
        self._write(line)

    def write(self, caller: Caller, table: str | None, result: str) -> bool:
        """Count a write; False where it is to have a line of its own."""
        if self._writes == EACH or result in _DENIED:
            return False
        if self._writes == COUNT:
            key = (caller.name, caller.key_id, table or "")
            count = self._counts.get(key)
            if count is None:
                if len(self._counts) >= _MOST_COUNTS:
                    self.flush_counts()
                count = self._counts[key] = [0, 0]
            count[result != "ok"] += 1
        return True

    def keys_changed(self, before: Mapping[str, ListedKey], after: Mapping[str, ListedKey]) -> None:
        """Note what another process, `lakelet keys`, has changed."""
        for number, key in after.items():
            old = before.get(number)
            if old is None:
                self._write({"action": "create_key", "key": number, "name": key.name, "rights": dict(key.rights)})
            elif key.revoked_at is not None and old.revoked_at is None:
                self._write({"action": "revoke_key", "key": number, "name": key.name})
            elif old != key:
                self._write({"action": "change_key", "key": number, "name": key.name})
        for number in before.keys() - after.keys():
            self._write({"action": "remove_key", "key": number, "name": before[number].name})

    def flush_counts(self) -> None:
        """Write the writes that were counted since the last time."""
        with self._lock:
            counts, self._counts = self._counts, {}
            since, self._counted_since = self._counted_since, self._clock.now_ms()
        for (caller, key, table), (done, refused) in counts.items():
            line = {"action": "writes", "table": table, "caller": caller, "key": key}
            self._write({**line, "since": _moment(since), "requests": done, "refused": refused})

    def reopen(self) -> None:
        """Open the file again: it was moved away."""
        if self._path is None:
            return
        made = _opened(self._path)
        with self._lock:
            old, self._file = self._file, made
        if old is not None:
            os.close(old)

    def close(self) -> None:
        """Write what was counted, and close the file."""
        self.flush_counts()
        with self._lock:
            old, self._file = self._file, None
        if old is not None:
            os.close(old)

    def _write(self, line: Mapping[str, object]) -> None:
        entry = {"time": _moment(self._clock.now_ms()), **line}
        if self._path is None:
            _LOG.info("audit: %s", line["action"], extra={"audit": entry})
            return
        data = (json.dumps(entry, ensure_ascii=False) + "\n").encode(errors="backslashreplace")
        try:
            with self._lock:
                if self._file is not None:
                    os.write(self._file, data)
        except OSError as error:
            logging.getLogger("lakelet.service").error("the audit log cannot be written: %s", error)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
    except OSError as error:
        raise InvalidError(f"audit_file: {path} cannot be written: {error.strerror}") from None


def _moment(ms: int) -> str:
    return timestamp_text(ms * 1000)
