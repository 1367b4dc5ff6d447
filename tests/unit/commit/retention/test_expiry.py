"""Snapshot expiry: which snapshots expire, which are kept, and what protects them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.commit_users import last_identifier
from lakelet.commit.metadata.version_ids import read_hint
from lakelet.commit.retention.expiry import lost_rows
from lakelet.errors import LakeletError, NotFoundError
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import FailingStore
from tests.unit.commit.named_files import named_files, stored_files
from tests.unit.hooked_store import HookedStore
from tests.unit.moving_clock import MovingClock

KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "partitioned": {"partitioned_by": ["p"]},
    "keyed": {"primary_key": ["id"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id", "p"], "partitioned_by": ["p"]},
    "merging manifests": {"partitioned_by": ["p"], "options": {"manifest.merge-min-count": "3"}},
}
Rows = list[tuple[int, str, int]]


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def store(clock: MovingClock) -> MemoryStore:
    return MemoryStore(clock=clock)


@pytest.fixture
def lake(store: MemoryStore, clock: MovingClock) -> Lake:
    made = Lake(store, clock=clock)
    made.create_database("d")
    return made


def make(lake: Lake, kind: str = "keyed", **options: str) -> Table:
    arguments = {**KINDS[kind], "options": {**KINDS[kind].get("options", {}), "write-only": "false", **options}}
    return lake.create_table("d.t", [("id", "BIGINT"), ("p", "STRING"), ("v", "INT")], **arguments)


def rows(first: int, count: int = 4) -> pa.Table:
    ids = [(first + step) % 7 for step in range(count)]
    return pa.table({"id": ids, "p": ["ab"[number % 2] for number in ids], "v": [first] * count})


def fill(table: Table, clock: MovingClock, commits: int = 8) -> None:
    """Commits ten minutes apart, the last of them ten minutes ago; some take rows away."""
    for number in range(commits):
        if number % 4 == 3:
            table.delete(where=f"id = {number % 7}")
        else:
            table.write(rows(number))
        clock.move(minutes=10)


def shown(table: Table, **scan: Any) -> Rows:
    return sorted((row["id"], row["p"], row["v"]) for row in table.scan(**scan).to_arrow().to_pylist())


def history(table: Table) -> dict[int, Rows]:
    return {snapshot.id: shown(table, version=snapshot.id) for snapshot in table.snapshots()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [1, 3, 6])
def test_exactly_the_files_of_what_stays_are_left(lake: Lake, clock: MovingClock, kind: str, keep: int) -> None:
    table = make(lake, kind)
    fill(table, clock)
    before = history(table)
    expired = table.expire_snapshots(keep)
    kept = list(before)[-keep:]
    assert expired.ids == tuple(number for number in before if number not in kept)
    assert expired.files > 0
    assert history(table) == {number: before[number] for number in kept}
    assert stored_files(table.home) == named_files(table.home)
    assert read_hint(table.home, table.home.paths.earliest_hint) == kept[0]
    assert table.expire_snapshots(keep).ids == ()


def test_many_steps_leave_what_one_leaves(lake: Lake, clock: MovingClock) -> None:
    table = make(lake)
    fill(table, clock, 7)
    while table.expire_snapshots(2, limit=1).ids:
        assert stored_files(table.home) == named_files(table.home)
    assert len(table.snapshots()) == 2


def test_the_options_decide_without_arguments(lake: Lake, clock: MovingClock) -> None:
    table = make(
        lake, "append", **{"snapshot.num-retained.min": "2", "snapshot.time-retained": "35 min", "write-only": "true"}
    )
    for number in range(8):
        table.write(rows(number))
        clock.move(minutes=10)
    # The fifth was made, and the fourth replaced, 40 minutes ago.
    assert table.expire_snapshots(dry_run=True).ids == (1, 2, 3, 4)
    assert len(table.snapshots()) == 8
    assert table.expire_snapshots().ids == (1, 2, 3, 4)
    assert table.expire_snapshots(older_than="15 min").ids == (5, 6)
    assert table.expire_snapshots(older_than="1 min").kept_by == "the number of snapshots to keep"
    assert [snapshot.id for snapshot in table.snapshots()] == [7, 8]


def test_rule_3_snapshots_younger_than_the_commit_timeout_stay(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "append", **{"commit.timeout": "5 min"})
    for number in range(3):
        table.write(rows(number))
    expired = table.expire_snapshots(1)
    assert (expired.ids, expired.kept_by) == ((), "the commit timeout")
    clock.move(minutes=6)
    assert table.expire_snapshots(1).ids == (1, 2)


def test_what_is_asked_for_outright_is_done_at_once(lake: Lake) -> None:
    table = make(lake, "append")
    for number in range(4):
        table.write(rows(number))
    assert table.expire_snapshots(retain_last=2).ids == (1, 2)
    assert [snapshot.id for snapshot in table.snapshots()] == [3, 4]
    assert table.expire_snapshots().ids == ()


def test_rule_4_a_late_repetition_is_recognised_after_expiry(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "append")
    for number in (3, 8):
        table.write(rows(number), commit_user="job", commit_identifier=number)
    for number in range(3):
        table.write(rows(number))
    table.write(rows(0), commit_user="other", commit_identifier=1)
    clock.move(minutes=10)
    table.expire_snapshots(1)
    assert last_identifier(table.home, "job") == 8
    assert last_identifier(table.home, "other") is None
    assert last_identifier(table.home, "nobody") is None
    before = shown(table)
    table.write(rows(8), commit_user="job", commit_identifier=8)
    table.write(rows(3), commit_user="job", commit_identifier=3)
    assert shown(table) == before
    table.write(rows(9), commit_user="job", commit_identifier=9)
    assert len(shown(table)) == len(before) + 4


def test_rule_7_a_file_that_only_changed_its_level_stays(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "keyed", bucket="1")
    table.write(rows(0))
    name = table.files()[0][1].name
    table.compact(full=True)
    assert [(file.name, file.level > 0) for _, file in table.files()] == [(name, True)], "an upgrade rewrites nothing"
    before = shown(table)
    clock.move(hours=2)
    table.expire_snapshots(1)
    assert shown(table) == before
    assert stored_files(table.home) == named_files(table.home)


def test_entries_decide_which_files_are_lost() -> None:
    added, removed = 0, 1
    entries = [
        (0, "old", removed),
        (0, "upgraded", removed),
        (0, "upgraded", added),
        (1, "turned", added),
        (1, "turned", removed),
        (1, "short", added),
        (2, "short", removed),
        (1, "back", removed),
        (2, "back", added),
        (2, "new", added),
        (0, "late", removed),
        (0, "late", added),
        (2, "late", removed),
    ]
    steps, names, kinds = zip(*entries, strict=True)
    found = lost_rows(pa.chunked_array([kinds]), pa.chunked_array([names]), np.array(steps))
    assert [names[row] for row in found] == ["old", "short", "late"]


@pytest.mark.parametrize("kind", ["append", "keyed", "dynamic", "merging manifests"])
def test_a_tag_keeps_its_files_until_it_goes(lake: Lake, clock: MovingClock, kind: str) -> None:
    table = make(lake, kind)
    fill(table, clock)
    tagged = {f"t{number}": shown(table, version=number) for number in (1, 3, 4)}
    for name in tagged:
        table.tags.create(name, version=int(name[1:]))
    table.expire_snapshots(2)
    assert {name: shown(table, tag=name) for name in tagged} == tagged
    assert stored_files(table.home) == named_files(table.home)
    fill(table, clock, 4)
    table.expire_snapshots(1)
    for name in ("t3", "t1", "t4"):
        assert shown(table, tag=name) == tagged[name]
        table.tags.delete(name)
        assert stored_files(table.home) == named_files(table.home)


def test_a_branch_keeps_its_files_and_its_own_expiry_keeps_those_of_main(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "append")
    fill(table, clock)
    table.tags.create("start", version=3)
    table.branches.create("dev", tag="start")
    table.tags.delete("start")
    branch = table.on_branch("dev")
    for other in branch.tags.list():
        branch.tags.delete(getattr(other, "name", other))
    begun = shown(branch)
    branch.write(rows(5))
    branch.delete(where="id = 1")
    clock.move(hours=1)
    table.expire_snapshots(1)
    assert len(shown(branch)) == len([row for row in begun if row[0] != 1]) + 3
    assert stored_files(table.home) == named_files(table.home)
    main = shown(table)
    branch.expire_snapshots(1)
    assert (shown(table), stored_files(table.home)) == (main, named_files(table.home))


def test_a_consumer_holds_what_it_still_needs(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "append")
    fill(table, clock)
    table.consumers.set("reader", 4)
    table.consumers.set("far ahead", 100)
    expired = table.expire_snapshots(1)
    assert (expired.ids, expired.kept_by) == ((1, 2, 3), "a consumer")
    table.consumers.set("reader", 7)
    assert table.expire_snapshots(1).ids == (4, 5, 6)
    table.consumers.delete("reader")
    assert table.expire_snapshots(1).ids == (7,)


def test_a_tag_made_while_expiry_runs_is_whole_or_refused(store: MemoryStore, clock: MovingClock) -> None:
    """At every storage call of an expiry somebody makes a tag of the oldest snapshot: it can be read, or is not there."""
    Lake(store, clock=clock).create_database("d")
    start = make(Lake(store, clock=clock), "append")
    fill(start, clock, 6)
    first = shown(start, version=1)
    made = refused = 0
    for call in range(0, 80, 3):
        copy = MemoryStore(clock=clock)
        for info in store.list(""):
            copy.put(info.path, store.get(info.path))
        hooked, calm = HookedStore(copy), Lake(copy, clock=clock).table("d.t")
        seen = iter(range(1_000))
        hooked.when = lambda *_, seen=seen, call=call: next(seen) == call  # type: ignore[misc]
        outcome: list[str] = []

        def tag(table: Table = calm, outcome: list[str] = outcome) -> None:
            try:
                table.tags.create("kept", version=1)
                outcome.append("made")
            except NotFoundError:
                outcome.append("refused")

        hooked.after = tag
        Lake(hooked, clock=clock).table("d.t").expire_snapshots(1)
        if not outcome:
            break
        if outcome == ["made"]:
            made += 1
            assert shown(calm, tag="kept") == first
        else:
            refused += 1
            assert calm.tag_names() == []
        calm.expire_snapshots(1)
        assert stored_files(calm.home) == named_files(calm.home), (call, outcome)
    assert made
    assert refused


@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_two_expiries_at_once_leave_what_one_leaves(store: MemoryStore, clock: MovingClock, kind: str) -> None:
    Lake(store, clock=clock).create_database("d")
    start = make(Lake(store, clock=clock), kind)
    fill(start, clock)
    last = shown(start)
    for call in range(0, 80, 3):
        copy = MemoryStore(clock=clock)
        for info in store.list(""):
            copy.put(info.path, store.get(info.path))
        hooked, other = HookedStore(copy), Lake(copy, clock=clock).table("d.t")
        seen = iter(range(1_000))
        hooked.when = lambda *_, seen=seen, call=call: next(seen) == call  # type: ignore[misc]
        ran: list[object] = []
        hooked.after = lambda other=other, ran=ran: ran.append(other.expire_snapshots(1))  # type: ignore[misc]
        table = Lake(hooked, clock=clock).table("d.t")
        table.expire_snapshots(4)
        if not ran:
            break
        assert shown(other) == last
        assert len(other.snapshots()) == 1
        assert stored_files(other.home) == named_files(other.home), call
    assert call > 10


def test_files_that_cannot_be_told_apart_are_left(store: MemoryStore, lake: Lake, clock: MovingClock) -> None:
    """A tag whose manifests are gone holds everything back: better files too many than a tag that loses more."""
    table = make(lake, "append")
    fill(table, clock)
    table.tags.create("broken", version=2)
    snapshot = table.snapshots()[1]
    store.delete([table.home.paths.manifest(snapshot.delta_manifest_list)])
    before = {path for path in stored_files(table.home) if "/bucket-" in path}
    with pytest.raises(LakeletError):
        table.expire_snapshots(1)
    assert {path for path in stored_files(table.home) if "/bucket-" in path} == before
    table.scan().to_arrow()
    store.delete([table.home.paths.tag("broken")])
    table.expire_snapshots(1)
    assert {path for path in stored_files(table.home) if "/bucket-" in path} == {
        path for path in named_files(table.home) if "/bucket-" in path
    }


def test_a_stray_snapshot_below_the_live_ones_goes(store: MemoryStore, lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "append")
    fill(table, clock, 6)
    stray = store.get(table.home.paths.snapshot(2))
    table.expire_snapshots(2)
    store.put(table.home.paths.snapshot(2), stray)
    assert table.expire_snapshots(2).ids == (2,)
    assert store.head(table.home.paths.snapshot(2)) is None
    assert stored_files(table.home) == named_files(table.home)


@pytest.mark.parametrize("clean", ["true", "false"])
def test_empty_folders_go_if_asked_for(store: MemoryStore, lake: Lake, clock: MovingClock, clean: str) -> None:
    table = make(lake, "partitioned", **{"snapshot.clean-empty-directories": clean})
    table.write(rows(0))
    table.write(rows(0, 1), mode="overwrite")
    clock.move(hours=1)
    table.expire_snapshots(1)
    assert ("d.db/t/p=b" in store.list_folder("d.db/t").folders) == (clean == "false")
    assert "d.db/t/p=a" in store.list_folder("d.db/t").folders


def test_changelogs_that_are_kept_longer_outlive_their_snapshots(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "keyed", **{"changelog.time-retained": "2 h", "changelog.num-retained.min": "1", "bucket": "1"})
    for number in range(4):
        table.write(rows(number))
        clock.move(minutes=10)
    table.compact(full=True)
    clock.move(minutes=10)
    added = {path for path in stored_files(table.home) if "/bucket-" in path}
    last = table.snapshots()[-1].id
    table.expire_snapshots(1, older_than="1 min")
    folder = table.home.paths.changelog_folder
    left = {info.path.rsplit("/", 1)[-1] for info in table.home.store.list(folder)}
    assert left == {"LATEST", *(f"changelog-{number}" for number in range(1, last))}
    assert {path for path in stored_files(table.home) if "/bucket-" in path} == added, "changes keep their files"
    clock.move(hours=3)
    table.expire_snapshots(1, older_than="1 min")
    left = {info.path.rsplit("/", 1)[-1] for info in table.home.store.list(folder)}
    assert left == {"LATEST", "EARLIEST", f"changelog-{last - 1}"}
    assert {path for path in stored_files(table.home) if "/bucket-" in path} < added
    shown(table)


def test_a_table_without_snapshots_and_one_that_is_dropped(lake: Lake) -> None:
    table = make(lake)
    assert table.expire_snapshots(1).ids == ()
    lake.drop_table("d.t")
    with pytest.raises(NotFoundError):
        table.expire_snapshots(1)


def test_a_store_that_fails_once_is_no_reason_to_lose_anything(
    store: MemoryStore, lake: Lake, clock: MovingClock
) -> None:
    table = make(lake, "append")
    fill(table, clock)
    before = history(table)
    failing = FailingStore(store, fail_at=2, only=lambda call, path: call == "delete")
    with pytest.raises(LakeletError):
        Lake(failing, clock=clock).table("d.t").expire_snapshots(2)
    table.expire_snapshots(2)
    assert history(table) == {number: before[number] for number in list(before)[-2:]}
    assert stored_files(table.home) == named_files(table.home)


def test_compactions_count_as_snapshots(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "keyed", bucket="1")
    fill(table, clock, 3)
    table.compact(full=True)
    clock.move(minutes=10)
    table.expire_snapshots(1)
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == [CommitKind.COMPACT]
    assert stored_files(table.home) == named_files(table.home)
