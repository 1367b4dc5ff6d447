"""Plan the changes of snapshots as units.

A snapshot of an append table records its own changes: the files it added and removed, and the deletion vectors it replaced. Those
of a primary-key table are in its changelog files, where it has any. Otherwise two versions are compared by key, bucket by bucket;
buckets whose files are the same in both are left out.

    changelog-producer    a snapshot with a changelog    one without
    none                  its changelog                  compared with the one before
    input                 its changelog                  compared with the one before; both are, where rows are not visible yet
    lookup, full-         its changelog                  nothing, for the compaction that follows has the changelog; overwrites
      compaction                                         have none and are compared, and so are compactions of their files

With `lookup` and `full-compaction` a changelog tells of rows when compaction takes them from level 0, or to the top. Until then a
stream does not know them: states are compared, and first rows read, in the levels that changelogs have told of.

Of an expired snapshot its changelog may be left, or the files that it appended. These are read as above; where a version would
have to be compared with an expired one, its changes are lost, which is an error.

A snapshot that only compacts changes no row, except where compaction is what makes rows visible (deletion vectors, first-row,
postponed buckets) or what drops them (`record-level.expire-time`). Consecutive snapshots without a changelog are compared once,
the first state with the last.

Keys stay in their bucket, so that buckets are compared one by one, with two exceptions: a partition whose number of buckets
changed, or whose dynamic buckets were overwritten, is compared whole, and so is a table whose keys may move between partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import read_entries, read_manifest_list
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.versions.told_versions import (
    Before,
    ExpiredChangesError,
    ExpiredVersion,
    is_expired,
    told_ids_shown,
)
from lakelet.errors import InvalidError
from lakelet.lsm.changelog_producer import reported_level
from lakelet.model.bucket_mode import POSTPONE_BUCKET, BucketMode, bucket_mode
from lakelet.model.manifest import EntryKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Changelog, CommitKind, Snapshot
from lakelet.model.split import Split
from lakelet.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    RECORD_LEVEL_EXPIRE_TIME,
    SOURCE_SPLIT_OPEN_FILE_COST,
    SOURCE_SPLIT_TARGET_SIZE,
    TableOptions,
)
from lakelet.read.split_files import vector_positions
from lakelet.scan.plan import Planner
from lakelet.scan.tree import hides_level0
from lakelet.storage.home import TableHome
from lakelet.table.read.change_unit import WHOLE_TABLE, ChangeUnit, Cost, Lane, UnitKind, cost_of
from lakelet.table.read.read_ahead import read_ahead

_LEVELS = ("_KIND", "_LEVEL")
_FileState: TypeAlias = tuple[str, object]


class OverwritePolicy(Enum):
    """What the snapshots of overwrites, and of deletes from append tables, contribute."""

    CHANGES = "their changes"
    ADDED = "the rows that they add"
    NOTHING = "nothing"
    REFUSED = "an error"


class _Effect(Enum):
    """What a snapshot of a primary-key table without a changelog does to visible rows."""

    CHANGES = "changes them"
    NOTHING = "nothing, or a later changelog reports it"
    IGNORED = "what the stream is not to see"


class ChangePlanner:
    """Plans changes of one table, to be read in `schema`."""

    def __init__(
        self, home: TableHome, schema: TableSchema, overwrites: OverwritePolicy = OverwritePolicy.CHANGES
    ) -> None:
        self._home = home
        self._schema = schema
        self._overwrites = overwrites
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        # The order of units must not depend on options that may be changed between two plans of the same versions.
        fixed = {SOURCE_SPLIT_TARGET_SIZE.name: None, SOURCE_SPLIT_OPEN_FILE_COST.name: None}
        self._planner = Planner(home, schema, self._schema_of, TableOptions(schema.options).with_values(fixed))

    def initial(self, snapshot: Snapshot, since_ms: int | None = None) -> tuple[ChangeUnit, ...]:
        """The visible rows of a version that no later changelog reports; of files created from `since_ms` on only, where it is
        given."""
        found: list[ChangeUnit] = []
        for split in self._reported(self._whole(snapshot)):
            lane = (split.partition, split.bucket)
            for part in [split] if split.needs_merge else split.single_files():
                if since_ms is None or any((file.creation_ms or 0) >= since_ms for file in part.files):
                    found.append(ChangeUnit(UnitKind.INITIAL, snapshot.id, lane, (), (part,), cost_of([part])))
        return tuple(found)

    def changes(self, before: Before, snapshots: Sequence[Snapshot]) -> tuple[ChangeUnit, ...]:
        """The changes of consecutive snapshots; `before` is the one before them, None where there never was any. Expired ones may
        be among them as changelogs."""
        found = self._keyed(before, snapshots) if self._schema.primary_keys else self._appended(before, snapshots)
        return tuple(found)

    # ------------------------------------------------------------------ append tables

    def _appended(self, before: Before, snapshots: Sequence[Snapshot]) -> Iterator[ChangeUnit]:
        for found in read_ahead(self._own_changes, pairwise([before, *snapshots])):
            yield from found

    def _own_changes(self, versions: tuple[Before, Before]) -> Sequence[ChangeUnit]:
        """The changes of the later of two neighbouring versions."""
        before, snapshot = versions
        assert isinstance(snapshot, Snapshot), "only the first version may have none before it"
        if snapshot.commit_kind not in (CommitKind.APPEND, CommitKind.OVERWRITE) or not self._sees(snapshot):
            return ()
        if snapshot.commit_kind is CommitKind.APPEND and (isinstance(snapshot, Changelog) or is_expired(before)):
            # An append neither removes a file nor marks a row, so that the version before it is not needed.
            return tuple(self._added_files(snapshot))
        return tuple(self._delta(self._present(before, snapshot), self._whole(snapshot)))

    def _added_files(self, snapshot: Snapshot) -> Iterator[ChangeUnit]:
        for split in self._added(snapshot):
            yield from _single_files(UnitKind.ADDED, snapshot.id, split)

    def _delta(self, before: Snapshot | None, snapshot: Snapshot) -> Iterator[ChangeUnit]:
        manifests = read_manifest_list(self._home, snapshot.delta_manifest_list)
        added = self._planner.plan_entries(snapshot, manifests, EntryKind.ADD)
        removed = self._planner.plan_entries(before, manifests, EntryKind.DELETE) if before else ()
        if snapshot.commit_kind is CommitKind.OVERWRITE and self._overwrites is OverwritePolicy.ADDED:
            # Rescaling adds the rows that it removes: only what differs was added. Marks of deleted rows add none.
            rescaled = _rescaled_partitions((*removed, *added))
            removed = tuple(split for split in removed if split.partition in rescaled)
        elif before is not None:
            were, are = self._with_other_vectors(before, snapshot)
            removed, added = (*removed, *were), (*added, *are)
        # A row that is on both sides is in one partition: values of partition columns are part of it.
        changed = {split.partition for split in removed} & {split.partition for split in added}
        for kind, splits in ((UnitKind.REMOVED, removed), (UnitKind.ADDED, added)):
            for split in splits:
                if split.partition not in changed:
                    yield from _single_files(kind, snapshot.id, split)
        for partition in sorted(changed):
            was = tuple(split for split in removed if split.partition == partition)
            now = tuple(split for split in added if split.partition == partition)
            cost = cost_of([*was, *now])
            yield ChangeUnit(UnitKind.REPLACED, snapshot.id, (partition, None), was, now, cost)

    def _with_other_vectors(self, before: Snapshot, snapshot: Snapshot) -> tuple[tuple[Split, ...], tuple[Split, ...]]:
        """The files that are in both snapshots but with different deletion vectors, before and after."""
        if before.index_manifest == snapshot.index_manifest:
            return (), ()
        old, new = self._planner.deletion_vectors(before), self._planner.deletion_vectors(snapshot)
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
        if not changed:
            return (), ()
        were, are = (
            {one.files[0].name: one for split in self._planner.plan(version).splits for one in split.single_files()}
            for version in (before, snapshot)
        )
        both = [
            name for name in sorted(changed & were.keys() & are.keys()) if not self._same_rows(were[name], are[name])
        ]
        return tuple(were[name] for name in both), tuple(are[name] for name in both)

    def _same_rows(self, was: Split, now: Split) -> bool:
        """Whether two vectors of a file delete the same rows: a vector is copied when another of its index file changes."""
        before, after = was.deletion_vectors[0], now.deletion_vectors[0]
        if before is None or after is None or before.place.cardinality != after.place.cardinality:
            return False
        one, other = (vector_positions(self._home, vector, was.snapshot_id) for vector in (before, after))
        return np.array_equal(one, other)

    # ------------------------------------------------------------------ primary-key tables

    def _keyed(self, before: Before, snapshots: Sequence[Snapshot]) -> Iterator[ChangeUnit]:
        base, run, counts = before, list[Snapshot](), False
        for last, snapshot in pairwise([before, *snapshots]):
            assert isinstance(snapshot, Snapshot), "only the first version may have none before it"
            changelog = self._changelog(snapshot)
            effect = None if changelog else self._effect(snapshot, last)
            if effect in (_Effect.CHANGES, _Effect.NOTHING):
                run.append(snapshot)
                counts = counts or effect is _Effect.CHANGES
                continue
            if counts:
                yield from self._compared(base, run)
            if changelog and self._sees(snapshot):
                yield from self._logged(snapshot, changelog)
            base, run, counts = snapshot, [], False
        if counts:
            yield from self._compared(base, run)

    def _changelog(self, snapshot: Snapshot) -> str | None:
        """The changelog of a snapshot; none where it was written with rows that only compaction makes visible."""
        options = self._options_of(snapshot)
        early = options.get(CHANGELOG_PRODUCER) == "input" and _compaction_shows(options)
        return None if early else snapshot.changelog_manifest_list

    def _effect(self, snapshot: Snapshot, last: Before) -> _Effect:
        """What a snapshot without a changelog does, given the one before it."""
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            return _Effect.CHANGES if self._sees(snapshot) else _Effect.IGNORED
        options = self._options_of(snapshot)
        appends = snapshot.commit_kind is CommitKind.APPEND
        least = reported_level(options)
        if least:
            seen = not appends and self._overwrites is OverwritePolicy.CHANGES
            if isinstance(snapshot, Changelog):
                # The list of its files has expired, too. Without a changelog it changed nothing, unless it compacts an overwrite.
                rises = isinstance(last, Snapshot) and last.commit_kind is CommitKind.OVERWRITE
            else:
                rises = seen and self._rises(snapshot, least)
            return _Effect.CHANGES if seen and rises else _Effect.NOTHING
        return _Effect.CHANGES if appends or _compaction_changes(options) else _Effect.NOTHING

    def _rises(self, snapshot: Snapshot, least: int) -> bool:
        """Whether a compaction took files from below a level to it or above."""
        entries = read_entries(
            self._home, read_manifest_list(self._home, snapshot.delta_manifest_list), columns=_LEVELS
        )
        low = pc.less(entries.column("_LEVEL"), least)
        is_added = pc.equal(entries.column("_KIND"), int(EntryKind.ADD))
        return bool(pc.any(pc.and_not(low, is_added)).as_py() and pc.any(pc.and_not(is_added, low)).as_py())

    def _options_of(self, snapshot: Snapshot) -> TableOptions:
        """The options in effect are those of the schema under which a snapshot was made."""
        return TableOptions(self._schema_of(snapshot.schema_id).options)

    def _reported(self, snapshot: Snapshot) -> tuple[Split, ...]:
        """The files of a snapshot in the levels that changelogs have told of."""
        least = reported_level(self._options_of(snapshot)) if self._schema.primary_keys else 0
        return replace(self._planner, least_level=least).plan(snapshot).splits

    def _level(self, snapshot: Snapshot) -> int:
        return reported_level(self._options_of(snapshot))

    def _logged(self, snapshot: Snapshot, changelog: str) -> Iterator[ChangeUnit]:
        """The changelog files of a snapshot."""
        manifests = read_manifest_list(self._home, changelog)
        for split in self._planner.plan_entries(snapshot, manifests, EntryKind.ADD):
            for unit in _single_files(UnitKind.LOGGED, snapshot.id, split):
                yield _in_lane(unit, WHOLE_TABLE) if self._schema.crosses_partitions else unit

    def _compared(self, base: Before, run: Sequence[Snapshot]) -> Iterator[ChangeUnit]:
        """The state before a run of snapshots, compared with the one after, in the order of partitions and buckets."""
        before, after = self._present(base, run[0]), self._whole(run[-1])
        old = self._reported(before) if before is not None else ()
        new = self._reported(after)
        were, are = _by_bucket(old), _by_bucket(new)
        written = self._written(run) if before is None or self._level(before) == self._level(after) else None
        changed = [
            place
            for place in {*were, *are}
            if (written is None or place in written) and _state(were.get(place, ())) != _state(are.get(place, ()))
        ]
        overwritten = any(snapshot.commit_kind is CommitKind.OVERWRITE for snapshot in run)
        moved = self._moved_partitions((*old, *new), overwritten)
        lanes: dict[Lane, list[tuple[bytes, int]]] = {}
        for partition, bucket in sorted(changed):
            lane: Lane = (partition, None if partition in moved else bucket)
            lanes.setdefault(WHOLE_TABLE if self._schema.crosses_partitions else lane, []).append((partition, bucket))
        for lane, places in lanes.items():
            was = tuple(split for place in places for split in were.get(place, ()))
            now = tuple(split for place in places for split in are.get(place, ()))
            if written is not None:
                keys = tuple(split for place in places for split in written[place])
                yield ChangeUnit(UnitKind.COMPARED, after.id, lane, was, now, cost_of(keys), keys)
                continue
            cost = sum((_compared_cost(were.get(place, ()), are.get(place, ())) for place in places), Cost())
            yield ChangeUnit(UnitKind.COMPARED, after.id, lane, was, now, cost)

    def _written(self, run: Sequence[Snapshot]) -> dict[tuple[bytes, int], tuple[Split, ...]] | None:
        """The files that the snapshots of a run added, by bucket; None where other rows may differ, too.

        Rows that an overwrite removes are in none of them, and neither are those that compaction makes visible or drops.
        """
        if any(isinstance(snapshot, Changelog) for snapshot in run):
            return None
        changing = [snapshot for snapshot in run if self._effect(snapshot, None) is not _Effect.NOTHING]
        for snapshot in changing:
            if snapshot.commit_kind is not CommitKind.APPEND or _compaction_changes(self._options_of(snapshot)):
                return None
        return _by_bucket([split for splits in read_ahead(self._added, changing) for split in splits])

    def _added(self, snapshot: Snapshot) -> tuple[Split, ...]:
        manifests = read_manifest_list(self._home, snapshot.delta_manifest_list)
        return self._planner.plan_entries(snapshot, manifests, EntryKind.ADD)

    def _moved_partitions(self, splits: Sequence[Split], overwritten: bool) -> set[bytes]:
        """The partitions in which a key may be in another bucket than before."""
        if overwritten and bucket_mode(self._schema) is BucketMode.HASH_DYNAMIC:
            return {split.partition for split in splits}
        return _rescaled_partitions(splits)

    def _present(self, before: Before, snapshot: Snapshot) -> Snapshot | None:
        """The version before a snapshot, which its changes are found by."""
        if is_expired(before):
            assert before is not None, "what never was has not expired"
            raise self._lost(snapshot, before.id)
        assert not isinstance(before, ExpiredVersion)
        return before

    def _whole(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot whose rows are there."""
        if isinstance(snapshot, Changelog):
            raise self._lost(snapshot, snapshot.id)
        return snapshot

    def _lost(self, snapshot: Snapshot, expired: int) -> ExpiredChangesError:
        return ExpiredChangesError(
            f"{self._home.where(self._home.paths.branch_root)}: the changes of snapshot {snapshot.id} are in no changelog, and "
            f"snapshot {expired}, by whose rows they would be found, has expired: only "
            f"{told_ids_shown(self._home)}"
        )

    def _sees(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot contributes changes, as far as the policy of overwrites decides."""
        if snapshot.commit_kind is not CommitKind.OVERWRITE:
            return True
        if self._overwrites is OverwritePolicy.REFUSED:
            raise InvalidError(
                f"snapshot {snapshot.id} of {self._home.where(self._home.paths.branch_root)} overwrites or deletes rows, which a "
                "stream of inserted rows cannot show: read it with row kinds (read.changelog), or say what overwrites "
                "contribute by 'streaming-read-overwrite' or 'streaming-read-append-overwrite' = 'true' or 'false'"
            )
        return self._overwrites is not OverwritePolicy.NOTHING


def _compaction_shows(options: TableOptions) -> bool:
    """Whether compaction is what makes rows visible."""
    return hides_level0(options) or options.get(BUCKET) == POSTPONE_BUCKET


def _compaction_changes(options: TableOptions) -> bool:
    """Whether compaction makes rows visible, or drops them."""
    return _compaction_shows(options) or options.get(RECORD_LEVEL_EXPIRE_TIME) is not None


def _rescaled_partitions(splits: Sequence[Split]) -> set[bytes]:
    """The partitions with files of different numbers of buckets."""
    counts = {(split.partition, split.total_buckets) for split in splits}
    numbers = Counter(partition for partition, _ in counts)
    return {partition for partition, number in numbers.items() if number > 1}


def _single_files(kind: UnitKind, snapshot_id: int, split: Split) -> Iterator[ChangeUnit]:
    for one in split.single_files():
        was, now = ((one,), ()) if kind is UnitKind.REMOVED else ((), (one,))
        yield ChangeUnit(kind, snapshot_id, (split.partition, split.bucket), was, now, cost_of([one]))


def _in_lane(unit: ChangeUnit, lane: Lane) -> ChangeUnit:
    return ChangeUnit(unit.kind, unit.snapshot_id, lane, unit.before, unit.after, unit.cost)


def _by_bucket(splits: Sequence[Split]) -> dict[tuple[bytes, int], tuple[Split, ...]]:
    found: dict[tuple[bytes, int], list[Split]] = {}
    for split in splits:
        found.setdefault((split.partition, split.bucket), []).append(split)
    return {place: tuple(group) for place, group in found.items()}


def _state(splits: Sequence[Split]) -> frozenset[_FileState]:
    """Everything that determines the rows of a bucket: its files and the places of their deletion vectors."""
    return frozenset(
        (file.name, vector)
        for split in splits
        for file, vector in zip(split.files, split.deletion_vectors, strict=True)
    )


def _compared_cost(was: Sequence[Split], now: Sequence[Split]) -> Cost:
    """The files that are in one of two versions only; the rows are those of the later one."""
    same = _state(was) & _state(now)
    found = Cost()
    for side, counts_rows in ((was, False), (now, True)):
        for split in side:
            for file, vector in zip(split.files, split.deletion_vectors, strict=True):
                if (file.name, vector) not in same:
                    found += Cost(1, file.size, file.row_count if counts_rows else 0)
    return found
