"""`table.writer()`: rows one at a time, durable and readable when the call returns, committed in the background.

put, put_many, delete ── row_encoder ── log_writer: log, then memtable
                                                      │ sealed at its threshold
get, scan ── memtables, newest first, over a snapshot │
                                                      ▼
                                  flush_worker: level-0 files, one snapshot for each memtable, log deleted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from lakelet.commit.metadata.schema_watch import SchemaWatch
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import InvalidError, TooLargeError
from lakelet.format.wal.wal_group import WalKey
from lakelet.format.wal.wal_record import DELETE
from lakelet.lsm.engine.removal import removal
from lakelet.model.schema import TableSchema
from lakelet.options import IGNORE_DELETE, TableOptions
from lakelet.read.evolve import evolve_batch
from lakelet.realtime.flush import is_in_snapshot
from lakelet.realtime.flush_worker import FlushWorker
from lakelet.realtime.memtable import held_values, keeps_first
from lakelet.realtime.memtables import Memtables
from lakelet.realtime.nested_row import MOST_NESTED_ROWS, NestedRows
from lakelet.realtime.plain_row import PlainRows
from lakelet.realtime.read.known_version import KnownVersions
from lakelet.realtime.read.pinned_memtables import PinnedMemtable
from lakelet.realtime.read.point_lookup import PointLookup
from lakelet.realtime.read.writer_scan import MemtableRows, WriterScan
from lakelet.realtime.row_encoder import EncodedRows, RowEncoder, encoded_together
from lakelet.realtime.settings import RowWriterSettings
from lakelet.realtime.supported import check_supported
from lakelet.realtime.wal.key_file import is_valid
from lakelet.realtime.wal.log_copy import LogCopy
from lakelet.realtime.wal.log_writer import LogWriter
from lakelet.realtime.wal.recovery import RecoveredLog
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.realtime.writer_status import MemtableStatus, WriterStatus
from lakelet.storage.home import TableHome
from lakelet.table.read.condition import Condition, check_condition, parsed_condition
from lakelet.table.read.key_range import key_range
from lakelet.table.read.point_read import chosen_columns, key_table
from lakelet.table.read.table_scan import TableScan


class RowWriter:
    """A writer of one table, for any number of threads. Made by `table.writer()`; `close` it, or use it in a `with`.

    `recovered` says what was found in logs of an earlier writer.
    """

    def __init__(
        self,
        home: TableHome,
        identity: str,
        user: str,
        settings: RowWriterSettings,
        folder: WalFolder,
        memtables: Memtables,
        log: WalFile,
        recovered: Sequence[RecoveredLog],
        copy: LogCopy | None = None,
    ) -> None:
        self.recovered = tuple(recovered)
        self._home = home
        self._user = user
        self._settings = settings
        self._folder = folder
        self._memtables = memtables
        self._schemas = SchemaWatch(home)
        self._last_encoder: RowEncoder | None = None
        self._last_plain: tuple[TableSchema, PlainRows | None] | None = None
        self._last_nested: tuple[RowEncoder, NestedRows | None] | None = None
        self._closed = False
        self._known = KnownVersions(home)
        self._lookup = PointLookup(home, user, memtables)
        self._copy = copy
        self._log = LogWriter(home, folder, settings, memtables, log, user, copy)
        self._worker = FlushWorker(home, identity, user, folder, memtables, self._log, settings.flushes, copy)

    # ------------------------------------------------------------------ writing

    def put(self, row: Mapping[str, object]) -> None:
        """Insert a row, or replace the one with its key."""
        if not isinstance(row, Mapping):
            raise InvalidError(f"row: expected a mapping of column to value, found {type(row).__name__}")
        self._log.check_usable()
        encoder = self._encoder()
        encoded = encoder.encode_plain(row)
        if encoded is None or not self._log.write(encoded, encoder.schema):
            self.put_many([dict(row)])

    def put_many(self, data: Any) -> None:
        """Put rows: anything that `Table.write` takes. All are durable when it returns; after an error or a crash some pieces of
        them may be, each of up to 65,536 rows, which are there whole or not at all."""
        self._log.check_usable()
        encoder = self._encoder()
        for rows in encoder.batches(data):
            encoder = self._write(encoder, rows)

    def put_together(self, data: Any, keys: Sequence[WalKey] = ()) -> None:
        """Put rows like `put_many`, but all of them or none, also after a crash: they are checked first, and are one group of the
        log, together with the names of the writes that they come from. TooLargeError for more than a memtable holds."""
        self._log.check_usable()
        while True:
            encoder = self._encoder()
            encoded = self._few_rows(encoder, data)
            if encoded is None:
                pieces = [encoder.encode(piece) for piece in encoder.batches(data)]
                if not pieces and not keys:
                    return
                encoded = encoded_together(pieces, encoder.schema.id)
            self._check_fits(encoded)
            if self._log.write(encoded._replace(write_keys=tuple(keys)) if keys else encoded, encoder.schema):
                return

    def check_rows(self, data: Any, schema: TableSchema) -> None:
        """Check rows as `put_together` does if the table has this schema, and put none."""
        self._log.check_usable()
        encoder = self._encoder()
        if encoder.schema.fields != schema.fields:
            check_supported(schema)
            encoder = RowEncoder(self._home, schema, self._settings.memtable_bytes)
        encoded = self._few_rows(encoder, data)
        if encoded is None:
            pieces = [encoder.encode(piece) for piece in encoder.batches(data)]
            if not pieces:
                return
            encoded = encoded_together(pieces, schema.id)
        self._check_fits(encoded)

    def find_keys(self, names: Sequence[bytes]) -> dict[bytes, WalKey]:
        """The writes of these names that were made within the last day."""
        self._log.check_usable()
        now, found = self._home.clock.now_ms(), dict[bytes, WalKey]()
        with self._memtables.changed:
            for memtable in self._memtables.all:
                found.update((name, memtable.write_keys[name]) for name in names if name in memtable.write_keys)
        found = {name: key for name, key in found.items() if is_valid(key.time_ms, now)}
        # After memory: names are kept in the file before their memtable is gone.
        return {**self._folder.keys.find([name for name in names if name not in found], now), **found}

    def keep_keys(self, keys: Sequence[WalKey]) -> None:
        """Keep names of writes that were made elsewhere, durably when it returns."""
        self._folder.keys.keep(keys, self._home.clock.now_ms())

    def put_if_absent(self, row: Mapping[str, object]) -> bool:
        """Insert a row unless there is one with its key; whether it was inserted. No other call of this writer comes between the
        look and the insertion."""
        if not isinstance(row, Mapping):
            raise InvalidError(f"row: expected a mapping of column to value, found {type(row).__name__}")
        self._log.check_usable()
        while True:
            encoder = self._encoder()
            _check_keyed(encoder.schema, "put_if_absent")
            (rows,) = encoder.batches([dict(row)])
            key = pa.Table.from_batches([rows.select(list(encoder.schema.primary_keys))])
            found = self._lookup.find(key, encoder.schema)
            if found.first() is not None:
                return False
            if self._log.write(encoder.encode(rows), encoder.schema, found.seen):
                return True

    def delete(self, key: Mapping[str, object], values: Mapping[str, object] | None = None) -> bool:
        """Delete the row with this primary key; False where there is none. The deletion carries the row (docs/decisions/0011),
        and these values instead of the row's: the columns of `sequence.field`, by which it wins against the row."""
        self._log.check_usable()
        while True:
            encoder = self._encoder()
            wanted = _one_key(key, encoder.schema, "delete")
            _check_deletes(encoder.schema)
            found = self._lookup.find(wanted, encoder.schema)
            row = found.first()
            if row is None:
                return False
            removing = removal(encoder.schema)
            row = row if removing is None else removing.bare(row)
            # The row that the deletion carries is the one that is deleted: another call may have come between.
            deletion = encoder.encode(_with_values(row, values), DELETE) if values else encoder.encode(row, DELETE)
            if self._log.write(deletion, encoder.schema, found.seen):
                return True

    def flush(self) -> None:
        """Commit all rows that were put so far; UnavailableError where that fails, and the rows stay in the log."""
        self._log.check_usable()
        # Without room nothing can be sealed before an earlier flush succeeds.
        self._worker.hurry()
        self._worker.wait_for(self._log.seal())

    def close(self) -> None:
        """Commit all rows and release the log. Where the commit fails, the error is raised and the rows stay in the log for the
        next writer."""
        self._log.check_process()
        with self._memtables.changed:
            if self._closed:
                return
            self._closed = True
        is_committed = False
        try:
            self._log.refuse()
            self._worker.wait_for(self._log.seal())
            is_committed = True
        finally:
            self._worker.stop()
            self._log.close()
            self._folder.close()
            self._known.close()
            if self._copy is not None:
                self._copy.close(all_committed=is_committed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ reading

    def get(self, key: Mapping[str, object], columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The newest row with this primary key as a dict, None where there is none: one that was put here, else the table's."""
        self._log.check_usable()
        known = self._known.newest
        if known is not None and columns is None and type(key) is dict:
            found_row = self._lookup.known_row(key, known)
            if found_row is not None:
                return found_row[0]
        moment = self._known.moment()
        schema = self._newest_schema()
        names = chosen_columns(columns, schema)
        plain = self._plain_rows(schema)
        encoded = plain.encode_key(key) if plain is not None and isinstance(key, Mapping) else None
        recent = None if encoded is None else self._lookup.find_recent(encoded, schema)
        if recent == b"":
            stored, rows = self._lookup.stored_row(key, schema, columns)
            self._known.keep(moment, schema, plain, rows)
            return stored
        if plain is not None and recent is not None:
            row = None if recent[0] == DELETE else plain.decode(recent[1:])
            return row if row is None or columns is None else {name: row[name] for name in names}
        found = self._lookup.find(_one_key(key, schema, "get"), schema).first()
        return None if found is None else found.select(list(names)).to_pylist()[0]

    def get_many(self, keys: Any, columns: Sequence[str] | None = None) -> list[dict[str, Any] | None]:
        """The newest row of each key, in the order of the keys, None where there is none. `keys` is anything that `Table.write`
        takes; only its primary-key columns are used."""
        self._log.check_usable()
        schema = self._newest_schema()
        names = chosen_columns(columns, schema)
        _check_keyed(schema, "get_many")
        plain = self._plain_rows(schema)
        stored = None if plain is None else self._lookup.stored_rows(keys, plain, schema, columns)
        if stored is not None:
            return stored
        wanted = key_table(keys, schema)
        return self._lookup.find(wanted, schema).in_places(wanted.num_rows, names)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        limit: int | None = None,
        *,
        start: Mapping[str, object] | None = None,
        end: Mapping[str, object] | None = None,
        prefix: Mapping[str, object] | None = None,
    ) -> WriterScan:
        """The rows of the table at this moment, with those that were put here and are not committed yet.

        With `start` (included), `end` (excluded) or `prefix`, the rows with such keys in the order of their keys. Each names the
        primary key or its first columns; of a prefix the last value may be the begin of a text.
        """
        self._log.check_usable()
        _check_limit(limit)
        check_condition(where)
        # Memory comes before the snapshot: what is flushed in between is in both, and found there.
        with self._memtables.changed:
            held = [(memtable, memtable.copy()) for memtable in self._memtables.all if len(memtable)]
        snapshot = latest_snapshot(self._home)
        schema = self._newest_schema()
        keys = key_range(schema, start=start, end=end, prefix=prefix)
        # What came first is in the snapshot, if it is in both.
        memory = tuple(
            MemtableRows(memtable.schema, values)
            for memtable, values in held
            if memtable.keeps_first or not is_in_snapshot(self._home, self._user, memtable, snapshot, schema)
        )
        names = chosen_columns(columns, schema)
        scan = TableScan(self._home, schema, snapshot, names, parsed_condition(where, schema), limit)
        return WriterScan(scan, memory, keys)

    def pin(self) -> tuple[PinnedMemtable, ...]:
        """The rows that are not known to be committed, for a reader in another process (`with_pinned`). A writer that is being
        closed still has them."""
        self._log.check_process()
        # Read first: what is flushed from now on is committed behind it.
        latest = latest_snapshot(self._home)
        newest = 0 if latest is None else latest.id
        if self._copy is not None:
            # So that readers need not look at what was committed since they were opened.
            for one in self._memtables.all:
                is_in_snapshot(self._home, self._user, one, latest, one.schema)
        with self._memtables.changed:
            held = [
                (one, newest if one.flush_base is None else one.flush_base, one.committed_in, one.copy())
                for one in self._memtables.all
                if len(one)
            ]
        # Encoded behind the lock, which puts wait for.
        return tuple(
            PinnedMemtable(
                self._user, one.sequence_number, one.schema.id, base, committed, held_values(rows, one.schema)
            )
            for one, base, committed, rows in held
        )

    def status(self) -> WriterStatus:
        """What the writer holds and has done."""
        with self._memtables.changed:
            worker = self._worker
            return WriterStatus(
                wal_folder=self._folder.path,
                commit_user=self._user,
                memtables=tuple(
                    MemtableStatus(one.sequence_number, one.state.value, len(one), one.memory_size)
                    for one in self._memtables.all
                ),
                flushed_memtables=worker.flushed,
                failed_flushes=worker.failures,
                last_error=None if worker.last_error is None else str(worker.last_error),
                last_snapshot_id=worker.last_snapshot,
                syncs=self._log.syncs,
                closed=self._closed,
            )

    # ------------------------------------------------------------------ inside

    def _encoder(self) -> RowEncoder:
        """The encoder of the newest schema; expressions for defaults are evaluated anew by every call."""
        schema = self._newest_schema()
        known = self._last_encoder
        if known is not None and known.schema.id == schema.id and not known.has_expressions:
            return known
        check_supported(schema)
        made = RowEncoder(self._home, schema, self._settings.memtable_bytes)
        self._last_encoder = made
        return made

    def _plain_rows(self, schema: TableSchema) -> PlainRows | None:
        """What encodes plain rows of a schema."""
        known = self._last_plain
        if known is None or known[0] is not schema:
            known = self._last_plain = (schema, PlainRows.of(schema))
        return known[1]

    def _check_fits(self, rows: EncodedRows) -> None:
        most = self._settings.memtable_bytes
        if rows.row_count > 1 and len(rows.records) > most:
            raise TooLargeError(
                f"{rows.row_count} rows take {len(rows.records)} bytes, more than a memtable holds: {most} (option "
                "'memtable.size'); put fewer at a time"
            )

    def _few_rows(self, encoder: RowEncoder, data: Any) -> EncodedRows | None:
        """Rows that need no Arrow; None for others."""
        if not isinstance(data, list) or not 0 < len(data) <= MOST_NESTED_ROWS or encoder.has_expressions:
            return None
        known = self._last_nested
        if known is None or known[0] is not encoder:
            known = self._last_nested = (encoder, NestedRows.of(encoder.schema, self._settings.memtable_bytes))
        return None if known[1] is None else known[1].encode(data)

    def _newest_schema(self) -> TableSchema:
        """The newest schema, looked for by every call: an ALTER that was finished before it is seen. While the store is silent
        it is the last one that is known."""
        found = self._known.schema()
        if found is None:
            moment = self._known.moment()
            found = self._schemas.newest()
            self._known.keep_schema(moment, found)
        active = self._memtables.active.schema
        return active if active.id > found.id else found

    def _write(self, encoder: RowEncoder, rows: pa.RecordBatch) -> RowEncoder:
        """Write rows in the newest schema: an ALTER may have come between their encoding and their turn."""
        while not self._log.write(encoder.encode(rows), encoder.schema):
            newer = self._encoder()
            rows = newer.cast(evolve_batch(rows, encoder.schema.fields, newer.schema.fields))
            encoder = newer
        return encoder


def _check_limit(limit: object) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidError(f"limit {limit!r}: expected a whole number from 0 on")


def _check_keyed(schema: TableSchema, what: str) -> None:
    if not schema.primary_keys:
        raise InvalidError(f"{what}: the table has no primary key, so that no row has a key to be found by")


def _check_deletes(schema: TableSchema) -> None:
    removal(schema)
    if keeps_first(schema):
        raise InvalidError("delete: the table keeps the first row of each key ('merge-engine' = 'first-row')")
    if TableOptions(schema.options).get(IGNORE_DELETE):
        raise InvalidError("delete: the table drops deletes, for its option 'ignore-delete' is on")


def _with_values(row: pa.RecordBatch, values: Mapping[str, object]) -> pa.RecordBatch:
    """A row with other values in some columns."""
    columns = row.columns
    for name, value in values.items():
        place = row.schema.get_field_index(name)
        if place < 0:
            raise InvalidError(f"values: there is no column {name!r}")
        try:
            columns[place] = pa.array([value], row.schema.field(place).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise InvalidError(f"values: column {name!r}: {error}") from None
    return pa.RecordBatch.from_arrays(columns, schema=row.schema)


def _one_key(key: Mapping[str, object], schema: TableSchema, what: str) -> pa.Table:
    if not isinstance(key, Mapping):
        raise InvalidError(f"key: expected a mapping of column to value, found {type(key).__name__}")
    _check_keyed(schema, what)
    return key_table([dict(key)], schema)
