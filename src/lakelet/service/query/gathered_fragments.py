"""Have fragments of a query run by the nodes they were given to, and gather their rows.

    a fragment a node ── its rows, once all of them are there ── gathered
                └── lost: the whole fragment anew, on another worker

The rows of a fragment count when it has ended without an error; until then they are put aside, so that a worker that is lost in
the middle leaves nothing behind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Protocol

import pyarrow as pa

from lakelet.cluster.affinity import ranked_workers
from lakelet.errors import InvalidError, LakeletError
from lakelet.service.query.gathered_rows import GatheredFolder, GatheredPart, GatheredRows
from lakelet.sql.sandbox.spread import Fragment, SpreadFailedError

_LOG = logging.getLogger("lakelet.service.query")


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

    def loads(self) -> Mapping[str, float]:
        """How many queries each of them has, as far as is known."""

    def start(self, node: str, fragment: Fragment, seconds: float) -> FragmentStream:
        """Have another node run a fragment."""


class FragmentGathering:
    """Fragments of one query, as several threads share them: one for each fragment, and whoever cancels them."""

    def __init__(
        self,
        nodes: WorkerNodes,
        run_here: Callable[[Fragment, float], FragmentStream],
        *,
        most_bytes: int,
        seconds_left: Callable[[], float],
    ) -> None:
        self._nodes = nodes
        self._run_here = run_here
        self._most_bytes = most_bytes
        self._seconds_left = seconds_left
        self._lock = threading.Lock()
        self._streams: set[FragmentStream] = set()
        self._lost: set[str] = set()
        self._stopped = False

    def gathered(self, schema: pa.Schema, shares: Sequence[tuple[str, Fragment]]) -> GatheredRows:
        """The rows of fragments, each given to a node. SpreadFailedError where one of them cannot be run."""
        folder = GatheredFolder()
        parts = [GatheredPart(schema, folder) for _ in shares]
        failures: list[BaseException] = []
        # One of them, that of this node if there is one, runs in the thread that waits for the others.
        own = next((place for place, (node, _) in enumerate(shares) if node == self._nodes.own), len(shares) - 1)
        with ThreadPoolExecutor(max(len(shares) - 1, 1), "lakelet-fragment") as threads:
            for place, share in enumerate(shares):
                if place != own:
                    threads.submit(self._attempt, failures, parts[place], *share)
            if shares:
                self._attempt(failures, parts[own], *shares[own])
        if failures:
            folder.cleanup()
            raise failures[0]
        return GatheredRows(parts, folder)

    def interrupt(self) -> None:
        """End all fragments; any thread may call this."""
        with self._lock:
            self._stopped = True
            found = list(self._streams)
        for one in found:
            one.cancel()

    def _attempt(self, failures: list[BaseException], part: GatheredPart, node: str, fragment: Fragment) -> None:
        """Run a fragment; where it fails, all others are at their end."""
        try:
            self._run_share(part, node, fragment)
        except BaseException as error:
            failures.append(error)
            self.interrupt()

    def _run_share(self, part: GatheredPart, node: str, fragment: Fragment) -> None:
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
                node = self._another(fragment, error)
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
                    if part.bytes + batch.nbytes > self._most_bytes:
                        raise SpreadFailedError(f"a node sends more than {self._most_bytes} bytes")
                    part.add(batch)
            part.finish()
        finally:
            with self._lock:
                self._streams.discard(stream)

    def _another(self, fragment: Fragment, error: WorkerLostError) -> str:
        left = [one for one in self._nodes.ids() if one not in self._lost]
        if not left:
            raise SpreadFailedError(f"no worker is left: {error}") from error
        return ranked_workers(fragment.sql, left)[0]

    def _check(self) -> None:
        if self._stopped:
            raise InvalidError("the query was interrupted")
