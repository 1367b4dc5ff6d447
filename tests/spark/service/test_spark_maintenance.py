"""Tables of the service that Spark compacts: their rows stay, and a node that loses its turn commits nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.model.snapshot import CommitKind
from lakelet.service.settings import load_settings
from lakelet.spark.jobs import ended_job
from lakelet.spark.jobs.compact import compact_open_table
from lakelet.table import Table


def table_of(folder: Path, *, keyed: bool) -> tuple[Lake, Table]:
    lake = connect(str(folder))
    lake.create_database("default")
    keys = {"primary_key": ["id"]} if keyed else {}
    options = {"write-only": "true", "num-sorted-run.compaction-trigger": "3", "compaction.min.file-num": "3"}
    if keyed:
        options["bucket"] = "2"
    table = lake.create_table("default.t", [("id", "BIGINT NOT NULL"), ("v", "BIGINT")], options=options, **keys)  # type: ignore[arg-type]
    for turn in range(5):
        table.write([{"id": id_, "v": turn} for id_ in range(100)])
    return lake, lake.table("default.t")


def kinds(table: Table) -> list[CommitKind]:
    return [snapshot.commit_kind for snapshot in table.snapshots()]


@pytest.mark.parametrize("keyed", [True, False], ids=["primary key", "append"])
def test_tables_are_compacted_by_jobs(spark: SparkSession, tmp_path: Path, keyed: bool) -> None:
    _, table = table_of(tmp_path, keyed=keyed)
    before = table.scan().to_arrow().sort_by([("id", "ascending"), ("v", "ascending")])
    assert compact_open_table(spark, table.home, lambda: False) is not None
    assert kinds(table)[-1] is CommitKind.COMPACT
    assert table.scan().to_arrow().sort_by([("id", "ascending"), ("v", "ascending")]).equals(before)


def test_who_loses_the_turn_commits_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_job, "_LOOK_SECONDS", 0.001)
    _, table = table_of(tmp_path, keyed=True)
    asked = 0

    def lost() -> bool:
        nonlocal asked
        asked += 1
        # It is there when the job begins, and lost while it runs.
        return asked > 1

    found = compact_open_table(spark, table.home, lost)
    assert asked > 1
    assert found is None
    assert CommitKind.COMPACT not in kinds(table)
    assert compact_open_table(spark, table.home, lambda: True) is None
    assert table.remove_orphan_files(older_than="0s", dry_run=True).count == 0
    assert table.scan().count() == 100


def test_maintenance_by_spark_needs_one() -> None:
    with pytest.raises(InvalidError, match="maintenance_engine: expected the setting spark"):
        load_settings({"maintenance_engine": "spark"}, {})
    assert load_settings({"maintenance_engine": "spark", "spark": "local[2]"}, {}).spark == "local[2]"
