"""Commit callbacks on tables that Java Paimon writes as well."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lakelet.callbacks.partition_registration import MarkerFiles
from tests.conformance.java.client import JavaPaimon
from tests.conformance.line_process import HarnessError
from tests.conformance.tables import DATABASE, Warehouse

NAME = f"{DATABASE}.t"
CALLBACK = "lakelet.callbacks.partition_registration.PartitionRegistration"


def registered(warehouse: Warehouse) -> list[str]:
    home = warehouse.table("t").home
    return MarkerFiles(home.store, f"{home.paths.callback_folder}/partitions").partitions()


def test_commits_of_java_are_called_for_with_ours(warehouse: Warehouse) -> None:
    """Java looks for the class among its own, so that its writers have to be told of none."""
    java, folder = warehouse.java, warehouse.folder
    java.create(
        folder, NAME, [("id", "INT"), ("p", "STRING")], partitioned_by=["p"], options={"commit.callbacks": CALLBACK}
    )
    table = warehouse.table("t")
    table.write([{"id": 1, "p": "a"}])
    with pytest.raises(HarnessError, match="ClassNotFoundException"):
        java.write(folder, NAME, [{"id": 2, "p": "b"}])
    java.write(folder, NAME, [{"id": 2, "p": "b"}], options={"commit.callbacks": ""})
    assert registered(warehouse) == ["p=a"]
    table.write([{"id": 3, "p": "c"}])
    assert registered(warehouse) == ["p=a", "p=b", "p=c"]
    assert len(warehouse.agree("t")) == 3


def test_orphan_removal_of_java_leaves_records_and_statistics(warehouse: Warehouse) -> None:
    java, folder = warehouse.java, warehouse.folder
    java.create(
        folder, NAME, [("id", "INT"), ("p", "STRING")], partitioned_by=["p"], options={"commit.callbacks": CALLBACK}
    )
    table = warehouse.table("t")
    table.write([{"id": 1, "p": "a"}])
    table.analyze()
    root = warehouse.path("t")
    strays = [root / "manifest" / "manifest-stray-0", root / "statistics" / "stat-stray-0"]
    for stray in strays:
        stray.write_text("x")
    before = {path for path in root.rglob("*") if path.is_file()}
    java.clean_orphans(folder, NAME, int(time.time() * 1000) + 10_000)
    assert before - {path for path in root.rglob("*") if path.is_file()} == set(strays)
    assert table.statistics() is not None
    assert java.statistics(folder, NAME) is not None


def test_classes_of_java_do_not_make_a_table_unusable(
    java_paimon: JavaPaimon, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import lakelet

    options = {"commit.callbacks": "org.example.Hook", "commit.callback.org.example.Hook.param": "x"}
    java_paimon.create(tmp_path, NAME, [("id", "INT")], options=options)
    table = lakelet.connect(str(tmp_path)).table(NAME)
    table.write([{"id": 1}])
    assert "org.example.Hook" in caplog.text
    table.set_options({"commit.callbacks": "org.example.Other"})
    table.write([{"id": 2}])
    assert len(java_paimon.read(tmp_path, NAME)) == 2
