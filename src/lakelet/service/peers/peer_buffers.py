"""The buffered rows of other nodes, for the threads in which queries run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import UnavailableError
from lakelet.realtime.read.pinned_memtables import PinnedMemtable
from lakelet.service.peers.absent_nodes import AbsentNodes
from lakelet.service.peers.peers import Peers
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
        memtables: Sequence[PinnedMemtable] = ()
        missing: tuple[str, ...] = ()
        if self._peers.are_there:
            asked = self._peers.pinned(table.name, table_identity(table.table.home))
            found = asyncio.run_coroutine_threadsafe(asked, self._loop).result()
            memtables, missing = found.memtables, found.missing
        if self._absent is not None:
            # After live nodes were asked: one that was dropped from the view meanwhile is found here.
            missing += self._absent.problems()
        for one in missing:
            self._tell(f"{one}: rows of table {table.name!r} that it has not committed may be missing", warnings)
        return memtables

    def _tell(self, text: str, warnings: list[str]) -> None:
        if self._strict:
            raise UnavailableError(text)
        warnings.append(text)
