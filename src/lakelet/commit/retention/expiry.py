"""Snapshot expiry: delete old snapshots and the files that only they name.

    finish what an earlier run left ─ choose (`expiry_policy`) ─ note users and snapshots ─ delete snapshot files, oldest first
      ─ EARLIEST ─ look who holds files ─ delete data files, manifests, lists ─ delete the note

Java removes the files first and the snapshot last. Here it is the other way round, which mixes with Java's way, since both
leave a table that begins at a later snapshot:

- A crash leaves files that nobody names and a note of them, never a snapshot that can be asked for and not be read.
- Tags and branches are read after the snapshots are deleted. A tag made before that read keeps its files; one made later finds
  that its snapshot is deleted.
- Two concurrent expiries remove the same things twice.

What a run removes comes from the changes of the snapshots after the expired ones: a file that one of them removes and does not
add again under its name (a level upgrade does) was last needed by an expired snapshot. The live snapshots of the branch
need not be searched for it; tags, other branches and long-lived changelogs are. Of the branch's own tags, which lie
on one line with its snapshots, the last one before the expired ones and the ones among them can have such a file.

Where changelogs are kept longer than snapshots (`changelog.*`), each snapshot leaves `changelog/changelog-N` behind, as in Java.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.commit_users import named_users, record_users
from lakelet.commit.metadata.metadata_reader import MetadataReader, no_entries
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.commit.metadata.version_ids import listed_ids, snapshot_ids
from lakelet.commit.retention.empty_folders import remove_empty_folders
from lakelet.commit.retention.expiry_policy import Retention, first_kept
from lakelet.commit.retention.expiry_record import expiring_notes, read_expiring, write_expiring
from lakelet.commit.retention.file_references import (
    Holders,
    Line,
    branch_homes,
    branch_line,
    distinct_lines,
    long_lived_changelogs,
    read_snapshots,
    tagged_snapshots,
    telling_changelogs,
)
from lakelet.commit.retention.unused_files import (
    Held,
    additions,
    distinct_files,
    named_by,
    remove_but_held,
    remove_unused,
)
from lakelet.commit.versions.consumers import min_next_snapshot
from lakelet.events import SnapshotsExpired, publish, uncertain
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.manifest import EntryKind
from lakelet.model.snapshot import Snapshot
from lakelet.options import CONSUMER_CHANGELOG_ONLY, SNAPSHOT_CLEAN_EMPTY_DIRECTORIES, TableOptions
from lakelet.storage.home import TableHome

Rows = npt.NDArray[np.int64]
# Snapshots that are expired at a time, which bounds the size of a note and of the entries in memory.
_GROUP = 500
_FIRST_READ, _LARGEST_READ = 2, 256


@dataclass(frozen=True, slots=True)
class ExpiredSnapshots:
    """The result of an expiry, or with `dry_run` its forecast: the expired ids, how many files were removed (unknown for a dry
    run), and what keeps the first snapshot that stays."""

    ids: tuple[int, ...]
    files: int
    kept_by: str
    dry_run: bool = False


def expire_snapshots(
    home: TableHome,
    options: TableOptions,
    retention: Retention,
    *,
    dry_run: bool = False,
    stopped_before_ms: int | None = None,
) -> ExpiredSnapshots:
    """Expire the snapshots of this branch that need not be retained.

    Earlier runs that did not finish are finished first. One that began after `stopped_before_ms` is taken as still running.
    """
    removed = 0 if dry_run else finish_interrupted(home, before_ms=stopped_before_ms)
    ids = snapshot_ids(home)
    if not ids:
        return ExpiredSnapshots((), removed, "there is no snapshot", dry_run)
    times = _Times(home, ids)
    consumer = None if options.get(CONSUMER_CHANGELOG_ONLY) else min_next_snapshot(home)
    end, reason = first_kept(ids, retention, times, consumer=consumer)
    strays = _old_strays(home, ids, retention)
    gone = (*(stray.id for stray in strays), *range(ids[0], end))
    if dry_run:
        return ExpiredSnapshots(gone, 0, reason, dry_run)
    changelogs = retention.of_changelogs(options, home.clock.now_ms())
    clean = options.get(SNAPSHOT_CLEAN_EMPTY_DIRECTORIES)
    if strays:
        removed += _delete_snapshots(home, strays, None, decoupled=False, clean=clean)
    for start in range(ids[0], end, _GROUP):
        group = [snapshot for snapshot in times.read(range(start, min(start + _GROUP, end))) if snapshot is not None]
        after = times.read(range(min(start + _GROUP, end), min(start + _GROUP, end) + 1))[0]
        removed += _delete_snapshots(home, group, after, decoupled=changelogs.outlasts(retention), clean=clean)
    if gone:
        publish(SnapshotsExpired(home.table_name, home.paths.branch, gone))
    removed += expire_changelogs(home, changelogs).files
    return ExpiredSnapshots(gone, removed, reason)


def finish_interrupted(home: TableHome, *, before_ms: int | None = None) -> int:
    """Remove the files of snapshots that an interrupted expiry has deleted already; returns the number of files."""
    removed = 0
    for note in expiring_notes(home, before_ms=before_ms):
        noted = read_expiring(home, note)
        there = read_snapshots(home, [snapshot.id for snapshot in noted])
        gone = [
            snapshot
            for snapshot, found in zip(noted, there, strict=True)
            if found is None or found.delta_manifest_list != snapshot.delta_manifest_list
        ]
        removed += remove_unused(home, gone).count
        home.store.delete([note])
        ids = snapshot_ids(home)
        if ids:
            home.store.put(home.paths.earliest_hint, str(ids[0]).encode())
    return removed


class _Times:
    """The snapshots of given ids, read ahead in ever larger groups."""

    def __init__(self, home: TableHome, ids: range) -> None:
        self._home = home
        self._ids = ids
        self._ahead = _FIRST_READ
        self._known: dict[int, Snapshot | None] = {}

    def __call__(self, number: int) -> int | None:
        if number not in self._known:
            self.read(range(number, min(number + self._ahead, self._ids[-1] + 1)))
            self._ahead = min(self._ahead * 4, _LARGEST_READ)
        found = self._known[number]
        return None if found is None else found.time_ms

    def read(self, numbers: range) -> list[Snapshot | None]:
        """The snapshots of these ids, None for those that do not exist."""
        missing = [number for number in numbers if number not in self._known]
        self._known.update(zip(missing, read_snapshots(self._home, missing), strict=True))
        return [self._known[number] for number in numbers]


def _old_strays(home: TableHome, ids: range, retention: Retention) -> list[Snapshot]:
    """Snapshot files below the live ones, with a gap between: left by a late writer or by an interrupted expiry."""
    numbers = sorted(number for number in listed_ids(home) if number < ids[0])
    found = [snapshot for snapshot in read_snapshots(home, numbers) if snapshot is not None]
    return [snapshot for snapshot in found if snapshot.time_ms <= retention.made_since_ms]


def _delete_snapshots(
    home: TableHome, gone: Sequence[Snapshot], after: Snapshot | None, *, decoupled: bool, clean: bool
) -> int:
    """Delete snapshots, oldest first, and what only they name; returns the number of files. `after` is the live one that
    follows.
    """
    if not gone:
        return 0
    users = named_users(gone)
    if after is not None and users.get(after.commit_user, after.commit_identifier) <= after.commit_identifier:
        # The next snapshot shows it too.
        users.pop(after.commit_user, None)
    record_users(home, users, gone)
    if decoupled:
        _keep_changelogs(home, gone)
    note = write_expiring(home, gone)
    with uncertain(home.table_name, home.paths.branch, "expiry"):
        home.store.delete([home.paths.snapshot(snapshot.id) for snapshot in gone])
    if after is None:
        removed = remove_unused(home, gone)
    else:
        home.store.put(home.paths.earliest_hint, str(after.id).encode())
        reader = MetadataReader(home, partial=True)
        named = named_by(reader, gone)
        files = _removed_files(reader, gone, after)
        removed = remove_but_held(home, named, files, lambda: _who_holds(home, gone[0].id, after))
    home.store.delete([note])
    if clean:
        remove_empty_folders(home, removed.folders)
    return removed.count


def _removed_files(reader: MetadataReader, gone: Sequence[Snapshot], after: Snapshot) -> pa.Table:
    """The files that were removed from one snapshot to the next up to `after`, and the changelogs of the deleted snapshots."""
    steps = [snapshot.delta_manifest_list for snapshot in (*gone[1:], after)]
    reader.load_lists(steps)
    logs = reader.manifests(*(snapshot.changelog_manifest_list for snapshot in gone))
    reader.load_entries([*reader.manifests(*steps), *logs])
    tables = [reader.entries(reader.manifests(step)) for step in steps]
    changes = pa.concat_tables([no_entries(), *tables])
    numbers = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    lost = changes.take(pa.array(lost_rows(changes.column("_KIND"), changes.column("_FILE_NAME"), numbers)))
    return distinct_files(pa.concat_tables([lost, additions(reader.entries(logs))]))


def lost_rows(kinds: pa.ChunkedArray, names: pa.ChunkedArray, steps: Rows) -> Rows:
    """The rows of files that some step removes and neither it nor a later one adds, given entries with their steps."""
    signs = np.where(kinds.to_numpy() == EntryKind.DELETE, -1, 1)
    entries = pa.table({"name": names, "step": steps, "sign": signs, "row": np.arange(len(steps))})
    # A level upgrade is a removal and an addition in one step, in either order, and changes nothing.
    nets = entries.group_by(["name", "step"], use_threads=False).aggregate([("sign", "sum"), ("row", "max")])
    nets = nets.filter(pc.not_equal(nets.column("sign_sum"), 0))
    last = nets.group_by("name", use_threads=False).aggregate([("step", "max")])
    both = nets.join(last, ["name", "step"], ["name", "step_max"], join_type="inner", use_threads=False)
    rows: Rows = np.sort(both.filter(pc.less(both.column("sign_sum"), 0)).column("row_max").to_numpy())
    return rows


def _who_holds(home: TableHome, first_gone: int, after: Snapshot) -> Held:
    """The holders that may reference files of snapshots from `first_gone` to before `after`."""
    lines: list[Line] = []
    changelogs: list[Snapshot] = []
    for branch in branch_homes(home):
        tags = tagged_snapshots(branch)
        changelogs.extend(telling_changelogs(branch))
        if branch.paths.branch == home.paths.branch:
            earlier = [tag for tag in tags if tag.id <= first_gone]
            newest = earlier[-1].id if earlier else first_gone
            tags = [tag for tag in tags if newest <= tag.id < after.id]
        else:
            line = branch_line(branch)
            lines.extend([line] if line.snapshots else [])
        lines.extend(Line((tag,)) for tag in tags)
    live: Snapshot | None = after
    if try_snapshot(home, after.id) is None:
        # A concurrent expiry has deleted more meanwhile.
        live = next(iter(branch_line(home).snapshots), None)
    return Held(Holders(distinct_lines(lines), tuple(changelogs)), () if live is None else (live,))


def _keep_changelogs(home: TableHome, gone: Sequence[Snapshot]) -> None:
    """Retain the changes of snapshots as long-lived changelogs."""
    for snapshot in gone:
        home.store.put(home.paths.changelog(snapshot.id), encode_snapshot(snapshot))
    home.store.put(f"{home.paths.changelog_folder}/LATEST", str(gone[-1].id).encode())


def expire_changelogs(home: TableHome, retention: Retention) -> ExpiredSnapshots:
    """Expire long-lived changelogs past their own retention; the last one stays, as in Java."""
    changelogs = long_lived_changelogs(home)
    ids = snapshot_ids(home)
    if len(changelogs) < 2 or not ids:
        return ExpiredSnapshots((), 0, "there are no older changelogs")
    times = {changelog.id: changelog.time_ms for changelog in changelogs}
    end, reason = first_kept(
        range(changelogs[0].id, ids[-1] + 1), retention, times.get, consumer=min_next_snapshot(home)
    )
    gone = [changelog for changelog in changelogs[:-1] if changelog.id < end]
    if not gone:
        return ExpiredSnapshots((), 0, reason)
    note = write_expiring(home, gone, kind="changelog")
    home.store.delete([home.paths.changelog(changelog.id) for changelog in gone])
    home.store.put(f"{home.paths.changelog_folder}/EARLIEST", str(changelogs[len(gone)].id).encode())
    removed = remove_unused(home, gone).count
    home.store.delete([note])
    return ExpiredSnapshots(tuple(changelog.id for changelog in gone), removed, reason)
