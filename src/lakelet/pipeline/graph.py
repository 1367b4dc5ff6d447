"""The graph of a pipeline: what reads what, in which order flows run, and which of them a selection takes.

graph = Graph.of(pipeline)
graph.order                    flows, each after those that fill what it reads
graph.selected(["orders+"])    the flows into orders and everything that follows from it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest
from lakelet.pipeline.check import never_streams
from lakelet.pipeline.definition import Flow, FlowKind, Pipeline, PythonStep, Sink, Source, Step, Table, View
from lakelet.pipeline.place import Place
from lakelet.pipeline.sql_inputs import named_inputs

Dataset = Source | View | Table | Sink


@dataclass(frozen=True, slots=True)
class Input:
    """Something that a query reads: a dataset of the pipeline, or a name that the warehouse or Spark has."""

    name: str
    streaming: bool
    dataset: Source | View | Table | None


@dataclass(frozen=True, slots=True)
class Graph:
    """The inputs of every view and flow, by name in lower case, and the flows in an order in which they can run."""

    pipeline: Pipeline
    inputs: Mapping[str, tuple[Input, ...]]
    order: tuple[Flow, ...]

    @staticmethod
    def of(pipeline: Pipeline) -> Graph:
        """The graph; InvalidError for a cycle, and for streams of what is no stream."""
        names = _Names(pipeline)
        inputs: dict[str, tuple[Input, ...]] = {}
        for view in pipeline.views:
            inputs[_view_key(view)] = names.inputs(view.step, view.place)
        for flow in pipeline.flows:
            inputs[_flow_key(flow)] = names.inputs(flow.step, flow.place)
        _check_acyclic(pipeline, inputs)
        for view in pipeline.views:
            _check_streams(view.name, view.place, inputs[_view_key(view)], inputs)
        for flow in pipeline.flows:
            _check_flow(flow, inputs[_flow_key(flow)], inputs)
        return Graph(pipeline, inputs, _ordered(pipeline, inputs))

    def of_view(self, view: View) -> tuple[Input, ...]:
        """What a view reads."""
        return self.inputs[_view_key(view)]

    def of_flow(self, flow: Flow) -> tuple[Input, ...]:
        """What a flow reads."""
        return self.inputs[_flow_key(flow)]

    def table(self, name: str) -> Table | None:
        """The table of that name."""
        return next((one for one in self.pipeline.tables if one.name.lower() == name.lower()), None)

    def sink(self, name: str) -> Sink | None:
        """The sink of that name."""
        return next((one for one in self.pipeline.sinks if one.name.lower() == name.lower()), None)

    def is_streaming(self, view: View) -> bool:
        """Whether a view is a stream: it reads one."""
        return any(one.streaming for one in self.of_view(view))

    def stored_inputs(self, flow: Flow) -> tuple[Input, ...]:
        """What a flow reads once views are replaced by what they read."""
        found: dict[tuple[str, bool], Input] = {}
        pending = list(self.of_flow(flow))
        while pending:
            one = pending.pop(0)
            if isinstance(one.dataset, View):
                pending += self.of_view(one.dataset)
            else:
                found.setdefault((one.name.lower(), one.streaming), one)
        return tuple(found.values())

    def upstream(self, target: str) -> set[str]:
        """The names of the tables that a target is made of, in lower case."""
        found: set[str] = set()
        pending = [target.lower()]
        while pending:
            name = pending.pop()
            for flow in self.pipeline.flows:
                if flow.target.lower() == name:
                    tables = {
                        one.dataset.name.lower() for one in self.stored_inputs(flow) if isinstance(one.dataset, Table)
                    }
                    pending += tables - found
                    found |= tables
        return found

    def selected(self, names: Sequence[str]) -> tuple[Flow, ...]:
        """The flows into the tables and sinks that are named, in order; all where none is.

        `orders+` takes what is made of orders as well, `+orders` what orders is made of.
        """
        if not names:
            return self.order
        targets = {flow.target.lower() for flow in self.pipeline.flows}
        chosen: set[str] = set()
        for text in names:
            name = text.strip("+").lower()
            if name not in targets:
                raise NotFoundError(
                    f"{self.pipeline.place}: there is no table or sink {text.strip('+')!r}{nearest(name, targets)}"
                )
            chosen.add(name)
            if text.startswith("+"):
                chosen |= self.upstream(name)
            if text.endswith("+"):
                chosen |= {other for other in targets if name in self.upstream(other)}
        return tuple(flow for flow in self.order if flow.target.lower() in chosen)


def _view_key(view: View) -> str:
    return f"view {view.name.lower()}"


def _flow_key(flow: Flow) -> str:
    return f"flow {flow.name.lower()}"


class _Names:
    """Resolves names to the pipeline's own datasets."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._known: dict[tuple[str, ...], Dataset] = {}
        unstored: tuple[Source | View | Sink, ...] = (*pipeline.sources, *pipeline.views, *pipeline.sinks)
        for one in unstored:
            self._known[(one.name.lower(),)] = one
        for table in pipeline.tables:
            parts = tuple(pipeline.stored_name(table).lower().split("."))
            self._known[parts] = table
            if len(parts) == 2 and parts[0] == pipeline.database.lower():
                self._known[parts[1:]] = table

    def inputs(self, step: Step, place: Place) -> tuple[Input, ...]:
        """What a step reads."""
        found: dict[tuple[str, bool], Input] = {}
        for name, streaming in _reads(step):
            dataset = self._known.get(tuple(name.lower().split(".")))
            if isinstance(dataset, Sink):
                raise place.invalid(f"{name!r} is a sink, which cannot be read")
            found.setdefault((name.lower(), streaming), Input(name, streaming, dataset))
        return tuple(found.values())


def _reads(step: Step) -> Iterable[tuple[str, bool]]:
    if isinstance(step, PythonStep):
        return [(read.name, read.streaming) for read in step.reads]
    try:
        return [(one.name, one.streaming) for one in named_inputs(step.text)]
    except InvalidError as error:
        raise step.place.invalid(str(error)) from None


def _check_flow(flow: Flow, reads: tuple[Input, ...], inputs: Mapping[str, tuple[Input, ...]]) -> None:
    _check_streams(flow.name, flow.place, reads, inputs)
    streams = [one.name for one in reads if one.streaming]
    place = flow.step.place
    if flow.kind is FlowKind.COMPLETE and streams:
        raise place.invalid(
            f"materialized view {flow.target!r} reads STREAM({streams[0]}): expected plain names, or a table of tables:"
        )
    if flow.kind is FlowKind.ONCE and streams:
        raise place.invalid(f"flow {flow.name!r} runs once, and reads STREAM({streams[0]}): expected plain names")
    if flow.kind in (FlowKind.APPEND, FlowKind.CDC) and not streams:
        raise place.invalid(
            f"flow {flow.name!r} reads no stream: say STREAM(name) for what is read incrementally, once: true for a flow "
            "that runs once, or make it a materialized view"
        )


def _check_streams(name: str, place: Place, reads: Sequence[Input], inputs: Mapping[str, tuple[Input, ...]]) -> None:
    """InvalidError where what is read as a stream is none, or the reverse."""
    for one in reads:
        if isinstance(one.dataset, View):
            is_stream = any(inner.streaming for inner in inputs[_view_key(one.dataset)])
            if one.streaming and not is_stream:
                raise place.invalid(f"{name!r} reads STREAM({one.name}), but view {one.name!r} reads no stream itself")
            if is_stream and not one.streaming:
                raise place.invalid(f"{name!r} reads {one.name}, which is a stream: say STREAM({one.name})")
        elif one.streaming and isinstance(one.dataset, Table) and not one.dataset.streaming:
            raise place.invalid(
                f"{name!r} reads STREAM({one.name}), a materialized view, which is replaced as a whole: read it without STREAM"
            )
        elif one.streaming and isinstance(one.dataset, Source) and never_streams(one.dataset):
            raise place.invalid(f"{name!r} reads STREAM({one.name}), but {one.dataset.format} is read as a whole only")


def _check_acyclic(pipeline: Pipeline, inputs: Mapping[str, tuple[Input, ...]]) -> None:
    edges: dict[str, set[str]] = {}
    places: dict[str, Place] = {}
    for view in pipeline.views:
        edges[view.name.lower()] = _own(inputs[_view_key(view)])
        places[view.name.lower()] = view.place
    for flow in pipeline.flows:
        edges.setdefault(flow.target.lower(), set()).update(_own(inputs[_flow_key(flow)]))
        places.setdefault(flow.target.lower(), flow.place)
    done: set[str] = set()
    for start in edges:
        cycle = _cycle(start, edges, done)
        if cycle:
            first = min(cycle, key=lambda name: (places[name].line or 0, name))
            turned = cycle[cycle.index(first) :] + cycle[: cycle.index(first)]
            raise places[first].invalid(f"a cycle: {' reads '.join([*turned, first])}")


def _own(reads: Iterable[Input]) -> set[str]:
    return {one.dataset.name.lower() for one in reads if isinstance(one.dataset, View | Table)}


def _cycle(start: str, edges: Mapping[str, set[str]], done: set[str]) -> list[str] | None:
    """The names of a cycle that can be reached, by depth-first search without recursion."""
    path: list[str] = []
    pending: list[tuple[str, bool]] = [(start, False)]
    while pending:
        name, leaves = pending.pop()
        if leaves:
            path.pop()
            done.add(name)
            continue
        if name in path:
            return path[path.index(name) :]
        if name in done:
            continue
        path.append(name)
        pending.append((name, True))
        pending += [(other, False) for other in sorted(edges.get(name, ()))]
    return None


def _ordered(pipeline: Pipeline, inputs: Mapping[str, tuple[Input, ...]]) -> tuple[Flow, ...]:
    """Flows after all those that fill what they read; otherwise in the order of the file."""
    bare = Graph(pipeline, inputs, ())
    needs = {flow.name.lower(): bare.upstream(flow.target) | _tables(bare, flow) for flow in pipeline.flows}
    remaining = list(pipeline.flows)
    ordered: list[Flow] = []
    while remaining:
        open_targets = {flow.target.lower() for flow in remaining}
        ready = [flow for flow in remaining if not needs[flow.name.lower()] & open_targets]
        ordered += ready
        remaining = [flow for flow in remaining if flow not in ready]
    return tuple(ordered)


def _tables(graph: Graph, flow: Flow) -> set[str]:
    return {one.dataset.name.lower() for one in graph.stored_inputs(flow) if isinstance(one.dataset, Table)}
