"""Define a pipeline in Python, in the words of Spark's declarative pipelines: functions are registered here and called by a run.

    import lakelet.pipeline as lp

    lp.source("raw_orders", format="json", path="raw", schema="id BIGINT, amount DOUBLE")

    @lp.table(primary_key=["id"], expectations={"positive": "amount > 0"})
    def orders(raw_orders):                          # an argument is what it is called: here a stream of raw_orders
        return raw_orders.where("id IS NOT NULL")

    @lp.materialized_view
    def totals(orders, spark, parameters):           # here all of orders; the session and the parameters by their names
        return orders.groupBy("country").count()

In a materialized view, a temporary view and a flow that runs once, arguments are whole; in others they are streams. `reads` says
otherwise: {"countries": "shop.countries", "new": "STREAM(shop.orders)"}.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lakelet.errors import InvalidError
from lakelet.model.near_names import nearest
from lakelet.pipeline.check import checked
from lakelet.pipeline.definition import (
    LAKELET,
    Action,
    Cdc,
    Expectation,
    Flow,
    FlowKind,
    Pipeline,
    PythonStep,
    Read,
    Sink,
    Source,
    SqlStep,
    Table,
    View,
)
from lakelet.pipeline.place import Place, absolute_path
from lakelet.pipeline.sql_inputs import quoted, read_of

F = TypeVar("F", bound=Callable[..., Any])
_GIVEN = ("spark", "parameters")
Expected = Mapping[str, str | tuple[str, str]]


@dataclass(slots=True)
class Registry:
    """The definitions of one Python file, in their order."""

    name: str
    file: str
    parameters: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """Where relative paths start: the folder of the file; of the process for definitions outside of files."""
        return os.path.dirname(os.path.abspath(self.file)) if self.file.endswith(".py") else os.getcwd()

    def pipeline(self) -> Pipeline:
        """All of them as one pipeline, checked."""
        return checked(
            Pipeline(
                place=Place(self.file),
                parameters=self.parameters,
                sources=tuple(self.sources),
                views=tuple(self.views),
                tables=tuple(self.tables),
                sinks=tuple(self.sinks),
                flows=tuple(self.flows),
                **{"name": self.name, **self.settings},
            )
        )


CURRENT: ContextVar[Registry] = ContextVar("lakelet_pipeline")
_interactive = Registry("pipeline", "<python>")


def current() -> Registry:
    """What definitions are registered in: that of the file being loaded, else one of the process."""
    return CURRENT.get(_interactive)


def defined() -> Pipeline:
    """The pipeline of all definitions so far, for programs that define and run one themselves."""
    return current().pipeline()


def pipeline(
    name: str | None = None,
    *,
    database: str = "default",
    warehouse: str | None = None,
    state: str | None = None,
    options: Mapping[str, str] | None = None,
    spark: Mapping[str, str] | None = None,
    retries: int = 2,
) -> None:
    """The settings of the pipeline, as at the top of a YAML file."""
    places = {"warehouse": warehouse, "state": state}
    folder = current().folder
    found = {key: None if path is None else absolute_path(path, folder) for key, path in places.items()}
    given = {"database": database, "retries": retries, **found}
    named = {} if name is None else {"name": name}
    current().settings |= {**named, **given, "options": dict(options or {}), "spark": dict(spark or {})}


def parameter(name: str, default: str | None = None) -> str:
    """The value of a parameter: the one given to the run, else the default."""
    found = current().parameters.get(name, default)
    if found is None:
        raise InvalidError(f"parameter {name!r} has no value: give it with -p {name}=…")
    current().parameters.setdefault(name, found)
    return found


def source(
    name: str,
    *,
    format: str | None = None,
    path: str | os.PathLike[str] | Sequence[str] = (),
    schema: str | None = None,
    options: Mapping[str, object] | None = None,
    table: str | None = None,
) -> None:
    """Rows from outside, by the name that steps read them by."""
    place = _caller()
    if format is None and table is None:
        raise place.invalid(f"source {name!r}: expected format or table")
    given = (os.fspath(path),) if isinstance(path, (str, os.PathLike)) else tuple(path)
    paths = tuple(absolute_path(one, current().folder) for one in given)
    shown = _texts(options)
    current().sources.append(Source(name, place, format or LAKELET, paths, schema, shown, table))


def temporary_view(
    function: F | None = None, *, name: str | None = None, reads: Mapping[str, str] | None = None
) -> Any:
    """A view that is stored nowhere. It is a stream if an argument is one by `reads`."""
    place = _caller()

    def register(made: F) -> F:
        step = _step(made, reads, streaming=False, place=place)
        current().views.append(View(name or made.__name__, step, place))
        return made

    return register if function is None else register(function)


def table(function: F | None = None, **how: Any) -> Any:
    """A streaming table and the flow that fills it; `once` for a flow over whole inputs that runs once."""
    return _stored(function, True, _caller(), **how)


def materialized_view(function: F | None = None, **how: Any) -> Any:
    """A table that is what the function returns, computed anew when its inputs change."""
    return _stored(function, False, _caller(), **how)


def create_streaming_table(name: str, **how: Any) -> None:
    """A streaming table that flows fill."""
    current().tables.append(_table(name, True, _caller(), **how))


def append_flow(
    *,
    target: str,
    name: str | None = None,
    once: bool = False,
    retries: int | None = None,
    reads: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """A flow into a streaming table or a sink."""
    place = _caller()

    def register(made: F) -> F:
        step = _step(made, reads, streaming=not once, place=place)
        kind = FlowKind.ONCE if once else FlowKind.APPEND
        current().flows.append(Flow(name or made.__name__, target, kind, step, place, retries=retries))
        return made

    return register


def create_sink(
    name: str, format: str, options: Mapping[str, object] | None = None, *, expectations: Expected | None = None
) -> None:
    """A format of Spark's that flows write to."""
    place = _caller()
    current().sinks.append(Sink(name, place, format, _texts(options), _expected(expectations, place)))


def auto_cdc(
    *,
    target: str,
    source: str,
    keys: Sequence[str],
    sequence_by: str,
    apply_as_deletes: str | None = None,
    columns: Sequence[str] = (),
    except_columns: Sequence[str] = (),
    scd_type: int = 1,
    name: str | None = None,
    retries: int | None = None,
) -> None:
    """A flow that applies changes by key to a streaming table."""
    place = _caller()
    if scd_type not in (1, 2):
        raise place.invalid(f"scd_type {scd_type!r}: expected 1 or 2")
    cdc = Cdc(tuple(keys), sequence_by, apply_as_deletes, tuple(columns), tuple(except_columns), scd_type)
    step = SqlStep(f"SELECT * FROM STREAM({'.'.join(quoted(part) for part in source.split('.'))})", place)
    current().flows.append(Flow(name or target, target, FlowKind.CDC, step, place, cdc, retries))


def _stored(
    function: F | None,
    streaming: bool,
    place: Place,
    *,
    name: str | None = None,
    once: bool = False,
    retries: int | None = None,
    reads: Mapping[str, str] | None = None,
    **how: Any,
) -> Any:
    if once and not streaming:
        raise place.invalid("once goes with streaming tables: a materialized view is computed anew")

    def register(made: F) -> F:
        called = name or made.__name__
        step = _step(made, reads, streaming=streaming and not once, place=place)
        kind = FlowKind.COMPLETE if not streaming else FlowKind.ONCE if once else FlowKind.APPEND
        current().tables.append(_table(called, streaming, place, **how))
        current().flows.append(Flow(called, called, kind, step, place, retries=retries))
        return made

    return register if function is None else register(function)


def _table(
    name: str,
    streaming: bool,
    place: Place,
    *,
    format: str = LAKELET,
    schema: str | None = None,
    primary_key: Sequence[str] = (),
    partitioned_by: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    comment: str | None = None,
    expectations: Expected | None = None,
) -> Table:
    keys = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key)
    parts = (partitioned_by,) if isinstance(partitioned_by, str) else tuple(partitioned_by)
    expected = _expected(expectations, place)
    return Table(name, place, streaming, format, schema, keys, parts, _texts(options), comment, expected)


def _step(
    function: Callable[..., Any], reads: Mapping[str, str] | None, *, streaming: bool, place: Place
) -> PythonStep:
    """A function as a step: what it reads are its arguments."""
    if not callable(function):
        raise place.invalid(f"expected a function that returns a DataFrame, found {type(function).__name__}")
    arguments = [one for one in inspect.signature(function).parameters if one not in _GIVEN]
    said = {name: read_of(text, name) for name, text in (reads or {}).items()}
    unknown = [name for name in said if name not in arguments]
    if unknown:
        raise place.invalid(
            f"reads: {function.__name__} has no argument {unknown[0]!r}{nearest(unknown[0], arguments)}"
        )
    found = tuple(said.get(one, Read(one, one, streaming)) for one in arguments)
    return PythonStep(function.__name__, found, place, place.file, function)


def _expected(given: Expected | None, place: Place) -> tuple[Expectation, ...]:
    """Conditions by name, each alone or with its action."""
    found = []
    for name, said in (given or {}).items():
        condition, action = (said, Action.WARN.value) if isinstance(said, str) else said
        if action not in set(Action):
            raise place.invalid(
                f"action {action!r} of expectation {name!r}{nearest(action, [one.value for one in Action])}"
            )
        found.append(Expectation(name, condition, Action(action), place))
    return tuple(found)


def _texts(options: Mapping[str, object] | None) -> dict[str, str]:
    return {
        key: ("true" if value else "false") if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }


def _caller() -> Place:
    """The line that calls a function of this module."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return Place("<python>") if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)
