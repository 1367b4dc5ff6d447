"""Every change of an Iceberg table, by Python and by SQL, is published after its catalog has taken it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
import requests
from pyiceberg.exceptions import BadRequestError, CommitFailedException, CommitStateUnknownException

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import CommitUnknownError, LakeletError
from lakelet.events import Committed, TableFormat
from lakelet.iceberg.branches import (
    create_branch,
    create_tag,
    drop_branch,
    drop_tag,
    fast_forward,
    rollback_to_snapshot,
)
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.table import IcebergTable
from tests.crash.warehouse import SteppingClock
from tests.unit.events.told import Told, events_of, told
from tests.unit.iceberg.commit.tables import CatalogHooks, new_catalog, new_table, raising, write

TABLE = "iceberg.d.t"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two snapshots, a tag of the first, a branch of the second with a snapshot of its own."""
    lake = lakelet.connect(str(tmp_path))
    lake.sql("CREATE DATABASE iceberg.d")
    lake.sql(f"CREATE TABLE {TABLE} (id BIGINT, v BIGINT)")
    for number in range(2):
        lake.sql(f"INSERT INTO {TABLE} VALUES ({number}, {number})")
    return lake


def opened(lake: Lake) -> IcebergTable:
    return lake.catalogs.open("iceberg").table("d.t")


def ids(lake: Lake) -> list[int]:
    return [one.snapshot_id for one in opened(lake).metadata.snapshots]


SQL: dict[str, list[str]] = {
    f"INSERT INTO {TABLE} VALUES (7, 7)": ["Committed"],
    f"DELETE FROM {TABLE} WHERE id = 1": ["Committed"],
    f"UPDATE {TABLE} SET v = 9 WHERE id = 1": ["Committed"],
    f"ALTER TABLE {TABLE} ADD COLUMN w INT": ["SchemaChanged"],
    f"ALTER TABLE {TABLE} SET ('colour' = 'red')": ["OptionsChanged"],
    f"ALTER TABLE {TABLE} RENAME TO iceberg.d.u": ["TableRenamed"],
    "CREATE TABLE iceberg.d.u (id BIGINT)": ["TableCreated"],
    "CREATE TABLE iceberg.d.u AS SELECT 1 AS a": ["TableCreated", "Committed"],
    f"DROP TABLE {TABLE}": ["TableDropped"],
    f"SELECT * FROM {TABLE}": [],
}


@pytest.mark.parametrize("text", SQL)
def test_what_a_statement_publishes(lake: Lake, text: str) -> None:
    assert [kind for kind, _ in told(lambda: lake.sql(text))] == SQL[text]


def test_what_branches_and_tags_publish(lake: Lake) -> None:
    first, second = ids(lake)

    def run(call: Callable[[IcebergTable], object]) -> list[Told]:
        return told(lambda: call(opened(lake)))

    assert run(lambda t: create_tag(t, "x", snapshot_id=first)) == [("TagCreated", {"tag": "x", "snapshot_id": first})]
    assert run(lambda t: create_branch(t, "b")) == [("BranchCreated", {"branch": "b", "snapshot_id": second})]
    assert run(lambda t: rollback_to_snapshot(t, first)) == [("RolledBack", {"snapshot_id": first})]
    assert run(lambda t: fast_forward(t, "main", "b")) == [("FastForwarded", {"source": "b", "snapshot_id": second})]
    assert run(lambda t: fast_forward(t, "main", "b")) == []
    assert run(lambda t: drop_branch(t, "b")) == [("BranchDeleted", {"branch": "b"})]
    assert run(lambda t: drop_tag(t, "x")) == [("TagDeleted", {"tag": "x"})]
    assert run(lambda t: drop_tag(t, "x", if_exists=True)) == []
    assert run(lambda t: expire_snapshots(t, retain_last=1, older_than_ms=1 << 60)) == [
        ("SnapshotsExpired", {"snapshot_ids": (first,)})
    ]


def test_an_event_names_the_table_and_its_snapshot(lake: Lake) -> None:
    (event,) = events_of(lambda: lake.sql(f"INSERT INTO {TABLE} VALUES (7, 7)"))
    assert isinstance(event, Committed)
    table = opened(lake)
    assert event.snapshot_id == table.snapshot_id()
    assert event.operation == "append"
    assert (event.table.format, event.table.catalog, event.table.identifier) == (TableFormat.ICEBERG, "iceberg", "d.t")
    assert event.table.location == table.location


def test_what_is_refused_is_not_told_of(lake: Lake) -> None:
    def run() -> None:
        with pytest.raises(LakeletError):
            lake.sql(f"ALTER TABLE {TABLE} DROP COLUMN nobody")
        with pytest.raises(LakeletError):
            lake.sql(f"CREATE TABLE {TABLE} (id BIGINT)")

    assert told(run) == []


@pytest.mark.parametrize(
    ("before", "after", "raised", "expected"),
    [
        (None, CommitStateUnknownException("502"), None, ["Committed"]),
        (CommitFailedException("another was first"), None, None, ["Committed"]),
        (requests.ConnectionError("reset by peer"), None, CommitUnknownError, ["StateUnknown"]),
        (None, KeyboardInterrupt(), KeyboardInterrupt, ["StateUnknown"]),
        (BadRequestError("no"), None, LakeletError, []),
    ],
    ids=["taken without an answer", "second attempt", "no answer", "interrupted", "refused"],
)
def test_what_a_commit_in_trouble_publishes(
    tmp_path: Path,
    before: BaseException | None,
    after: BaseException | None,
    raised: type[BaseException] | None,
    expected: list[str],
) -> None:
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, pa.schema([("id", pa.int64())]))
    hooks = CatalogHooks(catalog)
    hooks.before = [None if before is None else raising(before)]
    hooks.after = [None if after is None else raising(after)]

    def run() -> None:
        with nullcontext() if raised is None else pytest.raises(raised):
            write(table, [{"id": 1}], clock=SteppingClock())

    assert [kind for kind, _ in told(run)] == expected


def test_a_drop_of_unknown_outcome_is_told_as_such(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lake.catalogs.open("iceberg")

    def unknown(*_: object) -> None:
        raise CommitUnknownError("no answer")

    monkeypatch.setattr(type(catalog), "_carried_out", unknown)

    def run() -> None:
        with pytest.raises(CommitUnknownError):
            catalog.drop_table("d.t")

    assert [kind for kind, _ in told(run)] == ["StateUnknown"]
