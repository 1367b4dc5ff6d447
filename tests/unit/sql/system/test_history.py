"""$snapshots, $schemas, $options, $tags, $branches, $consumers, $statistics, $aggregation_fields."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.sql.relation_rows import system_rows
from tests.unit.versioned_table import START_MS, SetClock, put, table_on

START = datetime(2027, 1, 15, 8, 0, 0)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore, clock: SetClock) -> Table:
    return table_on(store, clock, 2)


@pytest.fixture
def lake(store: MemoryStore, clock: SetClock, table: Table) -> Lake:
    return Lake(store, clock=clock)


def test_snapshots(lake: Lake, table: Table) -> None:
    put(table, 3, watermark=77)
    table.compact(full=True)
    rows = system_rows(lake, "d.t$snapshots")
    assert [(row["snapshot_id"], row["commit_kind"], row["watermark"]) for row in rows] == [
        (1, "APPEND", None),
        (2, "APPEND", None),
        (3, "APPEND", 77),
        (4, "COMPACT", 77),
    ]
    kept = table.snapshots()[2]
    assert START < rows[2]["commit_time"] < START + timedelta(seconds=10)
    assert rows[2]["commit_time"] == START + timedelta(milliseconds=kept.time_ms - START_MS)
    assert (rows[2]["base_manifest_list"], rows[2]["delta_manifest_list"]) == (
        kept.base_manifest_list,
        kept.delta_manifest_list,
    )
    assert (rows[2]["total_record_count"], rows[2]["delta_record_count"]) == (3, 1)


def test_schemas_and_options(lake: Lake, table: Table) -> None:
    table.add_column("v", "ARRAY<INT>", comment="später")
    table.set_options({"snapshot.time-retained": "2 h"})
    rows = system_rows(lake, "d.t$schemas")
    assert [row["schema_id"] for row in rows] == [0, 1, 2]
    assert json.loads(rows[1]["fields"])[2] == {
        "id": 2,
        "name": "v",
        "type": {"type": "ARRAY", "element": "INT"},
        "description": "später",
    }
    assert rows[1]["fields"].endswith('"description":"später"}]')
    assert (rows[0]["partition_keys"], rows[0]["primary_keys"], rows[0]["comment"]) == ("[]", "[]", None)
    expected = {"write-only": "true", "snapshot.time-retained": "2 h"}
    assert json.loads(rows[2]["options"]) == expected
    assert {row["key"]: row["value"] for row in system_rows(lake, "d.t$options")} == expected


def test_tags(lake: Lake, table: Table, clock: SetClock) -> None:
    table.tags.create("b", 1)
    table.tags.create("a", time_retained=timedelta(days=1, minutes=30, milliseconds=500))
    table.tags.create("c", time_retained=timedelta(seconds=0))
    rows = system_rows(lake, "d.t$tags")
    assert [(row["tag_name"], row["snapshot_id"], row["record_count"], row["time_retained"]) for row in rows] == [
        ("a", 2, 2, "PT24H30M0.5S"),
        ("b", 1, 1, None),
        ("c", 2, 2, "PT0S"),
    ]
    assert (rows[0]["create_time"] is None, rows[1]["create_time"]) == (False, None)


def test_branches_have_their_own(lake: Lake, table: Table) -> None:
    table.tags.create("kept", 1)
    table.branches.create("dev", tag="kept")
    table.branches.create("empty")
    assert [row["branch_name"] for row in system_rows(lake, "d.t$branches")] == ["dev", "empty"]
    assert [row["snapshot_id"] for row in system_rows(lake, "d.t$branch_dev$snapshots")] == [1]
    assert system_rows(lake, "d.t$branch_empty$snapshots") == []
    assert system_rows(lake, "d.t$branch_empty$files") == []
    assert [row["tag_name"] for row in system_rows(lake, "d.t$branch_dev$tags")] == ["kept"]


def test_consumers(lake: Lake, table: Table) -> None:
    assert system_rows(lake, "d.t$consumers") == []
    table.consumers.set("b", 2)
    table.consumers.set("a", 1)
    assert system_rows(lake, "d.t$consumers") == [
        {"consumer_id": "a", "next_snapshot_id": 1},
        {"consumer_id": "b", "next_snapshot_id": 2},
    ]


def test_statistics(lake: Lake, table: Table) -> None:
    assert system_rows(lake, "d.t$statistics") == []
    table.analyze()
    put(table, 3)
    (row,) = system_rows(lake, "d.t$statistics")
    assert (row["snapshot_id"], row["schema_id"], row["mergedRecordCount"]) == (2, 0, 2)
    assert json.loads(row["colstat"])["id"] == {
        "colId": 0,
        "distinctCount": 2,
        "min": "1",
        "max": "2",
        "nullCount": 0,
        "avgLen": 8,
        "maxLen": 8,
    }
    assert system_rows(lake, "d.t$statistics", version=2) == []


def test_aggregation_fields(lake: Lake, table: Table) -> None:
    table.set_options({"fields.id.ignore-retract": "false"})
    rows = system_rows(lake, "d.t$aggregation_fields")
    assert [(row["field_name"], row["field_type"], row["function"], row["function_options"]) for row in rows] == [
        ("id", "BIGINT", "[false]", "[fields.id.ignore-retract]"),
        ("p", "STRING", "[]", "[]"),
    ]


@pytest.mark.parametrize("name", ["snapshots", "schemas", "options", "tags", "branches", "consumers"])
def test_what_speaks_of_all_versions_has_none(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidError, match=f"d.t.{name} is not about one version"):
        system_rows(lake, f"d.t${name}", version=1)


def test_unknown_names(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match=r"no system table \$snapshot of d\.t; did you mean snapshots"):
        system_rows(lake, "d.t$snapshot")
    with pytest.raises(NotFoundError, match=r"table 'd\.u'"):
        system_rows(lake, "d.u$snapshots")
    with pytest.raises(NotFoundError, match="dev"):
        system_rows(lake, "d.t$branch_dev$snapshots")
