"""A table: the one object people hold. It wires the stages together and has no logic of its own.

orders = lake.table("shop.orders")
orders.write(arrow_table)
orders.scan(where="dt = '2026-01-01'").to_arrow()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, read_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.metadata.version_ids import schema_ids, snapshot_ids, tag_names
from lakelet.commit.versions.branches import branch_home, branch_names
from lakelet.errors import InvalidError
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.data_file import DataFile
from lakelet.model.default_expressions import default_of
from lakelet.model.schema import TableSchema, check_bucket_count
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions, check_stored
from lakelet.scan.plan import Where
from lakelet.storage.home import TableHome
from lakelet.table.change.keyed_deletion import KeyedDeletion, keyed_rows, matching_rows
from lakelet.table.change.row_deletion import RowDeletion
from lakelet.table.change.schema_change import Altering
from lakelet.table.read.changes import changes_schema, read_changes
from lakelet.table.read.fallback import fallback_of, get_rows_or_fall_back
from lakelet.table.read.named_version import VersionLike, change_bound, named_version, stored_version
from lakelet.table.read.point_read import chosen_columns, get_rows, key_table
from lakelet.table.read.table_scan import TableScan
from lakelet.table.upkeep.check import Checks
from lakelet.table.upkeep.compaction import Compacting
from lakelet.table.upkeep.retention import Cleaning
from lakelet.table.upkeep.statistics import Analyzing
from lakelet.table.versions.versioning import Versioning
from lakelet.table.write.after_write import AfterWrite, after_commit
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.incoming_columns import IncomingColumns
from lakelet.table.write.table_commit import TableCommit, partition_spec
from lakelet.table.write.table_write import TableWrite
from lakelet.table.write.writable import check_writable
from lakelet.table.write.writer import PinnedVersion

_MODES = ("append", "overwrite", "overwrite_partitions")


class Table(Altering, Compacting, Cleaning, Versioning, Analyzing, Checks):
    """A table of a lake, on one of its branches. Cheap to make: nothing is read until it is used."""

    def __init__(self, name: str, home: TableHome) -> None:
        self.name = name
        self._home = home

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {self._home.where(self._home.paths.root)!r})"

    @property
    def location(self) -> str:
        """The table's folder."""
        return self._home.where(self._home.paths.root)

    @property
    def home(self) -> TableHome:
        """Where its files are, for engines that read and write them themselves."""
        return self._home

    @property
    def schema(self) -> TableSchema:
        """The newest schema."""
        schema = latest_schema(self._home)
        check_usable(schema)
        return schema

    @property
    def options(self) -> Mapping[str, str]:
        """The options that are set."""
        return dict(latest_schema(self._home).options)

    def describe(self) -> dict[str, object]:
        """What there is to know of the table, for people and programs alike."""
        schema, snapshot = latest_schema(self._home), latest_snapshot(self._home)
        return {
            "name": self.name,
            "location": self.location,
            "comment": schema.comment,
            "columns": [
                {
                    "name": field.name,
                    "type": str(field.type),
                    "default": default_of(field, schema),
                    "comment": field.description,
                }
                for field in schema.fields
            ],
            "partitioned_by": list(schema.partition_keys),
            "primary_key": list(schema.primary_keys),
            "options": dict(schema.options),
            "schema_id": schema.id,
            "snapshot_id": snapshot.id if snapshot else None,
            "record_count": snapshot.total_record_count if snapshot else 0,
        }

    def schemas(self) -> list[TableSchema]:
        """All schema versions, oldest first."""
        return [read_schema(self._home, number) for number in schema_ids(self._home)]

    # ------------------------------------------------------------------ writing

    def write(
        self,
        data: Any,
        *,
        mode: str = "append",
        partition: Mapping[str, object] | None = None,
        kinds: Any = None,
        missing: str | None = None,
        evolve: bool = False,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Writes rows in one atomic commit and returns the snapshot made, None where there was nothing to write.

        `mode` is "append", "overwrite" (the whole table, or the static `partition`) or "overwrite_partitions" (the
        partitions that the rows belong to). In a primary-key table "append" is an upsert: a row takes the place of the one
        with its key. `kinds` says what each row does ("+I", "+U", "-U", "-D"), as a list or as the name of a column of the data;
        rows without it are put in. `missing` says what an upsert does about columns that its rows lack: "error", "default" (the
        column's default, else NULL) or "keep" (stored values stay); unless given, the option `write.missing-columns` says it.
        With `evolve` the table first takes on columns that it lacks and wider types that values need. With `commit_user` and a
        rising `commit_identifier` the write is applied once, however often it is repeated.
        """
        if mode not in _MODES:
            raise InvalidError(f"mode {mode!r}: expected one of {', '.join(_MODES)}")
        if partition is not None and mode != "overwrite":
            raise InvalidError(f"partition= goes with mode='overwrite', found mode={mode!r}")
        with noticing_drop(self._home):
            schema = self.schema
            check_writable(schema)
            commit = TableCommit.of(self._home, commit_user, commit_identifier, schema)
            commit = commit.watermark(watermark).properties(properties)
            if mode == "overwrite":
                commit = commit.overwrite(partition or {})
            elif mode == "overwrite_partitions":
                commit = commit.overwrite(dynamic=True)
            commit, done = commit.look_back()
            if done is not None:
                return AfterWrite(self._home, schema, commit).repeated(done)
            if evolve:
                incoming = IncomingColumns(data, kinds if isinstance(kinds, str) else None)
                data = incoming.data
                if incoming.evolved(schema) != schema:
                    schema = self.alter(incoming.evolved)
            fixed = partition_spec(partition or {}, schema)
            return CommittedWrite(self._home, schema, commit, fixed, missing).run(data, kinds)

    def new_write(self, *, missing: str | None = None) -> TableWrite:
        """The first phase of a two-phase write: files, and messages about them. `missing` is that of `write`; messages that keep
        stored values can be committed as long as nobody writes to their buckets."""
        with noticing_drop(self._home):
            # The snapshot comes first: a schema read after it knows every column of its rows.
            base = PinnedVersion(self.latest_snapshot(), table_uuid=table_uuid(self._home))
            schema = self.schema
            check_writable(schema)
            return TableWrite(self._home, schema, base=base, missing=missing)

    def new_commit(self, user: str | None = None, identifier: int | None = None) -> TableCommit:
        """The second phase: a commit of messages from any number of writers."""
        schema = latest_schema(self._home)
        check_usable(schema)
        # It may be kept and sent long after, when the schema is another one.
        return replace(TableCommit.of(self._home, user, identifier, schema), after=after_commit, schema=None)

    def delete(
        self,
        keys: Any = None,
        *,
        where: str | pc.Expression | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Deletes the rows with these primary keys, or those that match; None where there is no such row.

        `keys` is anything that `write` takes; of its columns those of the primary key count.
        """
        if (keys is None) == (where is None):
            raise InvalidError("delete needs keys or a condition, and not both; where='true' deletes every row")
        _check_where(where)
        with noticing_drop(self._home):
            schema = self.schema
            check_writable(schema)
            commit = self.new_commit(commit_user, commit_identifier)
            if not schema.primary_keys:
                if keys is not None:
                    raise InvalidError("the table has no primary key: delete by a condition, where=")
                return RowDeletion(self._home, lambda newest: _predicate(where, newest), commit).run()
            rows_of = (
                matching_rows(self._home, lambda newest: _predicate(where, newest))
                if keys is None
                else keyed_rows(self._home, keys)
            )
            return KeyedDeletion(self._home, commit, rows_of).run()

    # ------------------------------------------------------------------ reading

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        limit: int | None = None,
        *,
        version: int | str | None = None,
        timestamp: datetime | str | int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        ordered: bool = False,
    ) -> TableScan:
        """A scan of the newest version, or of the one named by snapshot id, time, tag or branch.

        Rows come in the order of the files; with `ordered` those of each bucket of a primary-key table in key order.
        """
        home = branch_home(self._home, branch) if branch is not None else self._home
        schema, snapshot = named_version(home, version, timestamp, tag)
        check_usable(schema)
        _check_limit(limit)
        _check_where(where)
        names = chosen_columns(columns, schema)
        if ordered and not schema.primary_keys:
            raise InvalidError("ordered: the table has no primary key to order rows by")
        named = (version, timestamp, tag, *stored_version(TableOptions(schema.options)))
        newest = all(name is None for name in named)
        other = fallback_of(home, schema, snapshot, newest=newest, tag=tag)
        if other is not None:
            check_usable(other.schema)
        return TableScan(home, schema, snapshot, names, _predicate(where, schema), limit, ordered, other)

    def get(self, key: Mapping[str, object], columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The newest row with this primary key as a dict, None where there is none."""
        if not isinstance(key, Mapping):
            raise InvalidError(f"key: expected a mapping of column to value, found {type(key).__name__}")
        found = self.get_many([dict(key)], columns).to_pylist()
        return found[0] if found else None

    def get_many(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """The newest rows with these primary keys, in the order of the keys; keys without a row give none.

        `keys` is anything that `write` takes; of its columns those of the primary key count.
        """
        snapshot = self.latest_snapshot()
        schema = self.schema
        other = fallback_of(self._home, schema, snapshot, newest=True)
        if other is None:
            return get_rows(self._home, schema, snapshot, keys, columns)
        wanted, names = key_table(keys, schema), chosen_columns(columns, schema)
        return get_rows_or_fall_back(self._home, schema, snapshot, other, wanted, names)

    def changes(self, start: VersionLike, end: VersionLike | None = None) -> pa.Table:
        """The changes of snapshots (start, end] as `_row_kind` and the columns; `start` 0 is before the first snapshot.

        Each is the id of a snapshot, the name of a tag, or a time, which stands for the newest snapshot made by then: a datetime
        or ISO 8601 text, in UTC unless it has a zone.
        """
        return pa.Table.from_batches(self.change_batches(start, end), changes_schema(self.schema))

    def change_batches(self, start: VersionLike, end: VersionLike | None = None) -> Iterator[pa.RecordBatch]:
        """Like `changes`, batch by batch."""
        latest = self.latest_snapshot() if end is None else None
        last = change_bound(self._home, end) if end is not None else latest.id if latest else 0
        return read_changes(self._home, self.schema, change_bound(self._home, start), last)

    # ------------------------------------------------------------------ metadata

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot, None before the first commit."""
        return latest_snapshot(self._home)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        return [read_snapshot(self._home, number) for number in snapshot_ids(self._home)]

    def tag_names(self) -> list[str]:
        """The names of the table's tags."""
        return tag_names(self._home)

    def branch_names(self) -> list[str]:
        """The names of the branches beside the main one."""
        return branch_names(self._home)

    def files(self, *, version: int | None = None) -> list[tuple[str, DataFile]]:
        """The live data files with their paths, also those whose rows only show up after compaction."""
        scan = self.scan(version=version)
        if scan.snapshot is None:
            return []
        folders = PartitionFolders(self._home.paths, scan.schema)
        entries = live_entries(self._home, snapshot_manifests(self._home, scan.snapshot))
        return [
            (f"{folders.bucket_folder(entry.partition, entry.bucket)}/{entry.file.name}", entry.file)
            for entry in columns_to_entries(entries)
        ]


def check_usable(schema: TableSchema) -> None:
    """Refuses tables whose rows would not come out right."""
    check_stored(schema.options)
    check_bucket_count(schema)


def _check_limit(limit: object) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidError(f"limit {limit!r}: expected a whole number from 0 on")


def _check_where(where: object) -> None:
    if where is not None and not isinstance(where, (str, pc.Expression)):
        raise InvalidError(f"where: expected SQL text or a pyarrow expression, found {type(where).__name__}")


def _predicate(where: str | pc.Expression | None, schema: TableSchema) -> Where:
    if where is None or isinstance(where, pc.Expression):
        return where
    from lakelet.predicate.where import parse_where  # noqa: PLC0415 - the parser takes half a second to load.

    return parse_where(where, schema.fields)
