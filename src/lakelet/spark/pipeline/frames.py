"""DataFrames of a pipeline's sources, views, tables and steps.

A name of the pipeline in SQL is replaced by a temporary view of its own; all other names are those of the warehouse, as in
`ls.sql`, or Spark's. A frame is a plan: no row is read for it, but files without a schema are read for their columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InvalidError, NotFoundError
from lakelet.options import CATALOG_PREFIX
from lakelet.pipeline.definition import ICEBERG, PythonStep, Source, SqlStep, Step, Table, View
from lakelet.pipeline.graph import Input
from lakelet.pipeline.sql_inputs import named_inputs, quoted
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.read.table_frame import table as table_frame
from lakelet.spark.sql.statement import query
from lakelet.spark.stream.read.stream_frame import read_stream

_FILES = ("csv", "json", "parquet", "orc", "text", "xml", "binaryfile", "avro")


class Frames:
    """Makes frames. `planned` are the columns of tables that do not exist yet, for a check before anything runs; `whole` reads
    streams as a whole, for a backfill."""

    def __init__(
        self, work: Workspace, planned: Mapping[str, T.StructType] | None = None, *, whole: bool = False
    ) -> None:
        self._work = work
        self._planned = planned
        self._whole = whole
        self._views: list[str] = []

    def close(self) -> None:
        """Drops the temporary views."""
        for name in self._views:
            self._work.spark.catalog.dropTempView(name)
        self._views.clear()

    def of_step(self, step: Step, inputs: tuple[Input, ...], what: str) -> DataFrame:
        """The rows of a step, analysed; errors name its place."""
        if isinstance(step, PythonStep):
            return self._of_python(step, inputs, what)
        with at_place(step.place, what, sql=True):
            return self._of_sql(step, {(one.name.lower(), one.streaming): one for one in inputs})

    def _of_sql(self, step: SqlStep, inputs: Mapping[tuple[str, bool], Input]) -> DataFrame:
        parts, done = [], 0
        for named in named_inputs(step.text):
            found = inputs[named.name.lower(), named.streaming]
            if found.dataset is None and not found.streaming:
                continue
            view = self._registered(self.of_input(found))
            alias = quoted(named.parts[-1])
            parts += [step.text[done : named.start], view if named.alone else f"({view} AS {alias})"]
            done = named.end
        text = "".join((*parts, step.text[done:]))
        frame = query(self._work.spark, self._work.lake, text)
        # Over Connect nothing is analysed before something is asked for.
        assert frame.schema is not None
        return frame

    def _registered(self, frame: DataFrame) -> str:
        name = f"lakelet_{self._work.ids.uuid().replace('-', '')}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def _of_python(self, step: PythonStep, inputs: tuple[Input, ...], what: str) -> DataFrame:
        function = step.function or self._work.functions.get((step.file or "", step.called))
        if function is None:
            raise step.place.invalid(
                f"{what} is made by {step.called} of {step.file}, which is code: it is loaded only when it is named (--code)"
            )
        known = {(one.name.lower(), one.streaming): one for one in inputs}
        given: dict[str, Any] = {
            read.argument: self.of_input(known[read.name.lower(), read.streaming]) for read in step.reads
        }
        wanted = _arguments(function)
        if "spark" in wanted:
            given["spark"] = self._work.spark
        if "parameters" in wanted:
            given["parameters"] = dict(self._work.pipeline.parameters)
        with at_place(step.place, what):
            made = function(**given)
            if not hasattr(made, "isStreaming"):
                raise InvalidError(f"{step.called} returned {type(made).__name__}, expected a DataFrame")
            assert made.schema is not None
            return made  # type: ignore[no-any-return]

    def of_input(self, found: Input) -> DataFrame:
        """The rows of something that a step reads."""
        streaming = found.streaming and not self._whole
        match found.dataset:
            case Source():
                return self._of_source(found.dataset, streaming)
            case View():
                view = found.dataset
                return self.of_step(view.step, self._work.graph.of_view(view), f"view {view.name!r}")
            case Table():
                return self._of_table(found.dataset, streaming)
            case None:
                return self._of_name(found.name, streaming)

    def _of_table(self, table: Table, streaming: bool) -> DataFrame:
        stored = self._work.pipeline.stored_name(table)
        planned = None if self._planned is None else self._planned.get(table.name.lower())
        if planned is not None:
            return self._empty(planned, streaming)
        if table.format == ICEBERG:
            return self._of_iceberg(stored, streaming, {})
        if not self._work.lake.table_exists(stored):
            raise NotFoundError(
                f"table {stored!r} is not there yet: run the flows into it first, or select +{table.name}"
            )
        return self._of_lakelet(stored, streaming, {})

    def _of_name(self, name: str, streaming: bool) -> DataFrame:
        parts = name.split(".")
        if len(parts) == 3:
            return self._of_iceberg(name, streaming, {})
        if len(parts) == 2:
            return self._of_lakelet(name, streaming, {})
        if streaming:
            raise NotFoundError(f"STREAM({name}): neither the pipeline nor the warehouse has it")
        return self._work.spark.table(quoted(name))

    def _of_source(self, source: Source, streaming: bool) -> DataFrame:
        with at_place(source.place, f"source {source.name!r}"):
            if source.table is not None:
                read = self._of_iceberg if source.format == ICEBERG else self._of_lakelet
                return read(source.table, streaming, source.options)
            frame = self._of_format(source, streaming)
            assert frame.schema is not None
            return frame

    def _of_format(self, source: Source, streaming: bool) -> DataFrame:
        spark = self._work.spark
        schema = source.schema
        reader: Any = spark.readStream if streaming else spark.read
        reader = reader.format(source.format).options(**source.options)
        if streaming and schema is None and source.format.lower() in _FILES:
            # A stream of files takes no columns from them by itself.
            inferred = spark.read.format(source.format).options(**source.options).load(list(source.path)).schema
            reader = reader.schema(inferred)
        elif schema is not None:
            reader = reader.schema(schema)
        if not source.path:
            return reader.load()  # type: ignore[no-any-return]
        if streaming and len(source.path) > 1:
            raise InvalidError(f"a stream reads one path, which may be a pattern, found {len(source.path)}")
        return reader.load(source.path[0] if len(source.path) == 1 else list(source.path))  # type: ignore[no-any-return]

    def _of_lakelet(self, name: str, streaming: bool, options: Mapping[str, str]) -> DataFrame:
        given = {**self._work.options, **options}
        if not streaming:
            return table_frame(self._work.spark, self._work.warehouse, name, options=given)
        return read_stream(self._work.spark, self._work.warehouse, name, options=given)

    def _of_iceberg(self, name: str, streaming: bool, options: Mapping[str, str]) -> DataFrame:
        catalog, _, table = name.partition(".")
        spark, warehouse, given = self._work.spark, self._work.warehouse, {**self._work.options, **options}
        if streaming:
            from lakelet.spark.iceberg.stream_frame import read_iceberg_stream  # noqa: PLC0415 - pyiceberg loads with it, and need not be there.

            # The source takes properties of one catalog, without its name.
            prefix = f"{CATALOG_PREFIX}{catalog}."
            others = {key: text for key, text in given.items() if not key.startswith(CATALOG_PREFIX)}
            own = {
                CATALOG_PREFIX + key.removeprefix(prefix): text for key, text in given.items() if key.startswith(prefix)
            }
            return read_iceberg_stream(spark, catalog, table, warehouse=warehouse, options={**others, **own})
        from lakelet.spark.iceberg.table_frame import iceberg_table  # noqa: PLC0415

        return iceberg_table(spark, catalog, table, warehouse=warehouse, options=given)

    def _empty(self, schema: T.StructType, streaming: bool) -> DataFrame:
        """A frame of these columns without rows."""
        if not streaming:
            return self._work.spark.createDataFrame([], schema)
        endless = self._work.spark.readStream.format("rate").load().where(F.lit(False))
        return endless.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields))


def _arguments(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return () if code is None else tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
