"""Rewriting of append tables: the same rows in fewer files, in order where there is one, without what was deleted."""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet import ConflictError, Table, UnavailableError
from lakelet.commit.committer import commit
from lakelet.commit.conflict.vector_conflicts import check_vectors
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest
from lakelet.compact.progress import CompactionCancelled, CompactionProgress, Watch
from lakelet.model.data_file import FILE_SOURCE_COMPACT
from lakelet.model.snapshot import CommitKind
from tests.tiers.examples import examples
from tests.unit.compact.append_tables import append_table, compact, delete_rows, files_of, home_of, planned, rewritten

BUCKETED = {"bucket": "2", "bucket-key": "k"}


def rows_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return found


def ids(table: Table) -> list[int]:
    return [row["id"] for row in rows_of(table)]


def data_paths(table: Table) -> set[str]:
    return {info.path for info in home_of(table).store.list(home_of(table).paths.root) if "/bucket-" in info.path}


def test_small_files_become_one() -> None:
    table = append_table()
    for start in range(6):
        table.write(pa.table({"id": [start, start + 100], "s": ["x", None]}))
    before = rows_of(table)
    snapshot = compact(table)
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (12, 0)
    (file,) = files_of(table)
    assert (file.row_count, file.level, file.source, file.delete_row_count) == (12, 0, FILE_SOURCE_COMPACT, 0)
    assert (file.min_sequence, file.max_sequence) == (0, 11)
    assert rows_of(table) == before
    assert compact(table) is None
    assert compact(table, full=True) is None
    # What was there before is still there.
    assert table.scan(version=6).count() == 12


def test_partitions_are_compacted_each_for_itself() -> None:
    table = append_table([("id", "BIGINT"), ("p", "STRING")], ["p"])
    for start in range(5):
        table.write(pa.table({"id": [start, start + 10], "p": ["a", None if start < 2 else "b"]}))
    assert [(len(task.files), task.bucket, task.total_buckets) for task in planned(table)] == [(5, 0, -1)]
    assert len(planned(table, full=True)) == 3
    before = Counter((row["id"], row["p"]) for row in rows_of(table))
    compact(table, full=True)
    assert len(files_of(table)) == 3
    assert Counter((row["id"], row["p"]) for row in rows_of(table)) == before
    assert table.scan(where="p = 'a'").count() == 5


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_deleted_rows_are_left_out(file_format: str) -> None:
    table = append_table(options={"file.format": file_format})
    for start in (0, 10, 20):
        table.write(pa.table({"id": range(start, start + 10)}))
    first, second, third = files_of(table)
    delete_rows(table, {first.name: [0, 9], third.name: [5]})
    (task,) = planned(table)
    assert {file.name for file in task.files} == {first.name, third.name}
    assert set(task.vectors) == {first.name, third.name}
    snapshot = compact(table)
    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert {file.name for file in files_of(table)} >= {second.name}
    assert sorted(ids(table)) == [number for number in range(30) if number not in (0, 9, 25)]
    assert table.scan().count() == 27


def test_files_of_which_nothing_is_left_go() -> None:
    table = append_table()
    for start in (0, 1):
        table.write(pa.table({"id": [start]}))
    delete_rows(table, {file.name: [0] for file in files_of(table)})
    assert compact(table) is not None
    assert files_of(table) == []
    assert ids(table) == []


def test_rows_deleted_while_files_are_rewritten_are_a_conflict() -> None:
    table = append_table()
    for start in (0, 10):
        table.write(pa.table({"id": range(start, start + 10)}))
    first, second = files_of(table)
    delete_rows(table, {first.name: [1]})
    messages = rewritten(table, planned(table, full=True))
    check_vectors(home_of(table), messages, latest_snapshot(home_of(table)))
    delete_rows(table, {first.name: [1], second.name: [2]}, index="index-y-0")
    with pytest.raises(ConflictError, match="have been deleted meanwhile"):
        check_vectors(home_of(table), messages, latest_snapshot(home_of(table)))
    # An index of files that are not touched is no matter.
    delete_rows(table, {"other": [1]}, index="index-z-0")
    untouched = [replace(message, old_vectors=()) for message in messages]
    check_vectors(home_of(table), untouched, latest_snapshot(home_of(table)))


def test_older_files_are_rewritten_in_the_newest_schema() -> None:
    table = append_table([("id", "INT"), ("x", "DOUBLE"), ("gone", "STRING")])
    table.write([{"id": 1, "x": 1.5, "gone": "a"}])
    table.rename_column("x", "y")
    table.add_column("z", "STRING")
    table.drop_column("gone")
    table.change_type("id", "BIGINT")
    table.write([{"id": 2, "y": 2.5, "z": "new"}])
    before = rows_of(table)
    assert before == [{"id": 1, "y": 1.5, "z": None}, {"id": 2, "y": 2.5, "z": "new"}]
    compact(table, full=True)
    (file,) = files_of(table)
    assert file.schema_id == table.schema.id
    assert rows_of(table) == before
    assert table.scan(where="z IS NULL").to_arrow().column("id").to_pylist() == [1]


def test_other_formats_become_the_one_of_today() -> None:
    table = append_table(options={"file.format": "avro"})
    table.write(pa.table({"id": [1], "s": ["a"]}))
    table.set_options({"file.format": "orc"})
    table.write(pa.table({"id": [2], "s": ["b"]}))
    table.set_options({"file.format": "parquet"})
    before = rows_of(table)
    compact(table, full=True)
    (file,) = files_of(table)
    assert file.name.endswith(".parquet")
    assert rows_of(table) == before


def test_nan_does_not_split_files_again() -> None:
    table = append_table([("id", "BIGINT"), ("x", "DOUBLE"), ("y", "FLOAT")], options={"file.block-size": "1 b"})
    for number, (x, y) in enumerate([(1.0, 1.0), (math.nan, 2.0), (3.0, math.nan)]):
        table.write([{"id": number, "x": x, "y": y}])
    compact(table, full=True)
    ((path, file),) = table.files()
    assert file.row_count == 3
    with pq.ParquetFile(pa.BufferReader(home_of(table).store.get(path))) as parquet:
        columns = [parquet.metadata.row_group(group).column(index) for group in range(3) for index in range(3)]
    ranged = {column.path_in_schema for column in columns if column.statistics and column.statistics.has_min_max}
    assert ranged == {"id"}
    assert table.scan(where="x > 100").count() == 1


def test_a_table_with_buckets_keeps_the_order_of_its_rows() -> None:
    table = append_table([("id", "BIGINT"), ("k", "INT")], options={**BUCKETED, "target-file-size": "600 b"})
    for start in range(0, 60, 10):
        table.write(pa.table({"id": range(start, start + 10), "k": [start % 7] * 10}))
        if start == 30:
            compact(table, full=True)
    before = rows_of(table)
    sequences = sorted((file.min_sequence, file.max_sequence) for file in files_of(table))
    compact(table, full=True)
    assert rows_of(table) == before
    for bucket in ("bucket-0", "bucket-1"):
        own = sorted((file.min_sequence, file.max_sequence) for path, file in table.files() if bucket in path)
        assert all(high < low for (_, high), (low, _) in pairwise(own))
    assert max(high for _, high in sequences) == max(file.max_sequence for file in files_of(table))


def test_early_rows_come_first_although_their_file_is_new() -> None:
    table = append_table([("id", "BIGINT"), ("k", "INT")], options={**BUCKETED, "bucket": "1"})
    for start in range(5):
        table.write(pa.table({"id": [start], "k": [1]}))
    tasks = planned(table)
    table.write(pa.table({"id": [5], "k": [1]}))
    messages = rewritten(table, tasks)
    commit(home_of(table), CommitRequest("compactor", messages, compacts=True))
    assert [file.row_count for file in files_of(table)] in ([1, 5], [5, 1])
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_writers_that_wrote_at_once_share_their_numbers() -> None:
    table = append_table([("id", "BIGINT"), ("k", "INT")], options={**BUCKETED, "bucket": "1"})
    first, second = table.new_write(), table.new_write()
    first.write(pa.table({"id": range(10), "k": [1] * 10}))
    second.write(pa.table({"id": range(10, 20), "k": [1] * 10}))
    for messages in (first.prepare_commit(), second.prepare_commit()):
        table.new_commit().commit(messages)
    table.write(pa.table({"id": [20], "k": [1]}))
    assert [(file.min_sequence, file.max_sequence) for file in files_of(table)] == [(0, 9), (0, 9), (10, 10)]
    (task,) = planned(table, full=True)
    two = replace(task, files=task.files[:2])
    (message,) = rewritten(table, [two])
    assert [(file.row_count, file.min_sequence, file.max_sequence) for file in message.new_files] == [(20, 0, 9)]


def test_large_results_are_closed_at_the_target_size() -> None:
    options = {"target-file-size": "20 kb", "file.compression": "none", "file.block-size": "10 kb"}
    table = append_table(options=options)
    for start in range(0, 3000, 100):
        table.write(pa.table({"id": range(start, start + 100), "s": ["x" * 20] * 100}))
    before = Counter(ids(table))
    assert len(planned(table)) > 1
    compact(table, full=True)
    assert all(file.size < 40 * 1024 for file in files_of(table))
    assert 2 < len(files_of(table)) < 10
    assert Counter(ids(table)) == before


def test_progress_and_cancel() -> None:
    table = append_table()
    for start in range(5):
        table.write(pa.table({"id": range(start * 10, start * 10 + 10)}))
    tasks = planned(table)
    told: list[CompactionProgress] = []
    delete_rows(table, {files_of(table)[0].name: [0]})
    tasks = planned(table, full=True)
    rewritten(table, tasks, Watch(1, tasks[0].row_count, tasks[0].size, told.append))
    assert (told[-1].rows_done, told[-1].bytes_done) == (told[-1].rows, told[-1].bytes) == (50, tasks[0].size)
    assert told[-1].written_bytes > 0
    before = data_paths(table)
    stop = threading.Event()
    stop.set()
    with pytest.raises(CompactionCancelled):
        rewritten(table, tasks, Watch(1, 50, 1, cancel=stop))
    assert data_paths(table) == before


def test_an_error_leaves_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    table = append_table(options={"compaction.force-rewrite-all-files": "true"})
    for start in range(5):
        table.write(pa.table({"id": [start, start + 10]}))
    table.set_options({"target-file-size": "1 b", "file.block-size": "1 b"})
    tasks = planned(table, full=True)
    before = data_paths(table)
    store = type(home_of(table).store)
    opened = store.open_output
    count = 0

    def failing(self: Any, path: str, **how: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError("disk full")
        return opened(self, path, **how)

    monkeypatch.setattr(store, "open_output", failing)
    with pytest.raises(UnavailableError, match="disk full"):
        rewritten(table, tasks)
    assert data_paths(table) == before


def test_many_small_commits_stay_few_files() -> None:
    table = append_table(options={"compaction.min.file-num": "3"})
    written = 0
    for start in range(27):
        table.write(pa.table({"id": [start], "s": ["x"]}))
        tasks = planned(table, inline=True)
        written += sum(task.row_count for task in tasks)
        compact(table, inline=True)
    assert len(files_of(table)) <= 6
    assert written <= 27 * 3
    assert sorted(ids(table)) == list(range(27))


COMMIT = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), st.floats(allow_nan=False)), min_size=1, max_size=6
)


@settings(max_examples=examples(15))
@given(
    commits=st.lists(COMMIT, min_size=1, max_size=8),
    compactions=st.lists(st.sampled_from(["none", "small", "full", "inline"]), min_size=8, max_size=8),
    bucketed=st.booleans(),
    target=st.sampled_from(["256 mb", "2 kb"]),
    evolve_at=st.integers(0, 10),
)
def test_any_compactions_keep_all_rows_and_the_order_in_buckets(
    commits: list[list[tuple[int, str | None, float]]],
    compactions: list[str],
    bucketed: bool,
    target: str,
    evolve_at: int,
) -> None:
    options = {"target-file-size": target, "compaction.min.file-num": "2", **(BUCKETED if bucketed else {})}
    table = append_table([("id", "BIGINT"), ("k", "INT"), ("p", "STRING"), ("x", "DOUBLE")], ["p"], options)
    wrote: list[tuple[int, int, str | None, float]] = []
    for number, (commit_rows, how) in enumerate(zip(commits, compactions, strict=False)):
        if number == evolve_at:
            table.rename_column("x", "y")
        name = "y" if number >= evolve_at else "x"
        rows = [(len(wrote) + place, *row) for place, row in enumerate(commit_rows)]
        table.write([dict(zip(("id", "k", "p", name), row, strict=True)) for row in rows])
        wrote += rows
        if how != "none":
            compact(table, full=how == "full", inline=how == "inline")
        found = [tuple(row.values()) for row in rows_of(table)]
        assert Counter(found) == Counter(wrote)
        if bucketed:
            # Rows with one bucket key in one partition share a bucket, and come as they were written.
            for key in {(row[1], row[2]) for row in wrote}:
                own = [row[0] for row in found if (row[1], row[2]) == key]
                assert own == sorted(own)
