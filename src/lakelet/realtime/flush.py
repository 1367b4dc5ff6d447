"""Flush a memtable: its rows become level-0 files and one snapshot.

The commit has the log's user, and the memtable's sequence number as identifier: a flush that is repeated, after a crash or an
unknown outcome, finds its snapshot and applies nothing twice. Numbers rise, so memtables are committed one after the other,
oldest first. Rows get their place in history when they are committed, like those of every write.

Files of several memtables are written at the same time where rows alone decide their bucket: each leaves room for the sequence
numbers of those before it, so that nothing is written again at the commit. Elsewhere a flush begins when it is its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lakelet.commit.commit_users import last_identifier
from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot
from lakelet.commit.metadata.table_identity import table_identity, table_uuid
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.errors import ConflictError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import TableOptions
from lakelet.read.evolve import evolve_batch
from lakelet.realtime.memtable import Memtable, decode_held
from lakelet.scan.tree import hides_level0
from lakelet.storage.home import TableHome
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.table_commit import TableCommit
from lakelet.table.write.writable import check_writable

# Of more than these some may be expired, and each that is gone would be asked for.
_MANY_SNAPSHOTS = 8


class TableReplacedError(ConflictError):
    """The table is not the one that the rows were put into."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a flush that is begun before older memtables are committed has to know: how to wait for its turn, and how many rows
    they have."""

    turn: Callable[[], None]
    rows: int


class Flushed(Protocol):
    """What is known of the flush of a memtable: its number, the newest snapshot before it, and the one that has its rows."""

    @property
    def sequence_number(self) -> int:
        """The identifier of its commit."""

    @property
    def flush_base(self) -> int | None:
        """A snapshot that does not have its rows, nor has any before."""

    @property
    def committed_in(self) -> int | None:
        """The snapshot that has its rows."""


def flush_memtable(
    home: TableHome, identity: str, user: str, memtable: Memtable, ahead: Ahead | None = None
) -> Snapshot | None:
    """Commit the rows of a memtable under the newest schema, unless they are committed already; the last snapshot of the commit,
    None where there are no rows."""
    held = memtable.copy()
    if not held:
        return None
    if ahead is not None and not _is_written_ahead(memtable.schema):
        ahead.turn()
        ahead = None
    with noticing_drop(home):
        # Read first: after the check it is known to be that of the right table, and the commit compares it.
        uuid = table_uuid(home)
        if table_identity(home) != identity:
            raise TableReplacedError(
                f"{home.where(home.paths.root)} was dropped and created again: the rows in the log are of the table {identity}"
            )
        latest = latest_snapshot(home)
        if memtable.flush_base is None:
            # An attempt whose outcome is unknown may have committed: only the first knows what was there before.
            memtable.flush_base = 0 if latest is None else latest.id
        schema = latest_schema(home)
        check_writable(schema)
        if schema.id == memtable.schema.id and schema.fields != memtable.schema.fields:
            raise ConflictError(
                f"{home.where(home.paths.root)}: its schema {schema.id} has other columns than the rows in the log were put "
                "with: a branch was fast-forwarded over it"
            )
        commit, done = TableCommit.of(home, user, memtable.sequence_number, schema).look_back()
        if done is not None:
            return AfterWrite(home, schema, commit).repeated(done)
        rows, kinds = decode_held(held, memtable.schema)
        rows = rows if schema.id == memtable.schema.id else evolve_batch(rows, memtable.schema.fields, schema.fields)
        write = CommittedWrite(home, schema, commit, {}, table_uuid=uuid)
        if ahead is not None:
            write = replace(write, turn=ahead.turn, sequence_room=ahead.rows)
        return write.run(rows, kinds)


def _is_written_ahead(schema: TableSchema) -> bool:
    """Whether files can be written before older rows are committed: not where the snapshot decides the buckets of keys, nor where
    rows have no key and their order is that of their arrival."""
    return bool(schema.primary_keys) and bucket_mode(schema) is BucketMode.HASH_FIXED


def is_in_snapshot(
    home: TableHome, user: str, memtable: Flushed, snapshot: Snapshot | None, schema: TableSchema
) -> bool:
    """Whether a snapshot, read before this call, shows the rows of a memtable. A flush commits before it can say so: what was
    committed since it began is looked at, once for a memtable, whose log another node may have had for long. Where level 0 is
    hidden, rows show by the compaction of their flush."""
    committed, base = memtable.committed_in, memtable.flush_base
    if snapshot is None or (committed is None and base is None):
        return False
    if committed is not None and committed <= snapshot.id:
        return True
    hides = bool(schema.primary_keys) and hides_level0(TableOptions(schema.options))
    numbers: Sequence[int] = range((base or 0) + 1, snapshot.id + 1)
    count = len(numbers)
    if count > _MANY_SNAPSHOTS:
        numbers = [number for number in snapshot_ids(home) if number in numbers]
    is_expired, is_begun = len(numbers) < count, False
    # The last snapshot of a flush may be that of a compaction, behind the one that has the rows.
    for number in numbers:
        found = try_snapshot(home, number)
        is_expired = is_expired or found is None
        if found is None or found.commit_user != user or found.commit_identifier != memtable.sequence_number:
            continue
        if (found.commit_kind is CommitKind.COMPACT) is hides:
            return True
        is_begun = True
    if is_expired and hides:
        return False
    # Expiry keeps the last number of a user whose snapshots it deletes; all of these are before this one.
    last = last_identifier(home, user) if is_expired else None
    if last is not None and memtable.sequence_number <= last:
        return True
    if isinstance(memtable, Memtable) and not is_begun:
        memtable.flush_base = max(memtable.flush_base or 0, snapshot.id)
    return False
