"""Conflicts between concurrent writers of primary-key tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.index_changes import read_index_entries
from lakelet.errors import ConflictError
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore

COLUMNS = [("id", "BIGINT"), ("p", "INT"), ("q", "INT"), ("v", "INT")]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    made = Lake(store)
    made.create_database("d")
    return made


def make(lake: Lake, **more: Any) -> Table:
    arguments = {"primary_key": ["id", "p"], "options": {"bucket": "2"}, **more}
    # Most rows leave out columns that do not matter here; what becomes of these is tested in test_missing_columns.
    arguments["options"] = {"write.missing-columns": "default", **arguments.get("options", {})}
    return lake.create_table("d.t", COLUMNS, **arguments)


def rows(*values: tuple[int, int, int]) -> pa.Table:
    names = ("id", "p", "v")
    return pa.table({name: [value[i] for value in values] for i, name in enumerate(names)})


def shown(table: Table) -> list[tuple[int, int, int]]:
    return sorted((row["id"], row["p"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def between(lake: Lake, store: MemoryStore, action: Callable[[Table], object]) -> Table:
    hooked = HookedStore(store)
    hooked.when = lambda call, path: call == "put" and "manifest-list" in path
    hooked.after = lambda: action(lake.table("d.t"))
    return Lake(hooked).table("d.t")


def hash_indexes(store: MemoryStore, table: Table) -> set[int]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    home: TableHome = table._home
    return {entry.bucket for entry in read_index_entries(home, snapshot)}


def test_an_overwrite_in_two_phases_keeps_the_index_of_the_buckets_it_fills(lake: Lake, store: MemoryStore) -> None:
    table = make(lake, options={"dynamic-bucket.target-row-num": "1"})
    table.write(rows((1, 0, 1), (2, 0, 1)))
    write = table.new_write()
    write.write(rows((1, 0, 2)))
    table.new_commit().overwrite().commit(write.prepare_commit())
    assert shown(table) == [(1, 0, 2)]
    assert hash_indexes(store, table) == {file_bucket(path) for path, _ in table.files()}


def file_bucket(path: str) -> int:
    return int(path.split("/bucket-")[1].split("/", maxsplit=1)[0])


def test_an_overwrite_in_two_phases_conflicts_with_new_keys(lake: Lake) -> None:
    table = make(lake, options={})
    table.write(rows((1, 0, 1)))
    write = table.new_write()
    write.write(rows((1, 0, 2)))
    table.write(rows((2, 0, 1)))
    with pytest.raises(ConflictError, match="dynamic buckets"):
        table.new_commit().overwrite().commit(write.prepare_commit())
    assert shown(table) == [(1, 0, 1), (2, 0, 1)]


def test_kinds_that_can_be_read_once_survive_a_repetition(lake: Lake, store: MemoryStore) -> None:
    table = make(lake, options={})
    table.write(rows((9, 0, 1)))
    ours = between(lake, store, lambda theirs: theirs.write(rows((1, 0, 1))))
    ours.write(rows((9, 0, 2), (8, 0, 2)), kinds=iter(["-D", "+I"]))
    assert shown(table) == [(1, 0, 1), (8, 0, 2)]


@pytest.mark.parametrize("options", [{"bucket": "2"}, {}])
def test_dicts_may_tell_their_kinds(lake: Lake, options: dict[str, str]) -> None:
    table = make(lake, options=options)
    table.write([{"id": 1, "p": 0, "v": 1, "op": "+I"}, {"id": 2, "p": 0, "v": 1, "op": "-D"}], kinds="op")
    assert shown(table) == [(1, 0, 1)]


def test_a_commit_that_somebody_else_made_meanwhile_leaves_no_files(lake: Lake, store: MemoryStore) -> None:
    table = make(lake, options={})
    named: dict[str, Any] = {"commit_user": "job", "commit_identifier": 1}
    hooked = HookedStore(store)
    # Just after our look for an earlier sending, and before our own files.
    hooked.when = lambda call, path: call == "open_output" or "index-" in path
    hooked.after = lambda: table.write(rows((1, 0, 1)), **named)
    made = Lake(hooked).table("d.t").write(rows((1, 0, 1)), **named)
    assert made is not None
    assert made.id == 1
    files = [info.path for info in store.list("") if "/bucket-" in info.path or "/index/" in info.path]
    assert len(files) == 2
    assert shown(table) == [(1, 0, 1)]


@pytest.mark.parametrize(
    ("created", "changed"),
    [({"bucket": "2"}, {"bucket-key": "id"}), ({"bucket": "2"}, {"sequence.field": "v"})],
)
def test_files_of_another_layout_are_not_committed(
    lake: Lake, created: dict[str, str], changed: dict[str, str]
) -> None:
    table = make(lake, options=created)
    write = table.new_write()
    write.write(rows((1, 0, 1)))
    messages = write.prepare_commit()
    table.set_options(changed)
    with pytest.raises(ConflictError, match=next(iter(changed))):
        table.new_commit().commit(messages)
    assert table.latest_snapshot() is None


def test_a_new_name_of_a_key_column_is_no_other_layout(lake: Lake) -> None:
    table = make(lake, options={"bucket": "2", "bucket-key": "id", "sequence.field": "v"})
    write = table.new_write()
    write.write(rows((1, 0, 1)))
    messages = write.prepare_commit()
    table.rename_column("id", "number")
    table.rename_column("v", "version")
    table.new_commit().commit(messages)
    assert table.get({"number": 1, "p": 0}) == {"number": 1, "p": 0, "q": None, "version": 1}


def test_a_delete_looks_again_when_its_rows_were_taken_away(lake: Lake, store: MemoryStore) -> None:
    table = make(lake, options={"bucket": "2", "sequence.field": "v"})
    table.write(rows((1, 0, 5)))
    ours = between(lake, store, lambda theirs: theirs.write(rows(), mode="overwrite"))
    assert ours.delete([{"id": 1, "p": 0}]) is None
    table.write(rows((1, 0, 3)))
    assert shown(table) == [(1, 0, 3)]


def test_a_key_with_some_partition_columns_is_looked_for_in_partitions_that_agree(lake: Lake) -> None:
    table = make(lake, partitioned_by=["p", "q"], primary_key=["p", "id"], options={})
    table.write([{"id": 1, "p": 1, "q": 1, "v": 1}, {"id": 1, "p": 2, "q": 1, "v": 2}])
    assert table.get({"id": 1, "p": 3}) is None
    found = table.get({"id": 1, "p": 2})
    assert found is not None
    assert found["v"] == 2
    table.delete([{"id": 1, "p": 2}])
    assert shown(table) == [(1, 1, 1)]


def test_zeros_of_both_signs_are_two_keys_wherever_the_rest_of_the_key_stands(lake: Lake) -> None:
    table = lake.create_table("d.f", [("f", "DOUBLE"), ("k", "INT")], primary_key=["f", "k"], options={"bucket": "1"})
    table.write(pa.table({"f": [-0.0, 0.0], "k": pa.array([5, 1], pa.int32())}))
    assert table.scan(where="k = 1").to_arrow().num_rows == 1
    assert table.scan(where="k = 5").count() == 1
    table.delete(where="k = 5")
    assert table.scan().to_arrow().column("k").to_pylist() == [1]
