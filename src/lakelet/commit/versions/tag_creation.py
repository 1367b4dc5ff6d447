"""Automatic tags: after a write, create those that are due, and delete the expired ones.

    by period (process-time, watermark)   the first snapshot after each period gets a tag named after it, see `tag_periods`
    batch                                 the newest snapshot gets `batch-write-DAY` or a name of choice, which moves along

Writers keep no state: the next period is derived from the newest automatic tag. Times of snapshots never decrease, so that the
newest snapshot alone shows that nothing is due, and the first one past a period is found by bisection.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakelet.clock import shown_time
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.commit.metadata.stored import Version
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.commit.versions.tag_periods import TagPeriods, local_time
from lakelet.commit.versions.tags import (
    all_tags,
    create_tag,
    delete_tag,
    expire_tags,
    find_version,
    replace_tag,
    try_tag,
)
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.options import (
    SINK_PROCESS_TIME_ZONE,
    SINK_WATERMARK_TIME_ZONE,
    TAG_AUTOMATIC_CREATION,
    TAG_BATCH_CUSTOMIZED_NAME,
    TAG_DEFAULT_TIME_RETAINED,
    TAG_NUM_RETAINED_MAX,
    TAG_TIME_EXPIRE_ENABLED,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_LEAST_WATERMARK = -(2**63)


def create_due_tags(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> list[str]:
    """Create the tags that are due now that `snapshot` is the newest, and delete the expired ones; the names created."""
    options = TableOptions(schema.options)
    periods = TagPeriods.of(options)
    made: list[str] = []
    if periods is not None:
        made = _create_by_period(home, options, periods, snapshot)
    elif options.get(TAG_AUTOMATIC_CREATION) == "batch":
        made = _create_for_batch(home, options, snapshot)
    if options.get(TAG_TIME_EXPIRE_ENABLED):
        expire_tags(home, options)
    return made


def _create_by_period(home: TableHome, options: TableOptions, periods: TagPeriods, newest: Snapshot) -> list[str]:
    automatic = [tag for tag in all_tags(home) if periods.period(tag.name) is not None]
    last = automatic[-1] if automatic else None
    last_period = None if last is None else periods.period(last.name)
    upcoming = None if last_period is None else periods.after(last_period)
    start = 1 if last is None else last.snapshot_id + 1
    made: list[str] = []
    while True:
        time = _time(options, newest)
        if time is None or periods.due(upcoming, time) is None:
            break
        found = _first_due(home, options, periods, upcoming, start, newest.id)
        if found is None:
            break
        moment = _time(options, found)
        period = None if moment is None else periods.due(upcoming, moment)
        if period is None:
            break
        name = periods.name(period)
        try:
            create_tag(home, options, name, find_version(home, found.id), if_not_exists=True)
            made.append(name)
        except NotFoundError as error:
            _LOG.info("automatic tag %r goes to a later snapshot: %s", name, error)
            start = found.id + 1
            continue
        upcoming, start = periods.after(period), found.id + 1
    _keep_newest(home, options, [tag for tag in all_tags(home) if periods.period(tag.name) is not None] if made else [])
    return made


def _first_due(
    home: TableHome, options: TableOptions, periods: TagPeriods, upcoming: datetime | None, start: int, end: int
) -> Snapshot | None:
    """The first snapshot among `start` to `end` that completes the upcoming period; of any period where none is tagged yet."""
    ids = [number for number in snapshot_ids(home) if start <= number <= end]
    low, high = 0, len(ids)
    found: Snapshot | None = None
    while low < high:
        middle = (low + high) // 2
        snapshot = try_snapshot(home, ids[middle])
        # The oldest may be expired meanwhile; it is treated as one that is too early.
        time = None if snapshot is None else _time(options, snapshot)
        if time is None or periods.due(upcoming, time) is None:
            low = middle + 1
        else:
            found, high = snapshot, middle
    return found


def _create_for_batch(home: TableHome, options: TableOptions, snapshot: Snapshot) -> list[str]:
    day = _in_zone(snapshot.time_ms, _process_zone(options))
    name = options.get(TAG_BATCH_CUSTOMIZED_NAME) or f"batch-write-{day.year:04}-{day.month:02}-{day.day:02}"
    retained = options.get(TAG_DEFAULT_TIME_RETAINED)
    version = find_version(home, snapshot.id)
    try:
        _create_or_replace(home, options, name, version)
    except AlreadyExistsError:
        # Another writer made it between the check and the creation; the later write's snapshot is the one to keep.
        replace_tag(home, options, name, version, time_retained=retained)
    _keep_newest(home, options, all_tags(home))
    return [name]


def _create_or_replace(home: TableHome, options: TableOptions, name: str, version: Version) -> None:
    known = try_tag(home, name)
    if known is None:
        create_tag(home, options, name, version)
    elif known.snapshot_id < version.snapshot.id:
        replace_tag(home, options, name, version, time_retained=options.get(TAG_DEFAULT_TIME_RETAINED))


def _keep_newest(home: TableHome, options: TableOptions, tags: list[Tag]) -> None:
    """Delete the oldest of these tags where there are more than may be kept."""
    most = options.get(TAG_NUM_RETAINED_MAX)
    if most is not None:
        for tag in tags[: max(0, len(tags) - most)]:
            delete_tag(home, options, tag.name, if_exists=True)


def _time(options: TableOptions, snapshot: Snapshot) -> datetime | None:
    """The creation time of a snapshot, or its watermark where that decides, in local time; None for one without a watermark."""
    if options.get(TAG_AUTOMATIC_CREATION) == "process-time":
        return _in_zone(snapshot.time_ms, _process_zone(options))
    if snapshot.watermark is None or snapshot.watermark == _LEAST_WATERMARK:
        return None
    return _in_zone(snapshot.watermark, _zone(SINK_WATERMARK_TIME_ZONE.name, options.get(SINK_WATERMARK_TIME_ZONE)))


def _in_zone(time_ms: int, zone: tzinfo | None) -> datetime:
    if zone is None:
        return local_time(time_ms)
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(zone).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError) as error:
        raise InvalidError(f"no tag can be named after the time {shown_time(time_ms)}: {error}") from error


def _process_zone(options: TableOptions) -> tzinfo | None:
    return _zone(SINK_PROCESS_TIME_ZONE.name, options.get(SINK_PROCESS_TIME_ZONE))


def _zone(option: str, name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidError(
            f"option '{option}': expected the name of a time zone such as UTC, found '{name}'"
        ) from error
