"""Which snapshots expire, by numbers alone."""

from dataclasses import replace

import pytest

from lakelet.commit.retention.expiry_policy import Retention, first_kept
from lakelet.errors import InvalidError
from lakelet.options import TableOptions

ALL = Retention(keep_min=1, keep_max=1_000, replaced_since_ms=10_000, made_since_ms=10_000)
IDS = range(1, 11)


def at_hundreds(number: int) -> int:
    """Snapshot N was made at N * 100."""
    return number * 100


@pytest.mark.parametrize(
    ("retention", "consumer", "expected"),
    [
        (ALL, None, (10, "the number of snapshots to keep")),
        (replace(ALL, keep_min=3), None, (8, "the number of snapshots to keep")),
        (replace(ALL, keep_min=10), None, (1, "the number of snapshots to keep")),
        (replace(ALL, keep_min=99), None, (1, "the number of snapshots to keep")),
        # Snapshot 4 was replaced at 500.
        (replace(ALL, replaced_since_ms=500), None, (4, "its age")),
        (replace(ALL, replaced_since_ms=501), None, (5, "its age")),
        (replace(ALL, replaced_since_ms=0), None, (1, "its age")),
        (replace(ALL, replaced_since_ms=0, keep_max=4), None, (7, "its age")),
        (replace(ALL, replaced_since_ms=0, keep_max=4, keep_min=4), None, (7, "the number of snapshots to keep")),
        (ALL, 3, (3, "a consumer")),
        (replace(ALL, keep_max=2), 3, (3, "a consumer")),
        (ALL, 99, (10, "the number of snapshots to keep")),
        (ALL, 0, (1, "a consumer")),
        (replace(ALL, limit=2), None, (3, "the limit of one expiry")),
        (replace(ALL, limit=2, keep_max=1), None, (3, "the limit of one expiry")),
        # Rule 3: snapshot 6 was made at 600.
        (replace(ALL, made_since_ms=599), None, (6, "the commit timeout")),
        (replace(ALL, made_since_ms=599, keep_max=1), None, (6, "the commit timeout")),
        (replace(ALL, made_since_ms=600), None, (7, "the commit timeout")),
    ],
)
def test_the_first_that_stays(retention: Retention, consumer: int | None, expected: tuple[int, str]) -> None:
    assert first_kept(IDS, retention, at_hundreds, consumer=consumer) == expected


def test_ids_begin_anywhere_and_snapshots_may_be_gone() -> None:
    assert first_kept(range(7, 11), replace(ALL, keep_min=2), at_hundreds)[0] == 9
    assert first_kept(range(7, 8), ALL, at_hundreds)[0] == 7
    assert first_kept(range(1, 11), ALL, lambda number: None)[0] == 10


def test_times_are_asked_for_only_as_far_as_needed() -> None:
    asked: list[int] = []

    def time_of(number: int) -> int:
        asked.append(number)
        return number * 100

    first_kept(range(1, 1_000), replace(ALL, replaced_since_ms=300), time_of)
    assert max(asked) == 3


@pytest.mark.parametrize("changes", [{"keep_min": 0}, {"keep_min": 5, "keep_max": 4}, {"limit": 0}])
def test_what_makes_no_sense_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(InvalidError):
        replace(ALL, **changes)


def test_options() -> None:
    now = 10_000_000_000
    options = TableOptions({"snapshot.num-retained.min": "2", "snapshot.time-retained": "1 min"})
    retention = Retention.of(options, now)
    assert retention == Retention(2, 2**31 - 1, now - 60_000, now - 300_000)
    assert not retention.of_changelogs(options, now).outlasts(retention)
    longer = TableOptions({"changelog.time-retained": "2 min"})
    assert retention.of_changelogs(longer, now).outlasts(retention)
    more = TableOptions({"changelog.num-retained.min": "3"})
    assert retention.of_changelogs(more, now).outlasts(retention)
    assert Retention.of(TableOptions({"commit.timeout": "1 s"}), now).made_since_ms == now - 1_000
