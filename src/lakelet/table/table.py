"""A table: the object that users hold. It delegates to the stages and has no logic of its own.

orders = lake.table("shop.orders")
orders.write(arrow_table)
orders.scan(where="dt = '2026-01-01'").to_arrow()
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import PathLike
from typing import Any, Self

import pyarrow as pa

from lakelet.commit.metadata.hints import RepairedHints
from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, read_snapshot
from lakelet.commit.metadata.version_ids import schema_ids, snapshot_ids, tag_names
from lakelet.commit.retention.expiry import ExpiredSnapshots
from lakelet.commit.retention.orphans import OrphanReport, OrphanWork
from lakelet.commit.retention.partition_expiry import ExpiredPartitions
from lakelet.commit.versions.branches import branch_home, branch_names
from lakelet.compact.background import BackgroundCompaction
from lakelet.compact.buckets.rescale import RescaleElsewhere
from lakelet.compact.progress import Cancel, Progress
from lakelet.errors import InvalidError
from lakelet.model.damage import CheckReport
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.table_statistics import TableStatistics
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH
from lakelet.table.change.alterable_table import AlterableTable
from lakelet.table.change.deletion import delete_rows
from lakelet.table.follow.change_stream import Cancel as StopFollowing
from lakelet.table.follow.change_stream import ChangeStream, follow_table
from lakelet.table.read.changes import changes_schema, read_changes
from lakelet.table.read.condition import Condition
from lakelet.table.read.description import described, live_data_files
from lakelet.table.read.fallback import get_newest_row, get_newest_rows
from lakelet.table.read.named_version import VersionLike, change_bound
from lakelet.table.read.scan_arguments import NamedVersion, open_scan
from lakelet.table.read.table_lookup import TableLookup
from lakelet.table.read.table_scan import TableScan
from lakelet.table.time_arguments import Age, Length, Moment
from lakelet.table.upkeep.changelog_lag import ChangelogLag, changelog_lag
from lakelet.table.upkeep.check import Progress as CheckedFiles
from lakelet.table.upkeep.check import TableCheck
from lakelet.table.upkeep.compaction import TableCompaction
from lakelet.table.upkeep.compaction_scope import Partitions
from lakelet.table.upkeep.missing_files import MissingFiles
from lakelet.table.upkeep.retention import TableRetention
from lakelet.table.upkeep.statistics import RowStatistics
from lakelet.table.usable import check_usable
from lakelet.table.versions.rollback import rollback_to
from lakelet.table.versions.table_branches import TableBranches
from lakelet.table.versions.table_consumers import TableConsumers
from lakelet.table.versions.table_tags import TableTags
from lakelet.table.write.after_write import after_commit
from lakelet.table.write.table_commit import TableCommit
from lakelet.table.write.table_write import TableWrite
from lakelet.table.write.write_arguments import CommitArguments, RowArguments, write_rows
from lakelet.writer_factory import open_row_writer


class Table(AlterableTable):
    """A table of a lake, on one of its branches. Cheap to make: nothing is read until it is used."""

    def __init__(self, name: str, home: TableHome) -> None:
        self.name = name
        self._home = home

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {self._home.where(self._home.paths.root)!r})"

    @property
    def location(self) -> str:
        """The table's folder."""
        return self._home.where(self._home.paths.root)

    @property
    def home(self) -> TableHome:
        """Where its files are, for engines that read and write them themselves."""
        return self._home

    @property
    def schema(self) -> TableSchema:
        """The newest schema."""
        schema = latest_schema(self._home)
        check_usable(schema)
        return schema

    @property
    def options(self) -> Mapping[str, str]:
        """The options that are set."""
        return dict(latest_schema(self._home).options)

    def describe(self) -> dict[str, object]:
        """The table's columns, keys, options and newest snapshot as plain values."""
        return described(self.name, self._home)

    def schemas(self) -> list[TableSchema]:
        """All schema versions, oldest first."""
        return [read_schema(self._home, number) for number in schema_ids(self._home)]

    # ------------------------------------------------------------------ writing

    def write(
        self,
        data: Any,
        *,
        mode: str = "append",
        partition: Mapping[str, object] | None = None,
        kinds: Any = None,
        missing: str | None = None,
        evolve: bool = False,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Writes rows in one atomic commit and returns the snapshot made, None where there was nothing to write.

        `mode` is "append", "overwrite" (the whole table, or the static `partition`) or "overwrite_partitions" (the partitions
        that the rows belong to). In a primary-key table "append" is an upsert: a row takes the place of the one with its key.
        `kinds` says what each row does ("+I", "+U", "-U", "-D"), as a list or as the name of a column of the data; rows
        without it are inserted. `missing` says what an upsert does about columns that its rows lack: "error", "default" (the
        column's default, else NULL) or "keep" (stored values stay); unless given, the option `write.missing-columns` decides.
        With `evolve` the table first adds columns that it lacks and widens types where values need it. With `commit_user` and
        a rising `commit_identifier` the write is idempotent: it is applied once, however often it is repeated.
        """
        commit = CommitArguments(commit_user, commit_identifier, watermark, properties)
        rows = RowArguments(kinds, missing, evolve)
        return write_rows(self._home, data, mode=mode, partition=partition, rows=rows, commit=commit)

    def new_write(self, *, missing: str | None = None) -> TableWrite:
        """The first phase of a two-phase write: files, and messages about them. `missing` is that of `write`; messages that keep
        stored values can be committed as long as nobody writes to their buckets."""
        return TableWrite.open(self._home, missing)

    def new_commit(self, user: str | None = None, identifier: int | None = None) -> TableCommit:
        """The second phase: a commit of messages from any number of writers."""
        schema = latest_schema(self._home)
        check_usable(schema)
        # It may be kept and committed long after, under another schema.
        return replace(TableCommit.of(self._home, user, identifier, schema), after=after_commit, schema=None)

    def delete(
        self,
        keys: Any = None,
        *,
        where: Condition | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Deletes the rows with these primary keys, or those that match; None where there is no such row.

        `keys` is anything that `write` takes; only its primary-key columns are used.
        """
        return delete_rows(self._home, keys, where, partial(self.new_commit, commit_user, commit_identifier))

    def writer(self, *, wal_folder: str | PathLike[str] | None = None, options: Mapping[str, str] | None = None) -> Any:
        """Open a `RowWriter`: rows put one at a time are durable and readable through it when the call returns, and are committed
        in the background.

        Rows wait in a write-ahead log below `wal_folder`, by default `lakelet/wal` in the user's state folder. Rows that a
        crashed writer left there are committed first. `options` override those of the table for this writer.
        """
        return open_row_writer(self._home, wal_folder, options)

    def async_writer(
        self, *, wal_folder: str | PathLike[str] | None = None, options: Mapping[str, str] | None = None
    ) -> Any:
        """The same for asyncio, an `AsyncRowWriter`: opened by `async with`, its calls are awaited, and tasks share syncs."""
        return open_row_writer(self._home, wal_folder, options, for_asyncio=True)

    # ------------------------------------------------------------------ reading

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        limit: int | None = None,
        *,
        version: int | str | None = None,
        timestamp: datetime | str | int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        ordered: bool = False,
        cache: bool = True,
    ) -> TableScan:
        """A scan of the newest version, or of the one named by snapshot id, time, tag or branch.

        Rows are in the order of the files; with `ordered` those of each bucket of a primary-key table in key order. Without
        `cache` all metadata is read from the store.
        """
        home = branch_home(self._home, branch) if branch is not None else self._home
        home = home.for_queries() if cache else home.uncached()
        return open_scan(home, columns, where, limit, NamedVersion(version, timestamp, tag), ordered=ordered)

    def get(self, key: Mapping[str, object], columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The newest row with this primary key as a dict, None where there is none."""
        if not isinstance(key, Mapping):
            raise InvalidError(f"key: expected a mapping of column to value, found {type(key).__name__}")
        return get_newest_row(self._home.for_queries(), key, columns)

    def get_many(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """The newest rows with these primary keys, in the order of the keys; keys without a row give none.

        `keys` is anything that `write` takes; only its primary-key columns are used.
        """
        return get_newest_rows(self._home.for_queries(), keys, columns)

    def lookup(self, version: int | str | None = None, *, folder: str | PathLike[str] | None = None) -> TableLookup:
        """Open a handle for serving reads by key, pinned to the newest snapshot or to the named version.

        Rows are read from local lookup files, which are made on demand below `folder`, by default `lakelet/lookup` in the user's
        cache folder.
        """
        return TableLookup(self._home.for_queries(), version, folder)

    def changes(self, start: VersionLike, end: VersionLike | None = None) -> pa.Table:
        """The changes of snapshots (start, end] as `_row_kind` and the columns; `start` 0 is before the first snapshot.

        Each is the id of a snapshot, the name of a tag, or a time, which means the newest snapshot made by then: a datetime
        or ISO 8601 text, in UTC unless it has a zone.
        """
        return pa.Table.from_batches(self.change_batches(start, end), changes_schema(self.schema))

    def change_batches(self, start: VersionLike, end: VersionLike | None = None) -> Iterator[pa.RecordBatch]:
        """Like `changes`, batch by batch."""
        latest = self.latest_snapshot() if end is None else None
        last = change_bound(self._home, end) if end is not None else latest.id if latest else 0
        return read_changes(self._home, self.schema, change_bound(self._home, start), last)

    def follow(
        self,
        start: VersionLike | None = None,
        end: VersionLike | None = None,
        *,
        offset: Mapping[str, Any] | None = None,
        changelog: bool = True,
        options: Mapping[str, str] | None = None,
        cancel: StopFollowing | None = None,
    ) -> ChangeStream:
        """A stream of the changes after `start`, batch by batch, as they are committed; it waits for more unless it has an `end`.

        Both are named as for `changes`. Without `start` the stream begins where the option `scan.mode` says: with the rows of the
        newest version, unless it is given. `offset` goes on where a batch of an earlier stream ended (`batch.end`). Without
        `changelog` the inserted and updated rows come without their kinds. `options` are those of streams
        (docs/streaming-reads.md); `cancel`, asked before every batch, stops the stream.
        """
        return follow_table(self._home, start, end, offset=offset, changelog=changelog, options=options, cancel=cancel)

    # ------------------------------------------------------------------ metadata

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot, None before the first commit."""
        return latest_snapshot(self._home)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        return [read_snapshot(self._home, number) for number in snapshot_ids(self._home)]

    def tag_names(self) -> list[str]:
        """The names of the table's tags."""
        return tag_names(self._home)

    def branch_names(self) -> list[str]:
        """The names of the branches beside the main one."""
        return branch_names(self._home)

    def files(self, *, version: int | None = None) -> list[tuple[str, DataFile]]:
        """The live data files with their paths, also those whose rows are visible only after compaction."""
        return live_data_files(self.scan(version=version))

    def changelog_lag(self) -> ChangelogLag | None:
        """The rows that no changelog has told of yet; None where compaction makes none (`changelog-producer`)."""
        return changelog_lag(self.scan())

    # ------------------------------------------------------------------ compaction

    def compact(
        self,
        full: bool = False,
        *,
        partition: Partitions | None = None,
        where: str | None = None,
        idle_for: Length | None = None,
        options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
        threads: int | None = None,
        order_strategy: str | None = None,
        order_by: Sequence[str] | None = None,
    ) -> Snapshot | None:
        """Compacts what the table's options say is due, with `full` all there is; the snapshot made, None where there was
        nothing to do.

        With `order_strategy` ("order", "zorder" or "hilbert") and `order_by` all rows of an append table without buckets are
        rewritten in an order in which conditions on these columns prune files.

        `partition` narrows it to partitions with these values, or with those of one of several mappings; `where` to those that
        match a condition on partition columns; `idle_for` to those without a new file for that time. `options` override those
        of the table for this call. `progress` is called with a `CompactionProgress` as files are rewritten; `cancel` (a
        `threading.Event` or a function) stops the work, and leaves the table as it was.
        """
        return TableCompaction(self._home).compact(
            full,
            partition=partition,
            where=where,
            idle_for=idle_for,
            options=options,
            progress=progress,
            cancel=cancel,
            threads=threads,
            order_strategy=order_strategy,
            order_by=order_by,
        )

    def compact_manifests(self) -> Snapshot | None:
        """Merge the table's manifests into few, for faster plans and commits; None where there is nothing to gain.

        Commits merge manifests by themselves as they accumulate, and so does a full compaction.
        """
        return TableCompaction(self._home).compact_manifests()

    def compact_in_background(
        self, full: bool = False, *, every: float | None = None, progress: Progress | None = None
    ) -> BackgroundCompaction:
        """Compact in a thread, once, or repeatedly `every` number of seconds, until it is cancelled."""
        return TableCompaction(self._home).compact_in_background(full, every=every, progress=progress)

    def rescale(
        self,
        buckets: int,
        partition: Mapping[str, object] | None = None,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
        threads: int | None = None,
        elsewhere: RescaleElsewhere | None = None,
    ) -> Snapshot | None:
        """Rewrite the table's rows into another number of buckets; the snapshot made, None where all have it already.

        The option `bucket` becomes `buckets`. With `partition` only partitions with these values are rewritten; the others
        keep their number, can be read, and take rows again once they are rescaled, too. In a table with postponed buckets
        the option stays, and every partition has a number of its own. `elsewhere` is for engines that rewrite on other machines.
        """
        return TableCompaction(self._home).rescale(
            buckets, partition, progress=progress, cancel=cancel, threads=threads, elsewhere=elsewhere
        )

    # ------------------------------------------------------------------ retention

    def expire_snapshots(
        self,
        retain_last: int | None = None,
        *,
        retain_max: int | None = None,
        older_than: Age | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> ExpiredSnapshots:
        """Expire old snapshots, and delete the files that only they need.

        `retain_last` snapshots stay whatever their age, those beyond `retain_max` expire whatever theirs; in between expire
        those that were replaced before `older_than` (an age such as "1 d", or a point in time). Without any of these the
        table's options decide; with a count and no age, age plays no part. At most `limit` expire.

        Tags keep their files, consumers hold the snapshots they still need, and snapshots younger than `commit.timeout` stay,
        where that is set. `dry_run` reports what would expire. `options` override those of the table for this call.
        """
        return TableRetention(self._home).expire_snapshots(
            retain_last, retain_max=retain_max, older_than=older_than, limit=limit, dry_run=dry_run, options=options
        )

    def expire_partitions(
        self,
        older_than: Age | None = None,
        *,
        max_partitions: int | None = None,
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> ExpiredPartitions:
        """Drop the partitions whose time is before `older_than` (an age, or a point in time), in one commit.

        What a partition's time is follows `partition.expiration-strategy`. Without `older_than` the age is the table's
        `partition.expiration-time`, without `max_partitions` the most that are dropped at once its
        `partition.expiration-max-num`. `options` override those of the table for this call.
        """
        return TableRetention(self._home).expire_partitions(
            older_than, max_partitions=max_partitions, dry_run=dry_run, options=options
        )

    def remove_orphan_files(
        self, older_than: Age = "1 d", *, dry_run: bool = False, work: OrphanWork | None = None
    ) -> OrphanReport:
        """Delete files that nothing on any branch refers to and that were last changed before `older_than`.

        The age protects what writers are about to commit. Less than a day is safe only where nobody is writing. `work` is for
        engines that list and delete on many machines.
        """
        return TableRetention(self._home).remove_orphan_files(older_than, dry_run=dry_run, work=work)

    def remove_unexisting_files(self, *, dry_run: bool = False) -> MissingFiles:
        """Remove data files that are missing in the store from the table, so that its other rows can be read again.

        Their rows are lost. This is for when somebody has deleted files by hand; nothing that Lakelet does makes it necessary.
        """
        return TableRetention(self._home).remove_unexisting_files(dry_run=dry_run)

    def repair(self) -> RepairedHints:
        """Correct the hints to the oldest and newest snapshot. Readers do without them; correct ones save listings."""
        return TableRetention(self._home).repair()

    # ------------------------------------------------------------------ statistics and checks

    def analyze(self, columns: Sequence[str] | None = None) -> Snapshot | None:
        """Compute statistics of these columns, or of all, and commit them; None for a table without snapshots.

        An empty list computes the number and size of rows only. Rows are read once, batch by batch. Distinct values are counted
        exactly up to 16,384 of them, beyond that with a standard error of 0.8 %.
        """
        return RowStatistics(self._home).analyze(columns)

    def statistics(self) -> TableStatistics | None:
        """The newest statistics, which name the snapshot they describe; None where there are none."""
        return RowStatistics(self._home).statistics()

    def check(
        self,
        *,
        version: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        quick: bool = False,
        threads: int | None = None,
        progress: CheckedFiles | None = None,
    ) -> CheckReport:
        """Check all versions of all branches, or the one of a snapshot id or tag, or those of a branch.

        Data files are decoded whole and compared with their metadata; a `quick` check verifies only that they exist with
        their sizes. The report lists what is damaged and which rows it held. Nothing is changed.
        """
        return TableCheck(self._home).check(
            version=version, tag=tag, branch=branch, quick=quick, threads=threads, progress=progress
        )

    # ------------------------------------------------------------------ versions

    @property
    def tags(self) -> TableTags:
        """The table's tags."""
        return TableTags(self._home)

    @property
    def branches(self) -> TableBranches:
        """The table's branches beside the main one."""
        return TableBranches(self._home)

    @property
    def consumers(self) -> TableConsumers:
        """The table's consumers: readers that hold snapshots back from expiry."""
        return TableConsumers(self._home)

    @property
    def branch(self) -> str:
        """The branch that this table reads and writes."""
        return self._home.paths.branch

    def on_branch(self, name: str) -> Self:
        """The same table on a branch, to read and to write; "main" is the main branch."""
        table = copy.copy(self)
        table._home = branch_home(self._home, name)
        base = self.name.split("$branch_", 1)[0]
        table.name = base if name == MAIN_BRANCH else f"{base}$branch_{name}"
        return table

    def rollback(self, to: int | str | None = None, *, timestamp: Moment | None = None) -> Snapshot:
        """Make an older version the newest one: a snapshot by its id, a tag by its name, or the last up to a time.

        Later snapshots are deleted, tags of later versions included; their files stay until orphans are removed. The schema
        stays as it is.
        """
        return rollback_to(self._home, to, timestamp)
