"""The backups of a lake's tables in a second store: copy, list, verify, recover. One thread works on a table at a time."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.options import PARTITION_EXPIRATION_TIME, TableOptions
from lakelet.scan.tree import hides_level0
from lakelet.service.backup.backup_pass import PassResult, run_pass
from lakelet.service.backup.layout import COMPLETE, SOURCE_SNAPSHOT, restoring_path
from lakelet.service.backup.repair import Repaired, repair_table
from lakelet.service.backup.restoration import is_gone, restore_table
from lakelet.service.backup.snapshot_files import Bucket
from lakelet.service.backup.table_files import same_table
from lakelet.service.backup.verification import Verified, verify_backup
from lakelet.service.tables.table_layout import DAY, ID, TIMESTAMP
from lakelet.storage.home import TableHome
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a table is meant: an id, a day (UTC), both, or all."""

    id: str = ""
    day: str = ""

    @property
    def is_all(self) -> bool:
        """Whether it is the whole table."""
        return not self.id and not self.day


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A table in the backup store: the source's snapshot that it mirrors (0 for none), when, and whether as a whole."""

    table: str
    source_snapshot: int
    time_ms: int
    records: int
    is_complete: bool


class Backups:
    """The tables of a lake and their mirrors; for any number of threads."""

    def __init__(self, lake: Lake, backup: Lake) -> None:
        if lake.location.rstrip("/") == backup.location.rstrip("/"):
            raise InvalidError(f"backup: expected another store than the warehouse, found {backup.location} for both")
        self.lake = lake
        self.backup = backup
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._made = threading.Lock()

    def trigger(self, table: str, scope: Scope | None = None) -> PassResult:
        """Mirror the newest snapshot of a table (`database.table`), or every bucket that may hold an id or a day."""
        with self._turn(table):
            source = self.lake.table(table)
            target = self._mirror_home(table)
            buckets: set[Bucket] | None = None
            if scope is not None and not scope.is_all:
                condition = _condition(source.schema, scope)
                mirror = self.backup.table(table) if schema_ids(target) else None
                found = _buckets(source, condition)
                if found is not None:
                    buckets = found | (set() if mirror is None else _buckets(mirror, condition) or set())
            return run_pass(source.home, target, buckets)

    def recover(self, table: str, scope: Scope | None = None) -> Repaired:
        """Restore missing and damaged files of a table, or the table itself where it is gone."""
        with self._turn(table):
            primary, mirror = self._home(self.lake, table), self._home(self.backup, table)
            if not schema_ids(mirror):
                raise NotFoundError(f"table {table!r} has no backup in {self.backup.location}")
            if is_gone(primary):
                database = table.split(".", 1)[0]
                self.lake.create_database(database, if_not_exists=True)
                restored = restore_table(primary, mirror)
                self._expire(table)
                return Repaired(restored, files=len(restored))
            if not same_table(primary, mirror):
                raise InvalidError(
                    f"{primary.where(primary.paths.root)} is another table than that of the backup: it was created again since"
                )

            def buckets() -> Collection[Bucket] | None:
                if scope is None or scope.is_all:
                    return None
                opened = self.lake.table(table)
                return _buckets(opened, _condition(opened.schema, scope))

            return repair_table(primary, mirror, buckets)

    def verify(self, table: str) -> Verified:
        """Compare every file of a table's mirror with its checksum."""
        with self._turn(table):
            mirror = self._home(self.backup, table)
            if not schema_ids(mirror):
                raise NotFoundError(f"table {table!r} has no backup in {self.backup.location}")
            return verify_backup(mirror)

    def list(self) -> list[BackedUp]:
        """The tables in the backup store."""
        found = []
        for database in self.backup.databases():
            for name in self.backup.tables(database):
                snapshot = latest_snapshot(self._home(self.backup, f"{database}.{name}"))
                told = {} if snapshot is None else snapshot.properties or {}
                found.append(
                    BackedUp(
                        f"{database}.{name}",
                        int(told.get(SOURCE_SNAPSHOT, 0)),
                        0 if snapshot is None else snapshot.time_ms,
                        0 if snapshot is None else snapshot.total_record_count or 0,
                        told.get(COMPLETE) == "true",
                    )
                )
        return found

    def needs_restoring(self, table: str) -> bool:
        """Whether a recovery of the whole table has begun and not ended."""
        home = self._home(self.lake, table)
        return home.store.head(restoring_path(home)) is not None

    # ------------------------------------------------------------------ inside

    def _mirror_home(self, table: str) -> TableHome:
        """The mirror of a table. That of another table of the same name, dropped since, is set aside under another name."""
        source, target = self._home(self.lake, table), self._home(self.backup, table)
        database = table.split(".", 1)[0]
        self.backup.create_database(database, if_not_exists=True)
        if schema_ids(target) and not same_table(source, target):
            self.backup.rename_table(table, f"{table}__{table_identity(target)[:8]}")
        return self._home(self.backup, table)

    def _expire(self, table: str) -> None:
        """Days whose retention has passed while the table was gone do not come back."""
        opened = self.lake.table(table)
        if opened.schema.partition_keys and TableOptions(opened.options).get(PARTITION_EXPIRATION_TIME) is not None:
            opened.expire_partitions()

    def _turn(self, table: str) -> threading.Lock:
        with self._made:
            return self._turns[table]

    def _home(self, lake: Lake, table: str) -> TableHome:
        return lake.table_home(table)


def _condition(schema: TableSchema, scope: Scope) -> pc.Expression:
    parts = []
    if scope.id:
        if ID not in schema.names:
            raise InvalidError(f"id: the table has no column {ID!r}")
        parts.append(pc.field(ID) == scope.id)
    if scope.day:
        parts.append(_day_condition(schema, scope.day))
    return parts[0] if len(parts) == 1 else parts[0] & parts[1]


def _day_condition(schema: TableSchema, text: str) -> pc.Expression:
    day: date | None = None
    with suppress(ValueError):
        day = date.fromisoformat(text)
    if day is None or text != day.isoformat():
        raise InvalidError(f"day: expected YYYY-MM-DD, found {text!r}")
    if DAY in schema.names:
        return pc.field(DAY) == day
    start = datetime.combine(day, time(), UTC)
    zone = pa.timestamp("us", "UTC")
    return (pc.field(TIMESTAMP) >= pa.scalar(start, zone)) & (
        pc.field(TIMESTAMP) < pa.scalar(start + timedelta(days=1), zone)
    )


def _buckets(table: Table, condition: pc.Expression) -> set[Bucket] | None:
    """The buckets with a file that may hold rows of a condition; None where that may be all of them."""
    if hides_level0(TableOptions(table.options)):
        # A plan leaves out files that compaction has not reached.
        return None
    return {(split.partition, split.bucket) for split in table.scan(where=condition).plan().splits}
