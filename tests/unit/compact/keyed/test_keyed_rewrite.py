"""What compaction makes of the files of a primary-key table: levels, moves, deletes, versions, schemas, formats."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import isnan, nan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.commit.metadata.schemas import SchemaVersions, latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.compaction import Compaction
from lakelet.compact.keyed.keyed_rewrite import KeyedRewriter
from lakelet.compact.progress import Watch
from tests.unit.compact.keyed_bucket import KeyedBucket

EVERY_FILE_IS_LARGE = {"target-file-size": "1 kb"}


def test_full_compaction_leaves_one_run_of_what_counts() -> None:
    bucket = KeyedBucket()
    bucket.write((1, 1), (2, 1), (3, 1))
    bucket.write((2, 2), (4, 2))
    bucket.write((3, 3), (4, 3), kinds=["-D", "+U"])
    before = bucket.rows()
    snapshot = bucket.table.compact(full=True)
    assert snapshot is not None
    assert snapshot.commit_kind.value == "COMPACT"
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (3, -4)
    (file,) = bucket.files()
    assert (file.level, file.row_count, file.delete_row_count, file.source) == (5, 3, 0, 1)
    assert (file.min_sequence, file.max_sequence) == (0, 6)
    assert bucket.rows() == before == [(1, 1), (2, 2), (4, 3)]
    assert bucket.table.compact(full=True) is None
    bucket.check_no_orphans()


def small_runs_above_a_large_one(**options: str) -> KeyedBucket:
    """A top level that outweighs all that comes after it, so that the next compaction stops below."""
    bucket = KeyedBucket(options={"num-sorted-run.compaction-trigger": "3", **options})
    bucket.write(*((number, number * 7919 % 65_537) for number in range(20_000)))
    bucket.table.compact(full=True)
    return bucket


def test_deletes_stay_below_the_top_and_go_at_the_top() -> None:
    bucket = small_runs_above_a_large_one()
    bucket.write((1, 0), (2, 1), kinds=["-D", "+I"])
    bucket.write((3, 0), (4, 0), kinds=["-U", "-D"])
    assert bucket.levels() == [0, 0, 3]
    bucket.table.compact()
    assert bucket.levels() == [2, 3]
    assert [file.delete_row_count for file in bucket.files()] == [3, 0]
    assert [row[0] for row in bucket.rows() if row[0] < 6] == [0, 2, 5]
    bucket.table.compact(full=True)
    assert bucket.levels() == [3]
    (file,) = bucket.files()
    assert (file.row_count, file.delete_row_count) == (19_997, 0)
    assert [row[0] for row in bucket.rows() if row[0] < 6] == [0, 2, 5]


def test_a_delete_of_nothing_leaves_nothing() -> None:
    bucket = KeyedBucket()
    bucket.write((1, 1), (2, 1), kinds=["-D", "-D"])
    snapshot = bucket.table.compact(full=True)
    assert snapshot is not None
    assert (bucket.files(), bucket.rows(), snapshot.total_record_count) == ([], [], 0)
    assert bucket.table.compact(full=True) is None
    bucket.write((1, 2))
    assert bucket.rows() == [(1, 2)]


def test_files_that_need_no_rewriting_move() -> None:
    bucket = KeyedBucket(options=EVERY_FILE_IS_LARGE)
    for start in (0, 10, 20):
        bucket.write(*((number, start) for number in range(start, start + 3)))
    names = {file.name for file in bucket.files()}
    rows = bucket.rows()
    there = {info.path for info in bucket.store.list("d.db/t") if "/bucket-" in info.path}
    bucket.table.compact(full=True)
    assert bucket.levels() == [5, 5, 5]
    assert {file.name for file in bucket.files()} == names
    assert {info.path for info in bucket.store.list("d.db/t") if "/bucket-" in info.path} == there
    assert bucket.rows() == rows
    snapshot = bucket.table.latest_snapshot()
    assert snapshot is not None
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (9, 0)
    assert bucket.rows(version=snapshot.id - 1) == rows


def test_only_overlapping_files_are_rewritten() -> None:
    bucket = KeyedBucket(options=EVERY_FILE_IS_LARGE)
    for start in (0, 10, 20):
        bucket.write(*((number, start) for number in range(start, start + 3)))
    apart = {file.name for file in bucket.files()[::2]}
    bucket.write((11, 99), (12, 99))
    bucket.table.compact(full=True)
    assert apart < {file.name for file in bucket.files()}
    assert set(bucket.levels()) == {5}
    assert (11, 99) in bucket.rows()
    assert len(bucket.rows()) == 9


def test_rule_7_a_file_with_deletes_never_moves_to_the_top() -> None:
    bucket = KeyedBucket(options=EVERY_FILE_IS_LARGE)
    bucket.write((1, 1), (2, 1), kinds=["+I", "-D"])
    (before,) = bucket.files()
    bucket.table.compact(full=True)
    (after,) = bucket.files()
    assert after.name != before.name
    assert (after.row_count, after.delete_row_count) == (1, 0)


def test_a_file_that_may_hold_uncounted_deletes_is_rewritten() -> None:
    """Other writers count no deletes where a column tells them."""
    columns = [("id", "BIGINT"), ("v", "INT"), ("op", "STRING")]
    bucket = KeyedBucket(columns, options={"rowkind.field": "op", **EVERY_FILE_IS_LARGE})
    with bucket.table.new_write() as write:
        write.write([{"id": 1, "v": 1, "op": "+I"}, {"id": 2, "v": 1, "op": "-D"}])
        (message,) = write.prepare_commit()
    uncounted = tuple(replace(file, delete_row_count=0) for file in message.new_files)
    bucket.table.new_commit().commit([replace(message, new_files=uncounted)])
    assert bucket.rows() == [(1, 1, "+I")]
    bucket.table.compact(full=True)
    assert bucket.rows() == [(1, 1, "+I")]


@pytest.mark.parametrize(("order", "left"), [("ascending", 9), ("descending", 1)])
def test_the_sequence_field_decides(order: str, left: int) -> None:
    columns = [("id", "BIGINT"), ("v", "INT"), ("s", "INT")]
    options = {"sequence.field": "s", "sequence.field.sort-order": order}
    bucket = KeyedBucket(columns, options=options)
    bucket.write((1, 1, 5), (2, 1, 5), (3, 1, 5), (4, 1, None), (5, 1, 5))
    bucket.write((1, 2, 1), (2, 2, 9), (3, 2, None), (4, 2, None), (5, 2, 5))
    bucket.write((1, 3, 9), (2, 3, 1))
    expected = {1: left, 2: left, 3: 5, 4: None, 5: 5}
    assert {row[0]: row[2] for row in bucket.rows()} == expected
    values = bucket.rows()
    bucket.table.compact(full=True)
    assert bucket.rows() == values
    assert bucket.rows()[3:] == [(4, 2, None), (5, 2, 5)]
    worse = {"ascending": 2, "descending": 8}[order]
    bucket.write((1, 4, worse))
    assert {row[0]: row[2] for row in bucket.rows()} == expected


def test_deletes_are_ignored_where_the_table_says_so() -> None:
    bucket = KeyedBucket(options={"ignore-delete": "true"})
    bucket.write((1, 1), (2, 1))
    write = bucket.table.new_write()
    write.write([{"id": 1, "v": 2}, {"id": 3, "v": 2}], kinds=["-D", "-U"])
    bucket.table.new_commit().commit(write.prepare_commit())
    bucket.table.compact(full=True)
    assert bucket.rows() == [(1, 1), (2, 1)]
    assert [file.delete_row_count for file in bucket.files()] == [0]


def test_files_of_older_schemas() -> None:
    columns = [("id", "BIGINT"), ("v", "INT"), ("gone", "STRING"), ("x", "FLOAT")]
    bucket = KeyedBucket(columns)
    bucket.write((1, 1, "a", 1.5), (2, 1, "b", nan))
    bucket.table.drop_column("gone")
    bucket.table.change_type("v", "BIGINT")
    bucket.table.rename_column("x", "y")
    bucket.table.add_column("gone", "STRING")
    bucket.write((2, 2**40, 2.5, "new"), (3, 3, nan, None))
    before = bucket.rows()
    bucket.table.compact(full=True)
    (file,) = bucket.files()
    assert file.schema_id == bucket.table.schema.id
    assert repr(bucket.rows()) == repr(before)
    assert [row[:2] for row in bucket.rows()] == [(1, 1), (2, 2**40), (3, 3)]
    assert [row[3] for row in bucket.rows()] == [None, "new", None]


def test_a_file_that_moves_keeps_its_schema() -> None:
    bucket = KeyedBucket(options=EVERY_FILE_IS_LARGE)
    bucket.write((1, 1))
    bucket.table.add_column("w", "INT")
    bucket.table.compact(full=True)
    assert [(file.schema_id, file.level) for file in bucket.files()] == [(0, 5)]
    assert bucket.rows() == [(1, 1, None)]


def test_rule_13_columns_with_nan() -> None:
    columns = [("id", "BIGINT"), ("x", "DOUBLE")]
    bucket = KeyedBucket(columns, options={"file.block-size": "1 b"})
    bucket.write(*((number, float(number)) for number in range(50)))
    bucket.write((7, nan), (49, 3.0))
    bucket.table.compact(full=True)
    assert sum(file.row_count for file in bucket.files()) == 50
    found = bucket.rows(where="x > 47")
    assert {row[0] for row in found} == {7, 48}
    assert sum(isnan(row[1]) for row in found) == 1


def test_the_format_of_each_level() -> None:
    bucket = KeyedBucket(options={"file.format.per.level": "0:orc,5:parquet", **EVERY_FILE_IS_LARGE})
    bucket.write((1, 1))
    bucket.write((5, 1))
    assert all(file.name.endswith(".orc") for file in bucket.files())
    bucket.table.compact(full=True)
    assert set(bucket.levels()) == {5}
    assert all(file.name.endswith(".parquet") for file in bucket.files())
    assert bucket.rows() == [(1, 1), (5, 1)]


def test_files_are_closed_at_their_target_size_in_key_order() -> None:
    bucket = KeyedBucket(options={"target-file-size": "20 kb", "file.block-size": "4 kb"})
    for start in range(3):
        bucket.write(*((number * 3 + start, number) for number in range(10_000)))
    bucket.table.compact(full=True)
    files = bucket.files()
    assert len(files) > 2
    assert sum(file.row_count for file in files) == 30_000
    ends = sorted(tuple(int.from_bytes(key[-8:], "little") for key in (file.min_key, file.max_key)) for file in files)
    assert all(one[1] < other[0] for one, other in pairwise(ends))
    ids = bucket.table.scan(ordered=True).to_arrow().column("id").to_pylist()
    assert ids == list(range(30_000))


@pytest.mark.parametrize("budget", [1, 4096, 1 << 20])
def test_the_rows_are_the_same_whatever_memory_there_is(budget: int) -> None:
    bucket = KeyedBucket([("id", "BIGINT"), ("v", "INT"), ("s", "STRING")])
    for turn in range(5):
        rows = [(number, turn, "x" * (number % 7)) for number in range(turn, 400, turn + 1)]
        bucket.write(*rows, kinds=["-D" if number % 5 == turn else "+I" for number, _, _ in rows])
    expected = bucket.rows()
    home = bucket.table._home
    snapshot, schema = latest_snapshot(home), latest_schema(home)
    assert snapshot is not None
    (task,) = Compaction(home, schema, True).plan(snapshot)
    rewriter = KeyedRewriter(home, schema, SchemaVersions(home), budget_bytes=budget)
    bucket.commit([rewriter.rewrite(task, Watch(1, task.row_count, task.size))])
    assert set(bucket.levels()) == {5}
    assert bucket.rows() == expected


def test_keys_of_several_columns_and_partitions() -> None:
    columns = [("p", "STRING"), ("a", "STRING"), ("b", "DOUBLE"), ("v", "INT")]
    bucket = KeyedBucket(columns, key=("p", "a", "b"), partitions=("p",))
    bucket.write(("x", "k", -0.0, 1), ("x", "k", 0.0, 1), ("y", "k", nan, 1), ("y", "", 1.0, 1))
    bucket.write(("x", "k", 0.0, 2), ("y", "k", nan, 2))
    before = bucket.rows()
    bucket.table.compact(full=True, partition={"p": "x"})
    assert sorted(bucket.levels()) == [0, 0, 5]
    bucket.table.compact(full=True)
    assert bucket.levels() == [5, 5]
    assert repr(bucket.rows()) == repr(before)


def test_thin_files_stay_thin() -> None:
    bucket = KeyedBucket(options={"data-file.thin-mode": "true"})
    bucket.write((1, 1), (2, 1))
    bucket.write((2, 2))
    bucket.table.compact(full=True)
    ((path, _),) = bucket.table.files()
    data = pa.BufferReader(bucket.store.get(path))
    assert pq.read_schema(data).names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "v"]
    assert bucket.rows() == [(1, 1), (2, 2)]
