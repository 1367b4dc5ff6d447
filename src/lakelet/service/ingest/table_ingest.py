"""The write of a group of records into one table: columns grown, rows into the log, acknowledged after one sync."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from lakelet.errors import ConflictError, InvalidError, TooLargeError
from lakelet.model.schema import TableSchema
from lakelet.options import MEMTABLE_SIZE, TableOptions
from lakelet.service.ingest.arrow_records import records_of_arrow
from lakelet.service.ingest.payload_schema import Misfit, grow_payload
from lakelet.service.ingest.record_columns import RecordColumns, with_rest
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.tables.table_config import config_of
from lakelet.service.values import Record

Records: TypeAlias = Sequence[Record] | pa.Table
"""The records of one request."""
# Another process may alter the table between two looks at it; that it does so again and again is no longer by chance.
_MOST_LOOKS = 10


class TableIngest:
    """Writes records into one table; the caller lets one thread in at a time."""

    def __init__(self, opened: OpenTable) -> None:
        self.opened = opened
        self._columns: RecordColumns | None = None
        self.config = opened.config
        # Deletions of append tables and groups of rows take turns.
        self.turn = threading.Lock()

    def write(self, units: Sequence[Records]) -> list[int]:
        """Write the records of several requests with one sync; how many values of each went to `payload_rest`."""
        given = list(units)
        with self.turn:
            for _ in range(_MOST_LOOKS):
                columns = self._newest_columns()
                rows, misfits = self._converted(columns, given)
                if misfits and self.opened.is_attached:
                    place, name, value = misfits[0]
                    raise InvalidError(
                        f"record {place}: payload.{name} does not fit table {self.opened.name!r}, whose columns stay as they "
                        f"are: found {type(value).__name__}"
                    )
                if misfits and grow_payload(self.opened, misfits):
                    continue
                self._put(with_rest(rows, misfits) if misfits else rows, columns.schema)
                return _by_unit(given, [place for place, _, _ in misfits])
        raise ConflictError(f"table {self.opened.name!r} is altered over and over: the records were not written")

    def _converted(self, columns: RecordColumns, units: list[Records]) -> tuple[pa.Table, list[Misfit]]:
        """The columns of all units. Those that do not fit as columns become records, which they stay."""
        if not any(isinstance(unit, pa.Table) for unit in units):
            return columns.convert([record for unit in units for record in unit])
        parts: list[pa.Table] = []
        misfits: list[Misfit] = []
        first = 0
        for number, unit in enumerate(units):
            is_arrow = isinstance(unit, pa.Table)
            part = columns.convert_arrow(unit) if is_arrow and not self.opened.is_attached else None
            if part is None:
                units[number] = list(records_of_arrow(unit)) if is_arrow else unit
                part, found = columns.convert(units[number])
                misfits += [(first + place, name, value) for place, name, value in found]
            parts.append(part)
            first += part.num_rows
        return pa.concat_tables(parts), misfits

    def _newest_columns(self) -> RecordColumns:
        schema = self.opened.schema
        self.opened.check_writable(schema)
        if self._columns is None or self._columns.schema.id != schema.id:
            self._columns, self.config = RecordColumns(schema), config_of(schema.options)
        return self._columns

    def _put(self, rows: pa.Table, schema: TableSchema) -> None:
        most = TableOptions(schema.options).get(MEMTABLE_SIZE)
        if rows.nbytes > most:
            raise TooLargeError(
                f"{rows.num_rows} records take {rows.nbytes} bytes, more than a memtable holds: {most} (option 'memtable.size')"
            )
        self.opened.open_writer().put_together(rows)


def _by_unit(units: Sequence[Records], places: Sequence[int]) -> list[int]:
    """How many of some places, which count through all units, fall into each."""
    counts, first = [], 0
    for unit in units:
        counts.append(sum(first <= place < first + len(unit) for place in places) if places else 0)
        first += len(unit)
    return counts
