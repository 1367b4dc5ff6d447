"""Commit the rows of a node that is gone, from the copies of its logs that this one holds.

A node is gone when it is not live in the view of the cluster, does not answer at its address, and has sent nothing for a while.
If it is alive all the same nothing is lost: the copy takes nothing more from the moment before it is claimed, so that the node
acknowledges nothing by it, and commits are recognised by their user and number, whoever makes them.

    close the copy ── claim it in the warehouse ── commit its logs, in their order ── keep its keys ── say so ── delete it
                       another one counts: delete it

The marker of a node of which all copies are adopted is deleted by whoever sees it first.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.held_copy import HeldCopy
from lakelet.cluster.left_keys import LeftKeys
from lakelet.cluster.membership import Membership
from lakelet.cluster.node_markers import NodeMarkers
from lakelet.cluster.replica_records import ADOPTED, COPIED, ReplicaRecords
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import LakeletError, NotFoundError, OutcomeUnknownError
from lakelet.realtime.open import recover_table
from lakelet.realtime.wal.key_file import KeyFile
from lakelet.service.replicas.held_logs import HeldLogs
from lakelet.service.replicas.replica_calls import ReplicaCalls
from lakelet.storage.home import TableHome

if TYPE_CHECKING:
    from lakelet.service.peers.absent_nodes import AbsentNodes
    from lakelet.service.service import Service
    from lakelet.service.tables.served_table import OpenTable

_LOG = logging.getLogger(__name__)
# A node that has sent something since is alive.
_SILENT_SECONDS = 5.0
# Copies of live nodes are looked at for whether they still count.
_STALE_SECONDS = 60.0


class Adoption:
    """Looks at the copies that a node holds; one thread at a time."""

    def __init__(
        self,
        service: Service,
        members: Membership,
        calls: ReplicaCalls,
        held: HeldLogs,
        records: ReplicaRecords,
        markers: NodeMarkers,
        absent: AbsentNodes | None,
    ) -> None:
        self._service = service
        self._members = members
        self._calls = calls
        self._held = held
        self._records = records
        self._markers = markers
        self._absent = absent
        # Copies that may be claimed, and are not committed yet.
        self._adopting: frozenset[HeldCopy] = frozenset()
        # Nodes that were gone at the last look, too.
        self._gone: frozenset[str] = frozenset()
        self.adopted_rows = 0
        self.adopted = 0

    def check_not_adopting(self, opened: OpenTable) -> None:
        """OutcomeUnknownError while requests may be in a copy whose rows are being committed."""
        adopting = {copy.identity for copy in self._adopting}
        # As it was opened: the event loop asks, and waits for no store.
        if adopting and opened.identity in adopting:
            raise OutcomeUnknownError(f"table {opened.name!r}: logs of a node that is gone are being committed")

    def resume(self) -> None:
        """Go on where an earlier process of this node was interrupted, before requests are taken."""
        for copy, _ in self._held.all():
            try:
                newest = self._records.newest(copy.origin, copy.folder)
                if newest is not None and newest.token == copy.token and newest.state != COPIED:
                    self.adopt(copy)
            except (LakeletError, OSError) as error:
                # It may have been claimed.
                self._adopting |= {copy}
                _LOG.warning("the copy of the logs of node %s, %s: %s", copy.origin, copy.table, error)

    def look(self) -> None:
        """Adopt the copies of nodes that are gone, and delete those that count no longer."""
        copies = self._held.all()
        marked = () if self._absent is None else self._absent.found()
        if not (copies or marked) or self._members.unsettled() is not None:
            return
        live = {node.id for node in self._members.nodes()}
        gone = frozenset((*(copy.origin for copy, _ in copies), *(node.id for node in marked))) - live
        settled, self._gone = gone & self._gone, gone
        silent = frozenset(id for id in settled if not self._answers(id))
        for copy, seconds in copies:
            try:
                if copy.origin in live:
                    self._look_at_live(copy, seconds)
                elif copy.origin in silent and (seconds is None or seconds >= _SILENT_SECONDS):
                    self.adopt(copy)
            except (LakeletError, OSError) as error:
                _LOG.warning("the copy of the logs of node %s, %s: %s", copy.origin, copy.table, error)
        for node in marked:
            if node.id in silent:
                self._unmark(node.id)

    def _look_at_live(self, copy: HeldCopy, silent: float | None) -> None:
        """Delete the copy of a live node, unless it counts: it has begun another one, or all is committed."""
        if silent is not None and silent < _STALE_SECONDS:
            return
        newest = self._records.newest(copy.origin, copy.folder)
        if newest is None or newest.token != copy.token or self._home(copy) is None:
            self._held.close_copy(copy)
            copy.delete()
            self._adopting -= {copy}
        elif newest.state != COPIED:
            # It was claimed before the node came back.
            self.adopt(copy)
        else:
            # Its node has come back before it could be claimed, and is asked about requests again.
            self._adopting -= {copy}

    def adopt(self, copy: HeldCopy) -> None:
        """Commit the rows of a copy, if it counts."""
        # Before it is claimed: nothing is acknowledged by it from here on.
        self._held.close_copy(copy)
        self._adopting |= {copy}
        record = self._records.adopt(copy.origin, copy.folder, copy.token)
        if record is not None and record.state != ADOPTED:
            self._commit(copy)
            self._records.end_adoption(record)
            self.adopted += 1
        copy.delete()
        self._adopting -= {copy}

    def _commit(self, copy: HeldCopy) -> None:
        home = self._home(copy)
        if home is None:
            _LOG.warning("rows of node %s are gone with their table, %s", copy.origin, copy.table)
            return
        found = recover_table(home, copy.root)
        rows = sum(log.records for log in found if log.outcome == "committed")
        self.adopted_rows += rows
        _LOG.warning("table %s: %d rows of node %s, which is gone, are committed", copy.table, rows, copy.origin)
        self._keep_keys(copy, self._served(copy))

    def _keep_keys(self, copy: HeldCopy, opened: OpenTable | None) -> None:
        """Know the requests that the node has written, here and, for other nodes, in the warehouse."""
        clock = self._service.clock
        names = KeyFile(copy.path)
        try:
            for keys in names.valid(clock.now_ms()):
                if opened is not None:
                    opened.open_writer().keep_keys(keys)
        finally:
            names.close()
        LeftKeys(self._markers.store, clock).leave(copy.origin, copy.root)

    def _unmark(self, id: str) -> None:
        """Delete the marker of a node of which nothing is left: all of its rows were in copies, and are committed."""
        try:
            node = self._markers.read(id)
            if node.replicas and self._records.is_over(id):
                self._markers.remove(id)
                if not self._records.is_over(id):
                    # It is alive, and has begun a copy meanwhile.
                    self._markers.put(node)
        except LakeletError as error:
            _LOG.warning("the marker of node %s stays: %s", id, error)

    def _home(self, copy: HeldCopy) -> TableHome | None:
        """The table of a copy, None where it was dropped."""
        opened = self._served(copy)
        if opened is not None:
            home: TableHome = opened.table.home
            return home
        try:
            home = self._service.lake.table(copy.table).home
            return home if table_identity(home) == copy.identity else None
        except NotFoundError:
            return None

    def _served(self, copy: HeldCopy) -> OpenTable | None:
        """The table of a copy, also where it has another name by now."""
        for opened in self._service.tables.all():
            # One that somebody has dropped a moment ago is none.
            with suppress(NotFoundError):
                if table_identity(opened.table.home) == copy.identity:
                    return opened
        return None

    def _answers(self, origin: str) -> bool:
        """Whether a node answers at the address in its marker."""
        address = self._markers.read(origin).address
        return bool(address) and self._calls.answers(ClusterNode(origin, address))
