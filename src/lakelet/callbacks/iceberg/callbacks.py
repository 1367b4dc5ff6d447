"""The commit and the tag callback that publish a table as an Iceberg table; the options of a table imply them.

A commit is published before the write returns. What goes wrong is logged and changes nothing about the commit; the next one, of
whichever writer, publishes what was missed, since a publication always brings the table to its newest snapshot.
"""

from __future__ import annotations

from lakelet.callbacks.iceberg.publication import publish, publishes
from lakelet.commit.callbacks.callback_files import CommitFiles
from lakelet.commit.callbacks.commit_callbacks import CommitIdentifier
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import InternalError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome


class IcebergCommitCallback:
    """Publishes the newest snapshot after each commit."""

    def __init__(self) -> None:
        self._table: tuple[TableHome, TableSchema] | None = None

    def open(self, home: TableHome, schema: TableSchema) -> None:
        """Takes the table."""
        self._table = (home, schema)

    def call(
        self, base_files: CommitFiles, delta_files: CommitFiles, identifier: CommitIdentifier, snapshot: Snapshot
    ) -> None:
        """Publishes what is not published yet, which several calls in a row do once."""
        del base_files, delta_files, identifier, snapshot
        if self._table is None:
            raise InternalError("an Iceberg publication was called before it was opened")
        home, schema = self._table
        if publishes(home, TableOptions(schema.options)):
            publish(home, schema)


class IcebergTagCallback:
    """Keeps the tags of the published table those of the table."""

    def __init__(self) -> None:
        self._home: TableHome | None = None

    def open(self, home: TableHome) -> None:
        """Takes the table."""
        self._home = home.uncached()

    def notify_creation(self, tag_name: str, snapshot_id: int) -> None:
        """Publishes the tag, if its snapshot is published."""
        del tag_name, snapshot_id
        self._note()

    def notify_deletion(self, tag_name: str) -> None:
        """Publishes that it is gone."""
        del tag_name
        self._note()

    def _note(self) -> None:
        if self._home is None:
            raise InternalError("an Iceberg publication was told of a tag before it was opened")
        schema = latest_schema(self._home)
        if publishes(self._home, TableOptions(schema.options)):
            publish(self._home, schema)
