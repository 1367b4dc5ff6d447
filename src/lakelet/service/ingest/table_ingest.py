"""The write of a group of records into one table: columns grown, rows into the log, acknowledged after one sync."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.clock import Clock
from lakelet.cluster.hybrid_clock import HybridClock
from lakelet.errors import ConflictError, InvalidError, TooLargeError, UnavailableError
from lakelet.format.wal.wal_group import WalKey
from lakelet.model.schema import TableSchema
from lakelet.options import MEMTABLE_SIZE, SEQUENCE_FIELD, TableOptions
from lakelet.service.ingest.fitting_rows import fitting_rows
from lakelet.service.ingest.payload_schema import Misfit, grow_payload, grown_schema
from lakelet.service.ingest.record_columns import RecordColumns, with_rest
from lakelet.service.ingest.request_keys import UnitKey
from lakelet.service.ingest.write_unit import WriteUnit
from lakelet.service.tables.served_table import OpenTable, is_attached
from lakelet.service.tables.table_config import config_of
from lakelet.service.tables.table_layout import SEQUENCE
from lakelet.service.values import Record

# Another process may alter the table between two looks at it; that it does so again and again is no longer by chance.
_MOST_LOOKS = 10


class TableIngest:
    """Writes records into one table; the caller lets one thread in at a time."""

    def __init__(self, opened: OpenTable, clock: Clock, order: HybridClock | None = None) -> None:
        self.opened = opened
        self._clock = clock
        self._order = order or HybridClock(clock)
        self._columns: RecordColumns | None = None
        self.config = opened.config
        # Deletions of append tables and groups of rows take turns.
        self.turn = threading.Lock()

    def kept_keys(self, keys: Sequence[UnitKey]) -> dict[bytes, WalKey]:
        """What the log has kept of earlier requests under these keys, by their names."""
        return self.opened.open_writer().find_keys([key.name for key in keys])

    def write_fitting(self, rows: pa.Table, unit: WriteUnit) -> bool:
        """Write rows with id, timestamp and payload, if they fit the table's columns as they are; whether they did."""
        with self.turn:
            columns = self._newest_columns()
            fitting = fitting_rows(rows, columns)
            if fitting is not None:
                self._put(fitting, columns.schema, [unit], [0])
            return fitting is not None

    def write(self, units: Sequence[WriteUnit]) -> list[int]:
        """Write the records of several requests with one sync; how many values of each went to `payload_rest`."""
        records = [record for unit in units for record in unit.given_records]
        with self.turn:
            for _ in range(_MOST_LOOKS):
                columns = self._newest_columns()
                rows, misfits = columns.convert(records)
                if misfits and self.opened.is_attached:
                    raise InvalidError(f"record {misfits[0][0]}: {self._clash(misfits[0])}")
                with _nothing_done():
                    # What is refused makes the table grow by nothing.
                    check = partial(self._check_planned, records)
                    has_grown = bool(misfits) and grow_payload(self.opened, misfits, columns.schema, check)
                if has_grown:
                    continue
                counts = _by_unit(units, [place for place, _, _ in misfits])
                self._put(with_rest(rows, misfits) if misfits else rows, columns.schema, units, counts)
                return counts
        raise ConflictError(f"table {self.opened.name!r} is altered over and over: the records were not written")

    def stamp(self, schema: TableSchema) -> dict[str, int]:
        """What a row that is accepted now carries so that it wins against all before."""
        return {SEQUENCE: self._order.take()} if _is_stamped(schema) else {}

    def refusals(self, records: Sequence[Record]) -> dict[int, str]:
        """The places of records that cannot be written even alone, and why; nothing grows."""
        found: dict[int, str] = {}
        with self.turn:
            columns = self._newest_columns()
            for place, record in enumerate(records):
                try:
                    columns = self._checked(record, columns)
                except (InvalidError, TooLargeError) as error:
                    found[place] = str(error)
        return found

    def _checked(self, record: Record, columns: RecordColumns) -> RecordColumns:
        """The columns as they will be once they have grown for a record; an error if it cannot be written to them."""
        rows, misfits = columns.convert([record])
        if misfits and self.opened.is_attached:
            raise InvalidError(self._clash(misfits[0]))
        planned = grown_schema(columns.schema, misfits) if misfits else None
        if planned is not None:
            return self._check_planned([record], planned)
        self._check_rows(with_rest(rows, misfits) if misfits else rows, columns.schema)
        return columns

    def _check_planned(self, records: Sequence[Record], planned: TableSchema) -> RecordColumns:
        """Check records against a schema that the table is about to have; its columns."""
        columns = RecordColumns(planned)
        rows, misfits = columns.convert(records)
        self._check_rows(with_rest(rows, misfits) if misfits else rows, planned)
        return columns

    def _check_rows(self, rows: pa.Table | list[dict[str, Any]], schema: TableSchema) -> None:
        _check_fits(rows, schema)
        with _nothing_done():
            writer = self.opened.open_writer()
        writer.check_rows(self._stamped(rows) if _is_stamped(schema) else rows, schema)

    def _clash(self, misfit: Misfit) -> str:
        _, name, value = misfit
        return (
            f"payload.{name} does not fit table {self.opened.name!r}, whose columns stay as they are: found "
            f"{type(value).__name__}"
        )

    def _newest_columns(self) -> RecordColumns:
        with _nothing_done():
            schema = self.opened.schema
        self.opened.check_writable(schema)
        if self._columns is None or self._columns.schema.id != schema.id:
            self._columns, self.config = RecordColumns(schema), config_of(schema.options)
        return self._columns

    def _put(
        self,
        rows: pa.Table | list[dict[str, Any]],
        schema: TableSchema,
        units: Sequence[WriteUnit],
        rest_values: Sequence[int],
    ) -> None:
        """Write the rows of requests as one group, with the keys of those that have one."""
        _check_fits(rows, schema)
        now_ms = self._clock.now_ms()
        keys = [
            unit.key.wal_key(unit.result(rest), now_ms)
            for unit, rest in zip(units, rest_values, strict=True)
            if unit.key is not None
        ]
        with _nothing_done():
            writer = self.opened.open_writer()
        writer.put_together(self._stamped(rows) if _is_stamped(schema) else rows, keys)

    def _stamped(self, rows: pa.Table | list[dict[str, Any]]) -> pa.Table | list[dict[str, Any]]:
        """Rows with their places in the order of all writes."""
        first = self._order.take(len(rows))
        if isinstance(rows, list):
            return [{**row, SEQUENCE: first + place} for place, row in enumerate(rows)]
        return rows.append_column(SEQUENCE, pa.array(np.arange(first, first + len(rows), dtype=np.int64)))


def _check_fits(rows: pa.Table | list[dict[str, Any]], schema: TableSchema) -> None:
    most = TableOptions(schema.options).get(MEMTABLE_SIZE)
    if isinstance(rows, pa.Table) and rows.nbytes > most:
        raise TooLargeError(
            f"{rows.num_rows} records take {rows.nbytes} bytes, more than a memtable holds: {most} (option 'memtable.size')"
        )


def _is_stamped(schema: TableSchema) -> bool:
    return TableOptions(schema.options).get(SEQUENCE_FIELD) == (SEQUENCE,) and not is_attached(schema)


@contextmanager
def _nothing_done() -> Iterator[None]:
    """A store that does not answer before any row is written: the request may come again."""
    try:
        yield
    except UnavailableError as error:
        seconds = error.retry_after_seconds or 1.0
        raise UnavailableError(*error.args, retry_after_seconds=seconds) from error


def _by_unit(units: Sequence[WriteUnit], places: Sequence[int]) -> list[int]:
    """How many of some places, which count through all units, fall into each."""
    counts, first = [], 0
    for unit in units:
        counts.append(sum(first <= place < first + len(unit.records) for place in places) if places else 0)
        first += len(unit.records)
    return counts
