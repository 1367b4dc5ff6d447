"""The first phase of a write: rows in, commit messages out.

write = table.new_write()
write.write(batches)
messages = write.prepare_commit()          # picklable: another process may commit them
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelet.commit.committed_files import remove_uncommitted
from lakelet.commit.table_identity import table_uuid
from lakelet.errors import InvalidError
from lakelet.model.arrow_types import arrow_schema, to_arrow
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.sink.append_writer import AppendWriter
from lakelet.sink.cast import RowCaster
from lakelet.sink.input import batches_of
from lakelet.storage.home import TableHome


class TableWrite:
    """Writes files for one commit; nothing is visible until the messages are committed."""

    def __init__(self, home: TableHome, schema: TableSchema, fixed: Mapping[str, object] | None = None) -> None:
        self._schema = schema
        self._caster = RowCaster(schema.fields)
        self._writer = AppendWriter(home, schema)
        self._arrow = arrow_schema(schema.fields)
        self._fixed = dict(fixed or {})
        self._rows = 0
        self._home = home
        self._table_uuid = table_uuid(home)
        self._failed = False
        self._messages: tuple[CommitMessage, ...] | None = None

    def write(self, data: Any) -> None:
        """Takes rows: anything `Table.write` takes. After an error only `abort` is left, since some rows may be missing."""
        self._check_usable()
        self._failed = True
        for batch in batches_of(data, self._arrow, self._schema.fields):
            filled = self._with_fixed(batch)
            self._writer.write(self._caster.cast(filled, first_row=self._rows))
            self._rows += batch.num_rows
        self._failed = False

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Closes the files and says what was written; once."""
        self._check_usable()
        messages = self._writer.prepare_commit()
        self._messages = tuple(replace(message, table_uuid=self._table_uuid) for message in messages)
        return self._messages

    @property
    def is_prepared(self) -> bool:
        """Whether there are messages that somebody may commit."""
        return self._messages is not None

    def abort(self) -> None:
        """Removes the files, except those of a commit that stands."""
        if self._messages is None:
            self._writer.abort()
        else:
            remove_uncommitted(self._home, self._messages)

    def discard(self) -> None:
        """Removes the files without looking, for a caller who knows that they are not committed."""
        self._writer.abort()

    def __enter__(self) -> TableWrite:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # Messages may be on their way to a committer elsewhere: from then on only `abort` removes files.
        if kind is not None and issubclass(kind, Exception) and self._messages is None:
            self.abort()

    def _check_usable(self) -> None:
        if self._failed:
            raise InvalidError("this write has failed and some of its rows are missing: abort it and start a new one")

    def _with_fixed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With the columns of a static partition, where the data leaves them out."""
        for name, value in self._fixed.items():
            if name not in batch.schema.names:
                column = pa.repeat(pa.scalar(value, to_arrow(self._schema.field(name).type)), batch.num_rows)
                batch = batch.append_column(pa.field(name, column.type), column)
        return batch
