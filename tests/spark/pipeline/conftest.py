"""A folder with a pipeline, and runs of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelet import connect
from lakelet.pipeline import parse_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelet.catalog import Lake
    from lakelet.spark.pipeline.flow.flow_result import FlowResult


@dataclass
class Workshop:
    """A pipeline's file, its raw files and its warehouse."""

    spark: "SparkSession"
    folder: Path
    reports: list[Any] = field(default_factory=list)

    @property
    def lake(self) -> "Lake":
        return connect(str(self.folder / "lake"))

    def raw(self, name: str, text: str, folder: str = "raw") -> None:
        (self.folder / folder).mkdir(exist_ok=True)
        (self.folder / folder / name).write_text(text)

    def results(self, text: str, **how: Any) -> "dict[str, FlowResult]":
        from lakelet.spark import run_pipeline

        file = self.folder / "shop.yaml"
        file.write_text(text)
        made = run_pipeline(
            self.spark, parse_pipeline(text, str(file)), self.folder / "lake", listener=self.reports.append, **how
        )
        return {one.flow: one for one in made.flows}

    def run(self, text: str, **how: Any) -> dict[str, str]:
        """The outcome of each flow; the first error is raised."""
        made = self.results(text, **how)
        for one in made.values():
            if one.error is not None:
                raise one.error
        return {name: one.outcome.value for name, one in made.items()}

    def backfill(self, text: str, table: str, **how: Any) -> "FlowResult":
        from lakelet.spark import backfill_pipeline

        file = str(self.folder / "shop.yaml")
        return backfill_pipeline(self.spark, parse_pipeline(text, file), table, warehouse=self.folder / "lake", **how)

    def rows(self, table: str, *order: str) -> list[dict[str, Any]]:
        found = self.lake.table(f"shop.{table}").scan().to_arrow()
        return found.sort_by([(name, "ascending") for name in order]).to_pylist() if order else found.to_pylist()


@pytest.fixture
def workshop(spark: "SparkSession", tmp_path: Path) -> Workshop:
    return Workshop(spark, tmp_path)


Run = Callable[..., dict[str, str]]
