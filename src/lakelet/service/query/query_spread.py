"""One query spread over the workers of the cluster: who reads what, and who combines the rows of all of them.

splits ── by affinity and size ── a fragment a worker ── gathered on this node, where it is a worker itself
                                                     └── else on the worker that has the least to do
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelet.cluster.affinity import assigned_splits, ranked_workers
from lakelet.service.query.gathered_fragments import FragmentGathering, FragmentStream, WorkerNodes
from lakelet.service.query.gathered_rows import GatheredRows
from lakelet.service.query.query_run import Interruptible
from lakelet.sql.sandbox.spread import Fragment, GivenRows, Told, WholeWork, Work

# What memory has of tables travels in one message to each node, or with every task of Spark.
MOST_SENT_BYTES = 8 << 20
# So many queries more than another worker a worker has before it hands one over, which is not read where it was before then.
_MORE_QUERIES = 2


class QuerySpread:
    """The work of one query, as several threads share it: the one of the query, one for each fragment, and whoever cancels it."""

    def __init__(
        self,
        nodes: WorkerNodes,
        run_here: Callable[[Fragment, float], FragmentStream],
        *,
        least_bytes: int,
        most_gathered_bytes: int,
        seconds_left: Callable[[], float],
        own_load: Callable[[], float],
    ) -> None:
        """`own_load` is how many other queries this node has now: what nodes say of themselves is older."""
        self._nodes = nodes
        self._own_load = own_load
        self._least_bytes = least_bytes
        self._workers = tuple(nodes.ids())
        self._gathering = FragmentGathering(nodes, run_here, most_bytes=most_gathered_bytes, seconds_left=seconds_left)
        self._beside: Interruptible | None = None

    # ------------------------------------------------------------------ who does what

    def is_worthwhile(self, sizes: Sequence[int]) -> bool:
        """Whether a table with splits of these bytes is read by several nodes: they have so much to read, and some are others."""
        least = 1 if self._least_bytes == 0 else 2
        return self._has_others() and len(sizes) >= least and sum(sizes) >= self._least_bytes

    def is_for_another(self, sizes: Sequence[int], *, is_split: bool) -> bool:
        """Whether a query of tables with splits of these bytes is combined by another node, or run there where it is not
        split: this one is no worker, or has more to do."""
        if not self._has_others() or sum(sizes) < self._least_bytes:
            return False
        return self._nodes.own not in self._workers or (not is_split and self._least_busy() != self._nodes.own)

    def can_take(self, work: Work) -> bool:
        """Whether what memory has of the tables is little enough to be sent along."""
        stays = self._nodes.own in self._workers
        return work.sent_bytes + (0 if stays else work.memory_bytes) <= MOST_SENT_BYTES

    def can_take_whole(self, work: WholeWork) -> bool:
        """Whether what memory has of all tables is little enough to be sent in one message."""
        parts = sum(part.sent_bytes * len(self._workers) + part.memory_bytes for _, part in work.parts)
        return work.sent_bytes + parts <= MOST_SENT_BYTES

    def told(self, work: Work) -> Sequence[Told]:
        """Who would do what."""
        sizes = {one.name: one.bytes for one in work.splits}
        return [Told(node, len(names), sum(sizes[name] for name in names)) for node, names, _ in self._shares(work)]

    def told_whole(self) -> str:
        """Who would combine, or run what is not split."""
        return self._least_busy()

    def decline(self) -> None:
        """Told that the query cannot be split; it runs on this node then."""

    def _has_others(self) -> bool:
        return any(one != self._nodes.own for one in self._workers)

    def _shares(self, work: Work) -> list[tuple[str, list[str], bool]]:
        """The worker of each fragment, its splits, and whether it has the rows in memory: those stay on this node, where it is a
        worker."""
        found = assigned_splits([(one.name, one.bytes) for one in work.splits], self._workers)
        memory = self._nodes.own if self._nodes.own in self._workers else next(iter(found), None)
        if work.has_memory_rows and memory is not None:
            found.setdefault(memory, [])
        return [(node, names, node == memory) for node, names in found.items()]

    def _fragments(self, work: Work) -> tuple[tuple[str, Fragment], ...]:
        return tuple((node, work.fragment(names, has_memory=own)) for node, names, own in self._shares(work))

    def _least_busy(self) -> str:
        """The worker with the fewest queries; this one, where others have hardly fewer."""
        own = self._nodes.own
        loads = dict(self._nodes.loads())
        if own is not None:
            loads[own] = self._own_load()
        found = min(self._workers, key=lambda one: (loads.get(one, 0.0), one))
        if own in self._workers and loads.get(own, 0.0) < loads.get(found, 0.0) + _MORE_QUERIES:
            return own
        least = [one for one in self._workers if loads.get(one, 0.0) == loads.get(found, 0.0)]
        return ranked_workers("", least)[0]

    # ------------------------------------------------------------------ work

    def run(self, work: Work) -> GatheredRows:
        """Have all fragments run. SpreadFailedError where one of them cannot be."""
        return self._gathering.gathered(work.schema, self._fragments(work))

    def run_whole(self, work: WholeWork) -> GatheredRows:
        """Have one other node run it. SpreadFailedError where none can."""
        parts = tuple(GivenRows(name, part.schema, self._fragments(part)) for name, part in work.parts)
        fragment = Fragment(work.sql, work.zone, work.tables, parts)
        return self._gathering.gathered(work.schema, [(self._least_busy(), fragment)])

    def beside(self, engine: Interruptible) -> QuerySpread:
        """This, with what else is to be interrupted."""
        self._beside = engine
        return self

    def interrupt(self) -> None:
        """End the work; any thread may call this."""
        self._gathering.interrupt()
        if self._beside is not None:
            self._beside.interrupt()
