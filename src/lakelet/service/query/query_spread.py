"""One query spread over the workers of the cluster: who reads what, and the rows of all of them.

    splits ── by affinity and size ── a fragment a worker ── its rows, once all of them are there ── gathered
                                        └── lost: the whole fragment anew, on another worker

The rows of a fragment count when it has ended without an error; until then they are put aside, so that a worker that is lost in
the middle leaves nothing behind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from typing import Protocol

import pyarrow as pa

from lakelet.cluster.affinity import assigned_splits, ranked_workers
from lakelet.errors import InvalidError, LakeletError
from lakelet.service.query.gathered_rows import GatheredPart, GatheredRows
from lakelet.service.query.query_run import Interruptible
from lakelet.sql.sandbox.spread import Fragment, SpreadFailedError, Told, Work
from lakelet.storage.spill_folder import SpillFolder

_LOG = logging.getLogger("lakelet.service.query")
# What memory has of tables travels in one message to each node, or with every task of Spark.
MOST_SENT_BYTES = 8 << 20


class WorkerLostError(Exception):
    """A worker did not do its part, and another one may."""


class FragmentStream(Protocol):
    """A fragment that a worker runs."""

    def batches(self) -> Generator[pa.RecordBatch]:
        """Its rows; WorkerLostError where the worker fails, a LakeletError where the fragment does."""

    def cancel(self) -> None:
        """End it; any thread may call this."""


class WorkerNodes(Protocol):
    """The workers of the cluster."""

    @property
    def own(self) -> str | None:
        """This node, where it is a worker itself."""

    def ids(self) -> Sequence[str]:
        """All that are healthy, this node included where it is one."""

    def start(self, node: str, fragment: Fragment, seconds: float) -> FragmentStream:
        """Have another node run a fragment."""


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
    ) -> None:
        self._nodes = nodes
        self._run_here = run_here
        self._least_bytes = least_bytes
        self._most_gathered = most_gathered_bytes
        self._seconds_left = seconds_left
        self._workers = tuple(nodes.ids())
        self._lock = threading.Lock()
        self._streams: set[FragmentStream] = set()
        self._lost: set[str] = set()
        self._stopped = False
        self._beside: Interruptible | None = None

    # ------------------------------------------------------------------ who does what

    def is_worthwhile(self, sizes: Sequence[int]) -> bool:
        """Whether a table with splits of these bytes is read by several nodes: they have so much to read, and some are others."""
        least = 1 if self._least_bytes == 0 else 2
        has_others = any(one != self._nodes.own for one in self._workers)
        return has_others and len(sizes) >= least and sum(sizes) >= self._least_bytes

    def can_take(self, work: Work) -> bool:
        """Whether what memory has of the tables is little enough to be sent along."""
        stays = self._nodes.own in self._workers
        return work.sent_bytes + (0 if stays else work.memory_bytes) <= MOST_SENT_BYTES

    def told(self, work: Work) -> Sequence[Told]:
        """Who would do what."""
        sizes = {one.name: one.bytes for one in work.splits}
        return [Told(node, len(names), sum(sizes[name] for name in names)) for node, names, _ in self._shares(work)]

    def _shares(self, work: Work) -> list[tuple[str, list[str], bool]]:
        """The worker of each fragment, its splits, and whether it has the rows in memory: those stay on this node, where it is a
        worker."""
        found = assigned_splits([(one.name, one.bytes) for one in work.splits], self._workers)
        memory = self._nodes.own if self._nodes.own in self._workers else next(iter(found), None)
        if work.has_memory_rows and memory is not None:
            found.setdefault(memory, [])
        return [(node, names, node == memory) for node, names in found.items()]

    def decline(self) -> None:
        """Told that the query cannot be split; it runs on this node then."""

    # ------------------------------------------------------------------ work

    def run(self, work: Work) -> GatheredRows:
        """Have all fragments run. SpreadFailedError where one of them cannot be."""
        shares = self._shares(work)
        folder = SpillFolder("lakelet-gathered-")
        parts = [GatheredPart(work.schema, folder) for _ in shares]
        try:
            with ThreadPoolExecutor(len(shares), "lakelet-fragment") as threads:
                running = [
                    threads.submit(self._run_share, work, part, *share)
                    for part, share in zip(parts, shares, strict=True)
                ]
                try:
                    for one in as_completed(running):
                        one.result()
                except BaseException:
                    self._cancel_streams()
                    raise
        except BaseException:
            folder.cleanup()
            raise
        return GatheredRows(parts, folder)

    def beside(self, engine: Interruptible) -> QuerySpread:
        """This, with what else is to be interrupted."""
        self._beside = engine
        return self

    def interrupt(self) -> None:
        """End the work; any thread may call this."""
        self._cancel_streams()
        if self._beside is not None:
            self._beside.interrupt()

    def _cancel_streams(self) -> None:
        with self._lock:
            self._stopped = True
            found = list(self._streams)
        for one in found:
            one.cancel()

    def _run_share(self, work: Work, part: GatheredPart, node: str, splits: list[str], has_memory: bool) -> None:
        fragment = work.fragment(splits, has_memory=has_memory)
        while True:
            try:
                self._gather(node, fragment, part)
                return
            except WorkerLostError as error:
                part.drop()
                self._check()
                _LOG.warning("node %s: a fragment of a query is run elsewhere: %s", node, error)
                with self._lock:
                    self._lost.add(node)
                node = self._another(splits, error)
            except LakeletError as error:
                self._check()
                raise SpreadFailedError(f"node {node}: {error}") from error

    def _gather(self, node: str, fragment: Fragment, part: GatheredPart) -> None:
        seconds = max(self._seconds_left(), 0.001)
        here = node == self._nodes.own
        stream = self._run_here(fragment, seconds) if here else self._nodes.start(node, fragment, seconds)
        with self._lock:
            if self._stopped:
                raise InvalidError("the query was interrupted")
            self._streams.add(stream)
        try:
            with closing(stream.batches()) as batches:
                for batch in batches:
                    self._check()
                    if part.bytes + batch.nbytes > self._most_gathered:
                        raise SpreadFailedError(f"a node sends more than {self._most_gathered} bytes")
                    part.add(batch)
            part.finish()
        finally:
            with self._lock:
                self._streams.discard(stream)

    def _another(self, splits: list[str], error: WorkerLostError) -> str:
        left = [one for one in self._nodes.ids() if one not in self._lost]
        if not left:
            raise SpreadFailedError(f"no worker is left: {error}") from error
        return ranked_workers(splits[0] if splits else "", left)[0]

    def _check(self) -> None:
        if self._stopped:
            raise InvalidError("the query was interrupted")
