"""A tag: a snapshot kept under a name, permanently or until it expires."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lakelet.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Tag:
    """A named snapshot. `create_time`, in the time zone of the machine that made the tag, and `time_retained` are known of tags
    that expire by themselves only."""

    name: str
    snapshot: Snapshot
    create_time: datetime | None = None
    time_retained: timedelta | None = None

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot."""
        return self.snapshot.id

    @property
    def time_ms(self) -> int:
        """When the snapshot was committed."""
        return self.snapshot.time_ms

    def is_expired(self, now: datetime) -> bool:
        """Whether its retention time has passed."""
        if self.create_time is None or self.time_retained is None:
            return False
        # Compared this way round, for an end may lie beyond the years that a datetime has.
        return now - self.create_time > self.time_retained
