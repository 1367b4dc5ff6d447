"""The engines that write in the demo: Spark, as a pipeline would, or this process alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lakelet.catalog.lake import Lake
from lakelet.cli.demo.demo_pipeline import Runner
from lakelet.cli.demo.demo_stream import StreamRunner
from lakelet.cli.output.output import ConsoleOutput, Output
from lakelet.errors import UnavailableError
from lakelet.model.snapshot import Snapshot
from lakelet.pipeline import Pipeline
from lakelet.table import Table

ENGINES = ("spark", "local")
_BIG = "amount >= 900"
_ICEBERG_COLUMNS = ("order_id", "day", "country", "amount")
_CONFIG = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "4"}


class Engine(Protocol):
    """The writes of the demo."""

    def load(self, orders: Table, rows: Iterator[pa.RecordBatch]) -> Snapshot | None:
        """Writes new orders in one commit."""
        ...

    def double_amounts(self, orders: Table, up_to: int, new: Iterator[pa.RecordBatch]) -> Snapshot | None:
        """Doubles the amounts of the first orders and inserts new ones, in one commit."""
        ...

    def insert_iceberg(self, lake: Lake, orders: Table, name: str) -> None:
        """Inserts big orders into a table of the lake's own Iceberg catalog, as one snapshot."""
        ...

    @property
    def pipeline_runner(self) -> Runner | None:
        """Runs pipelines; None for an engine that does not."""
        ...

    @property
    def stream_runner(self) -> StreamRunner | None:
        """Writes streams into tables; None for an engine that does not."""
        ...


class LocalEngine:
    """Everything in this process."""

    def load(self, orders: Table, rows: Iterator[pa.RecordBatch]) -> Snapshot | None:
        """Writes batch by batch."""
        return orders.write(rows)

    def double_amounts(self, orders: Table, up_to: int, new: Iterator[pa.RecordBatch]) -> Snapshot | None:
        """Reads, changes and writes Arrow tables."""
        changed = orders.scan(where=f"order_id <= {up_to}").to_arrow()
        amounts = pc.multiply(changed.column("amount"), pa.scalar(2)).cast(pa.decimal128(12, 2))
        place = changed.schema.get_field_index("amount")
        return orders.write([changed.set_column(place, "amount", amounts), pa.Table.from_batches(new)])

    def insert_iceberg(self, lake: Lake, orders: Table, name: str) -> None:
        """Runs an INSERT statement."""
        columns = ", ".join(_ICEBERG_COLUMNS)
        lake.sql(f"INSERT INTO iceberg.{name} SELECT {columns} FROM {orders.name} WHERE {_BIG}")

    @property
    def pipeline_runner(self) -> Runner | None:
        """None: pipelines run on Spark."""
        return None

    @property
    def stream_runner(self) -> StreamRunner | None:
        """None: streams are Spark's."""
        return None


class SparkEngine:
    """A load of Parquet files, and an upsert of a query's rows, both as Spark jobs."""

    def __init__(self, spark: Any, warehouse: str, options: Mapping[str, str], output: Output) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._options = options
        self._output = output

    def load(self, orders: Table, rows: Iterator[pa.RecordBatch]) -> Snapshot | None:
        """Writes the orders as Parquet files first, as an external source would, and loads these."""
        from lakelet.spark.jobs.bulk_load import bulk_load  # noqa: PLC0415 - Spark loads only where it is asked for.

        with tempfile.TemporaryDirectory(prefix="lakelet-demo-") as folder:
            for number, batch in enumerate(rows):
                pq.write_table(pa.Table.from_batches([batch]), os.path.join(folder, f"orders-{number}.parquet"))
            with self._watched("loading"):
                made: Snapshot | None = bulk_load(
                    self._spark, folder, self._warehouse, orders.name, options=self._options
                )
        return made

    def double_amounts(self, orders: Table, up_to: int, new: Iterator[pa.RecordBatch]) -> Snapshot | None:
        """Reads the table as a DataFrame, changes a column with SQL, and writes it back."""
        from lakelet.spark.read.table_frame import table  # noqa: PLC0415 - as above.
        from lakelet.spark.write.table_write import write  # noqa: PLC0415

        old = table(self._spark, self._warehouse, orders.name, where=f"order_id <= {up_to}", options=self._options)
        changed = old.selectExpr(
            "order_id", "day", "country", "CAST(amount * 2 AS DECIMAL(12, 2)) AS amount", "customer"
        )
        rows = changed.unionByName(self._spark.createDataFrame(pa.Table.from_batches(new)))
        with self._watched("upserting"):
            made: Snapshot | None = write(rows, self._warehouse, orders.name, mode="upsert", options=self._options)
        return made

    def insert_iceberg(self, lake: Lake, orders: Table, name: str) -> None:
        """The driver plans, executors compute each row's partition and write, and the driver commits one snapshot."""
        from lakelet.spark.iceberg.insert import insert_iceberg  # noqa: PLC0415 - as above.
        from lakelet.spark.read.table_frame import table  # noqa: PLC0415

        rows = table(self._spark, self._warehouse, orders.name, where=_BIG, options=self._options)
        with self._watched("inserting"):
            insert_iceberg(
                rows.select(*_ICEBERG_COLUMNS), "iceberg", name, warehouse=self._warehouse, options=self._options
            )

    @property
    def pipeline_runner(self) -> Runner | None:
        """Runs a pipeline in the session of the demo."""
        return self._run_pipeline

    def _run_pipeline(self, pipeline: Pipeline) -> list[tuple[object, ...]]:
        from lakelet.spark.pipeline.run import run_pipeline  # noqa: PLC0415 - as above.

        made = run_pipeline(self._spark, pipeline, self._warehouse, options=self._options)
        if made.error is not None:
            raise made.error
        return [
            (one.flow, one.outcome.value, one.rows, ", ".join(f"{name}: {count}" for name, count in one.unmet.items()))
            for one in made.flows
        ]

    @property
    def stream_runner(self) -> StreamRunner | None:
        """Writes what is new, and ends."""
        return self._run_stream

    def _run_stream(self, folder: str, schema: str, table: str, checkpoint: str) -> list[tuple[int, int, int]]:
        from lakelet.spark.stream.write.query import write_stream  # noqa: PLC0415 - as above.

        rows = self._spark.readStream.schema(schema).json(folder)
        query = write_stream(rows, self._warehouse, table, checkpoint=checkpoint, options=self._options)
        query.awaitTermination()
        found: list[Any] = [one for one in query.recentProgress if one["numInputRows"]]
        return [(one["batchId"], one["numInputRows"], one["batchDuration"]) for one in found]

    def _watched(self, doing: str) -> AbstractContextManager[object]:
        from lakelet.spark.task_progress import task_progress  # noqa: PLC0415 - as above.

        return shown_progress(self._output, doing, lambda tell: task_progress(self._spark, tell))


@contextmanager
def open_engine(name: str, warehouse: str, options: Mapping[str, str], output: Output) -> Iterator[Engine]:
    """The engine of that name for the time of a block; UnavailableError says what Spark lacks."""
    if name == "local":
        yield LocalEngine()
        return
    check_ready()
    with _started(output) as spark:
        yield SparkEngine(spark, warehouse, options, output)


def check_ready() -> None:
    """UnavailableError that says how to get what Spark lacks."""
    advice = "or run the demo without Spark: lakelet demo --engine local"
    if find_spec("pyspark") is None:
        raise UnavailableError(f"Spark is not installed: pip install 'lakelet[spark]' and have Java 17, {advice}")
    from lakelet.spark.jobs.quiet_session import check_java  # noqa: PLC0415 - as above.

    try:
        check_java()
    except UnavailableError as error:
        raise UnavailableError(f"{error}, {advice}") from None


@contextmanager
def _started(output: Output) -> Iterator[Any]:
    from lakelet.spark.jobs.quiet_session import quiet_session  # noqa: PLC0415 - as above.

    console = Console() if isinstance(output, ConsoleOutput) else None
    if console is None or not console.is_terminal:
        output.note("Starting Spark …\n")
    with ExitStack() as session:
        with console.status("Starting Spark …") if console is not None and console.is_terminal else nullcontext():
            spark = session.enter_context(quiet_session("lakelet demo", config=_CONFIG))
        yield spark


@contextmanager
def shown_progress(
    output: Output, doing: str, watch: Callable[[Callable[[int, int], None]], AbstractContextManager[object]]
) -> Iterator[None]:
    """A progress bar on a terminal, else a line at the end; nothing for programs. `watch` reports finished and known tasks."""
    last = (0, 0)

    def remember(done: int, tasks: int) -> None:
        nonlocal last
        last = (done, tasks)

    console = Console() if isinstance(output, ConsoleOutput) else None
    if console is None or not console.is_terminal:
        with watch(remember):
            yield
        output.note(f"   Spark tasks: {last[0]}")
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(f"{doing}, tasks", total=None)

        def show(done: int, tasks: int) -> None:
            remember(done, tasks)
            bars.update(bar, completed=done, total=tasks or None)

        with watch(show):
            yield
    output.note(f"   Spark tasks: {last[0]}")
