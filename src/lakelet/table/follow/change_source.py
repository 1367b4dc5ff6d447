"""A table as a source of changes: positions, how far a batch goes, and the units of a batch.

    starting offset ─ next offset, within limits ─ units from offset to offset ─ read anywhere

It keeps nothing but plans that it has made: the same positions give the same units after a restart, in any process. Batches of
one stream, one after the other, hold every change once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from threading import Lock

from lakelet.commit.metadata.schemas import SchemaVersions, latest_schema
from lakelet.commit.versions.told_versions import Before, ExpiredChangesError, ExpiredVersion, is_expired, tells_itself
from lakelet.errors import CorruptionError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.follow.admission import NO_LIMITS, ReadLimits, Version, admitted, pending_rows
from lakelet.table.follow.consumer_progress import ConsumerProgress
from lakelet.table.follow.history import TableHistory
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.schema_drift import check_schema
from lakelet.table.follow.settings import StreamSettings
from lakelet.table.follow.start import ending_snapshot, starting_offset
from lakelet.table.read.change_plan import ChangePlanner
from lakelet.table.read.change_unit import ChangeUnit
from lakelet.table.read.read_ahead import read_ahead

_KEPT_PLANS = 64


class ChangeSource:
    """The changes of one table, to be read in `schema`, by the settings of one stream."""

    def __init__(self, home: TableHome, schema: TableSchema, settings: StreamSettings) -> None:
        # Planning looks at the store, not at what a metadata source may keep: a stale newest snapshot would be a rollback.
        self._home = home.uncached()
        self._schema = schema
        self._settings = settings
        self._planner = ChangePlanner(self._home, schema, settings.overwrites)
        self._schema_of = SchemaVersions(self._home, {schema.id: schema})
        self._plans: dict[tuple[str, bool, int | None], tuple[ChangeUnit, ...]] = {}
        self._plans_lock = Lock()
        self._end: int | None = None
        self._end_known = False
        self.history = TableHistory(self._home)

    def start(self, progress: ConsumerProgress | None = None) -> StreamOffset:
        """Where a new stream begins: where its consumer has got to, or where the scan mode says."""
        try:
            resumed = None if progress is None else progress.resumed(self.history)
        except ExpiredChangesError:
            if not self._settings.restarts_expired:
                raise
            resumed = None
        if resumed is not None:
            return resumed
        return starting_offset(self.history, self._settings.start, keyed=bool(self._schema.primary_keys))

    def newest(self) -> StreamOffset:
        """The position after everything that a stream may read by now."""
        return self.history.whole(self._last_snapshot(0))

    def is_finished(self, position: StreamOffset) -> bool:
        """Whether a stream that ends has reached its end."""
        if not position.is_whole:
            return False
        if self._bound() is not None and position.snapshot >= (self._bound() or 0):
            return True
        following = self.history.snapshot(position.snapshot + 1)
        return following is not None and self._is_beyond_watermark(following)

    def next(
        self,
        position: StreamOffset,
        limits: ReadLimits = NO_LIMITS,
        *,
        waited_ms: int | None = None,
        to: int | None = None,
    ) -> StreamOffset:
        """The end of the batch that follows a position; the position itself where there is nothing to read.

        `waited_ms` is how long rows may have waited for more, None where they do not wait. Nothing after snapshot `to` is read.
        """
        try:
            return self._next(position, limits, waited_ms, to)
        except ExpiredChangesError:
            if not self._settings.restarts_expired:
                raise
            return self._begun_anew(limits)

    def _next(self, position: StreamOffset, limits: ReadLimits, waited_ms: int | None, to: int | None) -> StreamOffset:
        self._check(position)
        if position.initial and not position.is_whole:
            # The rows of a whole version are batches of their own: changes of the same keys come after them.
            return admitted(position, self._versions(position, position.snapshot), limits)
        last = self._last_snapshot(position.snapshot)
        end = position.snapshot if last is None else last.id if to is None else min(last.id, to)
        if end < position.snapshot or (end == position.snapshot and position.is_whole):
            return position
        if waited_ms is not None and limits.min_rows is not None:
            rows = pending_rows(position, self._versions(position, end), limits.min_rows)
            if limits.waits(rows, waited_ms):
                return position
        if limits.bounds:
            return admitted(position, self._versions(position, end), limits)
        return self.history.whole(self.history.existing(end))

    def units(self, start: StreamOffset, end: StreamOffset) -> tuple[ChangeUnit, ...]:
        """The units of a batch, in the order of the versions."""
        if end.anew and not (start.anew and start.snapshot == end.snapshot):
            start = replace(end, index=0) if end.initial else end
        try:
            return self._planned(start, end)
        except ExpiredChangesError:
            if not self._settings.restarts_expired:
                raise
            return self._planned_anew(end)

    def _planned(self, start: StreamOffset, end: StreamOffset) -> tuple[ChangeUnit, ...]:
        before, snapshots = self.history.between(start, end)
        for snapshot in snapshots:
            check_schema(self._home, self._schema, self._schema_of(snapshot.schema_id), self._settings.merges_schema)
        found: list[ChangeUnit] = []
        if not start.is_whole and snapshots:
            first = snapshots.pop(0)
            whole = self._units_of(before, first, start if start.initial else None)
            stop = end.index if end.snapshot == start.snapshot and end.index is not None else len(whole)
            _check_count(start, whole, self._where)
            found.extend(whole[start.index : stop])
            before = first
        part = snapshots.pop() if snapshots and not end.is_whole else None
        if snapshots:
            found.extend(self._planner.changes(before, snapshots))
            before = snapshots[-1]
        if part is not None:
            whole = self._units_of(before, part, None)
            _check_count(end, whole, self._where)
            found.extend(whole[: end.index])
        return tuple(found)

    def _begun_anew(self, limits: ReadLimits) -> StreamOffset:
        begin = replace(self.start(), anew=True)
        if begin.is_whole:
            return begin
        return admitted(begin, self._versions(begin, begin.snapshot), limits)

    def _planned_anew(self, end: StreamOffset) -> tuple[ChangeUnit, ...]:
        """The units of a batch whose beginning has expired since its end was fixed, for a stream that begins anew then: what it
        would give if its end were the newest version. Where that has expired too, the batch after it begins anew."""
        try:
            self._check(end)
        except ExpiredChangesError:
            return ()
        begin = self.start()
        version = self.history.before(end.base)
        if begin.initial and is_expired(version):
            raise ExpiredChangesError(
                f"{self._where}: a batch up to snapshot {end.snapshot} was fixed before its start expired, and the rows of "
                f"snapshot {end.base}, with which it would begin anew, have expired, too: take a new checkpoint"
            )
        version = None if isinstance(version, ExpiredVersion) else version
        rows = () if version is None or not begin.initial else self._planner.initial(version, begin.since_ms)
        if end.is_whole:
            return rows
        return (*rows, *self._planned(self.history.whole(version), end))

    def _check(self, position: StreamOffset) -> None:
        """An error unless the changes after a position can be read."""
        self.history.check_table(position)
        found = self.history.snapshot_of(position)
        if position.initial and not position.is_whole:
            return
        if found is not None and not position.is_whole and position.base:
            if not tells_itself(found, keyed=bool(self._schema.primary_keys)):
                self.history.existing(position.base)
        elif position.snapshot == 0 and self.history.newest() is not None:
            self.history.existing(1)

    def _versions(self, position: StreamOffset, end: int) -> Iterator[Version]:
        """The versions after a position with the costs of their units, planned a few ahead of those that are asked for.

        Two whole states are compared for a version of a primary-key table: these are planned one at a time, and only their
        snapshots are read ahead.
        """
        within_initial = position.initial and not position.is_whole
        before = None if within_initial else self.history.before(position.base)
        snapshots = read_ahead(self.history.existing, range(position.base + 1, end + 1))
        pairs = pairwise(chain([before], snapshots))
        plan = partial(self._version, position)
        yield from map(plan, pairs) if self._schema.primary_keys else read_ahead(plan, pairs)

    def _version(self, position: StreamOffset, versions: tuple[Before, Before]) -> Version:
        """The later of two neighbouring versions."""
        before, snapshot = versions
        assert isinstance(snapshot, Snapshot), "only the first version may have none before it"
        check_schema(self._home, self._schema, self._schema_of(snapshot.schema_id), self._settings.merges_schema)
        initial = position if snapshot.id == position.snapshot and position.initial else None
        units = self._units_of(before, snapshot, initial)
        whole = self.history.whole(snapshot)
        if initial is not None:
            whole = replace(whole, initial=True, since_ms=initial.since_ms, anew=initial.anew)
        return Version(whole, tuple(unit.cost for unit in units))

    def _units_of(self, before: Before, snapshot: Snapshot, initial: StreamOffset | None) -> tuple[ChangeUnit, ...]:
        """The units of one version; plans are kept, for a batch is planned when its end is chosen and again when it is read."""
        key = (snapshot.delta_manifest_list, initial is not None, initial.since_ms if initial is not None else None)
        # A plan that was made when the version before was there may name files that are gone.
        found = None if is_expired(before) else self._plans.get(key)
        if found is None:
            if initial is not None:
                found = self._planner.initial(snapshot, initial.since_ms)
            else:
                found = self._planner.changes(before, [snapshot])
            with self._plans_lock:
                while len(self._plans) >= _KEPT_PLANS:
                    self._plans.pop(next(iter(self._plans)))
                self._plans[key] = found
        return found

    def _last_snapshot(self, after: int) -> Snapshot | None:
        """The last snapshot that a stream may read by now: within its bound, its watermark and its delay."""
        found = self.history.newest()
        bound = self._bound()
        if found is not None and bound is not None and bound < found.id:
            found = self.history.snapshot(bound)
        delay = self._settings.delay_ms
        if delay:
            now = self._home.clock.now_ms()
            while found is not None and found.id > after and found.time_ms + delay > now:
                found = self.history.snapshot(found.id - 1)
        if self._settings.bounded_watermark is not None and found is not None:
            for number in range(after + 1, found.id + 1):
                snapshot = self.history.snapshot(number)
                if snapshot is not None and self._is_beyond_watermark(snapshot):
                    return self.history.snapshot(number - 1)
        return found

    def _is_beyond_watermark(self, snapshot: Snapshot) -> bool:
        bound = self._settings.bounded_watermark
        return bound is not None and snapshot.watermark is not None and snapshot.watermark > bound

    def _bound(self) -> int | None:
        if not self._end_known:
            self._end, self._end_known = ending_snapshot(self.history, self._settings.start), True
        return self._end

    @property
    def _where(self) -> str:
        return self._home.where(self._home.paths.branch_root)


def newest_schema(home: TableHome) -> TableSchema:
    """The schema in which a stream that begins now reads."""
    return latest_schema(home.uncached())


def _check_count(offset: StreamOffset, units: tuple[ChangeUnit, ...], where: str) -> None:
    if offset.units is not None and offset.units != len(units):
        raise CorruptionError(
            f"{where}: snapshot {offset.snapshot} has {len(units)} parts to read, but the stream counted {offset.units}: start a "
            "stream with a new checkpoint"
        )
