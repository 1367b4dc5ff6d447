"""Which snapshots, branches and tags are expired."""

from __future__ import annotations

import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.iceberg.maintenance.retention import Expired, HistoryRef, HistorySnapshot, Limits, expired

# Snapshot n was made at n * 10; 1 to 5 are main's, 6 and 7 grew out of 2 on a branch, 8 is nobody's.
SNAPSHOTS = [HistorySnapshot(n, n - 1 or None, n * 10) for n in range(1, 6)] + [
    HistorySnapshot(6, 2, 60),
    HistorySnapshot(7, 6, 70),
    HistorySnapshot(8, 3, 35),
]
MAIN = HistoryRef("main", 5, True)
DEV = HistoryRef("dev", 7, True)
TAG = HistoryRef("v1", 1, False)


def over(
    refs: list[HistoryRef], older: int, last: int = 1, age: int | None = None, chosen: tuple[int, ...] = ()
) -> Expired:
    return expired(SNAPSHOTS, refs, Limits(older, last, age), 100, chosen)


def test_heads_and_young_ones_stay() -> None:
    assert over([MAIN, DEV, TAG], 40) == Expired((2, 3, 8), ())


def test_the_newest_of_each_branch_stay() -> None:
    assert over([MAIN, DEV], 1000, 2) == Expired((1, 2, 3, 8), ())


def test_a_branch_has_ages_of_its_own() -> None:
    dev = HistoryRef("dev", 7, True, min_snapshots=4, max_snapshot_age_ms=1)
    assert over([MAIN, dev], 1000) == Expired((3, 4, 8), ())
    main = HistoryRef("main", 5, True, max_snapshot_age_ms=75)
    assert over([main], 1000) == Expired((1, 2, 6, 7, 8), ())


def test_names_expire_but_main() -> None:
    tag = HistoryRef("v1", 1, False, max_ref_age_ms=89)
    assert over([MAIN, tag], 0) == Expired((), ("v1",))
    assert over([MAIN, TAG, DEV], 1000, age=40).refs == ("v1",)
    assert over([HistoryRef("main", 5, True, max_ref_age_ms=1)], 0).refs == ()


def test_a_gap_in_the_line_ends_it() -> None:
    # A young snapshot behind an old one is kept by nobody.
    line = [HistorySnapshot(1, None, 90), HistorySnapshot(2, 1, 10), HistorySnapshot(3, 2, 95)]
    assert expired(line, [HistoryRef("main", 3, True)], Limits(50, 1, None), 100) == Expired((1, 2), ())


def test_chosen_ones_go() -> None:
    assert over([MAIN, DEV], 0, chosen=(3, 8)) == Expired((3, 8), ())


def test_a_named_one_cannot_be_chosen() -> None:
    with pytest.raises(InvalidError, match="snapshot 7 is the one of 'dev'"):
        over([MAIN, DEV], 0, chosen=(7,))
    with pytest.raises(NotFoundError, match="no snapshot 99"):
        over([MAIN], 0, chosen=(99,))
