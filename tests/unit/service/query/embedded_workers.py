"""Workers of a cluster in this process: query engines over one lake, which are handed fragments without a network."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakelet.service.query.gathered_fragments import FragmentStream, WorkerLostError
from lakelet.service.query.query_engine import QueryEngine
from lakelet.service.query.query_limits import QueryLimits
from lakelet.sql.sandbox.spread import Fragment
from tests.unit.service.query.served_lake import ServedLake

EVERYTHING = QueryLimits(spread_bytes=0, threads=1)


@dataclass
class EmbeddedWorkers:
    """Three workers; the first of them is the node that is asked."""

    engines: dict[str, QueryEngine] = field(default_factory=dict)
    own: str | None = "a"
    # What each worker was asked, and workers that are lost after so many batches.
    asked: list[tuple[str, Fragment]] = field(default_factory=list)
    lost_after: dict[str, int] = field(default_factory=dict)
    when_asked: Callable[[], object] = lambda: None
    busy: dict[str, float] = field(default_factory=dict)

    def ids(self) -> Sequence[str]:
        return ("a", "b", "c")

    def loads(self) -> Mapping[str, float]:
        return self.busy

    def start(self, node: str, fragment: Fragment, seconds: float) -> FragmentStream:
        self.asked.append((node, fragment))
        self.when_asked()
        stream = self.engines[node].fragments.prepare(fragment, seconds)
        return _Stream(stream, self.lost_after[node]) if node in self.lost_after else stream


@dataclass(eq=False)
class _Stream:
    """A stream that breaks off."""

    stream: FragmentStream
    left: int

    def batches(self) -> Generator[pa.RecordBatch]:
        for number, batch in enumerate(self.stream.batches()):
            if number == self.left:
                break
            # Batches of a row each: there is always a middle.
            yield batch.slice(0, 1)
        raise WorkerLostError("gone")

    def cancel(self) -> None:
        self.stream.cancel()


@contextmanager
def spread_engine(
    served: ServedLake, limits: QueryLimits = EVERYTHING
) -> Iterator[tuple[QueryEngine, EmbeddedWorkers]]:
    """An engine that spreads its queries over three workers."""
    workers = EmbeddedWorkers()
    with ExitStack() as stack:
        for name in ("a", "b", "c"):
            known = workers if name == "a" else replace(workers, own=name)
            workers.engines[name] = QueryEngine(served.lake, served, limits, workers=known)
            stack.callback(workers.engines[name].close)
        yield workers.engines["a"], workers
