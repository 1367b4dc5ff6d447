"""`write(evolve=True)`: add the columns of the incoming data to a table, before it is written.

New columns and new fields of ROWs are added at the end, nullable. A type is widened where the incoming values need it and
every stored value fits the wider one; nothing becomes narrower, and what fits as it is stays as it is. Only the
columns of the first batch of a stream are known beforehand, and whether its values fit is not: there types alone decide, and text
stays as long as it was declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.schema_change.merged_types import merged_type, nullable_type
from lakelet.model.types import STRINGS, Atomic, Field
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.repeatable_input import stays_in_memory
from lakelet.sink.rows.row_input import batches_of


class IncomingColumns:
    """The columns of data that is about to be written, without the one that holds row kinds; `data` replaces the input from
    here on, for reading a stream was begun.
    """

    def __init__(self, data: Any, kinds: str | None) -> None:
        self.data = data
        self._rows: pa.Table | None = None
        if stays_in_memory(data):
            self._rows = _table(data)
            found = self._rows.schema
        else:
            batches = _stream(data)
            first = next(batches, None)
            self.data = batches if first is None else chain((first,), batches)
            found = pa.schema([]) if first is None else first.schema
        self._fields = [field for field in found if field.name != kinds]

    def evolved(self, schema: TableSchema) -> TableSchema:
        """The schema after adding and widening what these columns need."""
        for incoming in self._fields:
            if pa.types.is_null(incoming.type):
                continue
            new = from_arrow(incoming.type, where=f"column {incoming.name!r}")
            if incoming.name not in schema.names:
                schema = evolution.add_column(schema, incoming.name, nullable_type(new))
                continue
            for widens in (False, True):
                field = schema.field(incoming.name)
                merged = merged_type(field.type, new, widens=widens)
                if merged != field.type and not (widens and self._fits(field)):
                    schema = evolution.change_type(schema, (incoming.name,), merged)
        return schema

    def _fits(self, field: Field) -> bool:
        """Whether all values fit a column as it is."""
        if self._rows is None:
            return isinstance(field.type, Atomic) and field.type.kind in STRINGS
        try:
            for batch in self._rows.select([field.name]).to_batches():
                RowCaster([field]).cast(batch)
        except InvalidError:
            return False
        return True


def _table(data: Any) -> pa.Table:
    if isinstance(data, list) and data and isinstance(data[0], dict):
        try:
            names = dict.fromkeys(name for row in data for name in row)
            return pa.table({name: pa.array([row.get(name) for row in data]) for name in names})
        except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError) as error:
            raise InvalidError(f"evolve: the types of the rows cannot be told ({error})") from error
    parts = [pa.Table.from_batches([batch]) for batch in batches_of(data, pa.schema([]))]
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _stream(data: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(data, Iterable) and not hasattr(data, "__arrow_c_stream__"):
        for part in data:
            yield from _table(part).to_batches() if isinstance(part, list) else batches_of(part, pa.schema([]))
    else:
        yield from batches_of(data, pa.schema([]))
