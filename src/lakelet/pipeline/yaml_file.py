"""A pipeline from a YAML file; every mistake is an InvalidError with its line.

name: shop
database: shop
parameters: {raw: ./raw}
environments: {prod: {parameters: {raw: s3a://bucket/raw}}}
sources:
  raw_orders: {format: csv, path: "${raw}", schema: "id BIGINT, amount DOUBLE", options: {header: true}}
tables:
  orders: {sql: SELECT * FROM STREAM(raw_orders), primary_key: [id], expectations: {positive: amount > 0}}
materialized_views:
  totals: {sql: SELECT count(*) AS orders FROM orders}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest
from lakelet.pipeline.check import checked
from lakelet.pipeline.definition import LAKELET, Expectation, Flow, FlowKind, Pipeline, Sink, Source, Table, View
from lakelet.pipeline.parameters import NAME, filled
from lakelet.pipeline.place import Place
from lakelet.pipeline.yaml_fields import Fields, step_of
from lakelet.pipeline.yaml_node import Mapped, Node, parse_yaml

_SETTINGS = ("warehouse", "database", "state", "options", "spark")
_SECTIONS = (
    *("sources", "temporary_views", "tables", "materialized_views", "sinks", "append_flows", "auto_cdc_flows"),
)
_TOP = ("name", *_SETTINGS, "retries", "parameters", "environments", *_SECTIONS)
_STEP = ("sql", "source", "python", "reads")
_STORED = ("format", "schema", "primary_key", "partitioned_by", "options", "comment", "expectations")


def load_yaml(
    path: str | os.PathLike[str], parameters: Mapping[str, str] | None = None, environment: str | None = None
) -> Pipeline:
    """The pipeline of a file with these values of its parameters; NotFoundError where there is no such file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(f"there is no pipeline file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read as a pipeline file: {error}") from None
    return parse_pipeline(text, str(file), parameters, environment)


def parse_pipeline(
    text: str, file: str, parameters: Mapping[str, str] | None = None, environment: str | None = None
) -> Pipeline:
    """The pipeline that a text defines; relative paths start from the folder of `file`."""
    document = parse_yaml(text, file)
    if not isinstance(document, Mapped):
        raise document.place.invalid(f"expected a mapping with {', '.join(_TOP[:3])} …")
    document.check(_TOP, "a pipeline")
    chosen = _environment(document, environment)
    values = _values(document, chosen, parameters or {})
    return checked(_File(file, document, chosen, values).pipeline())


def _environment(document: Mapped, wanted: str | None) -> Mapped:
    """The settings of the environment that is asked for; of none where none is."""
    known = document.entries.get("environments")
    if known is not None and not isinstance(known, Mapped):
        raise known.place.invalid("environments: expected a mapping of names to settings")
    if known is not None:
        for name, found in known.entries.items():
            if not isinstance(found, Mapped):
                raise known.keys[name].invalid(f"environment {name!r}: expected a mapping of settings")
            found.check((*_SETTINGS, "parameters"), f"environment {name!r}")
    if wanted is None:
        return Mapped({}, {}, document.place)
    there = {} if known is None else known.entries
    chosen = there.get(wanted)
    if not isinstance(chosen, Mapped):
        raise NotFoundError(f"{document.place.file}: there is no environment {wanted!r}{nearest(wanted, there)}")
    return chosen


def _values(document: Mapped, environment: Mapped, given: Mapping[str, str]) -> dict[str, str]:
    """The parameters' values: those given, else of the environment, else of the file. InvalidError for one without a value."""
    declared: dict[str, str | None] = {}
    places: dict[str, Place] = {}
    for block in (document, environment):
        found = block.entries.get("parameters")
        if found is None:
            continue
        fields = Fields.of(found, "parameters")
        for name in fields.node.entries:
            place = fields.node.keys[name]
            if not NAME.match(name):
                raise place.invalid(f"parameter {name!r}: expected a name of letters, digits and underscores")
            if block is environment and name not in declared:
                raise place.invalid(f"parameter {name!r} is not among the pipeline's{nearest(name, declared)}")
            declared[name], places[name] = fields.text(name), place
    for name, text in given.items():
        if name not in declared:
            raise InvalidError(f"{document.place.file}: there is no parameter {name!r}{nearest(name, declared)}")
        declared[name] = text
    for name, value in declared.items():
        if value is None:
            raise places[name].invalid(f"parameter {name!r} has no value: give it with -p {name}=…")
    return {name: value for name, value in declared.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _File:
    file: str
    document: Mapped
    environment: Mapped
    values: Mapping[str, str]

    def pipeline(self) -> Pipeline:
        tables, flows = self._tables()
        sinks, sink_flows = self._sinks()
        top = Fields.of(self._filled(self.document), "the pipeline")
        settings = self._settings()
        return Pipeline(
            top.text("name") or Path(self.file).stem,
            Place(self.file),
            database=settings.text("database") or "default",
            warehouse=settings.path("warehouse"),
            state=settings.path("state"),
            options=settings.options("options"),
            parameters=self.values,
            spark=settings.settings("spark"),
            retries=2 if (retries := top.number("retries")) is None else retries,
            sources=tuple(self._source(fields) for fields in self._section("sources")),
            views=tuple(self._view(fields) for fields in self._section("temporary_views")),
            tables=tables,
            sinks=sinks,
            flows=(*flows, *sink_flows, *self._append_flows(), *self._cdc_flows()),
        )

    def _filled(self, node: Mapped) -> Node:
        plain = {name: value for name, value in node.entries.items() if name not in ("parameters", "environments")}
        return filled(Mapped(plain, node.keys, node.place), self.values)

    def _settings(self) -> Fields:
        """The settings of the file, replaced by those of the environment; mappings are merged."""
        base, over = self._filled(self.document), self._filled(self.environment)
        assert isinstance(base, Mapped)
        assert isinstance(over, Mapped)
        entries, keys = dict(base.entries), dict(base.keys)
        for name, value in over.entries.items():
            before = entries.get(name)
            if isinstance(before, Mapped) and isinstance(value, Mapped):
                entries[name] = Mapped({**before.entries, **value.entries}, {**before.keys, **value.keys}, value.place)
            else:
                entries[name] = value
            keys[name] = over.keys[name]
        return Fields(Mapped(entries, keys, base.place), "the pipeline", None)

    def _section(self, name: str) -> list[Fields]:
        section = self.document.entries.get(name)
        if section is None:
            return []
        node = filled(section, self.values)
        if not isinstance(node, Mapped):
            raise self.document.keys[name].invalid(f"{name}: expected a mapping of names to definitions")
        what = name[:-1].replace("_", " ")
        return [Fields.of(value, f"{what} {key!r}", key, node.keys[key]) for key, value in node.entries.items()]

    def _source(self, fields: Fields) -> Source:
        fields.node.check(("format", "path", "schema", "options", "table"), fields.what)
        table, form = fields.text("table"), fields.text("format")
        if table is None and form is None:
            raise fields.node.place.invalid(
                f"{fields.what}: expected format (csv, json, parquet, kafka, jdbc, rate …) or table"
            )
        return Source(
            fields.name,
            fields.place,
            form or LAKELET,
            path=fields.paths("path"),
            schema=fields.text("schema"),
            options=fields.options("options"),
            table=table,
        )

    def _view(self, fields: Fields) -> View:
        fields.node.check((*_STEP, "comment"), fields.what)
        step = step_of(fields, streaming=False, required=True)
        assert step is not None
        return View(fields.name, step, fields.place, fields.text("comment"))

    def _tables(self) -> tuple[tuple[Table, ...], tuple[Flow, ...]]:
        tables, flows = [], []
        for fields in self._section("tables"):
            fields.node.check((*_STEP, "once", "retries", *_STORED), fields.what)
            tables.append(self._table(fields, streaming=True))
            flows += self._flows(fields, fields.name)
        for fields in self._section("materialized_views"):
            fields.node.check((*_STEP, "retries", *_STORED), fields.what)
            tables.append(self._table(fields, streaming=False))
            step = step_of(fields, streaming=False, required=True)
            assert step is not None
            retries = fields.number("retries")
            flows.append(Flow(fields.name, fields.name, FlowKind.COMPLETE, step, fields.place, retries=retries))
        return tuple(tables), tuple(flows)

    def _table(self, fields: Fields, *, streaming: bool) -> Table:
        return Table(
            fields.name,
            fields.place,
            streaming,
            format=fields.text("format") or LAKELET,
            schema=fields.text("schema"),
            primary_key=fields.texts("primary_key"),
            partitioned_by=fields.texts("partitioned_by"),
            options=fields.pairs("options"),
            comment=fields.text("comment"),
            expectations=self._expectations(fields),
        )

    def _sinks(self) -> tuple[tuple[Sink, ...], tuple[Flow, ...]]:
        sinks, flows = [], []
        for fields in self._section("sinks"):
            fields.node.check((*_STEP, "once", "retries", "format", "path", "options", "expectations"), fields.what)
            path = fields.path("path")
            options = {**fields.options("options"), **({} if path is None else {"path": path})}
            sinks.append(
                Sink(fields.name, fields.place, fields.required("format"), options, self._expectations(fields))
            )
            flows += self._flows(fields, fields.name)
        return tuple(sinks), tuple(flows)

    def _flows(self, fields: Fields, target: str) -> list[Flow]:
        """The flow that a table or sink has of its own, if it has one."""
        once = fields.flag("once")
        step = step_of(fields, streaming=not once, required=False)
        if step is None:
            if once:
                raise fields.node.keys["once"].invalid(f"{fields.what}: once goes with a query")
            return []
        kind = FlowKind.ONCE if once else FlowKind.APPEND
        return [Flow(fields.name, target, kind, step, fields.place, retries=fields.number("retries"))]

    def _append_flows(self) -> list[Flow]:
        flows = []
        for fields in self._section("append_flows"):
            fields.node.check((*_STEP, "target", "once", "retries"), fields.what)
            found = self._flows(fields, fields.required("target"))
            if not found:
                raise fields.node.place.invalid(f"{fields.what}: expected sql, source or python")
            flows += found
        return flows

    def _cdc_flows(self) -> list[Flow]:
        flows = []
        for fields in self._section("auto_cdc_flows"):
            fields.node.check(
                (
                    *("target", "source", "keys", "sequence_by", "apply_as_deletes", "columns", "except_columns"),
                    *("scd_type", "retries"),
                ),
                fields.what,
            )
            fields.required("source")
            step = step_of(fields, streaming=True, required=True)
            assert step is not None
            flows.append(
                Flow(
                    fields.name,
                    fields.required("target"),
                    FlowKind.CDC,
                    step,
                    fields.place,
                    cdc=fields.cdc(),
                    retries=fields.number("retries"),
                )
            )
        return flows

    @staticmethod
    def _expectations(fields: Fields) -> tuple[Expectation, ...]:
        return fields.expectations("expectations")
