"""Primary-key tables as people use them: upserts, deletes, kinds, gets, changes, in all five bucket modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schemas import change_schema
from lakelet.errors import ConflictError, InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore

COLUMNS = [("id", "BIGINT"), ("dt", "STRING"), ("v", "INT"), ("op", "STRING")]
MODES: dict[str, dict[str, Any]] = {
    "fixed": {"options": {"bucket": "2"}},
    "dynamic": {"options": {"dynamic-bucket.target-row-num": "3"}},
    "across": {"primary_key": ["id"]},
    "unpartitioned": {"partitioned_by": [], "primary_key": ["id"], "options": {"bucket": "3"}},
    "thin": {"options": {"bucket": "1", "data-file.thin-mode": "true"}},
}
Rows = list[tuple[int, str, int]]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    made = Lake(store)
    made.create_database("d")
    return made


def make(lake: Lake, mode: str = "fixed", **more: Any) -> Table:
    arguments: dict[str, Any] = {"primary_key": ["id", "dt"], "partitioned_by": ["dt"], **MODES[mode], **more}
    # Most rows leave out columns that do not matter here; what becomes of these is tested in test_missing_columns.
    arguments["options"] = {"write.missing-columns": "default", **arguments.get("options", {})}
    return lake.create_table("d.t", COLUMNS, **arguments)


@pytest.fixture(params=MODES)
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    return make(lake, request.param)


def rows(*values: tuple[int, str, int]) -> pa.Table:
    return pa.table({"id": [v[0] for v in values], "dt": [v[1] for v in values], "v": [v[2] for v in values]})


def shown(table: Table, **scan: Any) -> Rows:
    found = table.scan(columns=["id", "dt", "v"], **scan).to_arrow().to_pylist()
    return sorted((row["id"], row["dt"], row["v"]) for row in found)


def test_the_last_row_of_a_key_is_read_at_every_version(table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 1), (1, "a", 2)))
    table.write(rows((2, "a", 3), (3, "b", 3)))
    table.write(rows((3, "b", 4), (4, "a", 4)))
    assert shown(table, version=1) == [(1, "a", 2), (2, "a", 1)]
    assert shown(table, version=2) == [(1, "a", 2), (2, "a", 3), (3, "b", 3)]
    assert shown(table) == [(1, "a", 2), (2, "a", 3), (3, "b", 4), (4, "a", 4)]
    assert table.scan().count() == 4
    assert table.scan(limit=3).to_arrow().num_rows == 3


def test_kinds_put_in_and_take_out(table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 1), (3, "a", 1)))
    table.write(rows((1, "a", 2), (2, "a", 2), (3, "a", 2), (4, "a", 2)), kinds=["-D", "+U", "-U", "I"])
    assert shown(table) == [(2, "a", 2), (4, "a", 2)]


def test_a_column_of_the_data_tells_kinds(table: Table) -> None:
    data = rows((1, "a", 1), (2, "a", 1)).append_column("what", pa.array(["+I", "d"]))
    table.write(data, kinds="what")
    assert shown(table) == [(1, "a", 1)]


def test_a_column_of_the_table_tells_kinds(lake: Lake) -> None:
    table = make(lake, options={"bucket": "2", "rowkind.field": "op"})
    table.write([{"id": 1, "dt": "a", "v": 1, "op": "I"}, {"id": 2, "dt": "a", "v": 1, "op": "+U"}])
    table.write([{"id": 1, "dt": "a", "v": 1, "op": "D"}])
    assert shown(table) == [(2, "a", 1)]
    with pytest.raises(InvalidError, match="row 1 has the row kind 'X'"):
        table.write([{"id": 1, "dt": "a", "op": "I"}, {"id": 2, "dt": "a", "op": "X"}])
    with pytest.raises(InvalidError, match=r"rowkind\.field"):
        table.write(rows((1, "a", 1)), kinds=["+I"])
    assert shown(table) == [(2, "a", 1)]


def test_rows_are_deleted_by_key_and_by_condition(table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 2), (3, "b", 3), (4, "b", 4)))
    assert table.delete(rows((1, "a", 0), (9, "a", 0))) is not None
    assert shown(table) == [(2, "a", 2), (3, "b", 3), (4, "b", 4)]
    assert table.delete(where="v >= 4") is not None
    assert shown(table) == [(2, "a", 2), (3, "b", 3)]
    assert table.delete(where="v = 100") is None
    assert table.delete([{"id": 77, "dt": "a"}]) is None
    assert shown(table, version=1) == [(1, "a", 1), (2, "a", 2), (3, "b", 3), (4, "b", 4)]


def test_rows_are_got_by_key(table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 2), (3, "b", 3)))
    table.write(rows((2, "a", 5)))
    assert table.get({"id": 2, "dt": "a"}) == {"id": 2, "dt": "a", "v": 5, "op": None}
    assert table.get({"id": 2, "dt": "a"}, columns=["v"]) == {"v": 5}
    assert table.get({"id": 9, "dt": "a"}) is None
    table.delete([{"id": 2, "dt": "a"}])
    assert table.get({"id": 2, "dt": "a"}) is None
    found = table.get_many(rows((3, "b", 0), (8, "a", 0), (1, "a", 0)))
    assert found.column("v").to_pylist() == [3, 1]


def test_overwrites_replace_rows(table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "b", 2)))
    table.write(rows((7, "a", 7)), mode="overwrite_partitions")
    left = [(2, "b", 2), (7, "a", 7)] if table.schema.partition_keys else [(7, "a", 7)]
    assert shown(table) == left
    table.write(rows((7, "a", 8), (8, "b", 8)))
    table.write(rows((9, "a", 9)), mode="overwrite")
    assert shown(table) == [(9, "a", 9)]
    table.write(rows((9, "a", 10), (10, "a", 10)))
    assert shown(table) == [(9, "a", 10), (10, "a", 10)]


def test_a_static_partition_is_overwritten(lake: Lake) -> None:
    table = make(lake, "across")
    table.write(rows((1, "a", 1), (2, "b", 2), (3, "b", 3)))
    # Key 2 moves from a partition that stays into the one that is replaced.
    table.write(rows((2, "a", 20)), mode="overwrite", partition={"dt": "a"})
    assert shown(table) == [(2, "a", 20), (3, "b", 3)]
    with pytest.raises(InvalidError, match="there are rows of dt=b"):
        table.write(rows((5, "b", 1)), mode="overwrite", partition={"dt": "a"})
    assert shown(table) == [(2, "a", 20), (3, "b", 3)]


def test_a_dynamic_overwrite_across_partitions_replaces_those_with_new_rows(lake: Lake) -> None:
    table = make(lake, "across")
    table.write(rows((1, "a", 1), (2, "b", 2), (3, "b", 3)))
    table.write(rows((2, "a", 20)), mode="overwrite_partitions")
    assert shown(table) == [(2, "a", 20), (3, "b", 3)]


def test_a_two_phase_dynamic_overwrite_across_partitions_is_refused(lake: Lake) -> None:
    table = make(lake, "across")
    table.write(rows((1, "a", 1), (2, "b", 2)))
    write = table.new_write()
    write.write(rows((2, "a", 20)))
    messages = write.prepare_commit()
    with pytest.raises(InvalidError, match="partitions that must stay"):
        table.new_commit().overwrite(dynamic=True).commit(messages)
    assert shown(table) == [(1, "a", 1), (2, "b", 2)]


def test_a_row_moves_between_partitions(lake: Lake) -> None:
    table = make(lake, "across")
    table.write(rows((1, "a", 1), (2, "a", 2)))
    table.write(rows((1, "b", 3), (1, "c", 4), (2, "a", 5)))
    assert shown(table) == [(1, "c", 4), (2, "a", 5)]
    assert table.get({"id": 1}) == {"id": 1, "dt": "c", "v": 4, "op": None}
    kinds = table.changes(1).to_pylist()
    assert [(row["_row_kind"], row["id"], row["dt"], row["v"]) for row in kinds] == [
        ("-U", 1, "a", 1),
        ("+U", 1, "c", 4),
        ("-U", 2, "a", 2),
        ("+U", 2, "a", 5),
    ]


def test_changes_tell_what_became_of_each_key(table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 2), (3, "b", 3)))
    table.write(rows((1, "a", 10), (3, "b", 3), (4, "b", 4)))
    table.delete([{"id": 2, "dt": "a"}])
    changes = table.changes(1).to_pylist()
    assert sorted((row["_row_kind"], row["id"], row["v"]) for row in changes) == [
        ("+I", 4, 4),
        ("+U", 1, 10),
        ("-D", 2, 2),
        ("-U", 1, 1),
    ]
    assert table.changes(3).num_rows == 0
    assert {row["_row_kind"] for row in table.changes(0).to_pylist()} == {"+I"}


def test_postponed_rows_wait(lake: Lake) -> None:
    table = make(lake, options={"bucket": "-2"})
    table.write(rows((1, "a", 1)))
    table.delete([{"id": 1, "dt": "a"}])
    assert shown(table) == []
    assert table.scan().count() == 0
    assert table.get({"id": 1, "dt": "a"}) is None
    assert [path.split("/")[-2] for path, _ in table.files()] == ["bucket-postpone"] * 2
    with pytest.raises(InvalidError, match="wait for compaction"):
        table.delete(where="v = 1")


def test_rows_come_in_key_order_if_asked(lake: Lake) -> None:
    table = make(lake, "unpartitioned", options={"bucket": "1"})
    table.write(rows((5, "a", 1), (1, "a", 1), (3, "a", 1)))
    table.write(rows((4, "a", 2), (3, "a", 2), (0, "a", 2)))
    assert table.scan(ordered=True).to_arrow().column("id").to_pylist() == [0, 1, 3, 4, 5]


# ------------------------------------------------------------------ rules


def test_rule_16_a_null_sequence_loses_and_a_delete_carries_the_rows_own(lake: Lake) -> None:
    table = make(lake, options={"bucket": "1", "sequence.field": "v"})
    table.write(rows((1, "a", 5), (2, "a", 5)))
    table.write([{"id": 1, "dt": "a", "v": None}, {"id": 2, "dt": "a", "v": 4}])
    assert shown(table) == [(1, "a", 5), (2, "a", 5)]
    table.write([{"id": 1, "dt": "a", "v": None}], kinds=["-D"])
    assert shown(table) == [(1, "a", 5), (2, "a", 5)]
    table.delete([{"id": 1, "dt": "a"}])
    assert shown(table) == [(2, "a", 5)]
    table.delete(where="id = 2")
    assert shown(table) == []
    table.write(rows((2, "a", 5)))
    assert shown(table) == [(2, "a", 5)]


def test_rule_16_descending(lake: Lake) -> None:
    options = {"bucket": "1", "sequence.field": "v", "sequence.field.sort-order": "descending"}
    table = make(lake, options=options)
    table.write([{"id": 1, "dt": "a", "v": 5}, {"id": 1, "dt": "a", "v": 7}, {"id": 1, "dt": "a", "v": None}])
    assert shown(table) == [(1, "a", 5)]
    table.write(rows((1, "a", 3)))
    table.write(rows((1, "a", 4)))
    assert shown(table) == [(1, "a", 3)]


def test_rule_12_a_condition_on_values_never_shows_an_older_row(lake: Lake) -> None:
    table = make(lake, options={"bucket": "1"})
    table.write(rows((1, "a", 1), (9, "a", 1)))
    table.write(rows((1, "a", 100), (9, "a", 100)))
    assert shown(table, where="v < 50") == []
    assert table.scan(where="v < 50").count() == 0
    assert shown(table, where="v > 50 AND id = 9") == [(9, "a", 100)]


def test_rule_17_defaults_fill_in_at_the_write(table: Table) -> None:
    table.write(rows((1, "a", 1)))
    table.add_column("note", "STRING", default="new")
    table.write(rows((2, "a", 2)))
    notes = {row["id"]: row["note"] for row in table.scan().to_arrow().to_pylist()}
    assert notes == {1: None, 2: "new"}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"deletion-vectors.enabled": "true"}, 3),
        ({"merge-engine": "first-row"}, 1),
        ({"merge-engine": "first-row", "deletion-vectors.enabled": "true"}, 1),
    ],
)
@pytest.mark.parametrize("mode", ["fixed", "dynamic", "across", "unpartitioned", "thin"])
def test_rule_18_rows_that_level_0_hides_are_seen_at_once(
    lake: Lake, mode: str, options: dict[str, str], left: int
) -> None:
    table = make(lake, mode, options={**MODES[mode].get("options", {}), **options})
    table.write(rows((1, "a", 1), (2, "a", 1)))
    assert shown(table) == [(1, "a", 1), (2, "a", 1)]
    made = table.write(rows((2, "a", 3), (3, "b", 3)))
    assert made == table.latest_snapshot()
    assert shown(table) == [(1, "a", 1), (2, "a", left), (3, "b", 3)]
    assert table.get({"id": 2, "dt": "a"} if "dt" in table.schema.primary_keys else {"id": 2})["v"] == left  # type: ignore[index]
    if left == 3:
        table.delete(where="v = 3")
        assert shown(table) == [(1, "a", 1)]


def test_rule_18_rows_of_a_two_phase_commit_are_seen_at_once(lake: Lake) -> None:
    table = make(lake, options={"bucket": "1", "deletion-vectors.enabled": "true"})
    for number in range(3):
        write = table.new_write()
        write.write(rows((1, "a", number), (number + 2, "a", number)))
        made = table.new_commit("job", number).commit(write.prepare_commit())
        assert made == table.latest_snapshot()
        assert shown(table) == [(1, "a", number), *((known + 2, "a", known) for known in range(number + 1))]


def test_a_table_whose_changelog_would_be_missing_is_not_written(lake: Lake) -> None:
    table = make(lake, options={"bucket": "1", "deletion-vectors.enabled": "true"})
    # As another engine would make it.
    change_schema(
        table.home,
        lambda schema: replace(schema, options={**schema.options, "changelog-producer": "full-compaction"}),
    )
    for attempt in (
        lambda: table.write(rows((1, "a", 1))),
        table.new_write,
        lambda: table.delete(where="true"),
        lambda: table.compact(full=True),
    ):
        with pytest.raises(InvalidError, match="changelog-producer"):
            attempt()
    assert table.latest_snapshot() is None


# ------------------------------------------------------------------ two writers


def between(lake: Lake, store: MemoryStore, action: Callable[[Table], object]) -> Table:
    """The table through a store on which `action` comes in just before our snapshot is made."""
    hooked = HookedStore(store)
    hooked.when = lambda call, path: call == "put" and "manifest-list" in path
    hooked.after = lambda: action(lake.table("d.t"))
    return Lake(hooked).table("d.t")


def test_rule_5_the_later_commits_row_is_read(lake: Lake, store: MemoryStore, table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 1)))
    ours = between(lake, store, lambda theirs: theirs.write(rows(*((i, "a", 50) for i in (*range(1, 30), 1)))))
    ours.write(rows((1, "a", 99)))
    assert (1, "a", 99) in shown(table)
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3]
    assert {row[2] for row in shown(table, version=2)} == {50}


def test_rule_6_keys_that_got_a_bucket_meanwhile_keep_it(lake: Lake, store: MemoryStore) -> None:
    table = make(lake, "dynamic")
    ours = between(lake, store, lambda theirs: theirs.write(rows(*((i, "a", 1) for i in range(10)))))
    stream = pa.RecordBatchReader.from_batches(
        rows((1, "a", 0)).schema, rows(*((i, "a", 2) for i in range(9, -1, -1))).to_batches()
    )
    ours.write(stream)
    assert shown(table) == [(i, "a", 2) for i in range(10)]
    assert len(table.snapshots()) == 2


def test_a_key_that_moved_meanwhile_is_found(lake: Lake, store: MemoryStore) -> None:
    table = make(lake, "across")
    table.write(rows((1, "a", 1)))
    ours = between(lake, store, lambda theirs: theirs.write(rows((1, "b", 2))))
    ours.write(rows((1, "c", 3)))
    assert shown(table) == [(1, "c", 3)]


def test_a_delete_looks_again_when_its_rows_changed(lake: Lake, store: MemoryStore, table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 1), (3, "a", 1)))
    ours = between(lake, store, lambda theirs: theirs.write(rows((1, "a", 5))))
    ours.delete(where="v = 1")
    assert shown(table) == [(1, "a", 5)]


def test_a_delete_looks_again_when_its_rows_were_replaced(lake: Lake, store: MemoryStore, table: Table) -> None:
    table.write(rows((1, "a", 1), (2, "a", 1), (3, "a", 1)))
    ours = between(lake, store, lambda theirs: theirs.write(rows((1, "a", 5)), mode="overwrite"))
    ours.delete(where="v = 1")
    assert shown(table) == [(1, "a", 5)]


def test_two_phase_commits_raise_instead(table: Table) -> None:
    table.write(rows((1, "a", 1)))
    first, second = table.new_write(), table.new_write()
    first.write(rows((1, "a", 2), (3, "a", 2)))
    second.write(rows((1, "a", 3), (3, "a", 3)))
    messages, late = first.prepare_commit(), second.prepare_commit()
    table.new_commit().commit(messages)
    with pytest.raises(ConflictError):
        table.new_commit().commit(late)
    second.abort()
    assert shown(table) == [(1, "a", 2), (3, "a", 2)]


def test_a_repeated_named_write_is_applied_once(table: Table) -> None:
    for _ in range(3):
        table.write(rows((1, "a", 1)), commit_user="job", commit_identifier=1)
    table.write(rows((1, "a", 2)), commit_user="job", commit_identifier=2)
    table.write(rows((1, "a", 1)), commit_user="job", commit_identifier=1)
    assert shown(table) == [(1, "a", 2)]
    assert len(table.snapshots()) == 2


# ------------------------------------------------------------------ bad input


def _batches() -> Iterator[pa.RecordBatch]:
    yield from rows((1, "a", 1)).to_batches()
    raise OSError("the source broke")


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda t: t.write(pa.table({"dt": ["a"], "v": [1]})), "column 'id' is BIGINT NOT NULL"),
        (lambda t: t.write([{"id": None, "dt": "a"}]), "id"),
        (lambda t: t.write(pa.table({"id": ["x"], "dt": ["a"]})), "column 'id' is BIGINT"),
        (lambda t: t.write(rows((1, "a", 1)), kinds=["+X"]), r"row 0 has the row kind '\+X'"),
        (lambda t: t.write(rows((1, "a", 1)), kinds=["+I", "+I"]), "2 kinds and 1 rows"),
        (lambda t: t.write(rows((1, "a", 1), (2, "a", 1)), kinds=["+I"]), "1 kinds and at least 2 rows"),
        (lambda t: t.write(rows((1, "a", 1)), kinds="what"), "no column 'what'"),
        (lambda t: t.write(rows((1, "a", 1)), kinds=[7]), "kinds"),
        (lambda t: t.delete(), "keys or a condition"),
        (lambda t: t.delete([{"id": 1}], where="true"), "not both"),
        (lambda t: t.delete(pa.table({"v": [1]})), "'id' is missing"),
        (lambda t: t.get({"v": 1}), "'id' is missing"),
        (lambda t: t.get(7), "expected a mapping"),
        (lambda t: t.get({"id": "x", "dt": "a"}), "id"),
        (lambda t: t.set_options({"bucket": "9"}), "bucket"),
        (lambda t: t.set_options({"sequence.field": "v"}), r"sequence\.field"),
        (lambda t: t.drop_column("id"), "primary"),
        (lambda t: t.change_type("id", "DECIMAL(30, 0)"), "primary"),
    ],
)
def test_bad_input_changes_nothing(table: Table, attempt: Callable[[Table], object], reason: str) -> None:
    table.write(rows((1, "a", 1)))
    with pytest.raises(InvalidError, match=reason):
        attempt(table)
    assert shown(table) == [(1, "a", 1)]
    assert len(table.snapshots()) == 1


def test_a_source_that_breaks_leaves_no_files(lake: Lake, store: MemoryStore, table: Table) -> None:
    before = sorted(info.path for info in store.list(""))
    with pytest.raises(OSError, match="the source broke"):
        table.write(_batches())
    assert sorted(info.path for info in store.list("")) == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"primary_key": ["dt"]}, "partition columns .* alone"),
        ({"primary_key": ["id"], "options": {"bucket": "2"}}, "lacks partition columns"),
        ({"primary_key": ["id"], "options": {"sequence.field": "v"}}, "cannot be used where"),
        ({"primary_key": ["id"], "options": {"ignore-delete": "true"}}, "ignore-delete"),
        ({"options": {"sequence.field": "nope"}}, "'nope' is not a column"),
        ({"options": {"sequence.field": "v,v"}}, "different column names"),
        ({"options": {"rowkind.field": "nope"}}, "'nope' is not a column"),
        ({"options": {"rowkind.field": "v"}}, "expected text"),
        ({"options": {"bucket": "2", "bucket-key": "v"}}, "not in the primary key"),
        ({"options": {"merge-engine": "aggregations"}}, "merge-engine"),
        ({"primary_key": ["id", "id"]}, "twice"),
        ({"primary_key": [], "options": {"sequence.field": "v"}}, "needs a table with a primary key"),
    ],
)
def test_a_table_that_cannot_work_is_refused(lake: Lake, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        make(lake, **{"options": {}, **arguments})
    assert lake.tables("d") == []


def test_an_append_table_takes_no_deletes(lake: Lake) -> None:
    table = make(lake, primary_key=[], partitioned_by=[], options={})
    table.write(rows((1, "a", 1)), kinds=["+I"])
    with pytest.raises(InvalidError, match="no primary key"):
        table.write(rows((1, "a", 1)), kinds=["-D"])
    with pytest.raises(InvalidError, match="no primary key"):
        table.delete([{"id": 1}])
    with pytest.raises(InvalidError, match="no primary key"):
        table.get({"id": 1})
    assert shown(table) == [(1, "a", 1)]


def test_a_renamed_sequence_column_still_decides_in_old_versions(lake: Lake) -> None:
    table = make(lake, options={"bucket": "1", "sequence.field": "v"})
    table.write(rows((1, "a", 5)))
    table.write(rows((1, "a", 4)))
    table.rename_column("v", "version")
    assert table.scan(columns=["version"]).to_arrow().to_pylist() == [{"version": 5}]
    assert shown(table, version=2) == [(1, "a", 5)]
