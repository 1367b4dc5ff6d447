"""Iceberg tables in the own catalog of a lake, for tests on Spark, and fault injection for the tasks that write them."""

import functools
import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

import lakelet
from lakelet.spark.iceberg.insert_task import InsertTask, TaskFiles
from tests.spark.faults import Fault
from tests.spark.same_rows import counted

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class IcebergLake:
    """A lake with a database `db` in its own catalog."""

    lake: lakelet.Lake

    @staticmethod
    def new(folder: Path) -> "IcebergLake":
        made = IcebergLake(lakelet.connect(str(folder)))
        made.lake.catalogs.open("iceberg").create_namespace("db")
        return made

    @property
    def location(self) -> str:
        return self.lake.location

    def create(
        self, schema: Schema, spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC, name: str = "db.t", **more: Any
    ) -> Table:
        return self.lake.catalogs.open("iceberg").library.create_table(name, schema, partition_spec=spec, **more)

    def table(self, name: str = "db.t") -> Table:
        """As pyiceberg sees it now."""
        return self.lake.catalogs.open("iceberg").library.load_table(name)

    def rows(self, name: str = "db.t") -> Counter[Any]:
        """All rows, read by pyiceberg."""
        return counted(self.table(name).scan().to_arrow())

    def partitions(self, name: str = "db.t") -> Counter[tuple[Any, ...]]:
        """The partitions of all files, and how many rows are in each."""
        found: Counter[tuple[Any, ...]] = Counter()
        for task in self.table(name).scan().plan_files():
            found[tuple(task.file.partition._data)] += task.file.record_count
        return found

    def unlisted(self, name: str = "db.t") -> set[str]:
        """Data files that no version of the table has."""
        table = self.table(name)
        listed = {
            task.file.file_path
            for snapshot in table.snapshots()
            for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
        }
        return {f"file://{path}" for path in Path(self.location).rglob("data/**/*.parquet")} - listed


@dataclass(frozen=True, slots=True)
class FaultyTask(InsertTask):
    """Something happens when all files of the task are written and nobody has been told."""

    fault: Fault

    def written(self, batches: Any) -> TaskFiles:
        found = InsertTask.written(self, batches)
        if self.fault.strikes():
            self.fault.happen(self.plan.table)
        return found


def write_module() -> ModuleType:
    return importlib.import_module("lakelet.spark.iceberg.insert")


def tasks_suffer(patch: "pytest.MonkeyPatch", fault: Fault) -> None:
    """From now on tasks of `insert_iceberg` meet the fault."""
    patch.setattr(write_module(), "InsertTask", functools.partial(FaultyTask, fault=fault))


def after_the_tasks(patch: "pytest.MonkeyPatch", action: Callable[[], object]) -> None:
    """Something happens on the driver between the last task and the commit."""
    kind = write_module().IcebergInsert
    written = kind._written

    def then(self: Any, *arguments: Any) -> Any:
        found = written(self, *arguments)
        action()
        return found

    patch.setattr(kind, "_written", then)
