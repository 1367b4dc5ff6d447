"""What one node knows of idempotency keys itself: those in its logs, and those that nodes which have left hand to all others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakelet.cluster.left_keys import LeftKeys
from lakelet.cluster.membership import Membership
from lakelet.errors import LakeletError, NotFoundError
from lakelet.format.wal.wal_group import WalKey
from lakelet.service.peers.absent_nodes import AbsentNodes

if TYPE_CHECKING:
    from lakelet.service.replicas.adoption import Adoption
    from lakelet.service.service import Service

# The nodes, the ring and how often a node was announced: as long as they are the same, no node has left.
_View = tuple[int, int, frozenset[str], frozenset[str]]


class KnownKeys:
    """Looks keys up in threads of the service; used on its event loop."""

    def __init__(self, service: Service, members: Membership, absent: AbsentNodes | None, adoption: Adoption) -> None:
        self._service = service
        self._members = members
        self._absent = absent
        self._adoption = adoption
        self._left = LeftKeys(service.lake.table_home("any.any").store, service.clock)
        self._announced = 0
        # By table: the view under which keys that were left behind are known here.
        self._taken: dict[str, tuple[object, _View]] = {}

    def note_announcement(self) -> None:
        """A node is new: when it is gone again it may have left keys."""
        self._announced += 1

    async def kept_keys(self, table: str, names: Sequence[bytes]) -> Mapping[bytes, WalKey]:
        """The requests of these names that are written here, or whose keys were left behind."""
        await self._service.know(table)
        return await self._service.in_thread(self._find, table, names)

    async def problems(self, tables: Sequence[str]) -> tuple[str, ...]:
        """Why keys of these tables may be known to nodes that cannot be asked."""
        found: tuple[str, ...] = ()
        if self._absent is not None and self._absent.may_be_there:
            found = await self._service.in_thread(self._absent.problems)
        view = self._view()
        for table in tables:
            opened = self._service.tables.try_open(table)
            if opened is not None:
                try:
                    self._adoption.check_not_adopting(opened)
                except LakeletError as error:
                    found = (*found, str(error))
            if self._taken.get(table) == (opened, view):
                continue
            try:
                await self._service.in_thread(self._take_left, table)
            except LakeletError as error:
                found = (*found, f"keys of nodes that have left cannot be read: {error}")
            else:
                self._taken[table] = (opened, view)
        return found

    async def has_primary_key(self, table: str) -> bool:
        """Whether rows that are written again are there once."""
        return bool(await self._service.in_thread(lambda: self._service.tables.open(table).schema.primary_keys))

    def _view(self) -> _View:
        marked = frozenset[str]() if self._absent is None else self._absent.marked
        return self._announced, self._members.epoch, frozenset(node.id for node in self._members.nodes()), marked

    def _find(self, table: str, names: Sequence[bytes]) -> Mapping[bytes, WalKey]:
        try:
            opened = self._service.tables.open(table)
        except NotFoundError:
            return {}
        self._adoption.check_not_adopting(opened)
        if opened.writer is None and not os.path.isdir(opened.wal_path):
            return {}
        return opened.open_writer().find_keys(names)

    def _take_left(self, table: str) -> None:
        """Keep what nodes that have left knew of a table in the log folder of this one."""
        opened = self._service.tables.open(table)
        folder = os.path.basename(opened.wal_path)
        for keys in self._left.parts(folder):
            opened.open_writer().keep_keys(keys)
