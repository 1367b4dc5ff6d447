"""The way of one table's logs to the node that holds their copy: begun, kept while that node takes them, moved when it does not.

    none ── first group: open at a node, copy all logs, create the next generation ── linked ── groups
                 another node, all logs, the next generation ── an error, a slow answer, a node that leaves

The generation is created in the warehouse (`cluster/replica_records`) when the new copy has everything, and before anything is
acknowledged by it. A copy that fails is never written again, so that no late message of it can matter. A new copy also gets the
names of writes whose logs are committed: whoever adopts it knows the requests of a day.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.clock import Clock
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.replica_records import COPIED, ReplicaRecord, ReplicaRecords
from lakelet.errors import LakeletError, UnavailableError
from lakelet.format.wal.wal_group import WalKey
from lakelet.ids import Ids
from lakelet.realtime.wal.log_copy import LogPart, LogsAdoptedError
from lakelet.service.replicas.replica_calls import NotCopiedError, ReplicaCalls, Sent

if TYPE_CHECKING:
    from lakelet.service.replicas.replica_nodes import ReplicaNodes

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 1.0
_TOKEN_LETTERS = 12
# Logs have numbers from 1 on.
_NO_LOG = 0


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """Whose logs are copied: the node, the table by identity and full name, and the folder of its logs."""

    origin: str
    identity: str
    table: str
    folder: str


@dataclass(frozen=True, slots=True)
class _Link:
    node: ClusterNode
    token: str


class LogLink:
    """The copy of one table's logs (`realtime/wal/log_copy.LogCopy`)."""

    def __init__(
        self,
        logged: LoggedTable,
        nodes: ReplicaNodes,
        calls: ReplicaCalls,
        records: ReplicaRecords,
        clock: Clock,
        ids: Ids,
        part_bytes: int,
        ended: Callable[[], None],
        kept: Callable[[], Iterable[Sequence[WalKey]]],
    ) -> None:
        """`kept` has the names of writes whose log is committed, in parts."""
        self.logged = logged
        self._nodes = nodes
        self._calls = calls
        self._records = records
        self._clock = clock
        self._ids = ids
        # The most that is sent in one message.
        self._part_bytes = part_bytes
        self._ended = ended
        self._kept = kept
        # Held while a copy begins: names of a log that is committed meanwhile are kept before they are read, or sent to it.
        self._begins = threading.Lock()
        # Names that a copy was sent and may not have.
        self._due: list[WalKey] = []
        self._link: _Link | None = None
        # The copy that counts, also where it has failed; and those that count no longer.
        self._last: _Link | None = None
        self._superseded: list[_Link] = []
        # What the copy has of each log.
        self._sizes: dict[int, int] = {}
        self._sent: Sent | None = None
        self._failure: NotCopiedError | None = None
        # The newest generation that is known here; None before the first look.
        self._generation: int | None = None
        self._is_to_move = False
        # Whether the marker of this node may be gone.
        self._is_to_mark = False
        self._retry_at: float | None = None
        self.retry_seconds = _RETRY_SECONDS
        # Why there is no copy.
        self.problem: str | None = None
        self.bytes_sent = 0
        self.begun = 0

    @property
    def holder(self) -> str | None:
        """The id of the node that holds the copy."""
        link = self._link
        return None if link is None else link.node.id

    def move(self) -> None:
        """Begin another copy with the next group; for any thread."""
        self._is_to_move = True

    def drop_superseded(self) -> None:
        """Have copies deleted that count no longer; for any thread."""
        while self._superseded:
            self._drop(self._superseded.pop())

    # ------------------------------------------------------------------ groups

    def prepare(self, logs: Callable[[], Sequence[LogPart]]) -> None:
        """See to it that there is a copy."""
        if self._link is None or self._is_to_move:
            if self._retry_at is not None and self._clock.monotonic() < self._retry_at:
                raise UnavailableError(self._refusal(), retry_after_seconds=_RETRY_SECONDS)
            self._open(logs)

    def send(self, log: LogPart, data: bytes) -> None:
        """Begin to write a group into the copy."""
        self._failure = None
        assert self._link is not None
        try:
            has = self._sizes.get(log.number, 0)
            if has < log.size:
                # The header of a new log.
                with open(log.path, "rb") as file:
                    file.seek(has)
                    data = file.read(log.size - has) + data
            self._sent = self._send(self._link, log.number, has, data)
            self._sizes[log.number] = has + len(data)
        except (NotCopiedError, OSError) as error:
            self._failure = error if isinstance(error, NotCopiedError) else NotCopiedError(str(error))

    def wait(self, logs: Callable[[], Sequence[LogPart]]) -> None:
        """Return when the group is durable in a copy."""
        sent, self._sent = self._sent, None
        try:
            if self._failure is not None:
                raise self._failure
            assert sent is not None
            sent.wait()
        except NotCopiedError as error:
            _LOG.warning("table %s: its logs go to another node: %s", self.logged.table, error)
            if self._link is not None:
                self._nodes.avoid(self._link.node.id)
            self._link = None
            self._open(logs)

    def abandon(self) -> None:
        """Begin another copy with the next group."""
        self._link, self._sent = None, None

    def committed(self, number: int, keys: Sequence[WalKey]) -> None:
        """Have a log deleted whose rows are committed; for any thread."""
        with self._begins:
            link = self._link
            if link is None:
                return
            self._due += keys
            try:
                self._calls.drop_logs(link.node, self.logged.origin, link.token, number, self._due)
                self._due = []
            except NotCopiedError as error:
                # The next group finds out, or the holder that the rows are committed.
                _LOG.info("table %s: a copy of a log stays: %s", self.logged.table, error)

    def close(self, *, all_committed: bool) -> None:
        """End; the copy is deleted where all rows are committed."""
        link, self._link = self._link, None
        self._ended()
        if not all_committed:
            return
        self.drop_superseded()
        if link is not None:
            self._drop(link)
        if self._generation is not None:
            try:
                self._records.delete(self.logged.origin, self.logged.folder)
            except LakeletError as error:
                _LOG.info("table %s: records of copies stay: %s", self.logged.table, error)

    # ------------------------------------------------------------------ copies

    def _open(self, logs: Callable[[], Sequence[LogPart]]) -> None:
        """Begin a copy with all logs at the first node that takes it."""
        try:
            with self._begins:
                self._begin(logs)
        except LakeletError as error:
            self._retry_at = self._clock.monotonic() + self.retry_seconds
            self.problem = str(error)
            raise UnavailableError(self._refusal(), retry_after_seconds=_RETRY_SECONDS) from error
        self._retry_at, self.problem, self._is_to_move = None, None, False

    def _begin(self, logs: Callable[[], Sequence[LogPart]]) -> None:
        logged = self.logged
        newest = self._records.newest(logged.origin, logged.folder)
        generation = 0 if newest is None else newest.generation
        before = self._generation
        is_gone = before is not None and generation < before
        if is_gone or (newest is not None and newest.state != COPIED):
            self._is_to_mark = True
            # This node was taken for dead: its marker may be gone, and is back before any row. Where that fails nothing is
            # learned yet: the next look has to find the adoption once more.
            self._nodes.mark()
        self._generation = generation
        if is_gone:
            raise LogsAdoptedError("the records of its copies were deleted: a node may have committed its rows")
        if newest is not None and newest.state != COPIED and before is not None and generation > before:
            raise LogsAdoptedError(f"node {newest.holder} commits what this one has acknowledged so far")
        problems = []
        for node in self._nodes.candidates(logged.folder):
            link = _Link(node, f"{generation + 1}-{self._ids.uuid().replace('-', '')[:_TOKEN_LETTERS]}")
            try:
                self._calls.open(node, logged.origin, link.token, logged.identity, logged.table)
                sizes = self._copied(link, logs())
                for names in self._kept():
                    self._calls.drop_logs(node, logged.origin, link.token, _NO_LOG, names)
            except NotCopiedError as error:
                problems.append(str(error))
                self._nodes.avoid(node.id)
                continue
            made = ReplicaRecord(logged.origin, logged.folder, generation + 1, node.id, link.token, logged.table)
            if not self._records.claim(made):
                raise UnavailableError("another copy of its logs has come to count")
            self._generation = made.generation
            if self._is_to_mark:
                # Whoever deleted the marker meanwhile may have looked for copies before this one counted.
                self._nodes.mark()
                self._is_to_mark = False
            if self._last is not None:
                self._superseded.append(self._last)
            self._last = self._link = link
            self._sizes, self._due = sizes, []
            self.begun += 1
            with suppress(LakeletError):
                self._records.delete_before(made)
            return
        raise UnavailableError("; ".join(problems) or "there is no other node that could")

    def _copied(self, link: _Link, logs: Sequence[LogPart]) -> dict[int, int]:
        """Copy logs; what the copy has of each."""
        sizes: dict[int, int] = {}
        for log in logs:
            try:
                with open(log.path, "rb") as file:
                    data = file.read(log.size)
            except FileNotFoundError:
                # Its rows are committed by now.
                continue
            self._send(link, log.number, 0, data).wait()
            sizes[log.number] = len(data)
        return sizes

    def _send(self, link: _Link, number: int, offset: int, data: bytes) -> Sent:
        """Send bytes of a log in parts, the last of which is on its way when this returns."""
        view, place = memoryview(data), 0
        self.bytes_sent += len(data)
        while True:
            part = bytes(view[place : place + self._part_bytes])
            is_last = place + len(part) >= len(data)
            sent = self._calls.append(
                link.node, self.logged.origin, link.token, number, offset + place, part, durable=is_last
            )
            if is_last:
                return sent
            sent.wait()
            place += len(part)

    def _drop(self, link: _Link) -> None:
        """Have a copy deleted that is needed no more. A node that does not hear of it finds out from the records."""
        try:
            self._calls.drop(link.node, self.logged.origin, link.token)
        except NotCopiedError as error:
            _LOG.info("table %s: a copy of its logs stays for a while: %s", self.logged.table, error)

    def _refusal(self) -> str:
        return f"rows of table {self.logged.table} cannot be written to a second node (wal_replicas): {self.problem}"
