"""Rescaling of a table: the same rows, also with concurrent writers, and resumable after every interruption."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakelet import CommitUnknownError, ConflictError, InvalidError, Lake, Table, UnavailableError
from lakelet.commit.metadata.schemas import change_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.buckets import rescale
from lakelet.compact.buckets.rescale_plan import OldBucket, rescale_tasks
from lakelet.compact.partition_commit import MOST_LOSSES, Group
from lakelet.compact.progress import CompactionProgress
from lakelet.model.snapshot import CommitKind
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import FailingStore
from tests.unit.compact.append_tables import delete_rows, files_of
from tests.unit.compact.keyed_tables import entries, keyed_table, named, places, rows, stored, values
from tests.unit.hooked_store import HookedStore

HIDING = [{}, {"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}]


def filled(options: dict[str, str], store: HookedStore | MemoryStore | None = None) -> Table:
    table = keyed_table(options, store=store)
    for number, word in enumerate(("one", "two", "three")):
        table.write(pa.concat_tables([rows(range(number * 4, number * 4 + 10), word, p) for p in "ab"]))
    return table


@pytest.mark.parametrize("options", HIDING, ids=["plain", "vectors", "first-row"])
@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 3), (3, 6)])
def test_rows_stay_and_buckets_change(options: dict[str, str], before: int, after: int) -> None:
    table = filled({"bucket": str(before), **options})
    expected, version = values(table), table.latest_snapshot()
    assert version is not None
    made = table.rescale(after)
    assert made is not None
    assert made.commit_kind is CommitKind.OVERWRITE
    assert made.total_record_count == len(expected) == 36
    assert values(table) == expected
    assert {total for _, total in places(table)} == {after}
    assert table.options["bucket"] == str(after)
    assert {(entry.file.level, entry.file.schema_id) for entry in entries(table)} == {(5, 1)}
    if before == 2:
        assert table.changes(version.id).num_rows == 0
    assert table.get({"id": 9, "p": "b"}) == {"id": 9, "p": "b", "v": expected["b", 9]}
    assert table.scan(version=version.id).count() == 36
    assert table.rescale(after) is None
    table.write(rows([9, 100], "later", "b"))
    later = {("b", 100): "later100"} | ({} if "merge-engine" in options else {("b", 9): "later9"})
    assert values(table) == expected | later
    table.compact(full=True)
    assert values(table) == expected | later
    assert stored(table) == named(table)


def test_deletes_and_hidden_rows_are_not_lost() -> None:
    table = keyed_table({"bucket": "2", "deletion-vectors.enabled": "true", "write-only": "true"})
    table.write(rows(range(10), "hidden"))
    table.compact()
    table.write(rows([3, 4], "x"), kinds=["-D", "+U"])
    assert values(table)["a", 3] == "hidden3"
    table.rescale(5)
    assert values(table) == {("a", n): "x4" if n == 4 else f"hidden{n}" for n in range(10) if n != 3}
    assert latest_snapshot(table.home).index_manifest is None  # type: ignore[union-attr]


def test_one_partition_after_the_other() -> None:
    table = filled({"bucket": "2"})
    expected = values(table)
    table.rescale(3, {"p": "a"})
    assert {total for _, total in places(table)} == {2, 3}
    assert values(table) == expected
    assert table.get({"id": 9, "p": "b"}) == {"id": 9, "p": "b", "v": expected["b", 9]}
    table.write(rows([1], "new", "a"))
    with pytest.raises(InvalidError, match=r"p=b were written for 2.*rescale"):
        table.write(rows([1], "new", "b"))
    table.write(rows([1], "new", "c"))
    table.compact(full=True)
    table.rescale(3)
    assert {total for _, total in places(table)} == {3}
    table.write(rows([1], "newer", "b"))
    assert values(table) == expected | {("a", 1): "new1", ("b", 1): "newer1", ("c", 1): "new1"}


def test_tables_with_postponed_buckets_have_numbers_by_partition() -> None:
    table = keyed_table({"bucket": "-2"})
    table.write(pa.concat_tables([rows(range(10), "x", p) for p in "ab"]))
    assert table.rescale(4) is None
    table.compact()
    table.write(rows([1], "waits", "a"))
    made = table.rescale(4, {"p": "a"})
    assert made is not None
    assert table.options["bucket"] == "-2"
    assert {total for _, total in places(table)} == {-2, 1, 4}
    assert len(values(table)) == 20
    table.compact()
    assert values(table)["a", 1] == "waits1"
    assert {total for _, total in places(table)} == {1, 4}


def append_rows(table: Table) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for row in table.scan().to_arrow().to_pylist():
        found.setdefault(row["id"], []).append(row["s"])
    return found


@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 4), (2, 5)])
def test_append_tables(before: int, after: int) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    options = {"bucket": str(before), "bucket-key": "id", "write-only": "true"}
    table = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")], options=options)
    for number in range(3):
        table.write(pa.table({"id": [i % 7 for i in range(20)], "s": [f"{number}/{i}" for i in range(20)]}))
    expected = append_rows(table)
    made = table.rescale(after)
    assert made is not None
    assert append_rows(table) == expected
    assert table.changes(3).num_rows == 0
    assert {total for _, total in places(table)} == {after}
    table.write(pa.table({"id": [0], "s": ["last"]}))
    assert append_rows(table)[0] == [*expected[0], "last"]


def test_deleted_rows_of_append_tables_stay_deleted() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true", "deletion-vectors.enabled": "true"}
    table = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")], options=options)
    table.write(pa.table({"id": range(10), "s": ["x"] * 10}))
    (file,) = files_of(table)
    delete_rows(table, {file.name: [2, 3]})
    table.rescale(2)
    assert sorted(append_rows(table)) == [0, 1, *range(4, 10)]


@pytest.mark.parametrize(
    ("key", "options", "why"),
    [
        (["id", "p"], {}, "dynamic buckets"),
        (["id"], {}, "dynamic buckets"),
        ([], {}, "has no buckets"),
    ],
)
def test_tables_without_a_fixed_number_are_refused(key: list[str], options: dict[str, str], why: str) -> None:
    table = keyed_table(options, key=key)
    table.write(rows(range(3), "x"))
    with pytest.raises(InvalidError, match=why):
        table.rescale(2)
    assert "bucket" not in table.options


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "aggregation", "fields.default-aggregate-function": "median"},
        {"changelog-producer": "full-compaction", "merge-engine": "first-row"},
    ],
    ids=["function", "producer"],
)
def test_tables_that_cannot_be_compacted_are_refused(options: dict[str, str]) -> None:
    table = filled({"bucket": "2"})
    # As Java would make it.
    change_schema(table.home, lambda schema: replace(schema, options={**schema.options, **options}))
    with pytest.raises(InvalidError, match=r"no aggregate function|changelog-producer"):
        table.rescale(3)
    assert table.options["bucket"] == "2"


@pytest.mark.parametrize("buckets", [0, -1, -2, True, "4", 2.0, None])
def test_numbers_that_are_none(buckets: Any) -> None:
    table = filled({"bucket": "2"})
    with pytest.raises(InvalidError, match="whole number from 1"):
        table.rescale(buckets)
    with pytest.raises(InvalidError, match="not a partition key"):
        table.rescale(3, {"v": 1})
    with pytest.raises(InvalidError, match="threads"):
        table.rescale(3, threads=0)
    assert table.options["bucket"] == "2"


def test_an_empty_table_only_changes_its_option() -> None:
    table = keyed_table({"bucket": "2"})
    assert table.rescale(5) is None
    table.write(rows(range(10), "x"))
    assert {total for _, total in places(table)} == {5}


# ---------------------------------------------------------------- others write meanwhile


def during(path: str, action: Callable[[Table], object], *, call: str | None = None) -> tuple[Table, dict[Any, Any]]:
    """A table that is rescaled from 2 to 3 buckets while something else happens to it, and its rows before."""
    store = HookedStore(MemoryStore())
    table = filled({"bucket": "2"}, store)
    before = values(table)
    store.when = lambda name, where: path in where and (call is None or name == call)
    store.after = lambda: action(table)
    table.rescale(3)
    assert store.when is None
    assert {total for _, total in places(table)} == {3}
    assert stored(table) == named(table)
    return table, before


def test_rows_that_come_in_while_files_are_rewritten() -> None:
    table, before = during("p=a/bucket-2/", lambda table: table.write(rows([5, 50], "meanwhile", "a")))
    assert values(table) == before | {("a", 5): "meanwhile5", ("a", 50): "meanwhile50"}
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()][-3:]
    # Partition b was committed at once, a was done again.
    assert kinds == [CommitKind.APPEND, CommitKind.OVERWRITE, CommitKind.OVERWRITE]


def test_a_partition_that_comes_in_while_files_are_rewritten() -> None:
    table, before = during("p=a/bucket-2/", lambda table: table.write(rows([1], "new", "z")))
    assert values(table) == before | {("z", 1): "new1"}


def test_a_compaction_meanwhile() -> None:
    table, before = during("p=a/bucket-2/", lambda table: table.compact(full=True))
    assert values(table) == before


def test_an_overwrite_meanwhile() -> None:
    table, before = during(
        "p=a/bucket-2/", lambda table: table.write(rows([1], "only", "a"), mode="overwrite", partition={"p": "a"})
    )
    assert values(table) == {key: v for key, v in before.items() if key[0] == "b"} | {("a", 1): "only1"}


def test_a_schema_change_meanwhile() -> None:
    table, before = during("p=a/bucket-2/", lambda table: table.add_column("w", "INT"))
    assert values(table) == before
    assert table.schema.names == ("id", "p", "v", "w")


def test_a_writer_of_the_old_number_is_refused() -> None:
    """It starts before, and commits after the option changed, whether before or after the rewritten files are committed."""
    table = filled({"bucket": "2"})
    before = values(table)
    early = table.new_write()
    early.write(rows([1], "early", "a"))
    messages = early.prepare_commit()
    table.rescale(3)
    with pytest.raises(ConflictError, match="written for 2 buckets, but the table has 3"):
        table.new_commit().commit(messages)
    assert values(table) == before


def test_a_write_between_the_option_and_the_commit_is_refused() -> None:
    failures: list[Exception] = []

    def write(table: Table) -> None:
        try:
            table.write(rows([1], "late", "a"))
        except (ConflictError, InvalidError) as error:
            failures.append(error)

    table, before = during("schema/schema-1", write, call="put_if_absent")
    assert values(table) == before
    assert len(failures) == 1


def test_of_two_at_once_for_different_numbers_one_gives_up() -> None:
    store = HookedStore(MemoryStore())
    table = filled({"bucket": "2"}, store)
    before = values(table)
    store.when = lambda call, path: call == "put_if_absent" and path.endswith("schema-1")
    store.after = lambda: table.rescale(4)
    with pytest.raises(ConflictError, match="somebody else changed the number to 4"):
        table.rescale(3)
    assert {total for _, total in places(table)} == {4}
    assert values(table) == before
    assert stored(table) == named(table)


def test_of_two_at_once_for_the_same_number_both_are_content() -> None:
    table, before = during("p=a/bucket-2/", lambda table: table.rescale(3))
    assert values(table) == before


# ---------------------------------------------------------------- interruptions


def test_cancel_leaves_everything_as_it_was() -> None:
    table = filled({"bucket": "2"})
    before, files = values(table), stored(table)
    stop = threading.Event()
    seen: list[CompactionProgress] = []

    def stop_soon(progress: CompactionProgress) -> None:
        seen.append(progress)
        stop.set()

    assert table.rescale(3, progress=stop_soon, cancel=stop, threads=1) is None
    assert (table.options["bucket"], stored(table), values(table)) == ("2", files, before)
    seen.clear()
    table.rescale(3, progress=seen.append)
    last = seen[-1]
    assert (last.tasks_done, last.rows_done, last.bytes_done) == (2, last.rows, last.bytes)
    assert last.written_bytes == sum(entry.file.size for entry in entries(table))


@pytest.mark.parametrize("path", ["p=b/bucket-2/", "schema/schema-1", "manifest/"])
def test_errors_leave_no_files_and_the_same_call_goes_on(path: str) -> None:
    store = MemoryStore()
    table = filled({"bucket": "2"}, store)
    before, files = values(table), stored(table)
    writes = ("open_output", "put", "put_if_absent")
    failing = FailingStore(store, fail_at=1, times=1000, only=lambda call, where: call in writes and path in where)
    with pytest.raises(CommitUnknownError if path == "schema/schema-1" else UnavailableError):
        Lake(failing).table("d.t").rescale(3)
    assert failing.failed
    assert values(table) == before
    if path != "schema/schema-1":
        assert stored(table) == files
    table.rescale(3)
    assert values(table) == before
    assert {total for _, total in places(table)} == {3}


def test_tasks_are_values() -> None:
    table = filled({"bucket": "2"})
    found = entries(table)
    tasks = rescale_tasks(found, 3, snapshot_id=3, vectors={})
    assert len(tasks) == 2
    assert pickle.loads(pickle.dumps(tasks)) == tasks
    assert sum(task.row_count for task in tasks) == sum(entry.file.row_count for entry in found)
    assert sum(task.size for task in tasks) == sum(entry.file.size for entry in found)
    assert all(isinstance(bucket, OldBucket) and bucket.total_buckets == 2 for task in tasks for bucket in task.old)
    assert rescale_tasks(found, 2, snapshot_id=3, vectors={}) == []


def test_it_gives_up_when_others_never_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled({"bucket": "2"})
    tries: list[int] = []

    def lost(home: TableHome, groups: Sequence[Group]) -> tuple[None, bool]:
        tries.append(len(groups))
        return None, False

    monkeypatch.setattr(rescale, "commit_rescaled", lost)
    with pytest.raises(ConflictError, match="rescale again"):
        table.rescale(3)
    assert tries == [2] * MOST_LOSSES
