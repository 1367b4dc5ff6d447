"""Compaction of append tables in tasks that travel as bytes: planned here, run by any process, each with a commit of its own.

    planned_tasks ── bytes: Paimon's multi-table task of version 1 (`format/compaction_task`) ── run_task ── a COMPACT snapshot

A task that is lost is planned again with the next compaction; one that is run twice finds its files gone.
"""

from __future__ import annotations

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.chosen_files import compact_files, takes_chosen_files
from lakelet.compact.compaction import Compaction, check_compactable
from lakelet.compact.progress import Cancel
from lakelet.format.compaction_task import MultiTableTask, decode_multi_table_task, encode_multi_table_task
from lakelet.table import Table


def planned_tasks(table: Table) -> list[bytes]:
    """The compaction that is due, as tasks; none for tables whose compaction is not made of tasks of their own (with keys, with
    buckets), or on a branch."""
    home = table.home
    snapshot, schema = latest_snapshot(home), latest_schema(home)
    if snapshot is None or not takes_chosen_files(schema):
        return []
    check_compactable(schema)
    database, name = table.name.split(".", 1)
    found = Compaction(home, schema).plan(snapshot)
    return [encode_multi_table_task(MultiTableTask(one.partition, one.files, database, name)) for one in found]


def run_task(lake: Lake, data: bytes, cancel: Cancel | None = None, *, where: str = "a compaction task") -> int | None:
    """Run a task; the snapshot's id, None where others have rewritten its files already. NotFoundError for a table that is gone,
    InvalidError and CorruptionError for bytes that are no task of this version."""
    task = decode_multi_table_task(data, where=where)
    table = lake.table(f"{task.database}.{task.table}")
    made = compact_files(table.home, task.partition, [file.name for file in task.files], cancel)
    return None if made is None else made.id
