"""Compaction of a table: rewrite its files into fewer ones, with the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.compact.background import BackgroundCompaction
from lakelet.compact.buckets.postponed import PostponedCompaction
from lakelet.compact.buckets.rescale import Rescale, RescaleElsewhere
from lakelet.compact.cluster.chosen_order import RowOrdering
from lakelet.compact.compaction import THREADS, Compaction, Scope, pack_manifests
from lakelet.compact.progress import Cancel, Progress
from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import check_options, check_stored
from lakelet.storage.home import TableHome
from lakelet.table.change.schema_change import note_schema
from lakelet.table.time_arguments import Length, length
from lakelet.table.upkeep.compaction_scope import Partitions, partition_scope


@dataclass(frozen=True, slots=True)
class TableCompaction:
    """Compaction of a table: files are rewritten into fewer ones, rows stay as they are."""

    home: TableHome

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
        """Compacts what the table's options say is due, with `full` all there is, with an order all rows in that order."""
        _check_threads(threads)
        ordering = RowOrdering.of(order_strategy, order_by)
        extra = dict(options or {})
        check_options(extra)
        with noticing_drop(self.home):
            schema = latest_schema(self.home)
            idle = None if idle_for is None else (self.home, length(idle_for, "idle_for"))
            scope = partition_scope(partition, schema, where=where, idle=idle)
            placed: Snapshot | None = None
            if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
                chosen = replace(schema, options={**schema.options, **extra})
                placed = PostponedCompaction(self.home, chosen, scope, progress, cancel, threads or THREADS).run()
            if ordering is not None:
                ordering.check(schema, self.home.where(self.home.paths.branch_root))
            compaction = Compaction(
                self.home, schema, full, scope, progress, cancel, threads or THREADS, extra=extra, ordering=ordering
            )
            return compaction.run() or placed

    def compact_manifests(self) -> Snapshot | None:
        """Merge the table's manifests into few, for faster plans and commits."""
        with noticing_drop(self.home):
            check_stored(latest_schema(self.home).options)
            return pack_manifests(self.home)

    def compact_in_background(
        self, full: bool = False, *, every: float | None = None, progress: Progress | None = None
    ) -> BackgroundCompaction:
        """Compact in a thread, once, or repeatedly `every` number of seconds, until it is cancelled."""
        return BackgroundCompaction(lambda stop: self.compact(full, progress=progress, cancel=stop), every=every)

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
        """Rewrite the table's rows into another number of buckets."""
        _check_threads(threads)

        def scope(schema: TableSchema) -> Scope:
            return partition_scope(partition, schema)

        with noticing_drop(self.home):
            scope(latest_schema(self.home))
            noted = partial(note_schema, self.home)
            return Rescale(self.home, buckets, scope, progress, cancel, threads or THREADS, noted, elsewhere).run()


def _check_threads(threads: int | None) -> None:
    if threads is not None and (isinstance(threads, bool) or threads < 1):
        raise InvalidError(f"threads {threads!r}: expected a whole number from 1 on")
