"""Tags as operations."""

from datetime import timedelta

import pytest

from lakelet.errors import NotFoundError
from lakelet.operations.tags import (
    CreateTag,
    CreateTagSince,
    ReplaceTag,
    create_due_tags,
    create_tag,
    create_tag_since,
    delete_tags,
    expire_tags,
    rename_tag,
    replace_tag,
)
from lakelet.table import Table
from tests.unit.versioned_table import HOUR_MS, START_MS, SetClock, put


def test_a_tag_is_made_moved_and_renamed(table: Table) -> None:
    assert create_tag(table, CreateTag("eod", 2)).snapshot_id == 2
    assert create_tag(table, CreateTag("eod", 1, if_not_exists=True)).snapshot_id == 2
    assert replace_tag(table, ReplaceTag("eod", 3)).snapshot_id == 3
    assert replace_tag(table, ReplaceTag("eod")).snapshot_id == 3
    assert rename_tag(table, "eod", "day").snapshot_id == 3
    assert [one.name for one in table.tags.list()] == ["day"]


def test_a_tag_of_the_first_version_since(table: Table) -> None:
    put(table, 4, watermark=1000)
    second = table.snapshots()[1].time_ms
    assert create_tag_since(table, CreateTagSince("a", timestamp_ms=second)).snapshot_id == 2
    assert create_tag_since(table, CreateTagSince("b", watermark_ms=1000)).snapshot_id == 4
    with pytest.raises(NotFoundError, match="no snapshot made at"):
        create_tag_since(table, CreateTagSince("c", timestamp_ms=START_MS * 2))
    with pytest.raises(NotFoundError, match="no snapshot with a watermark of 1001 or later"):
        create_tag_since(table, CreateTagSince("c", watermark_ms=1001))


def test_all_tags_are_there_or_none_is_deleted(table: Table) -> None:
    create_tag(table, CreateTag("one", 1))
    with pytest.raises(NotFoundError):
        delete_tags(table, ("one", "two"))
    assert table.tags.get("one").snapshot_id == 1
    delete_tags(table, ("one",))
    assert table.tags.list() == []


def test_expired_and_due_tags(table: Table, clock: SetClock) -> None:
    create_tag(table, CreateTag("short", 1, time_retained=timedelta(hours=1)))
    create_tag(table, CreateTag("long", 2))
    assert expire_tags(table) == ()
    clock.now += 2 * HOUR_MS
    assert expire_tags(table) == ("short",)
    assert create_due_tags(table) == ()
