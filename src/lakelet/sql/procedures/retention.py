"""Expiry and file cleanup: expire_snapshots, _changelogs, _partitions, remove_orphan_files, remove_unexisting_files, check."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.partition_path import DEFAULT_PARTITION
from lakelet.operations import expiry, unreferenced_files
from lakelet.operations.check import Check
from lakelet.operations.check import check as check_tables
from lakelet.operations.table_choice import database_tables
from lakelet.sql.procedures.procedure import (
    TABLE_ARGUMENT,
    Argument,
    Call,
    Column,
    Done,
    Procedure,
    open_table,
    split_parts,
)
from lakelet.sql.procedures.values import AGE, FLAG, NUMBER, OPTIONS, TABLE, TEXT
from lakelet.table import Table

_OPTIONS = Argument("options", OPTIONS, "Options that take the place of the table's for this once.")
_DRY_RUN = Argument("dry_run", FLAG, "Only reports what would be removed.")
_MODES = ("local", "distributed")


def expire_snapshots(call: Call) -> Done:
    """Expires old snapshots and deletes the files that only they need."""
    table = call.table()
    request = expiry.ExpireSnapshots(
        call.number("retain_min"),
        call.number("retain_max"),
        call.age("older_than"),
        call.number("max_deletes"),
        call.flag("dry_run"),
        call.options(),
    )
    expired = expiry.expire_snapshots(table, request)
    verb = "would expire" if expired.dry_run else "expired"
    return Done(
        f"{verb} {len(expired.ids)} snapshots of {table.name}", [(len(expired.ids), expired.files, expired.kept_by)]
    )


def expire_changelogs(call: Call) -> Done:
    """Expires changelogs that were kept longer than their snapshots."""
    table = call.table()
    request = expiry.ExpireChangelogs(
        call.number("retain_min"),
        call.number("retain_max"),
        call.age("older_than"),
        call.number("max_deletes"),
        call.options(),
    )
    expired = expiry.expire_changelogs(table, request)
    return Done(f"expired {len(expired.ids)} changelogs of {table.name}", [(len(expired.ids), expired.files)])


def expire_partitions(call: Call) -> Done:
    """Drops the expired partitions."""
    table = call.table()
    request = expiry.ExpirePartitions(
        call.age("expiration_time"),
        call.number("max_expires"),
        call.text("timestamp_formatter"),
        call.text("timestamp_pattern"),
        call.text("expire_strategy"),
        call.flag("dry_run"),
        call.options(),
    )
    expired = expiry.expire_partitions(table, request)
    number = None if expired.snapshot is None else expired.snapshot.id
    rows = [(_shown(partition), number) for partition in expired.partitions]
    verb = "would expire" if expired.dry_run else "expired"
    return Done(f"{verb} {len(rows)} partitions of {table.name}", rows)


def remove_orphan_files(call: Call) -> Done:
    """Removes orphan files."""
    mode = call.text("mode")
    if mode is not None and mode.lower() not in _MODES:
        raise InvalidError(f"mode {mode!r}: expected {' or '.join(_MODES)}, which mean the same here")
    request = unreferenced_files.RemoveOrphanFiles(
        call.age("older_than") or unreferenced_files.DEFAULT_AGE, call.flag("dry_run")
    )
    found = unreferenced_files.remove_orphan_files(_tables(call), request)
    rows = [(one.table, one.report.count, one.report.bytes, one.report.leftovers, one.report.folders) for one in found]
    verb = "found" if request.dry_run else "removed"
    return Done(f"{verb} {sum(row[1] for row in rows)} orphan files of {len(rows)} tables", rows)


def remove_unexisting_files(call: Call) -> Done:
    """Removes the manifest entries of data files that no longer exist."""
    found = unreferenced_files.remove_missing_files(_tables(call), dry_run=call.flag("dry_run"))
    verb = "found" if call.flag("dry_run") else "did away with"
    return Done(f"{verb} {len(found)} files that are gone", [(one.table, one.path, one.snapshot_id) for one in found])


def check(call: Call) -> Done:
    """Reports damaged files."""
    request = Check(call.number("version"), call.text("tag"), call.text("branch"), call.flag("quick"))
    rows = [
        (
            checked.table,
            one.kind,
            one.path,
            one.problem,
            one.partition,
            one.bucket,
            one.keys,
            one.rows,
            one.snapshot,
        )
        for checked in check_tables(_tables(call), request)
        for one in checked.report.damages
    ]
    return Done(f"found {len(rows)} damaged files", rows)


def _tables(call: Call) -> list[Table]:
    """The table, or for `database.*` all tables of a database."""
    text = call.values["table"]
    parts = split_parts(text)
    if parts[-1] != "*":
        return [open_table(call.context, text)]
    database = call.context.names.database(parts[0] if len(parts) > 1 else call.context.database)
    return database_tables(call.context.lake, database)


def _shown(partition: Mapping[str, str | None]) -> str:
    return ",".join(f"{name}={DEFAULT_PARTITION if text is None else text}" for name, text in partition.items())


EXPIRING = (
    Procedure(
        "expire_snapshots",
        "Expires old snapshots and deletes the files that only they need. Tags and consumers protect their snapshots.",
        (
            TABLE_ARGUMENT,
            Argument("retain_max", NUMBER, "The most snapshots that stay."),
            Argument("retain_min", NUMBER, "The least snapshots that stay."),
            Argument("older_than", AGE, "Only those that were replaced before this."),
            Argument("max_deletes", NUMBER, "The most that are removed."),
            _OPTIONS,
            _DRY_RUN,
        ),
        (
            Column("deleted_snapshots_count", pa.int64()),
            Column("deleted_files_count", pa.int64()),
            Column("kept_by", pa.string()),
        ),
        expire_snapshots,
    ),
    Procedure(
        "expire_changelogs",
        "Expires changelogs that were kept longer than their snapshots (`changelog.*`), and deletes the files that only they "
        "need. The newest of them stays, and consumers protect what they have yet to read.",
        (
            TABLE_ARGUMENT,
            Argument("retain_max", NUMBER, "The most changelogs that stay, those of snapshots among them."),
            Argument("retain_min", NUMBER, "The least changelogs that stay."),
            Argument("older_than", AGE, "Only those that were replaced before this."),
            Argument("max_deletes", NUMBER, "The most that are removed."),
            _OPTIONS,
        ),
        (Column("deleted_changelogs_count", pa.int64()), Column("deleted_files_count", pa.int64())),
        expire_changelogs,
    ),
    Procedure(
        "expire_partitions",
        "Drops the expired partitions, in one commit; one row for each.",
        (
            TABLE_ARGUMENT,
            Argument(
                "expiration_time", AGE, "How long a partition stays; by default what `partition.expiration-time` says."
            ),
            Argument("timestamp_formatter", TEXT, "How the time is written in partition values."),
            Argument("timestamp_pattern", TEXT, "Which partition columns make up the time, such as `$dt`."),
            Argument("expire_strategy", TEXT, "`values-time` or `update-time`."),
            Argument("max_expires", NUMBER, "The most that are removed."),
            _OPTIONS,
            _DRY_RUN,
        ),
        (Column("expired_partitions", pa.string()), Column("snapshot_id", pa.int64())),
        expire_partitions,
    ),
    Procedure(
        "remove_orphan_files",
        "Removes files that nothing on any branch points at; one row for each table.",
        (
            Argument("table", TABLE, "The table, or `database.*` for all of a database.", required=True),
            Argument("older_than", AGE, "Only files last changed before this; by default a day ago."),
            _DRY_RUN,
            Argument("parallelism", NUMBER, "Ignored."),
            Argument("mode", TEXT, "`local` or `distributed`; both mean the same here."),
        ),
        (
            Column("table_name", pa.string()),
            Column("deleted_file_count", pa.int64()),
            Column("deleted_file_total_len_in_bytes", pa.int64()),
            Column("leftover_count", pa.int64()),
            Column("empty_folder_count", pa.int64()),
        ),
        remove_orphan_files,
    ),
    Procedure(
        "remove_unexisting_files",
        "Takes data files that are gone from the store out of the table, so that its other rows can be read again; their own "
        "rows are lost. One row for each file.",
        (
            Argument("table", TABLE, "The table, or `database.*` for all of a database.", required=True),
            _DRY_RUN,
            Argument("parallelism", NUMBER, "Ignored."),
        ),
        (Column("table_name", pa.string()), Column("file_path", pa.string()), Column("snapshot_id", pa.int64())),
        remove_unexisting_files,
    ),
    Procedure(
        "check",
        "Says which files of a table are missing, cannot be read or differ from their metadata, and which rows they held; one "
        "row for each, none where the table is whole.",
        (
            Argument("table", TABLE, "The table, or `database.*` for all of a database.", required=True),
            Argument("version", NUMBER, "Only the files of this snapshot."),
            Argument("tag", TEXT, "Only the files of this tag."),
            Argument("branch", TEXT, "Only versions of this branch."),
            Argument("quick", FLAG, "Only look whether files are there in their sizes."),
        ),
        (
            Column("table_name", pa.string()),
            Column("kind", pa.string()),
            Column("path", pa.string()),
            Column("problem", pa.string()),
            Column("partition", pa.string()),
            Column("bucket", pa.int64()),
            Column("keys", pa.string()),
            Column("rows", pa.int64()),
            Column("snapshot_id", pa.int64()),
        ),
        check,
    ),
)
