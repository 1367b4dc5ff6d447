"""The first phase of a write: rows in, commit messages out.

write = table.new_write()
write.write(batches)
messages = write.prepare_commit()          # picklable: another process may commit them
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

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

    def write(self, data: Any) -> None:
        """Takes rows: anything `Table.write` takes."""
        for batch in batches_of(data, self._arrow):
            filled = self._with_fixed(batch)
            self._writer.write(self._caster.cast(filled, first_row=self._rows))
            self._rows += batch.num_rows

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Closes the files and says what was written."""
        return self._writer.prepare_commit()

    def abort(self) -> None:
        """Removes the files."""
        self._writer.abort()

    def __enter__(self) -> TableWrite:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            self.abort()

    def _with_fixed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With the columns of a static partition, where the data leaves them out."""
        for name, value in self._fixed.items():
            if name not in batch.schema.names:
                column = pa.repeat(pa.scalar(value, to_arrow(self._schema.field(name).type)), batch.num_rows)
                batch = batch.append_column(pa.field(name, column.type), column)
        return batch
