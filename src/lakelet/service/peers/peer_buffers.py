"""The buffered rows of other nodes, for the threads in which queries run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import UnavailableError
from lakelet.realtime.read.pinned_memtables import PinnedMemtable
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.peers.peers import MOST_ROUNDS, Peers
from lakelet.service.query.served_table import ServedTable


class PeerBuffers:
    """Asks other nodes on the event loop of the service. With `strict`, an answer without a node's rows is an error."""

    def __init__(
        self, peers: Peers, loop: asyncio.AbstractEventLoop, *, strict: bool, absent: AbsentNodes | None = None
    ) -> None:
        self._peers = peers
        self._loop = loop
        self._strict = strict
        self._absent = absent

    def pinned(self, table: ServedTable, warnings: list[str]) -> Sequence[PinnedMemtable]:
        """The rows of a table that other nodes have acknowledged and may not have committed."""
        unsettled = self._peers.unsettled()
        if unsettled is not None:
            self._tell(
                f"{unsettled}: rows of table {table.name!r} that they have not committed may be missing", warnings
            )
        memtables: list[PinnedMemtable] = []
        missing: list[str] = []
        absent: tuple[str, ...] = ()
        asked: frozenset[str] = frozenset()
        own = frozenset((self._peers.own,))
        for _ in range(MOST_ROUNDS):
            if self._peers.unasked(asked):
                asking = self._peers.pinned(table.name, table_identity(table.table.home), asked)
                found = asyncio.run_coroutine_threadsafe(asking, self._loop).result()
                memtables += found.memtables
                missing += found.missing
                asked |= found.asked
            if self._absent is not None:
                # After live nodes were asked: one that was dropped from the view meanwhile is found here.
                absent = self._absent.problems(asked | own)
            # One that has come back meanwhile is no longer absent, and is asked itself.
            if not self._peers.unasked(asked):
                break
        for one in (*missing, *absent):
            self._tell(f"{one}: rows of table {table.name!r} that it has not committed may be missing", warnings)
        return memtables

    def _tell(self, text: str, warnings: list[str]) -> None:
        if self._strict:
            raise UnavailableError(text)
        warnings.append(text)
