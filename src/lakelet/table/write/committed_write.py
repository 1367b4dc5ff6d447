"""A write from its rows to its snapshot, retried as far as needed after a conflict with another writer.

    write files ─ commit ─┬─ committed
                          ├─ another writer's rows have as great sequence numbers: ours are restamped, the commit is retried
                          ├─ values to keep may have changed: the files are removed, the values are looked up again
                          └─ keys were assigned buckets meanwhile, or the snapshot that they were looked up in expired:
                             the files are removed, the rows are routed again from the newest snapshot

Of two commits the later one's rows win. Every retry gives the rows more room above the others' numbers, so that a
writer among many gets through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakelet.commit.committed_files import remove_files
from lakelet.commit.conflict.conflicts import AssignmentConflictError, KeptValuesConflictError, SequenceConflictError
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.request import Overwrite
from lakelet.compact.compaction import Elsewhere
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.model.bucket_mode import BucketMode, Place, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.sink.rows.missing_columns import DEFAULT, KEEP, missing_policy, rows_apart
from lakelet.sink.rows.repeatable_input import RepeatableInput
from lakelet.sink.rows.row_input import batches_of
from lakelet.sink.rows.row_kinds import kinds_of
from lakelet.sink.write.restamp import restamp
from lakelet.storage.home import TableHome
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.repetition import Repetition
from lakelet.table.write.table_commit import TableCommit
from lakelet.table.write.table_write import TableWrite, schema_with_kinds
from lakelet.table.write.writer import PinnedVersion, WriterSettings

_ASSIGNED = (BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC)
_FIRST_ROOM = 1 << 10
_MOST_ROOM = 1 << 40


@dataclass(frozen=True, slots=True)
class CommittedWrite:
    """A write of rows in one commit. `fixed` are the partition columns that the data may leave out, `missing` says how
    other columns that it lacks are filled (by default what the table's option says). `looks` says whether it looks for files to
    compact afterwards, `one_row_per_key` that rows come in no order, so that several of one key are refused. `table_uuid`, where
    it is known, is that of the table that the rows were taken for: another one of its name does not get them. With `turn`, files
    are written ahead of a commit that waits until it returns; `sequence_room` are numbers that commits before it may take.
    Compaction may run `elsewhere`. `extra` are options that the schema has for this write alone."""

    home: TableHome
    schema: TableSchema
    commit: TableCommit
    fixed: Mapping[str, object]
    missing: str | None = None
    looks: bool | None = None
    one_row_per_key: bool = False
    table_uuid: str | None = None
    turn: Callable[[], None] | None = None
    sequence_room: int = 0
    elsewhere: Elsewhere | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def run(self, data: Any, kinds: Any = None) -> Snapshot | None:
        """Write and commit; the snapshot made, None where there was nothing to write."""
        # An iterator of kinds can be read once, but the write may have to be retried.
        kinds = kinds if kinds is None or isinstance(kinds, str) else kinds_of(kinds)
        policy = missing_policy(self.missing, self.schema, replaces=self.commit.replaces is not None)
        repeatable = bucket_mode(self.schema) in _ASSIGNED or policy == KEEP
        # However often the write is retried, defaults are those of the first attempt.
        defaults = ColumnDefaults.now(self.schema, self.home.clock)
        now_ms = defaults.now_ms if defaults.expressions else None
        if repeatable and policy == DEFAULT:
            data = self._with_chance(data, kinds, defaults)
        rows = RepeatableInput(
            data,
            schema_with_kinds(self.schema, kinds),
            self.schema.fields,
            repeatable=repeatable,
            apart=rows_apart(policy, kinds),
            defaults=defaults,
        )
        repetition = Repetition(self.home, self.schema)
        home = self.home.deferring()
        try:
            while True:
                commit = replace(self._naming_partitions(rows, now_ms), home=home)
                try:
                    write = self._keeping(home, now_ms) if policy == KEEP else self._replacing(commit, now_ms)
                except SnapshotExpiredError as expired:
                    # No row has been read yet.
                    repetition.again(expired)
                    continue
                try:
                    made, messages = self._written(commit, write, rows, kinds, repetition)
                except (AssignmentConflictError, KeptValuesConflictError, SnapshotExpiredError) as conflict:
                    if not repeatable:
                        raise
                    repetition.again(conflict)
                    continue
                after = AfterWrite(self.home, write.schema, commit, self.elsewhere, self.extra, self.looks)
                return after.run(made, messages, write.runs)
        finally:
            rows.close()

    def _with_chance(self, data: Any, kinds: Any, defaults: ColumnDefaults) -> Any:
        """Fill in the volatile defaults (such as random values), which must be the same when the data is read again."""
        left_out = [one for one in defaults.volatile(self.schema.fields) if one.name not in self.fixed]
        if not left_out:
            return data
        read = batches_of(data, schema_with_kinds(self.schema, kinds), self.schema.fields, defaults=defaults)
        return (defaults.filled(batch, left_out) for batch in read)

    def _replacing(self, commit: TableCommit, now_ms: int | None) -> TableWrite:
        return TableWrite(
            commit.home,
            self.schema,
            self.fixed,
            replaces=commit.replaces,
            settings=self._settings(),
            missing=self.missing,
            now_ms=now_ms,
        )

    def _keeping(self, home: TableHome, now_ms: int | None) -> TableWrite:
        # The snapshot comes first: a schema read after it knows every column whose values are to be kept.
        base = PinnedVersion(latest_snapshot(home), table_uuid=table_uuid(home))
        schema = latest_schema(home)
        schema = replace(schema, options={**schema.options, **self.extra}) if self.extra else schema
        return TableWrite(home, schema, base=base, settings=self._settings(), missing=KEEP, now_ms=now_ms)

    def _settings(self) -> WriterSettings:
        return WriterSettings(one_row_per_key=self.one_row_per_key, sequence_room=self.sequence_room)

    def _naming_partitions(self, rows: RepeatableInput, now_ms: int | None) -> TableCommit:
        """Where rows may be moved out of partitions that stay, a dynamic overwrite names the ones it replaces."""
        replaces = self.commit.replaces
        if not self.schema.crosses_partitions or replaces is None or replaces.partition is not None:
            return self.commit
        looked = TableWrite(self.home, self.schema, self.fixed, now_ms=now_ms)
        return replace(self.commit, replaces=Overwrite(None, looked.partitions(rows.batches())))

    def _written(
        self, commit: TableCommit, write: TableWrite, rows: RepeatableInput, kinds: Any, repetition: Repetition
    ) -> tuple[Snapshot | None, tuple[CommitMessage, ...]]:
        try:
            if self.schema.crosses_partitions:
                write.announce(rows.batches())
            write.write(rows.batches(), kinds)
            messages = write.prepare_commit()
            self._check_table(messages)
            if self.turn is not None:
                self.turn()
        except BaseException:
            write.discard()
            raise
        return commit_on_top(replace(commit, fresh=True), write.schema, messages, repetition), messages

    def _check_table(self, messages: tuple[CommitMessage, ...]) -> None:
        found = {message.table_uuid for message in messages}
        if self.table_uuid is not None and found - {self.table_uuid}:
            raise ConflictError(
                f"{self.home.where(self.home.paths.root)} was dropped and created again: expected the table {self.table_uuid}"
            )


def commit_on_top(
    commit: TableCommit,
    schema: TableSchema,
    messages: tuple[CommitMessage, ...],
    repetition: Repetition,
    move: Callable[[tuple[CommitMessage, ...], Mapping[Place, int]], tuple[CommitMessage, ...]] | None = None,
) -> Snapshot | None:
    """Commit files that were just written, restamped above the rows of others as often as needed; uncommitted files are
    removed. `move` restamps the files, in this process unless given."""
    home, room = commit.home, 0
    try:
        while True:
            try:
                return commit.commit(messages)
            except SequenceConflictError as conflict:
                repetition.again(conflict)
                above = {place: number + room for place, number in conflict.above.items()}
                moved = move(messages, above) if move is not None else restamp(home, schema, messages, above)
                remove_files(home, schema, messages, but=moved)
                messages, room = moved, min(max(_FIRST_ROOM, room * 4), _MOST_ROOM)
    except CommitUnknownError:
        raise
    except LakeletError:
        # After other errors the outcome of the commit is unknown: committed files must be kept.
        remove_files(home, schema, messages)
        raise
