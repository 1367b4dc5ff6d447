"""Rewrite a partition into another number of buckets.

    old buckets, one after the other ─┬─ primary key: rows merged, deletes dropped ─ KeyValueWriter ─ files of the top level
                                      └─ append: rows as they were written ───────── AppendWriter ─── files of level 0

All rows of the partition are read, so that no older rows are left below them, and sequence numbers restart. Rows that are not
visible yet, since level 0 is hidden until compaction, are included and visible afterwards. Rows of one bucket key keep
their order in an append table. Memory is bounded by `write-buffer-size`, or what the append writer may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.compact.buckets.postponed import with_buckets
from lakelet.compact.buckets.rescale_plan import OldBucket, RescaleTask
from lakelet.compact.partition_commit import Group
from lakelet.compact.progress import Watch
from lakelet.format.partition_folders import PartitionFolders
from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import FILE_SOURCE_APPEND, FILE_SOURCE_COMPACT
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.merge_reader import MergeReader
from lakelet.read.split_reader import SplitReader
from lakelet.sink.write.append_writer import AppendWriter
from lakelet.sink.write.key_value_writer import KeyValueWriter
from lakelet.storage.home import TableHome


class RescaleRewriter:
    """Runs tasks of one table in its newest schema, one after the other or in threads."""

    def __init__(self, home: TableHome, schema: TableSchema, schema_of: Callable[[int], TableSchema]) -> None:
        self._home = home
        self._schema = schema
        self._schema_of = schema_of
        self._folders = PartitionFolders(home.paths, schema)
        self._table_uuid = table_uuid(home)
        self._columns = arrow_schema(schema.fields)

    def rewrite(self, task: RescaleTask, watch: Watch) -> Group:
        """The messages of a partition that is done but not committed. After an error there are no new files."""
        watch.check()
        writer = self._writer(task)
        done, told = 0, 0
        try:
            for batch in self._rows(task):
                watch.check()
                writer.write(pa.RecordBatch.from_arrays(batch.columns, schema=self._columns))
                size = task.size * batch.num_rows // max(task.row_count, 1)
                done, told = done + batch.num_rows, told + size
                watch.advance(rows=batch.num_rows, size=size)
            added = writer.prepare_commit()
        except BaseException:
            writer.abort()
            raise
        written = sum(file.size for message in added for file in message.new_files)
        # Rows that were merged away or deleted have been read as well.
        watch.advance(tasks=1, rows=max(task.row_count - done, 0), size=task.size - told, written=written)
        gone = tuple(self._removal(task, bucket) for bucket in task.old)
        return tuple(replace(message, table_uuid=self._table_uuid) for message in (*gone, *added))

    def _writer(self, task: RescaleTask) -> KeyValueWriter | AppendWriter:
        schema = with_buckets(self._schema, task.buckets)
        if not schema.primary_keys:
            return AppendWriter(self._home, schema, source=FILE_SOURCE_APPEND, replaces=True)
        level = max(1, UniversalPolicy.of(TableOptions(schema.options)).num_levels - 1)
        return KeyValueWriter(self._home, schema, first_sequence=lambda _: 0, source=FILE_SOURCE_COMPACT, level=level)

    def _rows(self, task: RescaleTask) -> Iterator[pa.RecordBatch]:
        """The merged rows of the partition, in the table's current columns."""
        everything = row_filter(None, self._schema.fields)
        names = self._schema.names
        reader: MergeReader | SplitReader
        if self._schema.primary_keys:
            reader = MergeReader(self._home, self._schema, names, everything, self._schema_of)
        else:
            reader = SplitReader(self._home, self._schema.fields, names, everything, self._schema_of)
        for bucket in task.old:
            yield from reader.batches([self._split(task, bucket)])

    def _split(self, task: RescaleTask, bucket: OldBucket) -> Split:
        folder = self._folders.bucket_folder(task.partition, bucket.bucket)
        files = sorted(bucket.files, key=lambda file: file.min_sequence)
        return Split(
            task.snapshot_id,
            task.partition,
            bucket.bucket,
            bucket.total_buckets,
            tuple(files),
            tuple(f"{folder}/{file.name}" for file in files),
            tuple(task.vectors.get(file.name) for file in files),
            needs_merge=bool(self._schema.primary_keys),
        )

    def _removal(self, task: RescaleTask, bucket: OldBucket) -> CommitMessage:
        own = (task.vectors[file.name] for file in bucket.files if file.name in task.vectors)
        return CommitMessage(
            task.partition,
            bucket.bucket,
            bucket.total_buckets,
            (),
            bucket.files,
            base_snapshot=task.snapshot_id,
            old_vectors=tuple(sorted({vector.index_name for vector in own})),
        )
