"""A table that the service serves: the table in the lake, its configuration, and its writer once rows have come."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from lakelet.clock import Clock, SystemClock
from lakelet.commit.metadata.schema_watch import SchemaWatch
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import InvalidError, LakeletError, NotFoundError, UnavailableError
from lakelet.model.schema import TableSchema
from lakelet.model.types import Array, Atomic, DataType, Kind, Map, Row
from lakelet.options import (
    SERVICE_ATTACHED,
    SERVICE_CREATED_AT,
    SERVICE_EXACT_INTEGERS,
    SERVICE_STATUS,
    TableOptions,
)
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.wal_folder import log_numbers
from lakelet.service.tables.table_config import config_of
from lakelet.service.tables.table_layout import DAY, PAYLOAD
from lakelet.service.values import ACTIVE, DELETING, TableConfig

if TYPE_CHECKING:
    from lakelet.realtime.row_writer import RowWriter
    from lakelet.realtime.wal.log_copy import LogCopy
    from lakelet.table import Table

_LOG = logging.getLogger(__name__)
# A put that finds all memtables full waits this long: its request is refused then, and nothing of it was written.
_WRITER_OPTIONS = {"memtable.wait-timeout": "PT5S"}
# Another process may have dropped a table: a request finds that out once a second.
_LOOK_SECONDS = 1.0


class OpenTable:
    """A served table; for any number of threads."""

    def __init__(
        self,
        name: str,
        table: Table,
        wal_folder: str | PathLike[str] | None,
        copies: Callable[[OpenTable], LogCopy] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """With `copies` its logs are copied to another node."""
        self._monotonic = (clock or SystemClock()).monotonic
        self._looked = self._monotonic()
        self._identity: str | None = None
        self._gone = False
        self.name = name
        self.table = table
        self._wal_folder = wal_folder
        self._copies = copies
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._writer: RowWriter | None = None
        self._closed = False
        self._schemas = SchemaWatch(table.home)

    # ------------------------------------------------------------------ what it is

    @property
    def schema(self) -> TableSchema:
        """The newest schema, looked for by every call; the last one that is known while the store is silent."""
        return self._schemas.newest()

    @property
    def store_silence(self) -> str | None:
        """Why the store of the table is taken for silent, None while it answers. Asking has it looked at again."""
        self._schemas.look_again()
        return self._schemas.silence

    @property
    def config(self) -> TableConfig:
        """The configuration in its options."""
        return config_of(self.schema.options)

    @property
    def status(self) -> str:
        """active, archived or deleting."""
        return TableOptions(self.schema.options).get(SERVICE_STATUS) or ACTIVE

    @property
    def created_at(self) -> str:
        """When it was created for the service, or attached."""
        return TableOptions(self.schema.options).get(SERVICE_CREATED_AT) or ""

    @property
    def is_attached(self) -> bool:
        """Whether it was made elsewhere, so that its columns stay as they are."""
        return is_attached(self.schema)

    @property
    def hides_day(self) -> bool:
        """Whether `dt` is left out of `SELECT *`."""
        schema = self.schema
        return DAY in schema.names and not is_attached(schema)

    # ------------------------------------------------------------------ other processes

    def is_due(self) -> bool:
        """Whether it is to be looked at again: a second after the last time. While the store is silent nobody can tell."""
        since = self._monotonic() - self._looked
        return self._gone or (since >= _LOOK_SECONDS and self._schemas.silence is None)

    def look(self) -> bool:
        """Whether it is still the table that was opened, and still served; True where that is not known."""
        self._looked = self._monotonic()
        try:
            is_same = table_identity(self.table.home) == self.identity
            self._gone = not is_same or SERVICE_STATUS.name not in self.schema.options
        except NotFoundError:
            self._gone = True
        except LakeletError as error:
            _LOG.warning("table %s: whether it is still there cannot be told: %s", self.name, error)
        return not self._gone

    @property
    def identity(self) -> str:
        """The identity of the table that was opened."""
        if self._identity is None:
            self._identity = table_identity(self.table.home)
        return self._identity

    # ------------------------------------------------------------------ its writer

    @property
    def writer(self) -> RowWriter | None:
        """The writer, None where no row has come since the start. One that is being closed may have rows that are not
        committed yet, one that could not commit them has them still."""
        return self._writer

    def open_writer(self) -> RowWriter:
        """The writer, opened by the first call; what a crash left in its log is committed first."""
        found = self._writer
        if found is not None and not self._closed:
            return found
        with self._lock:
            if self._closed:
                raise InvalidError(f"table {self.name!r} is not served any more")
            if self._writer is None:
                from lakelet.realtime.open import open_writer  # noqa: PLC0415 - loaded by the first row.

                copy = None if self._copies is None else self._copies(self)
                self._writer = open_writer(self.table.home, self._wal_folder, _WRITER_OPTIONS, copy)
            return self._writer

    @property
    def has_log(self) -> bool:
        """Whether there are logs, in which a crash may have left rows."""
        return bool(log_numbers(self.wal_path))

    @property
    def wal_path(self) -> str:
        """The folder of its logs."""
        return wal_path(self._wal_folder, self.identity)

    @property
    def log_folder(self) -> str:
        """The name of that folder, the same on all nodes."""
        return os.path.basename(self.wal_path)

    @property
    def buffered_records(self) -> int:
        """Records that are in the log and not committed yet."""
        found = self._writer
        return 0 if found is None else sum(memtable.rows for memtable in found.status().memtables)

    def close(self) -> None:
        """Commit all rows and close the writer; where that fails the rows stay in the log."""
        with self._lock:
            self._closed = True
            writer = self._writer
        if writer is not None:
            with self._closing:
                writer.close()

    def flush(self) -> None:
        """Commit all rows that are buffered; of a table that is being closed, wait until they are committed."""
        writer = self._writer
        if writer is None:
            return
        try:
            writer.flush()
        except InvalidError:
            if not self._closed:
                raise
            with self._closing:
                if self.buffered_records:
                    raise UnavailableError(
                        f"table {self.name!r} is closed, and has rows that are not committed"
                    ) from None

    def check_writable(self, schema: TableSchema) -> None:
        """InvalidError for a table that takes no rows."""
        status = TableOptions(schema.options).get(SERVICE_STATUS) or ACTIVE
        if status != ACTIVE:
            raise InvalidError(
                f"table {self.name!r} is {status} and takes no rows"
                + ("" if status == DELETING else "; set its status to active first")
            )


def exact_integers(schema: TableSchema) -> frozenset[str]:
    """The payload fields that were declared BIGINT, or have held integers beyond 2^53."""
    text = TableOptions(schema.options).get(SERVICE_EXACT_INTEGERS)
    return frozenset(json.loads(text)) if text else frozenset()


def declared_integers(schema: TableSchema) -> frozenset[str]:
    """The payload fields of a new table that are BIGINT, or have it inside."""
    payload = next((field.type for field in schema.fields if field.name == PAYLOAD), None)
    fields = payload.fields if isinstance(payload, Row) else ()
    return frozenset(field.name for field in fields if _has_bigint(field.type))


def _has_bigint(data_type: DataType) -> bool:
    match data_type:
        case Atomic(kind=Kind.BIGINT):
            return True
        case Array(element):
            return _has_bigint(element)
        case Map(_, value_type):
            return _has_bigint(value_type)
        case Row(fields):
            return any(_has_bigint(field.type) for field in fields)
    return False


def is_attached(schema: TableSchema) -> bool:
    """Whether a table was made elsewhere."""
    return TableOptions(schema.options).get(SERVICE_ATTACHED)
