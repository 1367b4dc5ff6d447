"""The nodes that died with rows which may not be committed: those with a marker in the warehouse that are not live.

    a query, live nodes have answered ── a marked node is not live ── look again ── still marked: a warning

A node that leaves deletes its marker before the others drop it from their view, and one that is dropped from the view is looked
for only afterwards: a clean end is never taken for a death, and no death is missed.
"""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

from lakelet.clock import Clock
from lakelet.cluster.membership import Membership
from lakelet.cluster.node_markers import MarkedNode, NodeMarkers
from lakelet.errors import LakeletError

_LOG = logging.getLogger(__name__)
# While nodes are absent, queries look for their markers at most this often.
_LOOK_SECONDS = 1.0


class AbsentNodes:
    """Knows the absent nodes; for any number of threads."""

    def __init__(self, markers: NodeMarkers, members: Membership, clock: Clock) -> None:
        self._markers = markers
        self._members = members
        self._monotonic = clock.monotonic
        self._lock = threading.Lock()
        self._marked: frozenset[str] = frozenset()
        self._known: dict[str, MarkedNode] = {}
        # Marked nodes that were not live before their markers were found.
        self._confirmed: frozenset[str] = frozenset()
        self._looked: float | None = None

    def look(self) -> None:
        """Learn of the markers anew; where that is not possible the known ones hold."""
        with self._lock:
            live = self._live()
            try:
                self._marked = self._markers.ids()
            except LakeletError as error:
                _LOG.warning("markers of nodes cannot be looked for: %s", error)
                self._confirmed |= self._marked - live
                return
            self._confirmed = self._marked - live
            self._known = {
                id: self._known[id] if id in self._known else self._markers.read(id) for id in self._confirmed
            }
            self._looked = self._monotonic()

    @property
    def marked(self) -> frozenset[str]:
        """The ids of all nodes with markers, as they were found last."""
        return self._marked

    @property
    def may_be_there(self) -> bool:
        """Whether a marked node is not live; looks for nothing."""
        return bool(self._marked - self._live())

    def found(self, asked: frozenset[str] | None = None) -> tuple[MarkedNode, ...]:
        """The absent nodes, ordered by id: those that are not live, or, for whoever has `asked` nodes, those that were not
        asked: one that comes back meanwhile is live, and may still be committing what its logs have. Costs nothing while
        there are none."""
        here = self._live() if asked is None else asked
        missing = self._marked - here
        if not missing:
            return ()
        is_late = self._looked is None or self._monotonic() - self._looked >= _LOOK_SECONDS
        if is_late or missing - self._confirmed:
            # A node that left has deleted its marker by now.
            self.look()
            missing = self._marked - here
        known = self._known
        return tuple(known.get(id, MarkedNode(id)) for id in sorted(missing))

    def problems(self, asked: frozenset[str] | None = None) -> tuple[str, ...]:
        """What is wrong, a text for each absent node."""
        return tuple(_problem(one) for one in self.found(asked))

    def _live(self) -> frozenset[str]:
        return frozenset(node.id for node in self._members.nodes())


def _problem(node: MarkedNode) -> str:
    since = datetime.fromtimestamp(node.since_ms / 1000, UTC).isoformat(timespec="seconds")
    started = f" at {node.address}, started {since}," if node.address else ""
    return f"node {node.id}{started} ended without committing all rows: start it again, or recover its logs"
