"""Which snapshots expire: a pure function of their ids and times, the table's retention and who still needs them.

    ids      1  2  3  4  5  6  7  8
             └ beyond keep_max ┘  │  └ keep_min, always kept
         expire whatever their age│
                                  expire if older than asked for

Snapshots expire oldest first and without gaps, so that the answer is one number: the first that stays. A snapshot's age counts
from the moment it was replaced, that is from the time of the next one: whoever began to read it just before that has the
whole of the retained time. A consumer holds the snapshot it reads next and all later ones.

A snapshot younger than the commit timeout stays, unless the caller of an expiry asks for it explicitly. A writer that was
slow to create the same id would succeed once it is deleted, and only check afterwards whether it follows the live ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakelet.errors import InvalidError
from lakelet.options import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    CHANGELOG_TIME_RETAINED,
    COMMIT_TIMEOUT,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    SNAPSHOT_TIME_RETAINED,
    TableOptions,
)

# The time for which a commit without a timeout of its own keeps trying.
_DEFAULT_COMMIT_TIMEOUT_MS = 5 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays: at least `keep_min` and at most `keep_max` snapshots, in between those replaced since `replaced_since_ms`;
    and always those made since `made_since_ms`. `limit` is the most that expire at once."""

    keep_min: int
    keep_max: int
    replaced_since_ms: int
    made_since_ms: int
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.keep_min < 1:
            raise InvalidError(
                f"{self.keep_min} snapshots to keep: expected at least 1, for the table lives in the last"
            )
        if self.keep_max < self.keep_min:
            raise InvalidError(
                f"at most {self.keep_max} snapshots to keep: expected no fewer than the {self.keep_min} to keep at least"
            )
        if self.limit is not None and self.limit < 1:
            raise InvalidError(f"limit {self.limit}: expected at least 1 snapshot")

    @staticmethod
    def of(options: TableOptions, now_ms: int) -> Retention:
        """What the table's options ask for."""
        timeout = options.get(COMMIT_TIMEOUT)
        timeout_ms = _DEFAULT_COMMIT_TIMEOUT_MS if timeout is None else int(timeout.total_seconds() * 1000)
        age_ms = int(options.get(SNAPSHOT_TIME_RETAINED).total_seconds() * 1000)
        least, most = options.get(SNAPSHOT_NUM_RETAINED_MIN), options.get(SNAPSHOT_NUM_RETAINED_MAX)
        return Retention(least, most, now_ms - age_ms, now_ms - timeout_ms)

    def of_changelogs(self, options: TableOptions, now_ms: int) -> Retention:
        """The same for changelogs, which without options of their own are kept like snapshots."""
        age = options.get(CHANGELOG_TIME_RETAINED)
        since = self.replaced_since_ms if age is None else now_ms - int(age.total_seconds() * 1000)
        least, most = options.get(CHANGELOG_NUM_RETAINED_MIN), options.get(CHANGELOG_NUM_RETAINED_MAX)
        keep_min = self.keep_min if least is None else least
        return replace(
            self,
            keep_min=keep_min,
            keep_max=max(self.keep_max, keep_min) if most is None else most,
            replaced_since_ms=since,
        )

    def outlasts(self, other: Retention) -> bool:
        """Whether it retains anything that the other expires."""
        return (
            self.keep_max > other.keep_max
            or self.keep_min > other.keep_min
            or self.replaced_since_ms < other.replaced_since_ms
        )


def first_kept(
    ids: range, retention: Retention, time_of: Callable[[int], int | None], *, consumer: int | None = None
) -> tuple[int, str]:
    """The first id that stays, and what keeps it. `time_of` gives the time of a snapshot, None for one that is deleted."""
    latest = ids[-1]
    bounds = [(latest - retention.keep_min + 1, "the number of snapshots to keep")]
    if consumer is not None:
        bounds.append((consumer, "a consumer"))
    if retention.limit is not None:
        bounds.append((ids[0] + retention.limit, "the limit of one expiry"))
    end, reason = min(bounds)
    too_many = latest - retention.keep_max + 1
    for number in range(ids[0], end):
        made, replaced = time_of(number), time_of(number + 1)
        if made is not None and made > retention.made_since_ms:
            return number, "the commit timeout"
        if number >= too_many and replaced is not None and replaced >= retention.replaced_since_ms:
            return number, "its age"
    return max(end, ids[0]), reason
