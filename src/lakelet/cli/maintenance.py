"""Implementations of `compact`, `expire`, `orphans`, `check` and `recover`: each calls `lakelet.operations` and prints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.cli.output.output import Output, console
from lakelet.cli.output.progress import spinner, watched
from lakelet.cluster.held_copy import HeldCopy, read_copy
from lakelet.cluster.left_keys import LeftKeys
from lakelet.cluster.node_identity import stopped_node
from lakelet.cluster.node_markers import NodeMarkers
from lakelet.cluster.replica_records import ReplicaRecord, ReplicaRecords
from lakelet.compact.progress import CompactionProgress, Progress
from lakelet.errors import ConflictError, CorruptionError
from lakelet.operations import compaction
from lakelet.operations.check import Check, check
from lakelet.operations.expiry import ExpireSnapshots, expire_snapshots
from lakelet.operations.recovery import RecoverRows, log_folder, recover_rows
from lakelet.operations.unreferenced_files import RemoveOrphanFiles, remove_orphan_files
from lakelet.realtime.wal.leftover_logs import leftover_logs, logs_root
from lakelet.realtime.wal.wal_folder import lock_folder
from lakelet.table import Table

_SHOWN = 20


def compact_table(table: Table, output: Output, *, full: bool, partition: dict[str, str] | None) -> None:
    """Compacts a table, with a progress bar on a terminal."""
    request = compaction.Compact(full, None if partition is None else (partition,))
    before = compaction.file_totals(table)
    with compaction_bar(output) as progress:
        made = compaction.compact(table, request, progress)
    after = compaction.file_totals(table)
    output.values(
        f"{table.name}: nothing to do" if made.snapshot_id is None else f"compacted {table.name}",
        {
            "snapshot": made.snapshot_id,
            "files before": before.count,
            "files after": after.count,
            "bytes before": before.bytes,
            "bytes after": after.bytes,
        },
    )


def expire_table(
    table: Table, output: Output, *, retain_last: int | None, older_than: str | None, dry_run: bool
) -> None:
    """Expires snapshots."""
    with spinner(output, "looking for old snapshots"):
        expired = expire_snapshots(
            table, ExpireSnapshots(retain_min=retain_last, older_than=older_than, dry_run=dry_run)
        )
    ids = expired.ids
    output.values(
        f"{'would expire' if dry_run else 'expired'} snapshots of {table.name}",
        {
            "snapshots": len(ids),
            "from": ids[0] if ids else None,
            "to": ids[-1] if ids else None,
            "files": expired.files,
            "the next one is kept by": expired.kept_by,
        },
    )


def remove_orphans(table: Table, output: Output, *, older_than: str, dry_run: bool) -> None:
    """Removes orphan files."""
    with spinner(output, "looking for files that nothing points at"):
        (removed,) = remove_orphan_files([table], RemoveOrphanFiles(older_than, dry_run))
    found = removed.report
    output.values(
        f"{'found' if dry_run else 'removed'} orphans of {table.name}", {"files": found.count, "bytes": found.bytes}
    )
    if found.paths:
        output.rows("the first ones", ("path",), [(path,) for path in found.paths[:_SHOWN]])


def recover_table_rows(table: Table, output: Output, *, wal_folder: str | None, dry_run: bool, set_aside: bool) -> None:
    """Commits the rows of logs that a writer left behind, or of the copy of another node's logs."""
    copied = None if dry_run or wal_folder is None else read_copy(wal_folder)
    claimed = None if copied is None else _claimed(table, copied)
    found = recover_rows(table, RecoverRows(wal_folder, dry_run, set_aside))
    waiting = [log for log in found if log.outcome not in ("empty", "committed before")]
    output.values(
        f"{'would recover' if dry_run else 'recovered'} {table.name}",
        {
            "folder": log_folder(table, wal_folder),
            "logs": len(waiting),
            "records": sum(log.records for log in waiting),
            "torn bytes": sum(log.torn_bytes for log in found),
            "damaged bytes": sum(log.damaged_bytes for log in found),
        },
    )
    if found:
        columns = ("path", "records", "torn_bytes", "damaged_bytes", "outcome", "snapshot_id")
        output.rows("logs", columns, [tuple(getattr(log, name) for name in columns) for log in found])
    if copied is not None and claimed is not None:
        _end_copy(table, output, copied, claimed)
    elif not dry_run:
        _unmark_node(table, output, wal_folder)


def _claimed(table: Table, copied: HeldCopy) -> ReplicaRecord:
    """The copy of a node's logs as the one whose rows are committed; ConflictError for one that does not count."""
    # A node that holds it commits it itself; while it does, nobody else reads what may be appended.
    os.close(lock_folder(copied.path))
    claimed = ReplicaRecords(table.home.store).adopt(copied.origin, copied.folder, copied.token)
    if claimed is None:
        raise ConflictError(
            f"{copied.root}: expected the copy of the logs of node {copied.origin} that counts, found an older one: the newer "
            "one is at the node that the newest file below service/replicas names, or its rows are committed"
        )
    return claimed


def _end_copy(table: Table, output: Output, copied: HeldCopy, claimed: ReplicaRecord) -> None:
    """Let a cluster know that the rows of a copy are committed, and of its node, where it was the last."""
    store, origin = table.home.store, copied.origin
    LeftKeys(store, table.home.clock).leave(origin, copied.root)
    records, markers = ReplicaRecords(store), NodeMarkers(store)
    records.end_adoption(claimed)
    if markers.read(origin).replicas and records.is_over(origin):
        markers.remove(origin)
        output.values(f"all rows of node {origin} are committed", {"node": origin})


def _unmark_node(table: Table, output: Output, wal_folder: str | None) -> None:
    """Let a cluster know that all rows of the node that had these logs are committed."""
    left = leftover_logs(wal_folder)
    with stopped_node(logs_root(wal_folder)) as node:
        if node is None:
            return
        markers = NodeMarkers(table.home.store)
        if left:
            output.values(f"rows of node {node} are left", {"logs": len(left), "first": left[0]})
        elif node in markers.ids():
            LeftKeys(table.home.store, table.home.clock).leave(node, wal_folder)
            markers.remove(node)
            output.values(f"all rows of node {node} are committed", {})


def check_table(
    table: Table, output: Output, *, version: int | None, tag: str | None, branch: str | None, quick: bool
) -> None:
    """Checks a table; raises CorruptionError after printing the report if a file is damaged."""
    with spinner(output, "checking files"):
        (checked,) = check([table], Check(version, tag, branch, quick))
    report = checked.report
    output.values(
        f"checked {table.name}",
        {
            "versions": report.versions,
            "metadata files": report.metadata_files,
            "data files": report.data_files,
            "rows": report.rows,
            "bytes": report.bytes,
            "damaged": len(report.damages),
        },
    )
    if report.damages:
        columns = ("kind", "path", "problem", "partition", "bucket", "keys", "rows", "snapshot")
        output.rows("damaged", columns, [tuple(getattr(one, name) for name in columns) for one in report.damages])
        raise CorruptionError(f"{len(report.damages)} files of {table.name} are damaged")


@contextmanager
def compaction_bar(output: Output) -> Iterator[Progress | None]:
    """A progress bar on a terminal; nothing for programs."""
    if not watched(output):
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - only who watches
    from rich.progress import Progress as Bars  # noqa: PLC0415 - needs it.

    columns = (TextColumn("compacting"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("compacting", total=None)

        def tell(state: CompactionProgress) -> None:
            bar.update(task, total=state.bytes, completed=state.bytes_done)

        yield tell
