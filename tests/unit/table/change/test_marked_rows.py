"""Deletes, updates and merges of an append table with deletion vectors: files stay, and their rows are marked."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet import Lake, Table
from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore
from lakelet.table.change import looked_up_change

OPTIONS = {"deletion-vectors.enabled": "true", "write-only": "true"}


def table_of(options: dict[str, str] | None = None, partitioned: bool = False) -> tuple[Lake, Table]:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = lake.create_table(
        "d.t",
        [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")],
        partitioned_by=["p"] if partitioned else [],
        options={**OPTIONS, **(options or {})},
    )
    lake.sql("USE d")
    return lake, table


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "p": "ab"[number % 2], "v": number * 10} for number in ids]


def names(table: Table) -> set[str]:
    return {file.name for _, file in table.files()}


def ids(table: Table, **kwargs: Any) -> list[int]:
    found: list[int] = sorted(table.scan(**kwargs).to_arrow().column("id").to_pylist())
    return found


def indexes(table: Table) -> list[dict[str, int | None]]:
    """The number of marked rows of each file, by index file."""
    home = table.scan().home
    snapshot = latest_snapshot(home)
    assert snapshot is not None
    return [
        {place.data_file: place.cardinality for place in entry.file.deletion_vectors or ()}
        for entry in read_index_entries(home, snapshot)
    ]


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.bitmap64": "true"}, {"bucket": "2", "bucket-key": "id"}])
def test_a_delete_marks_rows_and_keeps_the_files(options: dict[str, str]) -> None:
    _, table = table_of(options)
    table.write(rows(*range(10)))
    table.write(rows(*range(10, 20)))
    before = names(table)
    made = table.delete(where="id IN (3, 14)")
    assert made is not None
    assert (made.commit_kind, made.delta_record_count, made.total_record_count) == (CommitKind.OVERWRITE, 0, 20)
    assert names(table) == before
    table.delete(where="id IN (4, 5) OR id = 3")
    left = [number for number in range(20) if number not in (3, 4, 5, 14)]
    assert ids(table) == left
    assert table.scan().count() == table.describe()["record_count"] == 16
    assert ids(table, version=2) == list(range(20))
    assert sum(count or 0 for index in indexes(table) for count in index.values()) == 4
    changed = table.changes(2).to_pylist()
    assert sorted(row["id"] for row in changed) == [3, 4, 5, 14]
    table.compact(full=True)
    assert (ids(table), indexes(table)) == (left, [])


def test_a_file_without_rows_is_removed() -> None:
    _, table = table_of(partitioned=True)
    table.write(rows(0, 2, 4))
    table.write(rows(6, 8, 1, 3))
    table.delete(where="id = 6")
    made = table.delete(where="id >= 6 OR p = 'b'")
    assert made is not None
    assert made.delta_record_count == -4
    assert (len(names(table)), indexes(table), ids(table)) == (1, [], [0, 2, 4])


@pytest.mark.parametrize("format_", ["orc", "avro"])
def test_files_in_which_others_find_no_positions_are_rewritten(format_: str) -> None:
    lake, table = table_of({"file.format": format_})
    table.write(rows(*range(6)))
    table.delete(where="id = 1")
    lake.sql("UPDATE t SET v = 7 WHERE id = 2")
    assert {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == {0: 0, 2: 7, 3: 30, 4: 40, 5: 50}
    assert len(indexes(table)) == (1 if format_ == "orc" else 0)


def test_vectors_outlive_the_snapshots_that_made_them() -> None:
    _, table = table_of({"bucket": "-1"})
    table.write(rows(*range(6)))
    for number in (1, 2, 3):
        table.delete(where=f"id = {number}")
    folder = table.scan().home.paths.index("").rstrip("/")
    store = table.scan().home.store
    assert len(store.list_folder(folder).files) == 3
    table.expire_snapshots(1)
    assert len(store.list_folder(folder).files) == 1
    assert ids(table) == [0, 4, 5]
    assert table.check().damages == ()


def test_nothing_to_mark_is_no_commit() -> None:
    _, table = table_of()
    table.write(rows(1, 2, 3))
    table.delete(where="id = 2")
    assert table.delete(where="id = 2") is None
    assert len(table.snapshots()) == 2


def test_update_and_merge_mark_old_rows_and_append_new_ones() -> None:
    lake, table = table_of()
    table.write(rows(*range(6)))
    lake.sql("UPDATE t SET v = v + 1 WHERE id IN (1, 2)")
    assert len(table.snapshots()) == 2
    lake.sql(
        "MERGE INTO t USING (SELECT * FROM (VALUES (2, 7), (3, 8), (9, 9)) AS x(id, v)) AS s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 'a', s.v)"
    )
    found = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {0: 0, 1: 11, 2: 7, 4: 40, 5: 50, 9: 9}
    # The updated rows of the first statement were in a file of their own, of which one is marked.
    assert sorted(count or 0 for index in indexes(table) for count in index.values()) == [1, 3]
    assert lake.sql("SELECT count(*) AS n, max(v) AS m, min(id) AS i FROM t").to_arrow().to_pylist() == [
        {"n": 6, "m": 50, "i": 0}
    ]


def test_index_files_are_closed_at_their_size() -> None:
    _, table = table_of({"deletion-vector.index-file.target-size": "80 b"})
    for start in range(0, 40, 10):
        table.write(rows(*range(start, start + 10)))
    table.delete(where="id % 10 = 3")
    assert [len(index) for index in indexes(table)] == [2, 2]
    table.delete(where="id IN (4, 17)")
    assert sorted(count or 0 for index in indexes(table) for count in index.values()) == [1, 1, 2, 2]
    table.delete(where="id % 10 <> 9")
    assert ids(table) == [9, 19, 29, 39]


@pytest.mark.parametrize("other", ["delete", "compact", "overwrite", "remove", "elsewhere", "append"])
def test_what_others_did_meanwhile_is_looked_at_again(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = table_of(partitioned=True)
    table.write(rows(0, 2, 4, 6))
    table.write(rows(8, 10, 1, 3))
    table.delete(where="id = 0")
    done: list[str] = []
    prepare = looked_up_change.LookedUpChange._looked_at

    def late(self: Any, commit: Any, snapshot: Any) -> Any:
        if not done:
            done.append(other)
            {
                "delete": lambda: table.delete(where="id = 4"),
                "compact": lambda: table.compact(full=True),
                "overwrite": lambda: table.write(rows(2, 12), mode="overwrite_partitions"),
                "remove": lambda: table.delete(where="id < 8 AND p = 'a'"),
                "elsewhere": lambda: table.delete(where="id = 1"),
                "append": lambda: table.write(rows(14)),
            }[other]()
        return prepare(self, commit, snapshot)

    monkeypatch.setattr(looked_up_change.LookedUpChange, "_looked_at", late)
    table.delete(where="id = 2")
    expected = {
        "delete": [1, 3, 6, 8, 10],
        "compact": [1, 3, 4, 6, 8, 10],
        "overwrite": [1, 3, 12],
        "remove": [1, 3, 8, 10],
        "elsewhere": [3, 4, 6, 8, 10],
        "append": [1, 3, 4, 6, 8, 10, 14],
    }[other]
    assert ids(table) == expected
    assert table.check().damages == ()


def test_a_compaction_that_read_before_a_mark_does_not_bring_the_row_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelet.compact import compaction

    _, table = table_of()
    for start in range(0, 30, 10):
        table.write(rows(*range(start, start + 10)))
    real, done = compaction.commit_compaction, list[int]()

    def late(*args: Any, **kwargs: Any) -> Any:
        if not done:
            done.append(1)
            table.delete(where="id = 11")
        return real(*args, **kwargs)

    monkeypatch.setattr(compaction, "commit_compaction", late)
    table.compact(full=True)
    assert ids(table) == [number for number in range(30) if number != 11]
    assert indexes(table) == []


def test_streams_see_marks_or_refuse_them() -> None:
    lake, table = table_of()
    table.write(rows(*range(5)))
    lake.sql("UPDATE t SET v = 0 WHERE id = 3")
    found = [(row["_row_kind"], row["id"], row["v"]) for row in table.changes(1).to_pylist()]
    assert sorted(found) == [("+I", 3, 0), ("-D", 3, 30)] or sorted(found) == [("+U", 3, 0), ("-U", 3, 30)]
