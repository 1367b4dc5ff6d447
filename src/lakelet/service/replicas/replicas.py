"""The copies of write-ahead logs that this node sends and holds, and what it does about them every few seconds.

links    the logs of this node's writers, each at another node, with `wal_replicas` = 1
held     the logs of other nodes, whatever `wal_replicas` is here
look     links leave nodes that leave, or are gone: what is not committed there is committed now
         held copies whose origin is gone are adopted (`adoption`), those that count no longer are deleted
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lakelet.cluster.membership import Membership
from lakelet.cluster.node_markers import MarkedNode, NodeMarkers
from lakelet.cluster.replica_records import ReplicaRecords
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import LakeletError
from lakelet.ids import RandomIds
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.key_file import kept_keys
from lakelet.service.replicas.adoption import Adoption
from lakelet.service.replicas.held_logs import HeldLogs
from lakelet.service.replicas.log_link import LoggedTable, LogLink
from lakelet.service.replicas.replica_calls import ReplicaCalls
from lakelet.service.replicas.replica_nodes import ReplicaNodes

if TYPE_CHECKING:
    from lakelet.realtime.wal.log_copy import LogCopy
    from lakelet.service.peers.absent_nodes import AbsentNodes
    from lakelet.service.service import Service
    from lakelet.service.tables.served_table import OpenTable

_LOG = logging.getLogger(__name__)
_THREADS = 8
_PART_BYTES, _LEAST_PART_BYTES, _MESSAGE_BYTES = 1 << 20, 256, 512


class Replicas:
    """The copies of one node; for any number of threads."""

    def __init__(self, service: Service, members: Membership, calls: ReplicaCalls, absent: AbsentNodes | None) -> None:
        settings, store = service.settings, service.lake.table_home("any.any").store
        self._service = service
        self._members = members
        self._calls = calls
        self._markers = NodeMarkers(store)
        self._records = ReplicaRecords(store)
        self.nodes = ReplicaNodes(members, service.clock, self.mark)
        self.held = HeldLogs(settings.wal_folder, service.clock)
        self.adoption = Adoption(service, members, calls, self.held, self._records, self._markers, absent)
        self.threads = ThreadPoolExecutor(_THREADS, "lakelet-replica")
        self._lock = threading.Lock()
        self._links: dict[str, tuple[OpenTable, LogLink]] = {}
        # Copies that writers which are closed have begun, and what was sent to them.
        self._ended = (0, 0)
        self._part_bytes = max(_LEAST_PART_BYTES, min(_PART_BYTES, settings.most_body_bytes - _MESSAGE_BYTES))
        # Whether every row that this node acknowledges, or has in its logs, is on a second one.
        self.is_whole = False

    # ------------------------------------------------------------------ this node's logs

    @property
    def copies(self) -> Callable[[OpenTable], LogCopy] | None:
        """What makes the copy of a table's logs, None where there are none."""
        return self._link if self._service.settings.wal_replicas else None

    def _link(self, opened: OpenTable) -> LogLink:
        # Of the table that is there now, as the writer has it: it may have been created again since it was opened.
        identity = table_identity(opened.table.home)
        path = wal_path(self._service.settings.wal_folder, identity)
        folder = os.path.basename(path)
        logged = LoggedTable(self._members.node.id, identity, opened.table.name, folder)
        clock, ended = self._service.clock, partial(self._end, folder)
        kept = partial(kept_keys, path, clock)
        made = LogLink(
            logged, self.nodes, self._calls, self._records, clock, RandomIds(), self._part_bytes, ended, kept
        )
        with self._lock:
            self._links[folder] = (opened, made)
        return made

    def _end(self, folder: str) -> None:
        with self._lock:
            if (found := self._links.pop(folder, None)) is not None:
                link = found[1]
                self._ended = (self._ended[0] + link.begun, self._ended[1] + link.bytes_sent)

    @property
    def begun(self) -> int:
        """How many copies were begun."""
        return self._ended[0] + sum(link.begun for link in self.links())

    @property
    def bytes_sent(self) -> int:
        """How many bytes of logs were sent."""
        return self._ended[1] + sum(link.bytes_sent for link in self.links())

    def links(self) -> list[LogLink]:
        """The copies of this node's logs."""
        with self._lock:
            return [link for _, link in self._links.values()]

    def mark(self) -> None:
        """Let other nodes know that this one may have rows, and whether all of them are on a second one."""
        node = self._members.node
        replicas = self._service.settings.wal_replicas if self.is_whole else 0
        self._markers.put(MarkedNode(node.id, node.address, self._service.clock.now_ms(), replicas))

    def problems(self) -> dict[str, str]:
        """Why tables have no copy of their logs, by their names in the health of the service."""
        with self._lock:
            links = list(self._links.values())
        return {f"replica.{opened.name}": link.problem for opened, link in links if link.problem is not None}

    # ------------------------------------------------------------------ every few seconds

    def look(self) -> None:
        """Leave nodes that leave, adopt what is left behind, and delete what counts no longer."""
        usable = self.nodes.usable()
        with self._lock:
            links = list(self._links.values())
        for opened, link in links:
            link.drop_superseded()
            if link.holder is not None and link.holder not in usable:
                link.move()
                try:
                    # Rows that nobody follows with others would stay on one disk, or on that of a node that is gone.
                    opened.flush()
                except LakeletError as error:
                    _LOG.warning("table %s: rows whose copy is at %s: %s", opened.name, link.holder, error)
        self.adoption.look()

    def refuse(self, why: str) -> None:
        """Take nothing more of other nodes."""
        self.held.refusal = why

    def close(self) -> None:
        """Send and take nothing more."""
        self.held.close()
        self._calls.close()
        self.threads.shutdown(wait=False, cancel_futures=True)
