"""An Iceberg table as a source of appended rows: positions in a branch, how far a batch goes, and the files of a batch.

A position is a `StreamOffset` whose snapshot is Iceberg's id; ids have no order, so that the order is that of parents. A position
that is not in the branch any more was expired or rolled back, which is an error.

Snapshots that existed when the stream began are read in the columns of then, as any scan would. One that is made later under
other columns stops the stream with an error that names the change, unless columns were only added and the stream may leave them
out. Ids of schemas say nothing about their order: a table whose added column is dropped again has its older schema once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakelet.errors import ConflictError, InvalidError, NotFoundError
from lakelet.iceberg.scan import ScanFile
from lakelet.iceberg.scan.appended import APPEND, REPLACE, Step, added_files, schema_changes, steps
from lakelet.iceberg.table import IcebergTable
from lakelet.spark.iceberg.table_frame import planned
from lakelet.table.follow.admission import ReadLimits, Version, admitted
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import StreamSettings
from lakelet.table.read.change_unit import Cost

_KEPT_PLANS = 64


@dataclass(frozen=True, slots=True)
class Skipped:
    """Which snapshots that remove rows a stream passes over rather than stop at."""

    overwrites: bool = False
    deletes: bool = False


class AppendSource:
    """The appended rows of one branch of a table, read in the columns it had when the stream began."""

    def __init__(self, table: IcebergTable, branch: str | None, settings: StreamSettings, skipped: Skipped) -> None:
        self._table = table
        self._branch = branch
        self._settings = settings
        self._skipped = skipped
        self._schema_id = table.metadata.current_schema_id
        self._known = frozenset(snapshot.snapshot_id for snapshot in table.metadata.snapshots)
        self._plans: dict[tuple[int, bool], tuple[ScanFile, ...]] = {}

    def start(self) -> StreamOffset:
        """Where a new stream begins."""
        line, whole = self._line()
        start = self._settings.start
        match start.mode:
            case "latest":
                return self._whole(line[-1] if line else None)
            case "latest-full":
                return replace(self._whole(line[-1]), index=0, initial=True) if line else self._whole(None)
            case "from-snapshot":
                places = [place for place, step in enumerate(line) if step.snapshot_id == start.snapshot]
                if not places:
                    raise NotFoundError(
                        f"table {self._table.full_name}: snapshot {start.snapshot} is not in the branch"
                    )
            case "from-timestamp":
                places = [place for place, step in enumerate(line) if step.time_ms >= (start.time_ms or 0)]
                if not places:
                    return self._whole(line[-1] if line else None)
            case mode:
                raise InvalidError(
                    f"scan.mode '{mode}' is for tables of Lakelet's own format; a stream of an Iceberg table takes latest-full, "
                    "latest, from-snapshot or from-timestamp"
                )
        if places[0] == 0 and not whole:
            raise NotFoundError(f"table {self._table.full_name}: snapshots before {line[0].snapshot_id} have expired")
        return self._whole(line[places[0] - 1] if places[0] else None)

    def newest(self) -> StreamOffset:
        """The position after the newest snapshot."""
        line, _ = self._line()
        return self._whole(line[-1] if line else None)

    def behind(self, position: StreamOffset | None) -> tuple[int, int, int]:
        """The newest snapshot, how many snapshots a position is behind it, and the time between the commits of the two."""
        line, _ = self._line()
        if not line:
            return 0, 0, 0
        newest = line[-1]
        if position is None:
            return newest.snapshot_id, 0, 0
        place = next((place for place, step in enumerate(line) if step.snapshot_id == position.snapshot), -1)
        count = len(line) - (place if place >= 0 and not position.is_whole else place + 1)
        read_ms = line[place].time_ms if place >= 0 else newest.time_ms
        return newest.snapshot_id, count, max(0, newest.time_ms - read_ms) if count else 0

    def next(self, position: StreamOffset, limits: ReadLimits, *, to: int | None = None) -> StreamOffset:
        """The end of the batch that follows a position; nothing after snapshot `to` is read."""
        if position.initial and not position.is_whole:
            return admitted(position, [self._version(position, self._step(position))], limits)
        following = self._following(position)
        if to is not None:
            ids = [step.snapshot_id for step in following]
            following = following[: ids.index(to) + 1] if to in ids else ()
        if not position.is_whole:
            following = (self._step(position), *following)
        if not following:
            return position
        return admitted(position, (self._version(position, step) for step in following), limits)

    def files(self, start: StreamOffset, end: StreamOffset) -> Iterator[ScanFile]:
        """The files of a batch."""
        steps_ahead = () if start.snapshot == end.snapshot else self._until(start, end)
        if not start.is_whole:
            found = self._files_of(self._step(start), start.initial)
            yield from found[start.index : end.index if end.snapshot == start.snapshot else None]
        for step in steps_ahead:
            found = self._files_of(step, initial=False)
            yield from found[: end.index] if step.snapshot_id == end.snapshot else found

    def _until(self, start: StreamOffset, end: StreamOffset) -> tuple[Step, ...]:
        following = self._following(start)
        ids = [step.snapshot_id for step in following]
        if end.snapshot not in ids:
            raise self._gone(end.snapshot)
        return following[: ids.index(end.snapshot) + 1]

    def _line(self) -> tuple[tuple[Step, ...], bool]:
        self._table = self._table.reloaded()
        return steps(self._table, self._branch)

    def _following(self, position: StreamOffset) -> tuple[Step, ...]:
        """The snapshots after that of a position."""
        line, whole = self._line()
        uuid = str(self._table.metadata.table_uuid)
        if position.table != uuid:
            raise ConflictError(
                f"table {self._table.full_name} is not the one that the stream has read: a new stream needs a checkpoint of "
                "its own"
            )
        if position.snapshot == 0:
            if not whole:
                raise NotFoundError(
                    f"table {self._table.full_name}: its first snapshots have expired before they were read"
                )
            return line
        ids = [step.snapshot_id for step in line]
        if position.snapshot not in ids:
            raise self._gone(position.snapshot)
        return line[ids.index(position.snapshot) + 1 :]

    def _step(self, position: StreamOffset) -> Step:
        line, _ = self._line()
        found = next((step for step in line if step.snapshot_id == position.snapshot), None)
        if found is None:
            raise self._gone(position.snapshot)
        return found

    def _version(self, position: StreamOffset, step: Step) -> Version:
        within = position.snapshot == step.snapshot_id and not position.is_whole
        initial = within and position.initial
        files = self._files_of(step, initial)
        whole = replace(self._whole(step), initial=initial)
        return Version(whole, tuple(Cost(1, file.size, file.row_count) for file in files))

    def _files_of(self, step: Step, initial: bool) -> tuple[ScanFile, ...]:
        key = (step.snapshot_id, initial)
        if key not in self._plans:
            while len(self._plans) >= _KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[key] = self._initial(step) if initial else self._appended(step)
        return self._plans[key]

    def _initial(self, step: Step) -> tuple[ScanFile, ...]:
        return planned(self._table, version=step.snapshot_id).scan.files

    def _appended(self, step: Step) -> tuple[ScanFile, ...]:
        if step.operation == REPLACE:
            return ()
        if step.operation == APPEND:
            self._check_schema(step)
            return added_files(self._table, step.snapshot_id)
        if self._skipped.overwrites if step.operation == "overwrite" else self._skipped.deletes:
            return ()
        name = "overwrite" if step.operation == "overwrite" else "delete"
        raise InvalidError(
            f"table {self._table.full_name}: snapshot {step.snapshot_id} is of the kind {step.operation!r} and removes rows, "
            f"which a stream of appended rows cannot show; 'streaming-skip-{name}-snapshots' = 'true' passes over it"
        )

    def _check_schema(self, step: Step) -> None:
        if step.snapshot_id in self._known:
            return
        changes = schema_changes(self._table, self._schema_id, step.schema_id)
        only_added = all(change.endswith("was added") for change in changes)
        if not changes or (only_added and self._settings.merges_schema):
            return
        advice = ", or goes on without it where merge-schema is 'true'" if only_added else ""
        raise ConflictError(
            f"table {self._table.full_name}: {', '.join(changes)} since the stream began; restarted, it reads the new columns"
            f"{advice}"
        )

    def _whole(self, step: Step | None) -> StreamOffset:
        uuid = str(self._table.metadata.table_uuid)
        return StreamOffset(0 if step is None else step.snapshot_id, table=uuid)

    def _gone(self, number: int) -> NotFoundError:
        return NotFoundError(
            f"table {self._table.full_name}: snapshot {number}, which the stream has read, is not in the branch any more: it was "
            "rolled back or expired; start a stream with a new checkpoint"
        )
