"""The second phase of a write: messages in, one snapshot out.

table.new_commit("job-7", 42).commit(messages)
table.new_commit().overwrite({"dt": "2026-01-01"}).commit(messages)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from lakelet.commit.callbacks.commit_callbacks import run_commit_callbacks
from lakelet.commit.changes import partition_mask
from lakelet.commit.committed_files import check_not_committed, remove_uncommitted
from lakelet.commit.committer import already_done, commit
from lakelet.commit.dropped_table import clear_folders, is_dropped, noticing_drop, remove_made
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest, Overwrite
from lakelet.errors import InvalidError, LakeletError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.arrow.python_values import is_kept
from lakelet.model.commit_message import CommitMessage
from lakelet.model.partition_path import parse_partition_value
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from lakelet.model.text import check_text
from lakelet.model.types import STRINGS, Atomic
from lakelet.options import (
    COMMIT_FORCE_CREATE_SNAPSHOT,
    COMMIT_USER_PREFIX,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_WHOLE_TABLE: Mapping[str, object] = MappingProxyType({})

AfterCommit = Callable[["TableCommit", "Snapshot | None", Sequence[CommitMessage]], "Snapshot | None"]


@dataclass(frozen=True, slots=True, repr=False)
class TableCommit:
    """A commit under construction. Each method returns a new value, so that one can be kept and sent again.

    `after` runs the steps after the commit of messages from writers elsewhere, and returns the last snapshot made. `schema`
    is the one that the caller has just read, by which the messages are checked; the commit itself reads the newest.
    """

    home: TableHome
    user: str
    identifier: int
    named: bool
    replaces: Overwrite | None = None
    empty_ignored: bool | None = None
    event_watermark: int | None = None
    snapshot_properties: Mapping[str, str] | None = None
    searched: int | None = None
    fresh: bool = False
    read_at: int | None = None
    same_rows_as: tuple[int, str] | None = None
    after: AfterCommit | None = None
    schema: TableSchema | None = None
    upkeep_when_empty: bool = True
    files_added_once: bool = False

    def __repr__(self) -> str:
        where = self.home.where(self.home.paths.branch_root)
        return f"TableCommit({where!r}, {self.user!r}, {self.identifier})"

    @staticmethod
    def of(home: TableHome, user: str | None, identifier: int | None, schema: TableSchema | None = None) -> TableCommit:
        """A commit by a named user with an identifier, or by a generated one with neither. `schema` is the newest, if known."""
        if user is None and identifier is None:
            prefix = TableOptions((schema or latest_schema(home)).options).get(COMMIT_USER_PREFIX)
            generated = home.ids.uuid()
            user = f"{prefix}_{generated}" if prefix else generated
            return TableCommit(home, user, BATCH_COMMIT_IDENTIFIER, named=False, schema=schema)
        if user is None or user == "" or identifier is None:
            raise InvalidError(
                "a commit needs both a user and an identifier, by which a repeated commit is recognised, or neither; "
                f"found user {user!r} and identifier {identifier!r}"
            )
        number = _whole_number(identifier, "commit identifier")
        if not 0 <= number < BATCH_COMMIT_IDENTIFIER:
            raise InvalidError(f"commit identifier {number}: expected 0 to 2^63 - 2")
        return TableCommit(home, check_text(user, "commit user"), number, named=True, schema=schema)

    def overwrite(self, partition: Mapping[str, object] | None = _WHOLE_TABLE, *, dynamic: bool = False) -> TableCommit:
        """Replace the files of a static partition (of the whole table where none is given), or, `dynamic`, of the partitions
        that the new files belong to. `None` is refused, being ambiguous between the two."""
        if dynamic:
            if partition:
                raise InvalidError(
                    "a dynamic overwrite takes no partition: the rows decide which partitions are replaced"
                )
            return replace(self, replaces=Overwrite(None))
        if partition is None:
            raise InvalidError(
                "overwrite(None): say overwrite() to replace the whole table, or overwrite(dynamic=True) to replace the "
                "partitions that the new files belong to"
            )
        schema = self.schema or latest_schema(self.home)
        return replace(self, replaces=Overwrite(partition_spec(partition, schema)))

    def ignore_empty(self, ignored: bool) -> TableCommit:
        """Whether a commit without changes makes no snapshot."""
        return replace(self, empty_ignored=ignored)

    def expire_for_empty_commit(self, expires: bool) -> TableCommit:
        """Whether snapshots, partitions and tags are expired also after a commit that made no snapshot; by default they are,
        unless the table is `write-only`."""
        return replace(self, upkeep_when_empty=expires)

    def append_commit_check_conflict(self, checks: bool) -> TableCommit:
        """Whether each attempt checks that no file of the messages is in the table already, under whatever user and
        identifier it was committed: ConflictError if one is. It costs a read of the manifests of the messages' partitions."""
        return replace(self, files_added_once=checks)

    def row_id_check_conflict(self, first_row_id: int | None) -> TableCommit:
        """Reject any row id to check from: rows have none, since 'row-tracking.enabled' is not supported."""
        if first_row_id is not None:
            raise InvalidError(
                f"row_id_check_conflict({first_row_id!r}): rows have no ids to compare, for 'row-tracking.enabled' is not "
                "supported; deletes and updates of rows check by themselves that their files are still live"
            )
        return self

    def watermark(self, watermark: int | None) -> TableCommit:
        """The event time up to which data is complete, in milliseconds."""
        if watermark is None:
            return replace(self, event_watermark=None)
        number = _whole_number(watermark, "watermark")
        if not -(2**63) <= number < 2**63:
            raise InvalidError(f"watermark {number}: expected milliseconds in 64 bits")
        return replace(self, event_watermark=number)

    def properties(self, properties: Mapping[str, str] | None) -> TableCommit:
        """Text kept in the snapshot."""
        if properties is not None and not isinstance(properties, Mapping):
            raise InvalidError(f"properties: expected a mapping of text to text, found {type(properties).__name__}")
        checked = {
            check_text(key, "name of a property"): check_text(text, f"property {key!r}")
            for key, text in (properties or {}).items()
        }
        return replace(self, snapshot_properties=checked)

    def look_back(self) -> tuple[TableCommit, Snapshot | None]:
        """Look for an earlier commit of this request: the snapshot it made, and a commit that need not search that far again.

        A writer that asks before it writes leaves no files behind when it is retried.
        """
        if not self.named:
            return self, None
        latest = latest_snapshot(self.home)
        request = CommitRequest(self.user, (), self.identifier, named=True)
        done = already_done(self.home, request, latest, None)
        if done is not None:
            run_commit_callbacks(self.home, latest_schema(self.home), done)
        return replace(self, searched=0 if latest is None else latest.id), done

    def commit(self, messages: Sequence[CommitMessage]) -> Snapshot | None:
        """Commit; the snapshot made (or made earlier by the same commit), None where there was nothing to commit."""
        with noticing_drop(self.home):
            return self._commit(messages)

    def _commit(self, messages: Sequence[CommitMessage]) -> Snapshot | None:
        for message in messages:
            if not isinstance(message, CommitMessage):
                raise InvalidError(f"cannot commit a {type(message).__name__}: expected messages of prepare_commit()")
        schema = self.schema or latest_schema(self.home)
        self._check_partitions(messages, schema)
        if not self.named and not self.fresh:
            check_not_committed(self.home, messages)
        request = CommitRequest(
            user=self.user,
            messages=tuple(messages),
            identifier=self.identifier,
            named=self.named,
            overwrite=self.replaces,
            ignore_empty=self._ignores_empty(TableOptions(schema.options)),
            watermark=self.event_watermark,
            properties=dict(self.snapshot_properties or {}),
            searched=self.searched,
            when_found=self._remover(messages) if self.fresh else None,
            read_at=self.read_at,
            same_rows_as=self.same_rows_as,
            files_added_once=self.files_added_once,
        )
        made = commit(self.home, request)
        return made if self.after is None or self.fresh else self.after(self, made, messages)

    def _remover(self, messages: Sequence[CommitMessage]) -> Callable[[Snapshot], None]:
        """A function that removes the new files when the same commit turns out to have been made concurrently."""

        def remove(_: Snapshot) -> None:
            try:
                remove_uncommitted(self.home, messages)
            except LakeletError as error:
                _LOG.warning("files of a commit that was made twice stay behind: %s", error)

        return remove

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Remove the files of messages that will not be committed; committed files are left alone."""
        with noticing_drop(self.home):
            if is_dropped(self.home):
                remove_made(self.home, messages)
                clear_folders(self.home)
                return
            remove_uncommitted(self.home, messages)

    def _ignores_empty(self, options: TableOptions) -> bool:
        if self.empty_ignored is not None:
            return self.empty_ignored
        if options.get(COMMIT_FORCE_CREATE_SNAPSHOT):
            return False
        chosen = options.get(SNAPSHOT_IGNORE_EMPTY_COMMIT)
        return not self.named if chosen is None else chosen

    def _check_partitions(self, messages: Sequence[CommitMessage], schema: TableSchema) -> None:
        """Check that rows of a static overwrite belong to the partition it replaces; but a key may leave another one for it."""
        if self.replaces is None:
            return
        if self.replaces == Overwrite(None) and any(message.assigned_at is not None for message in messages):
            raise InvalidError(
                "keys of these rows may have left partitions that must stay, and the messages do not tell those from the ones to "
                "replace: use write(mode='overwrite_partitions') on a table whose primary key lacks partition columns"
            )
        if not self.replaces.partition:
            return
        partitions = [
            message.partition
            for message in messages
            if message.new_files and not (schema.crosses_partitions and _only_takes_away(message))
        ]
        mask = partition_mask(pa.array(partitions, pa.binary()), schema, self.replaces.partition)
        if not mask.all():
            stray = PartitionFolders(self.home.paths, schema).partition_path(partitions[int(mask.argmin())])
            raise InvalidError(
                f"the overwrite replaces partition {dict(self.replaces.partition)}, but there are rows of {stray}"
            )


def _only_takes_away(message: CommitMessage) -> bool:
    return all(file.delete_row_count == file.row_count for file in message.new_files)


def _whole_number(value: object, what: str) -> int:
    """The int of a value, numpy's integers included."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise InvalidError(f"{what}: expected a whole number, found {value!r} of type {type(value).__name__}")


def partition_spec(partition: Mapping[str, object], schema: TableSchema) -> dict[str, object]:
    """A partition spec with values of the columns' types; text is parsed as the type's."""
    spec: dict[str, object] = {}
    for name, value in partition.items():
        if name not in schema.partition_keys:
            keys = ", ".join(schema.partition_keys) or "none"
            raise InvalidError(f"partition column {name!r} is not a partition key; the table's are {keys}")
        data_type = schema.field(name).type
        is_text = isinstance(data_type, Atomic) and data_type.kind in STRINGS
        if value is None:
            spec[name] = None
        elif isinstance(value, str) and not is_text:
            spec[name] = parse_partition_value(value, data_type)
        elif not is_kept(value, to_arrow(data_type)):
            raise InvalidError(f"partition column {name!r} is {data_type}; {value!r} does not fit")
        else:
            try:
                spec[name] = pa.scalar(value, to_arrow(data_type)).as_py() if not is_text else str(value)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise InvalidError(f"partition column {name!r} is {data_type}; {value!r} does not fit") from error
    return spec
