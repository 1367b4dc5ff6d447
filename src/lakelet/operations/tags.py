"""Tag operations: named versions of a table that stay readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakelet.errors import NotFoundError
from lakelet.model.tag import Tag
from lakelet.table import Table
from lakelet.table.time_arguments import Age, Length, past_ms

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateTag:
    """A tag of a snapshot, the newest by default; `time_retained` None means what the table's options say."""

    name: str
    snapshot_id: int | None = None
    time_retained: Length | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateTagSince:
    """A tag of the first snapshot from a commit time or a watermark on, in milliseconds; one of the two is given."""

    name: str
    timestamp_ms: int | None = None
    watermark_ms: int | None = None
    time_retained: Length | None = None


@dataclass(frozen=True, slots=True)
class ReplaceTag:
    """Another snapshot or another retention for an existing tag; by default it keeps its snapshot, and never expires."""

    name: str
    snapshot_id: int | None = None
    time_retained: Length | None = None


def create_tag(table: Table, request: CreateTag) -> Tag:
    """Create a tag."""
    return table.tags.create(
        request.name,
        request.snapshot_id,
        time_retained=request.time_retained,
        if_not_exists=request.if_not_exists,
    )


def create_tag_since(table: Table, request: CreateTagSince) -> Tag:
    """Create a tag of the first snapshot at or after a time; NotFoundError where there is none."""
    assert (request.timestamp_ms is None) != (request.watermark_ms is None)
    for snapshot in table.snapshots():
        time, since = (
            (snapshot.time_ms, request.timestamp_ms)
            if request.timestamp_ms is not None
            else (snapshot.watermark, request.watermark_ms)
        )
        assert since is not None
        if time is not None and time >= since:
            return create_tag(table, CreateTag(request.name, snapshot.id, request.time_retained))
    if request.timestamp_ms is not None:
        raise NotFoundError(f"{table.name} has no snapshot made at {request.timestamp_ms} or later")
    raise NotFoundError(f"{table.name} has no snapshot with a watermark of {request.watermark_ms} or later")


def replace_tag(table: Table, request: ReplaceTag) -> Tag:
    """Point a tag to another snapshot, or change its retention."""
    number = request.snapshot_id
    if number is None:
        number = table.tags.get(request.name).snapshot_id
    return table.tags.replace(request.name, number, time_retained=request.time_retained)


def rename_tag(table: Table, name: str, new_name: str) -> Tag:
    """Renames a tag."""
    table.tags.rename(name, new_name)
    return table.tags.get(new_name)


def delete_tags(table: Table, names: Sequence[str]) -> None:
    """Delete tags; NotFoundError before the first is deleted where one does not exist."""
    for name in names:
        table.tags.get(name)
    for name in names:
        table.tags.delete(name)


def expire_tags(table: Table, older_than: Age | None = None) -> Names:
    """Delete expired tags, and those made before `older_than`; returns their names."""
    before = None if older_than is None else past_ms(older_than, table.home.clock.now_ms(), "older_than")
    return tuple(table.tags.expire(before))


def create_due_tags(table: Table) -> Names:
    """Create the automatic tags that are due; returns their names."""
    return tuple(table.tags.create_due())
