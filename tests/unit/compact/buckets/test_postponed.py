"""Postponed rows are assigned their buckets: in order, once, also with concurrent writers."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from lakelet import ConflictError, CorruptionError, InvalidError, Lake, UnavailableError
from lakelet.commit.metadata.schemas import change_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.buckets import postponed
from lakelet.compact.buckets.postponed import PostponedCompaction, waiting_tasks
from lakelet.compact.progress import CompactionProgress
from lakelet.format.rows.binary_row import encode_row
from lakelet.model.data_file import FILE_SOURCE_COMPACT
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import FailingStore
from tests.unit.compact.keyed_tables import entries, keyed_table, named, places, rows, stored, values
from tests.unit.hooked_store import HookedStore
from tests.unit.moving_clock import MovingClock

WAITING = (-2, -2)
POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "3"}


def test_rows_get_buckets_in_the_order_they_came() -> None:
    table = keyed_table(POSTPONED)
    table.write(rows(range(10), "first"))
    table.write(rows(range(5, 15), "second"))
    table.write(rows([5, 0], "gone"), kinds=["-D", "-D"])
    table.write(rows([0], "back"))
    assert values(table) == {}
    made = table.compact()
    assert made is not None
    assert (made.commit_kind, made.id) == (CommitKind.COMPACT, 5)
    expected = {("a", n): f"{'first' if n < 5 else 'second'}{n}" for n in range(15) if n != 5} | {("a", 0): "back0"}
    assert values(table) == expected
    assert places(table) == {(bucket, 3) for bucket in range(3)}
    files = [entry.file for entry in entries(table)]
    assert {(file.level, file.source) for file in files} == {(0, FILE_SOURCE_COMPACT)}
    assert made.total_record_count == sum(file.row_count for file in files)
    assert table.get({"id": 7, "p": "a"}) == {"id": 7, "p": "a", "v": "second7"}
    assert table.compact() is None
    # What the files held before can still be looked at.
    assert table.scan(version=4).count() == 0


def test_buckets_go_on_where_they_were() -> None:
    table = keyed_table(POSTPONED)
    for number in range(3):
        table.write(rows(range(number, 8), f"{number}/"))
        table.compact()
    assert values(table) == {("a", n): f"{min(n, 2)}/{n}" for n in range(8)}
    by_bucket: dict[int, list[tuple[int, int]]] = {}
    for entry in entries(table):
        by_bucket.setdefault(entry.bucket, []).append((entry.file.min_sequence, entry.file.max_sequence))
    for ranges in by_bucket.values():
        ordered = sorted(ranges)
        assert all(one[1] < other[0] for one, other in pairwise(ordered))


def test_a_partition_keeps_its_number_of_buckets() -> None:
    table = keyed_table(POSTPONED)
    table.write(rows(range(20), "x", "a"))
    table.compact()
    table.set_options({"postpone.default-bucket-num": "5"})
    table.write(rows(range(20, 40), "x", "a"))
    table.write(rows(range(20), "x", "b"))
    table.compact()
    of_a, of_b = encode_row(["a"], table.schema.partition_types), encode_row(["b"], table.schema.partition_types)
    totals = {entry.partition: entry.total_buckets for entry in entries(table)}
    assert totals == {of_a: 3, of_b: 5}
    assert len(values(table)) == 60


def test_one_partition_alone() -> None:
    table = keyed_table(POSTPONED)
    table.write(pa.concat_tables([rows(range(5), "x", "a"), rows(range(5), "x", "b")]))
    table.compact(partition={"p": "b"})
    assert {key[0] for key in values(table)} == {"b"}
    assert WAITING in places(table)
    table.compact()
    assert len(values(table)) == 10
    with pytest.raises(InvalidError, match="not a partition key"):
        table.compact(partition={"v": "x"})


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}])
def test_rows_show_up_where_level_0_is_hidden(options: dict[str, str]) -> None:
    table = keyed_table({**POSTPONED, **options})
    table.write(rows(range(6), "old"))
    table.compact()
    table.write(rows(range(3, 9), "new"))
    table.compact()
    keeps_first = "merge-engine" in options
    expected = {n: "old" if n < 3 or (keeps_first and n < 6) else "new" for n in range(9)}
    assert values(table) == {("a", n): f"{word}{n}" for n, word in expected.items()}


def test_the_later_commit_wins_whatever_the_clock_says() -> None:
    clock = MovingClock()
    table = keyed_table(POSTPONED, clock=clock)
    early = table.new_write()
    early.write(rows([1, 2], "early"))
    messages = early.prepare_commit()
    table.write(rows([1, 3], "between"))
    table.new_commit().commit(messages)
    clock.move(hours=-8)
    table.write(rows([2, 3], "eight hours behind"))
    table.compact()
    expected = {1: "early1", 2: "eight hours behind2", 3: "eight hours behind3"}
    assert values(table) == {("a", id_): v for id_, v in expected.items()}


def test_tasks_are_values() -> None:
    table = keyed_table(POSTPONED)
    for number in range(4):
        table.write(rows([1], f"{number}/"))
    snapshot = latest_snapshot(table.home)
    assert snapshot is not None
    (task,) = waiting_tasks(entries(table), table.schema, snapshot)
    assert [file.name for file in task.files] == [entry.file.name for entry in entries(table)]
    assert (task.row_count, task.total_buckets, task.sequenced_at[0]) == (4, 3, 4)
    assert task.size == sum(entry.file.size for entry in entries(table))
    assert pickle.loads(pickle.dumps(task)) == task


def test_columns_that_come_meanwhile_are_kept() -> None:
    """The version of the schema is read after the files are, so that no file has columns that it does not know."""
    store = HookedStore(MemoryStore())
    table = keyed_table(POSTPONED, store=store)
    table.write(rows([1], "x"))

    def add_and_write() -> None:
        table.add_column("w", "INT")
        table.write(pa.table({"id": [2], "p": ["a"], "v": ["y"], "w": pa.array([7], pa.int32())}))

    store.when = lambda call, path: "schema" in path
    store.after = add_and_write
    table.compact()
    table.compact()
    assert store.when is None
    assert {row["id"]: row["w"] for row in table.scan().to_arrow().to_pylist()} == {1: None, 2: 7}


def test_tables_whose_compaction_makes_a_changelog_are_refused() -> None:
    table = keyed_table(POSTPONED)
    table.write(rows([1], "x"))
    # As another engine would make it.
    change_schema(
        table.home, lambda schema: replace(schema, options={**schema.options, "changelog-producer": "lookup"})
    )
    with pytest.raises(InvalidError, match="have no changelog"):
        table.compact()
    assert places(table) == {WAITING}


def test_a_partition_in_two_numbers_of_buckets_is_refused() -> None:
    table = keyed_table(POSTPONED)
    table.write(rows(range(20), "x"))
    table.compact()
    table.write(rows(range(20), "y"))
    snapshot = latest_snapshot(table.home)
    assert snapshot is not None
    found = entries(table)
    mixed = [replace(entry, total_buckets=4) if entry.bucket == 0 else entry for entry in found]
    with pytest.raises(CorruptionError, match="3 and 4 buckets"):
        waiting_tasks(mixed, table.schema, snapshot)


def test_rows_of_older_schemas_and_many_batches() -> None:
    columns = [("id", "BIGINT"), ("p", "STRING"), ("v", "INT")]
    table = keyed_table({**POSTPONED, "write-buffer-size": "1 mb"}, columns=columns)
    count = 40_000
    table.write(pa.table({"id": range(count), "p": ["a"] * count, "v": pa.array([7] * count, pa.int32())}))
    table.change_type("v", "BIGINT")
    table.add_column("w", "INT")
    more = pa.array(range(100), pa.int32())
    table.write(pa.table({"id": range(100, 200), "p": ["a"] * 100, "v": [1 << 40] * 100, "w": more}))
    table.compact()
    found = table.scan().to_arrow().sort_by("id")
    assert found.column("id").to_pylist() == list(range(count))
    assert found.column("w").to_pylist()[99:201] == [None, *range(100), None]
    assert found.column("v").to_pylist()[99:201] == [7, *[1 << 40] * 100, 7]


def test_changes_tell_rows_when_they_show_up() -> None:
    table = keyed_table(POSTPONED)
    table.write(rows(range(3), "x"))
    table.compact()
    table.write(rows(range(2, 4), "y"))
    table.compact()
    assert [row["id"] for row in table.changes(0, 1).to_pylist()] == []
    assert [(row["_row_kind"], row["v"]) for row in table.changes(1, 2).to_pylist()] == [
        ("+I", f"x{n}") for n in range(3)
    ]
    later = sorted((row["_row_kind"], row["v"]) for row in table.changes(2).to_pylist())
    assert later == [("+I", "y3"), ("+U", "y2"), ("-U", "x2")]


def test_rows_written_meanwhile_go_on_waiting() -> None:
    store = HookedStore(MemoryStore())
    table = keyed_table(POSTPONED, store=store)
    table.write(rows(range(10), "first"))
    store.when = lambda call, path: "/bucket-0/" in path
    store.after = lambda: table.write(rows(range(5, 12), "meanwhile"))
    table.compact()
    assert store.when is None
    assert values(table) == {("a", n): f"first{n}" for n in range(10)}
    assert WAITING in places(table)
    table.compact()
    assert values(table) == {("a", n): f"{'first' if n < 5 else 'meanwhile'}{n}" for n in range(12)}
    assert stored(table) == named(table)


def test_of_two_compactions_at_once_one_cleans_up() -> None:
    store = HookedStore(MemoryStore())
    table = keyed_table(POSTPONED, store=store)
    table.write(rows(range(10), "x"))
    store.when = lambda call, path: "/bucket-1/" in path
    store.after = table.compact
    assert table.compact() is None
    assert store.when is None
    assert values(table) == {("a", n): f"x{n}" for n in range(10)}
    assert len(table.snapshots()) == 2
    assert stored(table) == named(table)


def test_it_gives_up_when_others_never_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed_table(POSTPONED)
    table.write(rows([1], "x"))
    monkeypatch.setattr(postponed, "commit_waiting", lambda home, groups: (None, False))
    with pytest.raises(ConflictError, match="gave up after 10 attempts"):
        table.compact()


def test_one_partition_that_is_lost_does_not_stop_the_others() -> None:
    store = HookedStore(MemoryStore())
    table = keyed_table(POSTPONED, store=store)
    table.write(pa.concat_tables([rows(range(10), "x", p) for p in "abc"]))
    store.when = lambda call, path: "p=a/bucket-1/" in path
    store.after = lambda: table.compact(partition={"p": "c"})
    made = table.compact()
    assert made is not None
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == [
        CommitKind.APPEND,
        CommitKind.COMPACT,
        CommitKind.COMPACT,
    ]
    assert len(values(table)) == 30
    assert stored(table) == named(table)


def test_a_partition_that_is_rescaled_meanwhile_is_placed_again() -> None:
    store = HookedStore(MemoryStore())
    table = keyed_table(POSTPONED, store=store)
    table.write(rows(range(10), "old"))
    table.compact()
    table.write(rows(range(5, 15), "new"))
    store.when = lambda call, path: "/bucket-1/" in path
    store.after = lambda: table.rescale(2)
    table.compact()
    assert store.when is None
    assert places(table) == {(0, 2), (1, 2)}
    assert values(table) == {("a", n): f"{'old' if n < 5 else 'new'}{n}" for n in range(15)}
    assert stored(table) == named(table)


def test_cancel_and_progress() -> None:
    table = keyed_table(POSTPONED)
    table.write(pa.concat_tables([rows(range(10), "x", p) for p in "ab"]))
    before = stored(table)
    stop = threading.Event()
    seen: list[CompactionProgress] = []

    def stop_soon(progress: CompactionProgress) -> None:
        seen.append(progress)
        stop.set()

    assert table.compact(progress=stop_soon, cancel=stop, threads=1) is None
    assert len(table.snapshots()) == 1
    assert stored(table) == before
    assert 0 < seen[0].rows_done < 20
    seen.clear()
    PostponedCompaction(table.home, table.schema, progress=seen.append).run()
    last = seen[-1]
    assert (last.tasks_done, last.rows_done, last.rows, last.bytes_done) == (2, 20, 20, last.bytes)
    assert last.written_bytes == sum(entry.file.size for entry in entries(table))


def test_an_error_leaves_no_files() -> None:
    store = MemoryStore()
    table = keyed_table(POSTPONED, store=store)
    table.write(pa.concat_tables([rows(range(10), "x", p) for p in "ab"]))
    before = stored(table)
    failing = FailingStore(store, fail_at=1, only=lambda call, path: call == "open_output" and "p=b/bucket-1/" in path)
    with pytest.raises(UnavailableError):
        Lake(failing).table("d.t").compact()
    assert failing.failed
    assert stored(table) == before
    table.compact()
    assert len(values(table)) == 20
