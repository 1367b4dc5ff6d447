"""Find the snapshots after a position, and check that the position is still one in the table's history.

A stream remembers the table's UUID and the mark of the snapshot it has read last. So it is found out where the table was dropped
and created again, rolled back to before the position, or has expired it: each is an error, for rows that were read may be no
rows of the table, or changes that were not read are lost. An expired snapshot whose changelog is kept longer is still a position,
and its changes are read from the changelog.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.commit.versions.told_versions import (
    Before,
    ExpiredChangesError,
    told_ids_shown,
    try_told,
    version_before,
)
from lakelet.errors import ConflictError
from lakelet.model.snapshot import Changelog, Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.read.read_ahead import read_ahead


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The history of one table on one branch, read at every call."""

    home: TableHome

    def newest(self) -> Snapshot | None:
        """The newest snapshot."""
        return latest_snapshot(self.home)

    def snapshot(self, number: int) -> Snapshot | None:
        """The snapshot of an id, or the changelog that it has left; None where there is neither."""
        return try_told(self.home, number) if number else None

    def uuid(self) -> str | None:
        """The table's UUID."""
        return table_uuid(self.home)

    def whole(self, snapshot: Snapshot | None) -> StreamOffset:
        """The position at which everything of a snapshot is read; None is before the first."""
        if snapshot is None:
            return StreamOffset(0, table=self.uuid())
        return StreamOffset(snapshot.id, mark=snapshot.delta_manifest_list, table=self.uuid())

    def nothing_of(self, snapshot: Snapshot) -> StreamOffset:
        """The position at which the one before a snapshot is read, and nothing of its own changes."""
        return replace(self.whole(snapshot), index=0)

    def check_table(self, offset: StreamOffset) -> None:
        """ConflictError where the offset is another table's."""
        now = self.uuid()
        if now is None:
            # NotFoundError where the table was dropped; a table of another writer has no UUID.
            latest_schema(self.home)
        if offset.table is not None and now is not None and offset.table != now:
            raise ConflictError(
                f"{self._where} is not the table that the stream has read: it was dropped and created again, or the checkpoint "
                "belongs to another table; a new stream needs a checkpoint of its own"
            )

    def snapshot_of(self, offset: StreamOffset) -> Snapshot | None:
        """The snapshot that an offset is in, None for the one before the first; an error where it is gone or another one."""
        if offset.snapshot == 0:
            return None
        found = try_told(self.home, offset.snapshot)
        needs_rows = offset.initial and not offset.is_whole
        if found is not None and found.delta_manifest_list == offset.mark:
            if not (needs_rows and isinstance(found, Changelog)):
                return found
            found = None
        ids = snapshot_ids(self.home)
        if found is None and ids and offset.snapshot < ids[0]:
            raise ExpiredChangesError(
                f"{self._where}: the stream has read up to snapshot {offset.snapshot}, which has expired; "
                f"{told_ids_shown(self.home)}, and the changes between are lost to it. A consumer-id holds snapshots for a "
                "stream; to start anew, say so by on-expired = 'restart', or take a new checkpoint"
            )
        there = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "it has no snapshot"
        what = "is another one now" if found is not None else "is gone"
        raise ConflictError(
            f"{self._where}: the stream has read snapshot {offset.snapshot}, which {what}, since the table was rolled back "
            f"({there}). What was read of it may be no row of the table: start a stream with a new checkpoint"
        )

    def between(self, start: StreamOffset, end: StreamOffset) -> tuple[Before, list[Snapshot]]:
        """The last snapshot before the range, and the snapshots of the range: the one that `start` is in the middle of, if any,
        up to that of `end`."""
        self.check_table(start)
        last = self.snapshot_of(end)
        at = self.snapshot_of(start)
        if start.snapshot > end.snapshot:
            raise ConflictError(f"{self._where}: the stream ends at snapshot {end.snapshot}, before {start.snapshot}")
        before = at if start.is_whole else self._before(start)
        found = list(read_ahead(self.existing, range(start.base + 1, end.snapshot)))
        if last is not None and end.snapshot > start.base:
            found.append(last)
        # Ids are taken away newest first: as long as the last is the same, so are all before it.
        self.snapshot_of(end)
        return before, found

    def _before(self, start: StreamOffset) -> Before:
        return None if start.initial else self.before(start.base)

    def before(self, number: int) -> Before:
        """The version of an id that changes are found by, if they are in no changelog; None before the first."""
        return version_before(self.home, number)

    def existing(self, number: int) -> Snapshot:
        """The snapshot of an id, or the changelog that it has left; an error that says why where there is neither."""
        found = try_told(self.home, number)
        if found is not None:
            return found
        ids = snapshot_ids(self.home)
        if ids and number < ids[0]:
            raise ExpiredChangesError(
                f"{self._where}: snapshot {number}, which the stream reads next, has expired; {told_ids_shown(self.home)}"
            )
        raise ConflictError(f"{self._where}: snapshot {number} is gone since the table was rolled back")

    @property
    def _where(self) -> str:
        return self.home.where(self.home.paths.branch_root)
