"""The compaction tasks planned for the buckets of a primary-key table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lakelet.compact.keyed.keyed_plan import keyed_tasks
from lakelet.compact.task import CompactionTask
from lakelet.lsm.engine.table_engine import ENGINES
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.data_file import DataFile, DeletionVectorRange
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.split import DeletionVector
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.unit.lsm.bucket_files import data_file
from tests.unit.lsm.engine.column_fold import sums_by_name

VECTOR = DeletionVector("d.db/t/index/index-0", DeletionVectorRange("x", 1, 10, 1))


def schema(options: Mapping[str, str] | None = None) -> TableSchema:
    chosen = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", **(options or {})}
    fields = [Field(0, "id", parse_type("BIGINT")), Field(1, "v", parse_type("INT"))]
    return new_schema(fields, partition_keys=(), primary_keys=("id",), options=chosen, comment=None, time_ms=0)


def entry(file: DataFile, bucket: int = 0, total: int = 1) -> ManifestEntry:
    return ManifestEntry(EntryKind.ADD, b"", bucket, total, file)


def tasks(
    table: TableSchema, *entries: ManifestEntry, full: bool = False, vectors: tuple[str, ...] = ()
) -> list[CompactionTask]:
    found = dict.fromkeys(vectors, VECTOR)
    return keyed_tasks(entries, table, snapshot_id=7, vectors=found, now_ms=0, full=full)


def fresh(name: str, sequence: int, size: int = 10) -> DataFile:
    return data_file(name, 0, size, sequence=sequence)


def test_each_bucket_is_asked_for_itself() -> None:
    files = [fresh(str(number), number) for number in range(4)]
    found = tasks(
        schema(),
        *(entry(file, bucket=1, total=8) for file in files),
        entry(fresh("alone", 0), bucket=2, total=8),
    )
    (task,) = found
    assert (task.snapshot_id, task.bucket, task.total_buckets) == (7, 1, 8)
    assert {file.name for file in task.files} == {"0", "1", "2", "3"}
    assert (task.output_level, task.drop_deletes, task.beside) == (3, True, ())
    assert (task.size, task.row_count) == (40, 4)


def test_deletes_are_kept_where_something_older_stays() -> None:
    above = [entry(fresh(str(number), number)) for number in range(2, 5)]
    (task,) = tasks(schema(), *above, entry(data_file("old", 3, 10_000, sequence=1)))
    assert (task.output_level, task.drop_deletes) == (2, False)
    (task,) = tasks(schema(), *above, entry(data_file("old", 3, 10_000, sequence=1)), full=True)
    assert (task.output_level, task.drop_deletes) == (3, True)


def test_all_of_level_0_comes_up_where_readers_do_not_see_it() -> None:
    hiding = schema({"deletion-vectors.enabled": "true"})
    old = [entry(data_file(name, 3, 10_000, sequence=1)) for name in ("x", "y")]
    (task,) = tasks(hiding, entry(fresh("0", 5)), *old, vectors=("x", "elsewhere"))
    assert [file.name for file in task.files] == ["0"]
    assert {file.name for file in task.beside} == {"x", "y"}
    assert (task.output_level, task.drop_deletes) == (2, True)
    assert task.vectors == {"x": VECTOR}
    assert tasks(hiding, *old) == []
    assert tasks(schema(), entry(fresh("0", 5)), *old) == []


def test_a_fold_engine_takes_all_runs_where_readers_do_not_see_level_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "deduplicate", sums_by_name)
    hiding = schema({"deletion-vectors.enabled": "true"})
    old = [entry(data_file(name, 3, 10_000, sequence=1)) for name in ("x", "y")]
    (task,) = tasks(hiding, entry(fresh("0", 5)), *old, vectors=("x", "elsewhere"))
    assert {file.name for file in task.files} == {"0", "x", "y"}
    assert (task.output_level, task.drop_deletes, task.beside) == (3, True, ())
    assert tasks(hiding, *old) == []


def test_full_compaction_rewrites_only_what_must_be_at_the_top() -> None:
    hiding = schema({"deletion-vectors.enabled": "true"})
    old = [entry(data_file(name, 3, 10_000, sequence=1)) for name in ("x", "y")]
    assert tasks(hiding, *old, full=True) == []
    (task,) = tasks(hiding, *old, full=True, vectors=("y",))
    assert ([file.name for file in task.files], task.rewrites_each) == (["y"], True)
    assert [file.name for file in task.beside] == ["x"]


def test_rows_that_wait_for_a_bucket_are_left_alone() -> None:
    waiting = [entry(fresh(str(number), number), bucket=POSTPONE_BUCKET) for number in range(9)]
    assert tasks(schema(), *waiting) == []
    assert tasks(schema(), *waiting, full=True) == []


def test_files_of_a_newer_schema_are_left_alone() -> None:
    files = [fresh(str(number), number) for number in range(4)]
    files[2] = replace(files[2], schema_id=1)
    assert tasks(schema(), *map(entry, files), full=True) == []
    assert len(tasks(replace(schema(), id=1), *map(entry, files), full=True)) == 1
