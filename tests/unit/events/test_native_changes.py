"""Every change of a native table, by Python and by SQL, is published after it is committed; and nothing else is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from inspect import getmembers
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import CommitUnknownError, LakeletError
from lakelet.events import Committed, TableEvent, subscribe
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.table.versions.table_branches import TableBranches
from lakelet.table.versions.table_consumers import TableConsumers
from lakelet.table.versions.table_tags import TableTags
from lakelet.testing.instrumented_stores import CountingStore, FailingStore
from tests.crash.warehouse import SteppingClock
from tests.unit.events.told import Told, events_of, told

ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "day": pa.array(["2020-01-01"] * 2 + ["2020-01-02"] * 2)})
COLUMNS = [("id", "BIGINT NOT NULL"), ("day", "STRING")]
METADATA = ("/schema/schema-", "/snapshot/snapshot-", "/tag/tag-")
CHANGES = ("put", "put_if_absent", "delete", "copy")
FOLDERS = ("delete_folder", "move_folder")
EXPIRY = {"partition.timestamp-formatter": "yyyy-MM-dd", "partition.timestamp-pattern": "$day"}


def new_lake(store: Any = None) -> tuple[Lake, Table]:
    lake = Lake(store or MemoryStore())
    lake.create_database("d")
    return lake, lake.create_table("d.t", COLUMNS, partitioned_by=["day"], options=EXPIRY)


def prepared(store: Any = None) -> tuple[Lake, Table]:
    """Three snapshots, a tag of the second, a branch from it with a snapshot of its own."""
    lake, table = new_lake(store)
    for _ in range(2):
        table.write(ROWS)
    table.tags.create("x")
    table.branches.create("b", tag="x")
    table.on_branch("b").write(ROWS.slice(0, 1))
    table.write(ROWS)
    return lake, table


def two_phases(table: Table) -> None:
    write = table.new_write()
    write.write(ROWS)
    table.new_commit().commit(write.prepare_commit())


def consume(table: Table) -> None:
    table.consumers.set("c", 2)
    table.consumers.reset("c", 3)
    table.consumers.expire("1 d")
    table.consumers.delete("c")


def rows_of_a_writer(table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder, table.writer(wal_folder=folder) as writer:
        writer.put_many(ROWS)


def reads(lake: Lake, table: Table) -> None:
    table.scan().to_arrow()
    table.snapshots()
    table.check()
    table.tags.list()
    lake.sql("SELECT count(*) FROM d.t").to_arrow()


def committed(operation: str, number: int = 4) -> Told:
    return "Committed", {"snapshot_id": number, "operation": operation}


Operation = tuple[Callable[[Lake, Table], object], list[Told]]

WRITES: dict[str, Operation] = {
    "write": (lambda lake, t: t.write(ROWS), [committed("APPEND")]),
    "write nothing": (lambda lake, t: t.write(ROWS.slice(0, 0)), []),
    "overwrite": (lambda lake, t: t.write(ROWS, mode="overwrite"), [committed("OVERWRITE")]),
    "rows of a writer": (lambda lake, t: rows_of_a_writer(t), [committed("APPEND")]),
    "two phases": (lambda lake, t: two_phases(t), [committed("APPEND")]),
    "delete": (lambda lake, t: t.delete(where="id = 1"), [committed("OVERWRITE")]),
    "compact": (lambda lake, t: t.compact(full=True), [committed("COMPACT")]),
    "analyze": (lambda lake, t: t.analyze(), [committed("ANALYZE")]),
    "write to a branch": (
        lambda lake, t: t.on_branch("b").write(ROWS),
        [("Committed", {"branch": "b", "snapshot_id": 4, "operation": "APPEND"})],
    ),
    "write that evolves": (
        lambda lake, t: t.write(ROWS.append_column("v", ROWS.column("id")), evolve=True),
        [("SchemaChanged", {"schema_id": 1}), committed("APPEND")],
    ),
    "read": (reads, []),
}
TABLES: dict[str, Operation] = {
    "add column": (lambda lake, t: t.add_column("v", "INT"), [("SchemaChanged", {"schema_id": 1})]),
    "comment": (lambda lake, t: t.change_comment("c"), [("SchemaChanged", {"schema_id": 1})]),
    "set option": (lambda lake, t: t.set_options({"write-only": "true"}), [("OptionsChanged", {"schema_id": 1})]),
    "reset option that is not set": (lambda lake, t: t.reset_options(["write-only"]), []),
    "create table": (lambda lake, t: lake.create_table("d.u", COLUMNS), [("TableCreated", {})]),
    "create table that is there": (lambda lake, t: lake.create_table("d.t", COLUMNS, if_not_exists=True), []),
    "replace table, history kept": (
        lambda lake, t: lake.replace_table("d.t", [*COLUMNS, ("v", "INT")], partitioned_by=["day"], options=EXPIRY),
        [("SchemaChanged", {"schema_id": 1}), committed("OVERWRITE"), ("TableReplaced", {})],
    ),
    "rename table": (lambda lake, t: lake.rename_table("d.t", "d.u"), [("TableRenamed", {"new": "d.u"})]),
    "drop table": (lambda lake, t: lake.drop_table("d.t"), [("TableDropped", {})]),
    "drop database": (lambda lake, t: lake.drop_database("d", cascade=True), [("TableDropped", {})]),
}
COLUMN_CHANGES: dict[str, Callable[[Lake, Table], object]] = {
    "alter": lambda lake, t: t.alter(lambda schema: replace(schema, comment="c")),
    "comment a column": lambda lake, t: t.change_column_comment("day", "c"),
    "default": lambda lake, t: t.change_default("id", 1),
    "nullability": lambda lake, t: t.change_nullability("id", nullable=True),
    "type": lambda lake, t: t.change_type("small", "BIGINT"),
    "move column": lambda lake, t: t.move_column("small", first=True),
    "rename column": lambda lake, t: t.rename_column("small", "n"),
    "drop column": lambda lake, t: t.drop_column("small"),
}
UPKEEP: dict[str, Operation] = {
    "compact manifests": (lambda lake, t: t.compact_manifests(), [committed("COMPACT")]),
    "orphans": (lambda lake, t: t.remove_orphan_files(), []),
    "unexisting files": (lambda lake, t: t.remove_unexisting_files(), []),
    "repair": (lambda lake, t: t.repair(), []),
    "expire tags": (lambda lake, t: t.tags.expire("2100-01-01"), [("TagDeleted", {"tag": "x"})]),
    "due tags": (lambda lake, t: t.tags.create_due(), []),
    "consumers": (lambda lake, t: consume(t), []),
    "views": (lambda lake, t: lake.sql("CREATE VIEW d.v AS SELECT 1 AS a"), []),
}
VERSIONS: dict[str, Operation] = {
    "create tag": (lambda lake, t: t.tags.create("y", 1), [("TagCreated", {"tag": "y", "snapshot_id": 1})]),
    "create tag that is there": (lambda lake, t: t.tags.create("x", if_not_exists=True), []),
    "replace tag": (lambda lake, t: t.tags.replace("x", 1), [("TagReplaced", {"tag": "x", "snapshot_id": 1})]),
    "rename tag": (lambda lake, t: t.tags.rename("x", "y"), [("TagRenamed", {"tag": "x", "new_tag": "y"})]),
    "delete tag": (lambda lake, t: t.tags.delete("x"), [("TagDeleted", {"tag": "x"})]),
    "create branch": (
        lambda lake, t: t.branches.create("c", tag="x"),
        [("BranchCreated", {"branch": "c", "snapshot_id": 2})],
    ),
    "create branch of a version": (
        lambda lake, t: t.branches.create("c", version=1),
        [
            ("TagCreated", {"tag": "origin-of-branch-c", "snapshot_id": 1}),
            ("BranchCreated", {"branch": "c", "snapshot_id": 1}),
        ],
    ),
    "create empty branch": (
        lambda lake, t: t.branches.create("c"),
        [("BranchCreated", {"branch": "c", "snapshot_id": None})],
    ),
    "rename branch": (
        lambda lake, t: t.branches.rename("b", "c"),
        [("BranchRenamed", {"branch": "b", "new_branch": "c"})],
    ),
    "delete branch": (lambda lake, t: t.branches.delete("b"), [("BranchDeleted", {"branch": "b"})]),
    "fast-forward": (
        lambda lake, t: t.branches.fast_forward("b"),
        [("FastForwarded", {"source": "b", "snapshot_id": 3})],
    ),
    "roll back": (lambda lake, t: t.rollback(1), [("RolledBack", {"snapshot_id": 1})]),
    "roll back to a tag": (lambda lake, t: t.rollback("x"), [("RolledBack", {"snapshot_id": 2})]),
    "expire snapshots": (
        lambda lake, t: t.expire_snapshots(retain_last=1, retain_max=1),
        [("SnapshotsExpired", {"snapshot_ids": (1, 2)})],
    ),
    "expire snapshots, dry": (lambda lake, t: t.expire_snapshots(retain_last=1, retain_max=1, dry_run=True), []),
    "expire no snapshot": (lambda lake, t: t.expire_snapshots(retain_last=9), []),
    "expire partitions": (
        lambda lake, t: t.expire_partitions("1 d"),
        [
            committed("OVERWRITE"),
            ("PartitionsExpired", {"partitions": ({"day": "2020-01-01"}, {"day": "2020-01-02"}), "snapshot_id": 4}),
        ],
    ),
}
SQL: dict[str, list[Told]] = {
    "INSERT INTO d.t VALUES (9, '2020-01-01')": [committed("APPEND")],
    "DELETE FROM d.t WHERE id = 1": [committed("OVERWRITE")],
    "UPDATE d.t SET id = 5 WHERE id = 1": [committed("OVERWRITE")],
    "TRUNCATE TABLE d.t": [committed("OVERWRITE")],
    "CREATE TABLE d.u AS SELECT 1 AS a": [("TableCreated", {}), committed("APPEND", 1)],
    "ALTER TABLE d.t ADD COLUMN v INT": [("SchemaChanged", {"schema_id": 1})],
    "ALTER TABLE d.t SET ('write-only' = 'true')": [("OptionsChanged", {"schema_id": 1})],
    "ALTER TABLE d.t RENAME TO d.u": [("TableRenamed", {"new": "d.u"})],
    "DROP TABLE d.t": [("TableDropped", {})],
    "CALL sys.create_tag('d.t', 'y', 1)": [("TagCreated", {"tag": "y", "snapshot_id": 1})],
    "CALL sys.delete_branch('d.t', 'b')": [("BranchDeleted", {"branch": "b"})],
    "CALL sys.fast_forward('d.t', 'b')": [("FastForwarded", {"source": "b", "snapshot_id": 3})],
    "CALL sys.rollback_to('d.t', 1)": [("RolledBack", {"snapshot_id": 1})],
    "SELECT * FROM d.t": [],
}


def statement(text: str) -> Callable[[Lake, Table], object]:
    return lambda lake, table: lake.sql(text)


OPERATIONS: dict[str, Operation] = {
    **WRITES,
    **TABLES,
    **VERSIONS,
    **UPKEEP,
    **{text: (statement(text), expected) for text, expected in SQL.items()},
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_an_operation_publishes(name: str) -> None:
    operation, expected = OPERATIONS[name]
    lake, table = prepared()
    assert told(lambda: operation(lake, table)) == expected


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_changes_metadata_publishes(name: str) -> None:
    """The log of the store and the events agree: a change of schemas, snapshots or tags is told of, and nothing else is."""
    store = CountingStore(MemoryStore())
    lake, table = prepared(store)
    store.reset()
    events = events_of(lambda: OPERATIONS[name][0](lake, table))
    changed = [path for call, path in store.log if call in CHANGES and any(part in path for part in METADATA)]
    changed += [path for call, path in store.log if call in FOLDERS]
    assert bool(changed) == bool(events), changed


@pytest.mark.parametrize("name", COLUMN_CHANGES)
def test_what_a_change_of_columns_publishes(name: str) -> None:
    lake, table = new_lake()
    table.add_column("small", "INT")
    assert told(lambda: COLUMN_CHANGES[name](lake, table)) == [("SchemaChanged", {"schema_id": 2})]


def test_what_rescaling_publishes() -> None:
    lake, _ = new_lake()
    table = lake.create_table("d.k", COLUMNS, primary_key=["id"], options={"bucket": "1"})
    table.write(ROWS)
    assert told(lambda: table.rescale(2)) == [("OptionsChanged", {"schema_id": 1}), committed("OVERWRITE", 2)]


READS = {
    Table: "branch_names change_batches changelog_lag changes describe files follow get get_many latest_snapshot lookup "
    "schemas statistics "
    # The first half of a schema change; a compaction that is committed as every other one; a writer for asyncio.
    "tag_names with_options compact_in_background async_writer",
    TableTags: "get",
    TableBranches: "list",
    TableConsumers: "get list",
    # Databases and views are no tables.
    Lake: "databases keep_view drop_view now_ms planned_schema table_exists table_home tables table view views",
}


@pytest.mark.parametrize("kind", READS, ids=lambda kind: kind.__name__)
def test_no_public_method_is_forgotten(kind: type) -> None:
    """Whoever adds a method says here that it reads, or what it publishes."""
    walked = Path(__file__).read_text(encoding="utf-8")
    public = [name for name, _ in getmembers(kind, callable) if not name.startswith("_")]
    assert [name for name in public if name not in READS[kind].split() and f".{name}(" not in walked] == []


def test_an_event_names_the_table_and_brings_the_snapshot() -> None:
    lake, table = new_lake()
    (event,) = events_of(lambda: table.write(ROWS))
    assert isinstance(event, Committed)
    assert event.snapshot == table.latest_snapshot()
    assert event.table.identifier == "d.t"
    assert event.table.location == table.location
    assert event.table.warehouse == lake.location


def test_a_table_of_other_keys_takes_the_place_of_another() -> None:
    lake, table = new_lake()
    table.write(ROWS)
    events = told(lambda: lake.replace_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "1"}))
    kinds = [kind for kind, _ in events]
    assert kinds == ["TableCreated", "TableRenamed", "TableRenamed", "TableDropped", "TableReplaced"]


def test_a_listener_sees_what_it_is_told_of() -> None:
    _, table = new_lake()
    seen: list[object] = []

    def look(event: TableEvent) -> None:
        assert isinstance(event, Committed)
        seen.append(table.latest_snapshot() == event.snapshot)

    with subscribe(look):
        table.write(ROWS)
    assert seen == [True]


def test_a_repeated_commit_is_told_of_once() -> None:
    _, table = new_lake()
    assert len(told(lambda: table.write(ROWS, commit_user="u", commit_identifier=1))) == 1
    assert told(lambda: table.write(ROWS, commit_user="u", commit_identifier=1)) == []


@pytest.mark.parametrize(
    "refused",
    [
        lambda lake, table: table.tags.create("x"),
        lambda lake, table: table.tags.delete("nobody"),
        lambda lake, table: table.tags.rename("x", "x"),
        lambda lake, table: lake.create_table("d.t", COLUMNS),
        lambda lake, table: lake.rename_table("d.nobody", "d.u"),
        lambda lake, table: table.branches.create("b"),
        lambda lake, table: table.drop_column("nobody"),
    ],
)
def test_what_is_refused_is_not_told_of(refused: Callable[[Lake, Table], object]) -> None:
    lake, table = prepared()

    def run() -> None:
        with pytest.raises(LakeletError):
            refused(lake, table)

    assert told(run) == []


def test_a_commit_of_unknown_outcome_is_told_as_such() -> None:
    store = MemoryStore()
    new_lake(store)
    silent = FailingStore(store, fail_at=1, times=99, after=True, only=lambda call, path: "/snapshot/snapshot-" in path)
    table = Lake(silent, clock=SteppingClock()).table("d.t")

    def run() -> None:
        with pytest.raises(CommitUnknownError):
            table.write(ROWS)

    assert told(run) == [("StateUnknown", {"operation": "commit"})]
