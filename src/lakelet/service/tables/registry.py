"""The tables that the service serves: found in the warehouse by their options, created, changed and dropped.

    start   every table with the option service.status is served; one that is `deleting` is deleted
    create  default.<name>, or an existing table by properties.attach
    drop    its rows are committed, its service.* options removed; with cascade: status deleting, then its files

Nothing is remembered beside the warehouse, so that a restart, or another process, finds the same tables. Where several processes
serve one warehouse, `find` and `load_new` bring in what another one created, `release` and `follow` let go what it dropped
(`table_search`).
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING

from lakelet.catalog.lake import Lake
from lakelet.clock import Clock
from lakelet.errors import AlreadyExistsError, InvalidError, LakeletError, NotFoundError, UnavailableError
from lakelet.model.schema import TableSchema
from lakelet.model.types import TIMESTAMPS, Atomic, Kind
from lakelet.options import (
    SERVICE_ATTACHED,
    SERVICE_CREATED_AT,
    SERVICE_EXACT_INTEGERS,
    SERVICE_NAME,
    SERVICE_STATUS,
)
from lakelet.realtime.supported import check_supported
from lakelet.service.tables.served_table import OpenTable, declared_integers
from lakelet.service.tables.table_config import (
    altered_config,
    check_table_name,
    config_options,
    effective_config,
)
from lakelet.service.tables.table_layout import (
    ATTACH,
    ID,
    RETENTION_OPTIONS,
    TIMESTAMP,
    planned_layout,
    retention_options,
)
from lakelet.service.timestamps import timestamp_text
from lakelet.service.values import (
    ACTIVE,
    ARCHIVED,
    DELETING,
    AlterTableRequest,
    CreateTableRequest,
    DropTableRequest,
    DropTableResult,
    TableConfig,
)

if TYPE_CHECKING:
    from lakelet.realtime.wal.log_copy import LogCopy
    from lakelet.table import Table

DATABASE = "default"
_SERVICE = "service."
_LOG = logging.getLogger(__name__)


class TableRegistry:
    """The served tables by name; for any number of threads. Changes of one table come one after the other."""

    def __init__(self, lake: Lake, wal_folder: str | PathLike[str] | None, clock: Clock) -> None:
        self._lake = lake
        self._wal_folder = wal_folder
        # What copies the logs of tables to another node.
        self.copies: Callable[[OpenTable], LogCopy] | None = None
        self._clock = clock
        self._tables: dict[str, OpenTable] = {}
        self._left_out: dict[str, str] = {}
        self._lock = threading.Lock()
        self._changes = threading.Lock()

    # ------------------------------------------------------------------ looking

    def names(self) -> list[str]:
        """The names of all served tables."""
        with self._lock:
            return sorted(self._tables)

    def open(self, name: str) -> OpenTable:
        """A served table by its exact name. The NotFoundError names no others: the caller may have no right to know them."""
        found = self._tables.get(name)
        if found is None:
            if name in self._left_out:
                raise UnavailableError(
                    f"table {name!r} could not be opened when the service started; its log says why", nothing_done=True
                )
            raise NotFoundError(f"table {name!r} is not served here")
        return found

    def try_open(self, name: str) -> OpenTable | None:
        """A served table by its exact name, None where there is none."""
        return self._tables.get(name)

    def check_opened(self, name: str) -> None:
        """UnavailableError for a table whose logs may have rows that nobody could read."""
        if name in self.left_out():
            raise UnavailableError(
                f"table {name!r} could not be opened here: its logs may have rows", nothing_done=True
            )

    def is_left_out(self, name: str) -> bool:
        """Whether a table of this name could not be opened."""
        return name in self._left_out

    def left_out(self) -> dict[str, str]:
        """The tables that could not be opened, and why."""
        with self._lock:
            return dict(self._left_out)

    def all(self) -> list[OpenTable]:
        """All served tables."""
        with self._lock:
            return [self._tables[name] for name in sorted(self._tables)]

    # ------------------------------------------------------------------ start and stop

    def load(self) -> None:
        """Find the served tables of the warehouse, finish drops that were interrupted, and recover rows from logs."""
        self._lake.create_database(DATABASE, if_not_exists=True)
        for database in self._lake.databases():
            for name in self._lake.tables(database):
                try:
                    self._load_one(f"{database}.{name}")
                except LakeletError as error:
                    self._leave_out(name, error)
        for opened in self.all():
            with suppress(LakeletError, OSError):
                self._recover_rows(opened)

    def close(self) -> list[tuple[str, Exception]]:
        """Commit all rows and close all writers; the tables whose rows stay in their logs, and why."""
        failed: list[tuple[str, Exception]] = []
        for opened in self.all():
            try:
                opened.close()
            except Exception as error:
                failed.append((opened.name, error))
        return failed

    def load_table(self, full_name: str) -> None:
        """Serve a table that has come back since the start, if it is not served already, and commit the rows of its logs."""
        with self._changes:
            if all(opened.table.name != full_name for opened in self.all()):
                self._load_one(full_name, recovers=True)
            for opened in self.all():
                if opened.table.name == full_name:
                    self._recover_rows(opened)

    # ------------------------------------------------------------------ other nodes

    def find(self, name: str) -> bool:
        """Serve a table that another process has created or attached meanwhile; whether there is one."""
        if not self.find_by_name(name):
            # One that is attached may have another name in the lake.
            self.load_new()
        return name in self._tables

    def find_by_name(self, name: str) -> bool:
        """Serve a table that another process has created meanwhile, by its own name; whether there is one."""
        with self._changes:
            if name not in self._tables:
                with suppress(NotFoundError):
                    self._load_one(f"{DATABASE}.{name}", is_sole=False, recovers=True)
            return name in self._tables

    def load_new(self) -> bool:
        """Serve what other nodes have created or attached; whether there was anything."""
        with self._changes:
            before = len(self._tables)
            self._load_new()
            return len(self._tables) > before

    def follow(self) -> None:
        """Serve what other nodes have created or attached, and release what they have dropped."""
        self.load_new()
        for opened in self.all():
            try:
                status = opened.table.options.get(SERVICE_STATUS.name)
            except NotFoundError:
                status = None
            if status in (None, DELETING):
                self.leave(opened.name, is_deleted=True)

    def leave(self, name: str, *, is_deleted: bool) -> None:
        """Commit the rows of a table that another node drops, and serve it no more."""
        with self._changes:
            opened = self._tables.get(name)
            if opened is None:
                if not is_deleted:
                    self.check_opened(name)
                return
            if is_deleted:
                _close_for_deletion(opened)
            else:
                opened.flush()
                opened.close()
            with self._lock:
                del self._tables[name]

    def release(self, opened: OpenTable) -> None:
        """Serve a table no more that another process has dropped, detached or created again. Rows that are buffered are committed
        where the table is still there; else they stay in its log: it may have been moved."""
        with self._changes:
            if self._tables.get(opened.name) is not opened:
                return
            _close_for_deletion(opened)
            with self._lock:
                del self._tables[opened.name]

    def _load_new(self) -> None:
        known = {opened.table.name for opened in self.all()}
        for database in self._lake.databases():
            for name in self._lake.tables(database):
                if f"{database}.{name}" not in known:
                    # Its own node finds out what is wrong with it; one that is left out here is tried again.
                    with suppress(LakeletError, OSError):
                        self._load_one(f"{database}.{name}", is_sole=False, recovers=True)

    def _recover_rows(self, opened: OpenTable) -> None:
        """Commit the rows of a table's logs. Where that fails it is served no more: it would answer with fewer rows than were
        acknowledged."""
        try:
            self._open_log(opened)
        except (LakeletError, OSError):
            with self._lock:
                del self._tables[opened.name]
            raise

    def _open_log(self, opened: OpenTable) -> None:
        try:
            if opened.has_log:
                opened.open_writer()
        except (LakeletError, OSError) as error:
            self._leave_out(opened.name, error)
            raise

    def _load_one(self, full_name: str, *, is_sole: bool = True, recovers: bool = False) -> None:
        """Serve a table if it is to be; where this node `is_sole` to start, an interrupted drop is finished. Once the service
        runs, the rows of its logs are committed first (`recovers`): whoever finds the table finds them."""
        table = self._lake.table(full_name)
        options = table.options
        status = options.get(SERVICE_STATUS.name)
        if status is None:
            return
        name = options.get(SERVICE_NAME.name) or full_name.split(".", 1)[1]
        opened = OpenTable(name, table, self._wal_folder, self.copies, self._clock)
        if status == DELETING:
            if is_sole:
                self._delete(opened)
            return
        if name in self._tables:
            raise AlreadyExistsError(f"{full_name} is served as {name!r}, and so is {self._tables[name].table.name}")
        # Known from now on: rows are taken also while the store is silent.
        opened.schema  # noqa: B018 - looked for, and kept.
        if recovers:
            self._open_log(opened)
        with self._lock:
            self._left_out.pop(name, None)
            self._tables[name] = opened

    def _leave_out(self, name: str, error: Exception) -> None:
        """Go on without a table that cannot be opened: the others have done nothing."""
        kind = type(error).__name__
        with self._lock:
            is_known = self._left_out.get(name) == kind
            self._left_out[name] = kind
        if not is_known:
            _LOG.error("table %s cannot be served: %s", name, error)

    # ------------------------------------------------------------------ changes

    def create(self, request: CreateTableRequest) -> tuple[OpenTable, bool]:
        """Create a table, or attach an existing one; the table, and whether it is new here."""
        name = check_table_name(request.table_name)
        config = effective_config(request.config)
        with self._changes:
            known = self._tables.get(name)
            if known is not None:
                if request.if_not_exists:
                    return known, False
                raise AlreadyExistsError(f"table {name!r} exists")
            alike = [one for one in self._tables if one.lower() == name.lower()]
            if alike:
                raise AlreadyExistsError(f"table {name!r} differs from {alike[0]!r} in case alone")
            if ATTACH in config.properties:
                table = self._attached(name, config)
            else:
                table = self._created(name, config)
            opened = OpenTable(name, table, self._wal_folder, self.copies, self._clock)
            if opened.has_log:
                opened.open_writer()
            with self._lock:
                self._tables[name] = opened
            return opened, True

    def alter(self, request: AlterTableRequest) -> OpenTable:
        """Change the configuration or the status of a table."""
        if request.status not in (None, ACTIVE, ARCHIVED):
            raise InvalidError(f"status: expected {ACTIVE} or {ARCHIVED}, found {request.status!r}")
        _check_properties(request.properties)
        with self._changes:
            opened = self.open(request.table_name)
            config = altered_config(opened.config, request)
            changes: dict[str, str | None] = {**config_options(config), **dict(request.properties)}
            if request.retention_days is not None:
                changes.update(dict.fromkeys(RETENTION_OPTIONS))
                given = {**opened.schema.options, **{name: text for name, text in request.properties.items() if text}}
                changes.update(retention_options(tuple(opened.schema.partition_keys), config.retention_days, given))
            if request.status is not None:
                changes[SERVICE_STATUS.name] = request.status
            opened.table.alter(lambda schema: _altered(opened.table, schema, changes))
            return opened

    def drop(self, request: DropTableRequest, leave: Callable[[bool], None] | None = None) -> DropTableResult:
        """Stop serving a table; with `cascade` delete it. `leave` has other nodes release it, told whether it is deleted."""
        with self._changes:
            opened = self._tables.get(request.table_name)
            if opened is None:
                if request.if_exists:
                    return DropTableResult(f"table {request.table_name!r} is not served here: nothing to do")
                raise NotFoundError(f"table {request.table_name!r} is not served here")
            if request.cascade:
                table = opened.table
                table.alter(lambda schema: table.with_options(schema, {SERVICE_STATUS.name: DELETING}))
                if leave is not None:
                    leave(True)
                _close_for_deletion(opened)
                deleted = self._delete(opened)
                answer = DropTableResult(f"table {opened.name!r} dropped, {deleted} files deleted", deleted)
            else:
                # Nothing has changed yet where rows cannot be committed: the table is still served.
                if leave is not None:
                    leave(False)
                opened.flush()
                opened.close()
                self._detach(opened)
                answer = DropTableResult(
                    f"table {opened.name!r} is no longer served; its files stay {opened.table.name}"
                )
            with self._lock:
                del self._tables[opened.name]
            return answer

    def _created(self, name: str, config: TableConfig) -> Table:
        layout = planned_layout(config.properties, config.retention_days)
        full = f"{DATABASE}.{name}"
        if self._lake.table_exists(full):
            raise AlreadyExistsError(
                f"table {full!r} is in the lake and is not served: serve it by the property {ATTACH!r}"
            )
        columns, key, partitions = list(layout.columns), list(layout.primary_key), list(layout.partitioned_by)
        options = {**layout.options, **self._served_options(name, config, attached=False)}
        planned = self._lake.planned_schema(columns, key, partitions, options, None)
        check_supported(planned)
        declared = declared_integers(planned)
        if declared:
            options[SERVICE_EXACT_INTEGERS.name] = json.dumps(sorted(declared), ensure_ascii=False)
        return self._lake.create_table(full, columns, primary_key=key, partitioned_by=partitions, options=options)

    def _attached(self, name: str, config: TableConfig) -> Table:
        wanted = config.properties[ATTACH]
        full = wanted if "." in wanted else f"{DATABASE}.{wanted or name}"
        if not self._lake.table_exists(full):
            raise NotFoundError(f"table {full!r} is not in the lake")
        table = self._lake.table(full)
        schema = table.schema
        if SERVICE_STATUS.name in schema.options:
            raise AlreadyExistsError(f"table {full} is served already, as {schema.options.get(SERVICE_NAME.name)!r}")
        missing = [column for column in (ID, TIMESTAMP) if column not in schema.names]
        if missing:
            raise InvalidError(
                f"table {full} has no column {missing[0]!r}: a table that is attached has {ID} and {TIMESTAMP}, found "
                + ", ".join(schema.names)
            )
        for column, kinds in ((ID, (Kind.VARCHAR,)), (TIMESTAMP, TIMESTAMPS)):
            found = schema.field(column).type
            if not isinstance(found, Atomic) or found.kind not in kinds:
                raise InvalidError(f"table {full}: column {column!r} is {found}, expected {kinds[0].value}")
        changes = self._served_options(name, config, attached=True)
        table.alter(lambda one: table.with_options(one, changes))
        return table

    def _served_options(self, name: str, config: TableConfig, *, attached: bool) -> dict[str, str]:
        return {
            **config_options(config),
            SERVICE_STATUS.name: ACTIVE,
            SERVICE_NAME.name: name,
            SERVICE_CREATED_AT.name: timestamp_text(self._clock.now_ms() * 1000),
            SERVICE_ATTACHED.name: str(attached).lower(),
        }

    def _detach(self, opened: OpenTable) -> None:
        table = opened.table
        stored = [key for key in table.options if key.startswith(_SERVICE)]
        table.alter(lambda schema: table.with_options(schema, dict.fromkeys(stored)))

    def _delete(self, opened: OpenTable) -> int:
        """Delete the files of a table and its logs; how many data files there were."""
        deleted = _file_count(opened)
        # Logs first: with the table nobody would know them any more. One that has lost its identity has lost them before.
        with suppress(NotFoundError):
            shutil.rmtree(opened.wal_path, ignore_errors=True)
        self._lake.drop_table(opened.table.name, if_exists=True)
        return deleted


def _file_count(opened: OpenTable) -> int:
    """The data files of a table; 0 where an interrupted deletion has left too little of it to tell."""
    try:
        return len(opened.table.files())
    except LakeletError:
        return 0


def _close_for_deletion(opened: OpenTable) -> None:
    """Close the writer of a table whose rows are about to be deleted: that they cannot be committed is no reason to stop."""
    try:
        opened.close()
    except LakeletError as error:
        _LOG.warning("table %s is deleted with rows that were not committed: %s", opened.name, error)


def _altered(table: Table, schema: TableSchema, changes: Mapping[str, str | None]) -> TableSchema:
    """A schema with other options; InvalidError where rows of a table that takes them could not be written, or read, any more."""
    altered = table.with_options(schema, changes)
    try:
        check_supported(schema)
    except InvalidError:
        # Attached, and only read.
        return altered
    check_supported(altered)
    return altered


def _check_properties(properties: Mapping[str, str | None]) -> None:
    wrong = [name for name in properties if name.startswith(_SERVICE)]
    if wrong:
        raise InvalidError(f"properties.{wrong[0]}: the service decides this option itself")
