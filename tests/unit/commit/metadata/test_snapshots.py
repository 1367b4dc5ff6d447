"""Finding snapshots whatever the hints say."""

import pytest

from lakelet.commit.metadata.snapshots import (
    continues_the_line,
    latest_snapshot,
    read_snapshot,
    snapshot_at,
    snapshots_backwards,
    write_latest_hint,
)
from lakelet.commit.metadata.version_ids import latest_id, snapshot_ids
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths, file_number
from lakelet.storage.store import Listing
from lakelet.testing.instrumented_stores import CountingStore

PATHS = TablePaths.of("d", "t")


def snapshot(number: int) -> Snapshot:
    return Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="b",
        delta_manifest_list=f"delta-{number}",
        commit_user="u",
        commit_identifier=number,
        commit_kind=CommitKind.APPEND,
        time_ms=number * 1000,
        total_record_count=number,
        delta_record_count=1,
    )


def home_with(*numbers: int, latest: bytes | None = None, earliest: bytes | None = None) -> TableHome:
    store = MemoryStore()
    for number in numbers:
        store.put(PATHS.snapshot(number), encode_snapshot(snapshot(number)))
    if latest is not None:
        store.put(PATHS.latest_hint, latest)
    if earliest is not None:
        store.put(PATHS.earliest_hint, earliest)
    return TableHome(store, PATHS)


HINTS = [
    None,
    b"",
    b"1",
    b"2",
    b"3",
    b"11",
    b"12",
    b"13",
    b"99",
    b"-1",
    b"x",
    b"\xff\xfe",
    b"1.5",
    b" 12\n",
    b"9" * 5000,
]


@pytest.mark.parametrize("hint", HINTS)
def test_latest_and_earliest_do_not_depend_on_hints(hint: bytes | None) -> None:
    home = home_with(*range(1, 13), latest=hint, earliest=hint)
    assert latest_id(home) == 12
    assert snapshot_ids(home) == range(1, 13)


@pytest.mark.parametrize("hint", HINTS)
def test_a_stray_snapshot_far_below_the_live_ones_is_not_seen(hint: bytes | None) -> None:
    home = home_with(3, *range(8, 13), latest=hint, earliest=hint)
    assert latest_id(home) == 12
    assert snapshot_ids(home) == range(8, 13)


@pytest.mark.parametrize("hint", HINTS)
def test_a_table_without_snapshots_has_none(hint: bytes | None) -> None:
    home = home_with(latest=hint, earliest=hint)
    assert latest_id(home) is None
    assert latest_snapshot(home) is None
    assert not snapshot_ids(home)
    assert snapshot_ids(home) == range(0)


@pytest.mark.parametrize("hint", HINTS)
def test_a_single_snapshot_is_found(hint: bytes | None) -> None:
    home = home_with(12, latest=hint, earliest=hint)
    assert latest_id(home) == snapshot_ids(home)[0] == 12


@pytest.mark.parametrize("behind", [0, 1, 5, 7, 8, 30])
def test_a_hint_behind_is_followed(behind: int) -> None:
    """Another writer wrote its older hint last."""
    home = home_with(*range(1, 51), latest=str(50 - behind).encode())
    assert latest_id(home) == 50


def test_a_good_hint_spares_the_listing() -> None:
    home = home_with(*range(1, 6), latest=b"5")
    counting = CountingStore(home.store)
    assert latest_id(TableHome(counting, PATHS)) == 5
    assert "list_folder" not in counting.counts()


@pytest.mark.parametrize("missed", [{4}, {2, 3}, {3, 5}])
def test_a_listing_that_missed_snapshots_made_meanwhile_shows_no_gap(missed: set[int]) -> None:
    class Hasty(DecoratedStore):
        def list_folder(self, folder: str) -> Listing:
            found = super().list_folder(folder)
            return Listing(
                tuple(info for info in found.files if file_number(info.path, "snapshot") not in missed), found.folders
            )

    home = home_with(*range(1, 7), latest=b"6")
    hasty = TableHome(Hasty(home.store), PATHS)
    assert snapshot_ids(hasty) == range(1, 7)
    assert continues_the_line(hasty, 2)


def test_other_names_are_no_snapshots() -> None:
    home = home_with(1, 2)
    for name in ("snapshot-3.tmp", "snapshot-", "snapshot-x", "asnapshot-9", "snapshot-4.uuid"):
        home.store.put(f"{PATHS.snapshot_folder}/{name}", b"{")
    assert snapshot_ids(home) == range(1, 3)


def test_hints_are_written_for_others() -> None:
    home = home_with(1)
    write_latest_hint(home, 1)
    write_latest_hint(home, 2)
    assert home.store.get(PATHS.latest_hint) == b"2"
    assert home.store.get(PATHS.earliest_hint) == b"1"


def test_a_missing_snapshot_is_named_with_those_there_are() -> None:
    with pytest.raises(NotFoundError, match=r"snapshot 9 .*snapshots 3 to 5 exist"):
        read_snapshot(home_with(3, 4, 5), 9)
    with pytest.raises(NotFoundError, match="no snapshot"):
        read_snapshot(home_with(), 1)


def test_a_broken_snapshot_is_corruption() -> None:
    home = home_with(1, 2)
    home.store.put(PATHS.snapshot(2), b"")
    with pytest.raises(CorruptionError, match="snapshot-2"):
        latest_snapshot(home)


def test_backwards_stops_at_the_oldest() -> None:
    assert [found.id for found in snapshots_backwards(home_with(1, 3, 4, 5), 5)] == [5, 4, 3]


@pytest.mark.parametrize(("time_ms", "expected"), [(3000, 3), (3999, 3), (4000, 4), (99_000, 6)])
def test_the_snapshot_of_a_time(time_ms: int, expected: int) -> None:
    assert snapshot_at(home_with(3, 4, 5, 6), time_ms).id == expected


def test_no_snapshot_of_a_time_before_the_oldest() -> None:
    with pytest.raises(NotFoundError, match="oldest snapshot, 3"):
        snapshot_at(home_with(3, 4), 2999)


@pytest.mark.parametrize(
    ("numbers", "number", "hint", "expected"),
    [
        ((1,), 1, None, True),
        ((1, 2), 2, b"1", True),
        ((1, 2), 2, None, True),
        ((1, 2, 3), 2, b"3", True),
        ((1, 2), 2, b"900", True),
        ((4, 5, 8, 9), 5, b"9", False),
        ((4, 5, 8, 9), 5, None, False),
        ((1, 8, 9), 1, b"9", False),
        ((), 1, None, False),
    ],
)
def test_rule_3_which_snapshots_continue_the_line(
    numbers: tuple[int, ...], number: int, hint: bytes | None, expected: bool
) -> None:
    assert continues_the_line(home_with(*numbers, latest=hint), number) is expected
