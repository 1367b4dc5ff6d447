"""Find the snapshots after a position, and check that the position is still one in the table's history.

A stream remembers the table's UUID and the mark of the snapshot it has read last. So it is found out where the table was dropped
and created again, rolled back to before the position, or has expired it: each is an error, for rows that were read may be no
rows of the table, or changes that were not read are lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.errors import ConflictError, NotFoundError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.read.read_ahead import read_ahead


class ExpiredOffsetError(NotFoundError):
    """The snapshots after a stream's position have expired."""


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The history of one table on one branch, read at every call."""

    home: TableHome

    def newest(self) -> Snapshot | None:
        """The newest snapshot."""
        return latest_snapshot(self.home)

    def snapshot(self, number: int) -> Snapshot | None:
        """The snapshot of an id, None where there is none."""
        return try_snapshot(self.home, number) if number else None

    def uuid(self) -> str | None:
        """The table's UUID."""
        return table_uuid(self.home)

    def whole(self, snapshot: Snapshot | None) -> StreamOffset:
        """The position at which everything of a snapshot is read; None is before the first."""
        if snapshot is None:
            return StreamOffset(0, table=self.uuid())
        return StreamOffset(snapshot.id, mark=snapshot.delta_manifest_list, table=self.uuid())

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
        found = try_snapshot(self.home, offset.snapshot)
        if found is not None and found.delta_manifest_list == offset.mark:
            return found
        ids = snapshot_ids(self.home)
        if found is None and ids and offset.snapshot < ids[0]:
            raise ExpiredOffsetError(
                f"{self._where}: the stream has read up to snapshot {offset.snapshot}, which has expired; snapshots {ids[0]} to "
                f"{ids[-1]} exist, and the changes between are lost to it. A consumer-id holds snapshots for a stream; to "
                "start anew, say so by on-expired = 'restart', or take a new checkpoint"
            )
        there = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "it has no snapshot"
        what = "is another one now" if found is not None else "is gone"
        raise ConflictError(
            f"{self._where}: the stream has read snapshot {offset.snapshot}, which {what}, since the table was rolled back "
            f"({there}). What was read of it may be no row of the table: start a stream with a new checkpoint"
        )

    def between(self, start: StreamOffset, end: StreamOffset) -> tuple[Snapshot | None, list[Snapshot]]:
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

    def _before(self, start: StreamOffset) -> Snapshot | None:
        if start.initial or start.base == 0:
            return None
        return self.existing(start.base)

    def existing(self, number: int) -> Snapshot:
        """The snapshot of an id; an error that says why where there is none."""
        found = try_snapshot(self.home, number)
        if found is not None:
            return found
        ids = snapshot_ids(self.home)
        if ids and number < ids[0]:
            raise ExpiredOffsetError(
                f"{self._where}: snapshot {number}, which the stream reads next, has expired; snapshots {ids[0]} to "
                f"{ids[-1]} exist"
            )
        raise ConflictError(f"{self._where}: snapshot {number} is gone since the table was rolled back")

    @property
    def _where(self) -> str:
        return self.home.where(self.home.paths.branch_root)
