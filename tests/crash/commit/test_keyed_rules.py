"""The rules that keep rows right, by number, on primary-key tables; those that need a rival or a compaction made by hand.

Rules 16 to 18 are held by tests/unit/table/test_keyed_tables.py, rule 12 by tests/unit/scan/test_keyed_plan.py.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.errors import ConflictError
from lakelet.model.commit_message import CommitMessage
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore
from tests.crash.commit.test_commit_rules import Interfering, creates_snapshot, table_on
from tests.crash.keyed_operations import keyed
from tests.crash.warehouse import TABLE, check, lake_on

MODES: dict[str, dict[str, Any]] = {
    "fixed": {"primary_key": ["id", "p"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id", "p"], "options": {"dynamic-bucket.target-row-num": "1"}},
    "across": {"primary_key": ["id"], "options": {"dynamic-bucket.target-row-num": "1"}},
}


def keyed_table(store: MemoryStore, mode: str) -> Table:
    lake = lake_on(store, "new")
    lake.create_database("d")
    columns = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
    return lake.create_table(TABLE, columns, partitioned_by=["p"], **MODES[mode])


def values_table(columns: list[tuple[str, str]], key: str, **options: str) -> Table:
    """A table of one bucket whose files are statistics to prune by."""
    lake = lake_on(MemoryStore(), "new")
    lake.create_database("d")
    return lake.create_table(TABLE, columns, primary_key=[key], options={"bucket": "1", **options})


def found(table: Table, where: str, column: str) -> list[Any]:
    rows: list[Any] = table.scan(columns=[column], where=where).to_arrow().column(column).to_pylist()
    assert table.scan(where=where).count() == len(rows)
    return rows


@pytest.mark.parametrize("mode", MODES)
def test_rule_4_an_upsert_sent_again_is_applied_once_even_after_others(mode: str) -> None:
    store = MemoryStore()
    table = keyed_table(store, mode)
    made = table.write(keyed((1, "a", 1)), commit_user="job", commit_identifier=5)
    table.write(keyed((1, "a", 2)))
    counting = CountingStore(store)
    assert table_on(counting).write(keyed((1, "a", 1)), commit_user="job", commit_identifier=5) == made
    assert not {"put", "put_if_absent", "open_output", "delete"} & set(counting.counts())
    assert check(store) == [(1, "a", 2)]


@pytest.mark.parametrize("mode", MODES)
def test_rule_4_a_delete_sent_again_is_applied_once(mode: str) -> None:
    store = MemoryStore()
    table = keyed_table(store, mode)
    table.write(keyed((1, "a", 1), (2, "b", 1)))
    made = table.delete(keyed((1, "a", 0)), commit_user="job", commit_identifier=5)
    table.write(keyed((1, "a", 2)))
    assert table.delete(keyed((1, "a", 0)), commit_user="job", commit_identifier=5) == made
    assert check(store) == [(1, "a", 2), (2, "b", 1)]


@pytest.mark.parametrize("mode", MODES)
def test_rule_5_a_writer_beaten_again_and_again_wins_in_the_end(mode: str) -> None:
    store = MemoryStore()
    table = keyed_table(store, mode)
    table.set_options({"write-only": "true"})
    table.write(keyed(*((number, "a", 0) for number in range(4))))

    def beaten(times: int) -> Any:
        rival = keyed(*((number, "a", times) for number in range(4)), *((100 + times, "a", times),))
        inner = store if times == 1 else beaten(times - 1)
        return Interfering(inner, creates_snapshot, lambda: table_on(store, f"rival-{times}").write(rival))

    made = table_on(beaten(3)).write(keyed((1, "a", 99)))
    assert made is not None
    assert made.id == len(table.snapshots())
    rows = check(store)
    assert rows is not None
    assert (1, "a", 99) in rows
    assert len(rows) == 4 + made.id - 2


@pytest.mark.parametrize("mode", MODES)
def test_rule_5_and_6_of_two_phases_the_second_raises_and_leaves_the_first(mode: str) -> None:
    store = MemoryStore()
    table = keyed_table(store, mode)
    table.write(keyed((1, "a", 1)))
    late = table.new_write()
    late.write(keyed((1, "a", 3), (5, "a", 3)))
    messages = late.prepare_commit()
    table.write(keyed((1, "a", 2), (5, "a", 2)))
    with pytest.raises(ConflictError):
        table.new_commit("job", 1).commit(messages)
    late.abort()
    assert check(store) == [(1, "a", 2), (5, "a", 2)]


def moved_up(table: Table, level: int) -> CommitMessage:
    """A compaction that only moves the oldest file up."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (split, *_) = table.scan().plan().splits
    oldest = min(split.files, key=lambda file: file.max_sequence)
    moved = replace(oldest, level=level)
    return CommitMessage(split.partition, split.bucket, 1, (moved,), (oldest,), base_snapshot=snapshot.id)


def test_rule_7_a_file_that_moves_up_a_level_stays_readable_under_its_name() -> None:
    store = MemoryStore()
    lake = lake_on(store, "new")
    lake.create_database("d")
    columns = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
    table = lake.create_table(TABLE, columns, primary_key=["id"], options={"bucket": "1"})
    table.write(keyed((1, "a", 1), (2, "a", 1)))
    table.write(keyed((2, "a", 2), (3, "a", 2)))
    before = {file.name: file.level for _, file in table.files()}
    made = table.new_commit("compaction", 1).commit([moved_up(table, 5)])
    assert made is not None
    assert (made.delta_record_count, made.total_record_count) == (0, 4)
    after = {file.name: file.level for _, file in table.files()}
    assert sorted(after) == sorted(before)
    assert sorted(after.values()) == [0, 5]
    assert check(store) == [(1, "a", 1), (2, "a", 2), (3, "a", 2)]
    assert table.changes(2).num_rows == 0
    # The name stands in the manifests three times: added, removed at level 0, added at level 5.
    entries = live_entries(table.scan().home, snapshot_manifests(table.scan().home, made))
    assert sorted(entries.column("_FILE_NAME").to_pylist()) == sorted(before)
    table.write(keyed((1, "a", 3)))
    table.write(keyed((9, "a", 9)), mode="overwrite")
    assert check(store) == [(9, "a", 9)]


def test_rule_7_a_file_moved_up_by_another_cannot_be_moved_again() -> None:
    store = MemoryStore()
    lake = lake_on(store, "new")
    lake.create_database("d")
    columns = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
    table = lake.create_table(TABLE, columns, primary_key=["id"], options={"bucket": "1"})
    table.write(keyed((1, "a", 1)))
    first, second = moved_up(table, 5), moved_up(table, 4)
    table.new_commit("one", 1).commit([first])
    with pytest.raises(ConflictError):
        table.new_commit("two", 1).commit([second])
    assert check(store) == [(1, "a", 1)]


def test_rule_8_the_documentation_says_who_may_commit_at_the_same_moment() -> None:
    text = " ".join((Path(__file__).parents[3] / "docs" / "tables.md").read_text().split())
    assert (
        "Java Paimon and pypaimon may alternate with Lakelet on one table. They must not commit at the very same"
        in text
    )


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rule_13_nan_is_the_greatest_key_and_the_greatest_value(file_format: str) -> None:
    table = values_table([("k", "DOUBLE"), ("v", "DOUBLE")], "k", **{"file.format": file_format})
    table.write([{"k": 1.0, "v": math.nan}, {"k": math.nan, "v": 1.0}])
    table.write([{"k": 3.0, "v": 3.0}, {"k": -0.0, "v": -0.0}, {"k": math.nan, "v": 2.0}])
    assert found(table, "k > 100", "v") == [2.0]
    assert found(table, "v > 100", "k") == [1.0]
    assert sorted(found(table, "k = 0.0 OR v = 0.0", "k")) == [0.0]
    assert table.get({"k": math.nan}, columns=["v"]) == {"v": 2.0}
    assert table.get({"k": 0.0}) is None
    assert table.get({"k": -0.0}, columns=["v"]) == {"v": -0.0}
    ordered = table.scan(columns=["k"], ordered=True).to_arrow().column("k").to_pylist()
    assert ordered[:3] == [-0.0, 1.0, 3.0]
    assert math.isnan(ordered[3])


@pytest.mark.parametrize("stats", ["truncate(16)", "truncate(1)", "none"])
def test_rule_14_keys_that_begin_alike_are_told_apart(stats: str) -> None:
    table = values_table([("k", "STRING"), ("v", "STRING")], "k", **{"metadata.stats-mode": stats})
    long = ["x" * 16 + "a", "x" * 16 + "b", "\uffff" * 20, "\U0001d11e" * 17]
    for number, key in enumerate(long):
        table.write([{"k": key, "v": key}, {"k": f"n{number}", "v": None}])
    for key in long:
        assert found(table, f"k = '{key}'", "v") == [key]
        assert found(table, f"v = '{key}'", "k") == [key]
        assert table.get({"k": key}, columns=["v"]) == {"v": key}
        assert found(table, f"k > '{key}x'", "k") == [
            other for other in found(table, "true", "k") if other.encode() > f"{key}x".encode()
        ]
    assert sorted(found(table, "v IS NULL", "k")) == ["n0", "n1", "n2", "n3"]


def test_rule_15_statistics_of_a_widened_column_prune_no_row() -> None:
    table = values_table([("k", "INT"), ("v", "DECIMAL(6, 2)"), ("w", "TINYINT")], "k")
    table.write([{"k": 1, "v": 1, "w": 1}, {"k": 2, "v": 2, "w": 2}])
    table.change_type("v", "DECIMAL(7, 3)")
    table.change_type("w", "DOUBLE")
    table.write([{"k": 2, "v": 9, "w": 9.5}, {"k": 3, "v": 3, "w": 3.5}])
    assert found(table, "v = 1", "k") == [1]
    assert found(table, "w < 1.5", "k") == [1]
    assert sorted(found(table, "v > 2.5", "k")) == [2, 3]
    # The older row of key 2 must not show where the newer one does not match.
    assert found(table, "v = 2 OR w = 2", "k") == []


def test_rule_15_a_name_used_again_has_statistics_of_its_own() -> None:
    table = values_table([("k", "INT"), ("v", "INT")], "k")
    table.write([{"k": 1, "v": 1}])
    table.drop_column("v")
    table.add_column("v", "INT")
    table.write([{"k": 2, "v": 5}])
    assert found(table, "v = 1", "k") == []
    assert found(table, "v IS NULL", "k") == [1]
    assert found(table, "v = 5", "k") == [2]
