"""Whether all files of a partition would stand in the same number of buckets.

The bucket of a key depends on how many buckets there are. A commit that puts a partition's rows into another number of them, or
gives waiting rows their first ones, takes away the files it read; one that somebody else added meanwhile would stay behind in
the old number, and its keys stand twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.manifests import live_entries
from lakelet.errors import ConflictError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome


def check_totals(
    home: TableHome,
    messages: Sequence[CommitMessage],
    removed: pa.Table,
    previous: Sequence[ManifestFile],
    schema: TableSchema,
    *,
    threads: int = 1,
) -> None:
    """ConflictError if files of another number of buckets would stay in a partition whose number this commit changes."""
    chosen = {message.partition: message.total_buckets for message in messages if message.new_files}
    before: dict[bytes, set[int]] = {}
    for message in messages:
        if message.deleted_files:
            before.setdefault(message.partition, set()).add(message.total_buckets)
    changed = {partition: total for partition, total in chosen.items() if before.get(partition, {total}) != {total}}
    if not changed:
        return
    partitions = pa.array(list(changed), pa.binary())

    def keep(entries: pa.Table) -> pa.Table:
        return entries.filter(pc.is_in(entries.column("_PARTITION"), value_set=partitions))

    live = live_entries(home, previous, columns=["_TOTAL_BUCKETS"], keep=keep, threads=threads)
    names = removed.column("_FILE_NAME").combine_chunks()
    # Rows that wait for a bucket have none yet, and get theirs another time.
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
                f"{home.where(home.paths.branch_root)}: another writer put rows into {total} buckets of {folder} while they were "
                f"rewritten for {changed[partition]}"
            )
