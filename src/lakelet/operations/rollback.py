"""Roll a table back to an older version."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lakelet.errors import InvalidError, NotFoundError
from lakelet.table import Table
from lakelet.table.time_arguments import Moment


@dataclass(frozen=True, slots=True)
class Rollback:
    """The version to roll back to, by one of these: a snapshot or tag, a snapshot, a tag, the newest up to a time or
    watermark.
    """

    version: int | str | None = None
    snapshot_id: int | str | None = None
    tag: str | None = None
    timestamp: Moment | None = None
    watermark_ms: int | None = None

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise InvalidError(f"a rollback needs one of version, snapshot and tag; found {found}")


def roll_back(table: Table, request: Rollback) -> int:
    """Roll back to a version; returns its snapshot's id."""
    if request.timestamp is not None:
        return table.rollback(timestamp=request.timestamp).id
    if request.watermark_ms is not None:
        return table.rollback(_up_to_watermark(table, request.watermark_ms)).id
    if request.tag is not None:
        return table.rollback(table.tags.get(request.tag).name).id
    return table.rollback(request.version if request.version is not None else request.snapshot_id).id


def _up_to_watermark(table: Table, most: int) -> int:
    fitting = [one.id for one in table.snapshots() if one.watermark is not None and one.watermark <= most]
    if not fitting:
        raise NotFoundError(f"{table.name} has no snapshot with a watermark of {most} or less")
    return fitting[-1]
