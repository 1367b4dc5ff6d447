"""Memtables of a writer at one moment, for a reader that may be another process: their rows, and how to tell whether a snapshot
has them.

    writer's process   pin_memtables(writer)  ── rows of each memtable, and a snapshot that cannot have them yet
    reader             scan of a snapshot that is read afterwards ── with_pinned: the memtables that it lacks

A reader that takes the pins first and the snapshot afterwards sees every row once: what was flushed in between is in both, and
left out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.realtime.flush import is_in_snapshot
from lakelet.realtime.read.writer_scan import MemtableRows, WriterScan
from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class PinnedMemtable:
    """The rows of a memtable at one moment. They are committed under `user` with `sequence_number`, and no snapshot up to
    `flush_base` has them; `committed_in` is the one that does, where that is known."""

    user: str
    sequence_number: int
    schema_id: int
    flush_base: int
    committed_in: int | None
    values: Sequence[bytes]


def with_pinned(scan: TableScan | WriterScan, pinned: Sequence[PinnedMemtable]) -> WriterScan:
    """A scan with the rows of other writers, pinned before its snapshot was read, below those of the own one."""
    rows, memory = (scan.scan, scan.memory) if isinstance(scan, WriterScan) else (scan, ())
    schemas = SchemaVersions(rows.home)
    others = tuple(
        MemtableRows(schemas(one.schema_id), one.values)
        for one in pinned
        if not is_in_snapshot(rows.home, one.user, one, rows.snapshot, rows.schema)
    )
    return WriterScan(rows, (*others, *memory))
