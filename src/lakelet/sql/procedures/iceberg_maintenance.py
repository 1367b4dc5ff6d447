"""The maintenance procedures of Iceberg tables (iceberg_expire_snapshots, …), which are named catalog.database.table.

Only names and arguments are defined here; the functions are in `iceberg_calls`, which is imported at the first call.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakelet.sql.procedures.procedure import Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.values import AGE, FLAG, LENGTH, NUMBER, TABLE, TEXT

_TABLE = Argument(
    "table", TABLE, "The table, `catalog.database.table`, with `$branch_x` where a branch is meant.", required=True
)
_SNAPSHOT = Argument("snapshot_id", NUMBER, "The snapshot; by default the newest of main.", aliases=("snapshot",))
_NAME = Argument("name", TEXT, "Its name.", required=True, aliases=("branch", "tag"))
_KEPT = Argument("time_retained", LENGTH, "How long it stays; by default for good.")
_REF = (Column("name", pa.string()), Column("snapshot_id", pa.int64()))
_DROPPED = (Column("name", pa.string()),)


def _late(name: str) -> Callable[[Call], Done]:
    def run(call: Call) -> Done:
        from lakelet.sql.procedures.iceberg_calls import CALLS  # noqa: PLC0415 - pyiceberg is loaded where it is asked for.

        return CALLS[name](call)

    return run


def _create(name: str, meaning: str) -> Procedure:
    arguments = (
        _TABLE,
        _NAME,
        _SNAPSHOT,
        _KEPT,
        Argument("if_not_exists", FLAG, "Does nothing if one of that name exists."),
    )
    return Procedure(name, meaning, arguments, _REF, _late(name))


def _drop(name: str, meaning: str) -> Procedure:
    arguments = (_TABLE, _NAME, Argument("if_exists", FLAG, "Does nothing where there is none."))
    return Procedure(name, meaning, arguments, _DROPPED, _late(name))


ICEBERG = (
    Procedure(
        "iceberg_expire_snapshots",
        "Removes old snapshots and expired branches and tags of an Iceberg table, and the files that only they needed.",
        (
            _TABLE,
            Argument(
                "older_than", AGE, "Those made before this; by default as `history.expire.max-snapshot-age-ms` says."
            ),
            Argument(
                "retain_last",
                NUMBER,
                "How many of each branch stay in any case; by default as `history.expire.min-snapshots-to-keep` says.",
            ),
            Argument("snapshot_id", NUMBER, "This one alone.", aliases=("snapshot",)),
        ),
        (
            Column("expired_snapshots", pa.int64()),
            Column("expired_names", pa.int64()),
            Column("removed_data_files", pa.int64()),
            Column("removed_manifests", pa.int64()),
            Column("removed_manifest_lists", pa.int64()),
            Column("removed_statistics", pa.int64()),
        ),
        _late("iceberg_expire_snapshots"),
    ),
    Procedure(
        "iceberg_remove_orphan_files",
        "Removes files below an Iceberg table's location that none of its metadata leads to; one row for each.",
        (
            _TABLE,
            Argument("older_than", AGE, "Those last changed before this; by default three days ago."),
            Argument("dry_run", FLAG, "Only reports what would be removed."),
        ),
        (Column("path", pa.string()),),
        _late("iceberg_remove_orphan_files"),
    ),
    Procedure(
        "iceberg_rewrite_data_files",
        "Puts the rows of small files of an Iceberg table, and of files with deleted rows or of older partition specs, into "
        "files of the target size, as one snapshot.",
        (
            _TABLE,
            Argument("where", TEXT, "Only files that may hold rows for which this is true."),
            Argument("target_file_bytes", NUMBER, "The size of files; by default `write.target-file-size-bytes`."),
            Argument("min_input_files", NUMBER, "How many small files are worth rewriting; by default 5."),
        ),
        (
            Column("snapshot_id", pa.int64()),
            Column("rewritten_files", pa.int64()),
            Column("added_files", pa.int64()),
            Column("rewritten_bytes", pa.int64()),
        ),
        _late("iceberg_rewrite_data_files"),
        aliases=("iceberg_compact",),
    ),
    Procedure(
        "iceberg_rewrite_manifests",
        "Puts the manifests of an Iceberg table together, files of a partition side by side, as one snapshot.",
        (_TABLE,),
        (Column("snapshot_id", pa.int64()), Column("rewritten_manifests", pa.int64())),
        _late("iceberg_rewrite_manifests"),
    ),
    _create("iceberg_create_branch", "Creates a branch of an Iceberg table at a snapshot."),
    _drop("iceberg_drop_branch", "Removes a branch of an Iceberg table; its snapshots stay until they expire."),
    Procedure(
        "iceberg_fast_forward",
        "Fast-forwards a branch of an Iceberg table to another one, which descends from it.",
        (
            _TABLE,
            Argument("branch", TEXT, "The branch that moves.", required=True),
            Argument("to", TEXT, "The branch or tag that it moves to.", required=True),
        ),
        _REF,
        _late("iceberg_fast_forward"),
    ),
    _create("iceberg_create_tag", "Gives a snapshot of an Iceberg table a name, under which it does not expire."),
    _drop("iceberg_drop_tag", "Removes a tag of an Iceberg table."),
    Procedure(
        "iceberg_rollback_to_snapshot",
        "Rolls an Iceberg table back to an earlier snapshot; later ones stay until they expire.",
        (
            _TABLE,
            Argument("snapshot_id", NUMBER, "The snapshot.", required=True, aliases=("snapshot",)),
        ),
        (Column("previous_snapshot_id", pa.int64()), Column("snapshot_id", pa.int64())),
        _late("iceberg_rollback_to_snapshot"),
    ),
)
