"""Replace a table's columns, options and rows, and keep its history.

    files in the new schema ─ schema-N if absent ─ snapshot that overwrites all ─ compaction and upkeep

The rows may come from the same table: they are read before anything of it changes. A crash before the schema leaves files that
nobody sees; one between the schema and the snapshot leaves the old rows in the new columns, those of the same name and type
with their values. A commit that fails restores the old schema.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

from lakelet.commit.metadata.schemas import change_schema, create_next_schema, latest_schema
from lakelet.commit.request import Overwrite
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.change.schema_change import note_schema
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.table_commit import TableCommit

_LOG = logging.getLogger(__name__)


def replace_rows(home: TableHome, old: TableSchema, new: TableSchema, rows: Any) -> Snapshot | None:
    """Replace all rows, and the schema `old` by `new`, which follows it or is the same."""
    plain = TableCommit.of(home, None, None, new)
    commit = _SchemaAndRows(home, plain.user, plain.identifier, named=False, replaces=Overwrite({}), schema=new)
    try:
        return CommittedWrite(home, new, commit, {}).run(rows)
    except CommitUnknownError:
        raise
    except LakeletError:
        _take_back(home, old, new)
        raise


@dataclass(frozen=True, slots=True)
class _SchemaAndRows(TableCommit):
    """A commit that makes its schema the newest one just before the snapshot."""

    schema: TableSchema | None = None

    def commit(self, messages: Any) -> Snapshot | None:
        assert self.schema is not None
        found = latest_schema(self.home)
        if found != self.schema:
            if found.id >= self.schema.id or not create_next_schema(self.home, self.schema):
                where = self.home.where(self.home.paths.root)
                raise ConflictError(f"{where}: the table was altered while it was being replaced; replace it again")
            note_schema(self.home, self.schema)
        committed: tuple[CommitMessage, ...] = tuple(messages)
        return TableCommit.commit(self, committed)


def _take_back(home: TableHome, old: TableSchema, new: TableSchema) -> None:
    """Restore the old schema, for the old rows stay."""

    def change(newest: TableSchema) -> TableSchema:
        if newest.id != new.id or new.id == old.id:
            return newest
        return replace(old, id=newest.id, highest_field_id=newest.highest_field_id, time_ms=newest.time_ms)

    try:
        if latest_schema(home) == new:
            change_schema(home, change)
    except LakeletError as error:
        _LOG.warning("%s was not replaced, but has its new columns: %s", home.where(home.paths.root), error)
