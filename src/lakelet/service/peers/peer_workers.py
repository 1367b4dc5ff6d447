"""The workers of the cluster, for the threads in which queries run: they are called on the event loop of the service.

A worker that says nothing for ten seconds, not even that it still works, is taken for lost, and is given nothing for a while.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import grpc
import pyarrow as pa

from lakelet.clock import Clock
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.membership import Membership
from lakelet.errors import InvalidError
from lakelet.service.peers.fragment_messages import batches_of, fragment_message
from lakelet.service.peers.peers import PEER_PROTOCOL, Peers
from lakelet.service.query.gathered_fragments import WorkerLostError
from lakelet.sql.sandbox.spread import Fragment

T = TypeVar("T")
_SILENT_SECONDS = 10.0
_LOST_SECONDS = 10.0


class PeerWorkers:
    """The nodes that take fragments."""

    def __init__(self, members: Membership, peers: Peers, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._members = members
        self._peers = peers
        self._loop = loop
        self._clock = clock
        self._lost: dict[str, float] = {}
        # What this node has others run: what they said of their loads is half a minute old.
        self._given: Counter[str] = Counter()

    @property
    def own(self) -> str | None:
        """This node, where it is a worker itself."""
        node = self._members.node
        return None if node.role == "gateway" else node.id

    def ids(self) -> Sequence[str]:
        """The workers that are healthy, as far as is known, and of the version of this node."""
        own, now = self._members.node, self._clock.monotonic()
        return sorted(
            node.id
            for node in self._members.nodes()
            if node.owns_keys
            and (node.protocol, node.version) == (PEER_PROTOCOL, own.version)
            and now - self._lost.get(node.id, -_LOST_SECONDS) >= _LOST_SECONDS
        )

    def loads(self) -> dict[str, float]:
        """How many queries each of them has, as it said last, and as this node has given it."""
        return {node.id: node.load.get("queries", 0.0) + self._given[node.id] for node in self._members.nodes()}

    def note(self, node: str, number: int) -> None:
        """A worker has so many queries more."""
        self._given[node] += number

    def start(self, node: str, fragment: Fragment, seconds: float) -> _RemoteFragment:
        """Have a node run a fragment."""
        found = next((one for one in self._members.nodes() if one.id == node), None)
        if found is None:
            raise WorkerLostError("it has left")
        return _RemoteFragment(self, found, fragment, seconds)

    def lose(self, node: str) -> None:
        """Give a node nothing for a while."""
        self._lost[node] = self._clock.monotonic()

    def call(self, node: ClusterNode, fragment: Fragment, seconds: float) -> Any:
        """The call that has a node run a fragment."""

        async def call() -> Any:
            return self._peers.run_fragment(node, fragment_message(fragment, seconds), seconds)

        return self.result(call())

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        """What is done on the event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def end(self, call: Any) -> None:
        """End a call."""
        self._loop.call_soon_threadsafe(call.cancel)


class _RemoteFragment:
    """A fragment that another node runs."""

    def __init__(self, workers: PeerWorkers, node: ClusterNode, fragment: Fragment, seconds: float) -> None:
        self._workers = workers
        self._node = node
        self._fragment = fragment
        self._seconds = seconds
        self._lock = threading.Lock()
        self._call: Any = None
        self._cancelled = False

    def batches(self) -> Generator[pa.RecordBatch]:
        """Its rows, as they come: the node sends no more than is read."""
        call = self._workers.call(self._node, self._fragment, self._seconds)
        self._workers.note(self._node.id, 1)
        with self._lock:
            self._call = call
            if self._cancelled:
                self._workers.end(call)
        try:
            while (message := self._next(call)) is not grpc.aio.EOF:
                yield from batches_of(message)
        finally:
            self._workers.note(self._node.id, -1)
            self._workers.end(call)

    def cancel(self) -> None:
        """End it; any thread may call this."""
        with self._lock:
            self._cancelled = True
            if self._call is not None:
                self._workers.end(self._call)

    def _next(self, call: Any) -> Any:
        async def read() -> Any:
            async with asyncio.timeout(_SILENT_SECONDS):
                return await call.read()

        try:
            return self._workers.result(read())
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                raise InvalidError(error.details() or "") from error
            if error.code() is grpc.StatusCode.UNAVAILABLE and "lakelet-code" not in dict(
                error.trailing_metadata() or ()
            ):
                # The connection, not an answer of the node.
                self._workers.lose(self._node.id)
            raise WorkerLostError(f"{error.code().name} {error.details()}") from error
        except TimeoutError as error:
            self._workers.lose(self._node.id)
            raise WorkerLostError(f"nothing came for {_SILENT_SECONDS:g} seconds") from error
        except (CancelledError, asyncio.CancelledError) as error:
            raise WorkerLostError("the call was cancelled") from error
