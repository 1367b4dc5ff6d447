"""Check that all files of a partition are written for the same number of buckets.

The bucket of a key depends on the number of buckets, and rows of one key must not be in two. Three ways lead there:

    rewritten   a commit puts a partition's rows into another number of buckets, or gives postponed rows their first ones. It
                removes the files it read; one that a concurrent commit added would stay behind
    there and   a writer wrote for 4 buckets, the table was rescaled to 2, and is being rescaled to 4 again when it commits:
      back      the number is the right one, but the partition is stored in 2
    both new    two writers, one before and one after the option changed, create the same partition concurrently

The last two are checked only for commits with files of an older schema. A table whose schema never changed
costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import live_entries
from lakelet.commit.metadata.schemas import read_schema
from lakelet.errors import ConflictError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.options import BUCKET, TableOptions
from lakelet.storage.home import TableHome


def check_totals(
    home: TableHome,
    messages: Sequence[CommitMessage],
    removed: pa.Table,
    previous: Sequence[ManifestFile],
    schema: TableSchema,
    *,
    newest: tuple[int, str],
    threads: int = 1,
) -> None:
    """ConflictError if files of another number of buckets would stay in a partition that this commit creates, or whose number
    it changes. `newest` is the snapshot that it is committed on, as messages name it.
    """
    chosen = {message.partition: message.total_buckets for message in messages if message.new_files}
    before: dict[bytes, set[int]] = {}
    fresh: set[bytes] = set()
    for message in messages:
        if message.deleted_files:
            before.setdefault(message.partition, set()).add(message.total_buckets)
        elif schema.id > 0 and message.total_buckets > 0 and _may_have_missed(message, newest):
            fresh.add(message.partition)
    changed = {
        partition: total
        for partition, total in chosen.items()
        if partition in fresh or before.get(partition, {total}) != {total}
    }
    if not changed:
        return
    partitions = pa.array(list(changed), pa.binary())

    def keep(entries: pa.Table) -> pa.Table:
        return entries.filter(pc.is_in(entries.column("_PARTITION"), value_set=partitions))

    live = live_entries(home, previous, columns=["_TOTAL_BUCKETS"], keep=keep, threads=threads)
    names = removed.column("_FILE_NAME").combine_chunks()
    # Postponed rows have no bucket yet; compaction assigns it later.
    stays = pc.and_(
        pc.greater(live.column("_TOTAL_BUCKETS"), 0), pc.invert(pc.is_in(live.column("_FILE_NAME"), value_set=names))
    )
    left = live.filter(stays)
    for partition, total in zip(
        *(left.column(name).to_pylist() for name in ("_PARTITION", "_TOTAL_BUCKETS")), strict=True
    ):
        if total != changed[partition]:
            folder = PartitionFolders(home.paths, schema).partition_path(partition) or "the table"
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: another writer put rows into {total} buckets of {folder}, while this one "
                f"wrote for {changed[partition]}"
            )


def check_same_number(home: TableHome, messages: Sequence[CommitMessage], schema: TableSchema) -> None:
    """ConflictError if the number of buckets was different in any version between the schema of the files and this one."""
    buckets = TableOptions(schema.options).get(BUCKET)
    versions = [file.schema_id for message in messages if message.total_buckets > 0 for file in message.new_files]
    if buckets <= 0 or not versions:
        return
    for number in range(min(versions) + 1, schema.id):
        other = TableOptions(read_schema(home, number).options).get(BUCKET)
        if other != buckets:
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: files were written for {buckets} buckets, but there were {other} since, "
                "and their partitions may still have these: write them again"
            )


def _may_have_missed(message: CommitMessage, newest: tuple[int, str]) -> bool:
    """Whether the writer may not know all files of its partition: it read an earlier snapshot, or
    numbered its rows from 0, as in an empty bucket.
    """
    if message.sequenced_at is not None:
        return message.sequenced_at != newest
    return any(file.level == 0 and file.min_sequence == 0 for file in message.new_files)
