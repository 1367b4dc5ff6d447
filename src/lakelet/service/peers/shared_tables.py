"""The tables of a service that other nodes serve, too: what this node asks of them, and what they ask of it.

write   a record goes to the node that owns it; what is ordered here is ordered after all that others have acknowledged
read    rows that others have buffered; tables that they have created
drop    they commit their rows first, and serve the table no more
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lakelet.cluster.membership import Membership
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import UnavailableError
from lakelet.realtime.read.pinned_memtables import PinnedMemtable
from lakelet.service.ingest.request_keys import UnitKey
from lakelet.service.ingest.write_unit import WriteUnit
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.peers.fragment_server import FragmentServer
from lakelet.service.peers.key_claims import KeyClaims
from lakelet.service.peers.known_keys import KnownKeys
from lakelet.service.peers.peer_buffers import PeerBuffers
from lakelet.service.peers.peers import MOST_ROUNDS, Peers
from lakelet.service.replicas.replica_calls import ReplicaCalls
from lakelet.service.replicas.replicas import Replicas
from lakelet.service.values import ABSENT, BatchRequest, Node, WriteRequest, WriteResult

if TYPE_CHECKING:
    from lakelet.service.peers.peer_workers import PeerWorkers
    from lakelet.service.service import Service
    from lakelet.service.tables.served_table import OpenTable

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
# How often a node looks for tables that others have created or dropped; one that is asked for is looked for at once.
_FOLLOW_SECONDS = 5


class SharedTables:
    """The side of a service that other nodes see; used on its event loop, but for `buffers` and `leave`."""

    def __init__(
        self,
        service: Service,
        members: Membership,
        peers: Peers,
        absent: AbsentNodes | None = None,
        calls: ReplicaCalls | None = None,
    ) -> None:
        self._service = service
        self.members = members
        self.peers = peers
        # Nodes that died with rows which may not be committed.
        self.absent = absent
        self._loop: asyncio.AbstractEventLoop | None = None
        self._following: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self.fragments = FragmentServer(service)
        # Copies of logs: of this node's at others, of others' here.
        self.replicas = Replicas(service, members, calls or ReplicaCalls(peers.access), absent)
        service.tables.copies = self.replicas.copies
        self._keys = KnownKeys(service, members, absent, self.replicas.adoption)
        self._claims = KeyClaims(members, peers, self._keys, service.clock)
        self._refreshing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for the tables of other nodes from now on."""
        self._loop = asyncio.get_running_loop()
        self._following = self._loop.create_task(self._follow())
        self._looking = self._loop.create_task(self._look_at_copies())

    def stop(self) -> None:
        """Look for them no more."""
        for task in (self._following, self._looking):
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """Run nothing more for other nodes."""
        self.fragments.close()
        self.replicas.close()

    def nodes(self) -> list[Node]:
        """The nodes of the cluster, this one and absent ones included; for a thread."""
        absent = () if self.absent is None else self.absent.found()
        return [
            *(
                Node(one.id, one.rest_address or one.address, one.status, one.heartbeat_ms * 1000)
                for one in self.members.nodes()
            ),
            *(Node(one.id, one.address, ABSENT, 0) for one in absent),
        ]

    def problem(self) -> str | None:
        """What is wrong with the cluster; for a thread."""
        absent = () if self.absent is None else self.absent.problems()
        found = [*filter(None, (self.members.problem(),)), *absent]
        return "; ".join(found) or None

    # ------------------------------------------------------------------ what this node asks

    @property
    def buffers(self) -> PeerBuffers | None:
        """The rows that other nodes have buffered, for threads; None before the start."""
        if self._loop is None:
            return None
        strict = self._service.settings.query_strict
        return PeerBuffers(self.peers, self._loop, strict=strict, absent=self.absent)

    async def flush_elsewhere(self, table: str) -> None:
        """Have all other nodes commit what they have buffered of a table; UnavailableError where one cannot, or is absent."""
        asked: frozenset[str] = frozenset()
        problems: tuple[str, ...] = ()
        for _ in range(MOST_ROUNDS):
            asked |= await self.peers.flush(table, besides=asked)
            if self.absent is not None:
                problems = await self._in_thread(self.absent.problems, asked | {self.peers.own})
            if not self.peers.unasked(asked):
                break
        if problems:
            raise UnavailableError(f"{'; '.join(problems)}: it may have rows of table {table!r}")

    @property
    def workers(self) -> PeerWorkers | None:
        """The nodes that queries are spread over, for threads; None before the start."""
        if self._loop is None:
            return None
        from lakelet.service.peers.peer_workers import PeerWorkers  # noqa: PLC0415 - DuckDB is loaded by the first query.

        return PeerWorkers(self.members, self.peers, self._loop, self._service.clock)

    async def write(self, request: WriteRequest, caller: str) -> WriteResult:
        """Have a record written by the node that owns it, or here where that is this one, or cannot be reached."""
        if self.peers.are_there:
            done = await self.peers.forward(request, caller)
            if done is not None:
                return done
            if not self.peers.owns(request):
                return await self.in_order(request.table, lambda: self._service.write_owned(request, caller))
        return await self._service.write_owned(request, caller)

    async def write_unit(self, table: str, unit: WriteUnit) -> WriteResult:
        """Write a record here; one with a key only if no other node has written it."""
        if unit.key is None:
            return await self._service.ingest.write(table, unit)
        return await self._claims.write(table, unit.key, lambda: self._service.ingest.write(table, unit))

    async def write_batch(self, request: BatchRequest, key: UnitKey | None) -> WriteResult:
        """Write a batch here, whole; one with a key only if no other node has written it."""

        async def write() -> WriteResult:
            return await self.in_order(request.table, lambda: self._service.ingest.write_batch(request, key))

        return await (write() if key is None else self._claims.write(request.table, key, write))

    async def in_order(self, table: str, write: Callable[[], Awaitable[T]]) -> T:
        """Write here what other nodes may write, too: of a table with a primary key, the later write is to win everywhere."""
        opened = self._service.tables.open(table)
        if not self.peers.are_there or not opened.schema.primary_keys:
            return await write()
        await self.peers.exchange_clocks()
        done = await write()
        await self.peers.exchange_clocks()
        return done

    def leaving(self, table: str) -> Callable[[bool], None]:
        """What has all other nodes serve a table no more, told whether it is deleted; for a thread."""
        return partial(self._leave, table)

    def _leave(self, table: str, is_deleted: bool) -> None:
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self.peers.leave(table, is_deleted=is_deleted), self._loop).result()

    # ------------------------------------------------------------------ what other nodes ask

    async def pin_buffers(self, table: str) -> tuple[str, tuple[PinnedMemtable, ...]]:
        """The identity of a table, and the rows that this node has acknowledged and may not have committed."""
        self._check_started()
        return await self._in_thread(self._pin, table)

    async def look_at_nodes(self, new: str = "") -> None:
        """Look at the registry, in which a node is new, and for its marker: where Redis does not tell of it, the marker does."""
        self._keys.note_announcement()
        await self.members.refresh()
        if self.absent is not None:
            await self._in_thread(self.absent.look)
        # Its clock is known here before it takes a record.
        known = frozenset(node.id for node in self.members.nodes()) if new else frozenset[str]()
        await self.peers.exchange_clocks(besides=known - {new})

    async def claimed_keys(self, request: Any) -> Any:
        """What this node knows of requests with keys."""
        self._check_started()
        self.note_epoch(request.epoch)
        return await self._claims.answers(request)

    def note_epoch(self, epoch: int) -> None:
        """Look for the ring that another node knows, where it is newer."""
        if epoch > self.members.epoch and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self.members.refresh())

    async def flush_table(self, table: str) -> None:
        """Commit what this node has buffered of a table."""
        self._check_started()
        opened = self._opened(table)
        if opened is not None:
            await self._in_thread(opened.flush)

    async def leave_table(self, table: str, *, is_deleted: bool) -> None:
        """Commit what this node has buffered of a table that another node drops, and serve it no more."""
        self._check_started()
        await self._service.ingest.leave(table)
        await self._in_thread(partial(self._service.tables.leave, table, is_deleted=is_deleted))
        self._service.stored_stats.forget(table)

    def _pin(self, table: str) -> tuple[str, tuple[PinnedMemtable, ...]]:
        opened = self._opened(table)
        writer = None if opened is None else opened.writer
        if opened is None or writer is None:
            return "", ()
        return table_identity(opened.table.home), writer.pin()

    def _check_started(self) -> None:
        if not self._service.has_started:
            # What a crash left in logs is being committed: until then nobody can tell what is missing.
            raise UnavailableError("the node is starting")

    def _opened(self, table: str) -> OpenTable | None:
        """A table that is served here, None for one of which this node has no rows."""
        opened = self._service.tables.try_open(table)
        if opened is None:
            self._service.tables.check_opened(table)
        return opened

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await self._service.in_thread(function, *arguments)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_FOLLOW_SECONDS)
            # Each for itself: a table that cannot be looked at hides no death, and holds up no clock.
            await self._try(self.peers.exchange_clocks(), "clocks of other nodes cannot be asked for")
            if self.absent is not None:
                await self._try(self._in_thread(self.absent.look), "markers of nodes cannot be looked for")
            await self._try(self._in_thread(self._service.tables.follow), "tables of other nodes cannot be looked for")

    async def _look_at_copies(self) -> None:
        """For itself: it may wait for commits, and clocks may not."""
        while True:
            await asyncio.sleep(_FOLLOW_SECONDS)
            await self._try(self._in_thread(self.replicas.look), "copies of logs cannot be looked at")

    async def _try(self, work: Awaitable[object], problem: str) -> None:
        try:
            await work
        except Exception as error:
            _LOG.warning("%s: %s", problem, error)
