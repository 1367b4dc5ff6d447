"""Where a stream begins, and where it ends if it does: from its scan mode and the table's snapshots.

    a position in the middle of nothing, `initial`    the visible rows of the snapshot come first
    a position after a snapshot                       the changes of those that follow

A stream that begins at a snapshot whose predecessor has expired cannot know what the snapshot changed, and is refused, unless the
snapshot tells by itself: by its changelog, or by the rows that it appended.
"""

from __future__ import annotations

from dataclasses import replace

from lakelet.clock import shown_time
from lakelet.commit.metadata.snapshots import read_snapshot, snapshots_backwards
from lakelet.commit.versions.told_versions import ExpiredChangesError, read_told, tells_itself, told_at, told_ids
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.table.follow.history import TableHistory
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import ScanStart
from lakelet.table.read.named_version import change_bound
from lakelet.table.time_arguments import milliseconds


def starting_offset(history: TableHistory, start: ScanStart, *, keyed: bool) -> StreamOffset:
    """The position at which a new stream begins."""
    newest = history.newest()
    match start.mode:
        case "latest":
            return history.whole(newest)
        case "compacted-full":
            return _initial(history, _compacted(history, newest))
        case "from-snapshot":
            return _after(history, _number(start) - 1, keyed=keyed)
        case "from-snapshot-full":
            return _initial(history, read_snapshot(history.home, _number(start)))
        case "from-timestamp":
            return _since(history, _time(start))
        case "from-file-creation-time":
            return _created_since(history, newest, _time(start), keyed)
        case "from-creation-timestamp":
            # As far back as snapshots are known their changes are read, and files by their own time beyond that. Files of a
            # primary-key table hold superseded rows, so that it has changes alone.
            ids = told_ids(history.home)
            known = keyed or (bool(ids) and read_told(history.home, ids[0]).time_ms < _time(start))
            return _since(history, _time(start)) if known else _created_since(history, newest, _time(start), keyed)
        case "incremental":
            return _after(history, _bounds(history, start)[0], keyed=keyed)
        case _:
            return _initial(history, newest)


def ending_snapshot(history: TableHistory, start: ScanStart) -> int | None:
    """The snapshot with which a stream ends, None for one that goes on."""
    return _bounds(history, start)[1] if start.mode == "incremental" else None


def _initial(history: TableHistory, snapshot: Snapshot | None) -> StreamOffset:
    whole = history.whole(snapshot)
    return whole if snapshot is None else replace(whole, index=0, initial=True)


def _after(history: TableHistory, number: int, *, keyed: bool) -> StreamOffset:
    """Everything up to a snapshot counts as read."""
    if number <= 0:
        ids = told_ids(history.home)
        if ids and ids[0] > 1:
            raise _expired(
                history, f"changes from the first snapshot on were asked for, but {ids[0]} is the oldest that exists"
            )
        return history.whole(None)
    if history.snapshot(number) is None:
        following = history.snapshot(number + 1)
        if following is not None and tells_itself(following, keyed=keyed):
            return history.nothing_of(following)
    return history.whole(read_told(history.home, number))


def _since(history: TableHistory, time_ms: int) -> StreamOffset:
    """The newest snapshot before a time counts as read."""
    ids = told_ids(history.home)
    try:
        return history.whole(told_at(history.home, time_ms - 1))
    except NotFoundError:
        if ids and ids[0] > 1:
            raise _expired(
                history,
                f"changes from {shown_time(time_ms)} on were asked for, but snapshot {ids[0]}, the oldest, is later",
            ) from None
        return history.whole(None)


def _created_since(history: TableHistory, newest: Snapshot | None, time_ms: int, keyed: bool) -> StreamOffset:
    if keyed:
        raise InvalidError(
            "scan.mode 'from-file-creation-time' reads files by their age, which would show superseded rows of a primary-key "
            "table: use from-timestamp"
        )
    found = _initial(history, newest)
    return found if newest is None else replace(found, since_ms=time_ms)


def _compacted(history: TableHistory, newest: Snapshot | None) -> Snapshot | None:
    """The newest compacted version, else the newest."""
    if newest is None:
        return None
    found = snapshots_backwards(history.home, newest.id)
    return next((snapshot for snapshot in found if snapshot.commit_kind is CommitKind.COMPACT), newest)


def _bounds(history: TableHistory, start: ScanStart) -> tuple[int, int]:
    assert start.bounds is not None, "the mode has bounds"
    if start.bounds_are_times:
        first, last = (_time_bound(history, text) for text in start.bounds)
    else:
        first, last = (change_bound(history.home, text) for text in start.bounds)
    if first > last:
        raise InvalidError(f"incremental between {start.bounds[0]} and {start.bounds[1]}: the first is the later one")
    return first, last


def _time_bound(history: TableHistory, text: str) -> int:
    time_ms = int(text) if text.isdigit() else milliseconds(text)
    try:
        return told_at(history.home, time_ms).id
    except NotFoundError:
        ids = told_ids(history.home)
        if ids and ids[0] > 1:
            raise
        return 0


def _expired(history: TableHistory, reason: str) -> ExpiredChangesError:
    where = history.home.where(history.home.paths.branch_root)
    return ExpiredChangesError(f"{where}: {reason}; take a later point, or latest-full")


def _number(start: ScanStart) -> int:
    assert start.snapshot is not None, "the mode has a snapshot"
    if start.snapshot < 1:
        raise InvalidError(f"scan.snapshot-id {start.snapshot}: expected the id of a snapshot, from 1 on")
    return start.snapshot


def _time(start: ScanStart) -> int:
    assert start.time_ms is not None, "the mode has a time"
    return start.time_ms
