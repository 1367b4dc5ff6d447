"""Callbacks through the life of a table: compaction, branches, rollback, tags, clean-up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from lakelet.catalog.lake import Lake
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.crash.warehouse import lake_on, listing


class Noted:
    """Notes commits and tags."""

    commits: ClassVar[list[tuple[int, str]]] = []
    tags: ClassVar[list[tuple[object, ...]]] = []
    is_down: ClassVar[bool] = False

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        if Noted.is_down:
            raise OSError("down")
        self.commits.append((snapshot.id, snapshot.commit_kind.value))

    def notify_creation(self, tag_name: str, snapshot_id: int) -> None:
        self.tags.append(("+", tag_name, snapshot_id))

    def notify_deletion(self, tag_name: str) -> None:
        self.tags.append(("-", tag_name))


NOTED = f"{__name__}.Noted"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    Noted.commits.clear()
    Noted.tags.clear()
    monkeypatch.setattr(Noted, "is_down", False)


@pytest.fixture
def lake() -> Lake:
    lake = lake_on(MemoryStore())
    lake.create_database("d")
    return lake


def created(lake: Lake, **options: str) -> Table:
    return lake.create_table(
        "d.t",
        [("id", "BIGINT NOT NULL"), ("v", "INT")],
        primary_key=["id"],
        options={"bucket": "1", "commit.callbacks": NOTED, "tag.callbacks": NOTED} | options,
    )


def put(table: Table, number: int) -> None:
    table.write([{"id": number, "v": number}])


def ids() -> list[int]:
    return [number for number, _ in Noted.commits]


def test_every_kind_of_commit_is_called_for(lake: Lake) -> None:
    table = created(lake)
    put(table, 1)
    put(table, 2)
    table.compact(full=True)
    table.write([{"id": 3, "v": 3}], mode="overwrite")
    table.analyze()
    assert Noted.commits == [(1, "APPEND"), (2, "APPEND"), (3, "COMPACT"), (4, "OVERWRITE"), (5, "ANALYZE")]


def test_inline_compaction_is_called_for(lake: Lake) -> None:
    table = created(lake, **{"num-sorted-run.compaction-trigger": "2"})
    for number in range(4):
        put(table, number)
    assert CommitKind.COMPACT.value in [kind for _, kind in Noted.commits]
    assert ids() == [snapshot.id for snapshot in table.snapshots()]


def test_commits_after_a_rollback_are_called_for(lake: Lake) -> None:
    table = created(lake)
    for number in range(1, 5):
        put(table, number)
    table.rollback(to=2)
    put(table, 5)
    assert ids() == [1, 2, 3, 4, 3]


def test_a_branch_is_called_for_by_itself_and_again_when_it_becomes_the_main_one(lake: Lake) -> None:
    table = created(lake)
    put(table, 1)
    table.tags.create("start")
    table.branches.create("dev", tag="start")
    put(table.on_branch("dev"), 2)
    put(table.on_branch("dev"), 3)
    assert ids() == [1, 1, 2, 3]
    table.branches.fast_forward("dev")
    put(table, 4)
    assert ids() == [1, 1, 2, 3, 2, 3, 4]


def test_tags_are_told_of(lake: Lake) -> None:
    table = created(lake)
    put(table, 1)
    table.tags.create("eod")
    table.tags.create("eod", if_not_exists=True)
    table.tags.delete("eod")
    assert [told for told in Noted.tags if told[1] == "eod"] == [("+", "eod", 1), ("-", "eod")]


def test_expiry_before_the_call_is_reported(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    table = created(lake, **{"write-only": "true"})
    put(table, 1)
    Noted.is_down = True
    for number in range(2, 5):
        put(table, number)
    table.home.clock.sleep(3600)
    table.expire_snapshots(retain_last=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [4]
    Noted.is_down = False
    put(table, 5)
    assert ids() == [1, 4, 5]
    assert "snapshots 2 to 3" in caplog.text


def test_clean_up_leaves_what_callbacks_remember(lake: Lake) -> None:
    table = created(lake)
    put(table, 1)
    table.analyze()
    store = table.home.store
    stray = "d.db/t/statistics/stat-stray-0"
    store.put(stray, b"x")
    before = set(listing(store))
    table.remove_orphan_files(older_than="1 d")
    assert before - set(listing(store)) == {stray}
    assert f"d.db/t/callback/commit/{NOTED}" in before
    put(table, 2)
    assert ids() == [1, 2, 3]
    assert table.statistics() is not None


def test_many_writers_at_once_miss_no_commit() -> None:
    store = MemoryStore()
    lake = Lake(store, options={"callbacks.allow": "tests"})
    lake.create_database("d")
    created(lake, **{"write-only": "true", "commit.min-retry-wait": "1 ms"})

    def writer(first: int) -> None:
        table = Lake(store, options={"callbacks.allow": "tests"}).table("d.t")
        for number in range(first, first + 5):
            put(table, number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(writer, range(0, 40, 10)))
    assert set(ids()) == set(range(1, 21))
    before = len(ids())
    put(Lake(store, options={"callbacks.allow": "tests"}).table("d.t"), 99)
    # A slow writer may have written an older record last.
    assert ids()[-1] == 21
    assert set(ids()[before:]) <= set(range(1, 22))
