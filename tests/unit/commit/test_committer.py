"""The pure parts of the commit, and how it ends when it cannot win. The rules have tests in tests/crash."""

from dataclasses import replace

import pytest

from lakelet.commit.changes import Changes
from lakelet.commit.committer import already_done, wait_seconds
from lakelet.commit.delta_manifests import DeltaManifests
from lakelet.commit.metadata.manifests import ManifestSettings
from lakelet.commit.request import CommitRequest
from lakelet.format.manifest.manifest_columns import entries_to_columns
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import TableOptions
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, home_on, lake_on, listing

DEFAULTS = TableOptions({})
SETTINGS = ManifestSettings("avro", "zstd", 8 << 20, 1)


def test_the_first_loss_waits_longest_in_proportion_to_an_attempt() -> None:
    waits = [wait_seconds(DEFAULTS, attempt, 0.1) for attempt in (1, 2, 4, 8)]
    assert waits == pytest.approx([0.4, 0.2, 0.1, 0.05])


def test_waits_keep_within_the_options() -> None:
    options = TableOptions({"commit.min-retry-wait": "50 ms", "commit.max-retry-wait": "2 s"})
    assert wait_seconds(options, 1, 60.0) == 2.0
    assert wait_seconds(options, 100, 0.001) == 0.05


def snapshots(store: MemoryStore, *commits: tuple[str, int, CommitKind]) -> Snapshot | None:
    """A history of (user, identifier, kind), and its newest snapshot."""
    home, made = home_on(store), None
    for number, (user, identifier, kind) in enumerate(commits, start=1):
        made = Snapshot(number, 0, "b", f"d{number}", user, identifier, kind, number, 0, 0)
        store.put(home.paths.snapshot(number), encode_snapshot(made))
    return made


APPEND, OVERWRITE, COMPACT = CommitKind.APPEND, CommitKind.OVERWRITE, CommitKind.COMPACT


@pytest.mark.parametrize(
    ("history", "identifier", "expected"),
    [
        ([], 1, None),
        ([("other", 1, APPEND)], 1, None),
        ([("u", 1, APPEND)], 1, 1),
        ([("u", 1, OVERWRITE)], 1, 1),
        ([("u", 1, APPEND)], 2, None),
        ([("u", 1, APPEND), ("u", 2, APPEND), ("other", 9, APPEND)], 1, 1),
        ([("u", 1, APPEND), ("u", 5, APPEND), ("u", 6, APPEND)], 3, 3),
        ([("u", 1, APPEND), ("u", 1, COMPACT)], 1, 1),
        ([("u", 1, COMPACT)], 1, None),
        ([("u", 2, COMPACT)], 1, 1),
        ([("u", 1, APPEND), ("u", 2, COMPACT)], 2, None),
    ],
)
def test_rule_4_which_snapshot_an_earlier_sending_made(
    history: list[tuple[str, int, CommitKind]], identifier: int, expected: int | None
) -> None:
    store = MemoryStore()
    latest = snapshots(store, *history)
    found = already_done(home_on(store), CommitRequest("u", (), identifier, named=True), latest, None)
    assert (found.id if found else None) == expected


def test_rule_4_generated_users_are_not_looked_up() -> None:
    store = MemoryStore()
    latest = snapshots(store, *[("x", number, APPEND) for number in range(5)])
    counting = CountingStore(store)
    assert already_done(home_on(counting), CommitRequest("u", ()), latest, None) is None
    assert counting.calls == 0


def test_only_what_was_committed_since_is_looked_at_again() -> None:
    store = MemoryStore()
    latest = snapshots(store, *[("u", number, APPEND) for number in range(1, 6)])
    request = CommitRequest("u", (), 5, named=True)
    assert already_done(home_on(store), request, latest, 5) is None
    found = already_done(home_on(store), request, latest, 4)
    assert found is not None
    assert found.id == 5


@pytest.fixture
def table() -> Table:
    lake = lake_on(MemoryStore())
    lake.create_database("d")
    return lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")])


def test_a_delta_that_stays_the_same_is_written_once(table: Table) -> None:
    write = table.new_write()
    write.write(rows((1, "a")))
    (message,) = write.prepare_commit()
    store = table._home.store
    delta = DeltaManifests(home_on(store))
    before = listing(store)

    def changes(level: int) -> Changes:
        file = replace(message.new_files[0], level=level)
        added = ManifestEntry(EntryKind.ADD, message.partition, message.bucket, message.total_buckets, file)
        return Changes(entries_to_columns([]), (added,), 1, ())

    first = delta.write(changes(0), table.schema, SETTINGS)
    written = listing(store)
    assert delta.write(changes(0), table.schema, SETTINGS) == first
    assert listing(store) == written
    assert delta.write(changes(1), table.schema, SETTINGS) != first
    assert len(listing(store)) == len(written)
    delta.remove()
    assert listing(store) == before


def test_a_delta_that_is_kept_is_not_removed(table: Table) -> None:
    store = table._home.store
    delta = DeltaManifests(home_on(store))
    delta.write(Changes(entries_to_columns([]), (), 0, ()), table.schema, SETTINGS)
    written = listing(store)
    delta.keep()
    delta.remove()
    assert listing(store) == written


def test_a_commit_costs_the_same_however_many_there_were(table: Table) -> None:
    """Calls per commit stay flat; a merge now and then costs a bounded number more. Compaction is another matter."""
    table.set_options({"compaction.min.file-num": "1000"})
    counting = CountingStore(table._home.store)
    again = lake_on(counting, "counted").table(TABLE)
    calls = []
    for number in range(120):
        counting.reset()
        again.write(rows((number, "a")))
        calls.append(counting.calls)
    usual = sorted(calls)[len(calls) // 2]
    assert usual <= 30
    assert sorted(calls)[-6] <= usual + 3
    assert max(calls) <= usual + 70
