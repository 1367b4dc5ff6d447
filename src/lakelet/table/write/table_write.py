"""The first phase of a write: rows in, commit messages out.

write = table.new_write()
write.write(batches)
messages = write.prepare_commit()          # picklable: another process may commit them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from lakelet.commit.committed_files import new_paths, remove_uncommitted
from lakelet.commit.dropped_table import is_dropped, noticing_drop
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.commit.request import Overwrite
from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.sink.rows.batch_slices import pieces
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.sink.rows.missing_columns import (
    DEFAULT,
    ERROR,
    KEEP,
    missing_columns,
    missing_error,
    missing_policy,
    rows_apart,
)
from lakelet.sink.rows.row_input import batches_of
from lakelet.sink.rows.row_kinds import RowKindGenerator, kinds_of
from lakelet.storage.home import TableHome
from lakelet.table.usable import check_usable
from lakelet.table.write.kept_values import KeptValues
from lakelet.table.write.writable import check_writable
from lakelet.table.write.writer import PinnedVersion, WriterSettings, open_writer

_MOST_BATCH_BYTES = 256 << 20
# The values computed for each row take more memory than the row itself where that is narrow.
_MOST_BATCH_ROWS = 1 << 20


class TableWrite:
    """Writes files for one commit; nothing is visible until the messages are committed.

    `replaces` names the partitions the commit will overwrite, for then their rows and keys are ignored. A `base`
    and `settings` are for engines whose tasks share the work. `carried` names a column of the data that the placer of the
    settings reads, beside the table's own. `missing` says what an upsert does about columns that its rows lack: the table's
    option unless given. `now_ms` is the current time for defaults, that of each call of `write` unless given.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        fixed: Mapping[str, object] | None = None,
        *,
        replaces: Overwrite | None = None,
        base: PinnedVersion | None = None,
        settings: WriterSettings | None = None,
        carried: str | None = None,
        missing: str | None = None,
        now_ms: int | None = None,
    ) -> None:
        # A caller with a deferring home commits the files in this process, and syncs them then.
        self._hands_out = not home.defers
        home = home.deferring()
        self._missing = missing_policy(missing, schema, replaces=replaces is not None)
        if self._missing == KEEP and base is None:
            # Kept values are looked up in the version that the write is based on.
            base = PinnedVersion(latest_snapshot(home), table_uuid=table_uuid(home))
        self._base = base
        self._kept: KeptValues | None = None
        self._lacking: set[tuple[str, ...]] = set()
        self._deletes = False
        self._schema = schema
        self._now_ms = now_ms
        self._defaults = ColumnDefaults.now(schema, home.clock) if now_ms is None else ColumnDefaults.of(schema, now_ms)
        self._caster = RowCaster(schema.fields, self._defaults)
        self._writer = open_writer(home, schema, replaces, base=base, settings=settings)
        self._carried = carried
        self._arrow = arrow_schema(schema.fields)
        self._kind_column = RowKindGenerator.create(schema)
        self._fixed = dict(fixed or {})
        self._rows = 0
        self._home = home
        self._table_uuid = table_uuid(home) if base is None else base.table_uuid
        self._failed = False
        self._messages: tuple[CommitMessage, ...] | None = None

    @classmethod
    def open(cls, home: TableHome, missing: str | None) -> Self:
        """A write on top of the newest snapshot."""
        with noticing_drop(home):
            # The snapshot comes first: a schema read after it knows every column of its rows.
            base = PinnedVersion(latest_snapshot(home), table_uuid=table_uuid(home))
            schema = latest_schema(home)
            check_usable(schema)
            check_writable(schema)
            return cls(home, schema, base=base, missing=missing)

    @property
    def schema(self) -> TableSchema:
        """The schema that rows are written under."""
        return self._schema

    def write(self, data: Any, kinds: Any = None) -> None:
        """Write rows: anything `Table.write` takes. After an error only `abort` is left, since some rows may be missing.

        `kinds` says what each row does, as a list or an array, or as the name of a column of the data.
        """
        with noticing_drop(self._home):
            self._take(data, kinds)

    def _take(self, data: Any, kinds: Any) -> None:
        self._check_usable()
        self._failed = True
        given = _GivenKinds(kinds, self._kind_column)
        self._tell_time()
        incoming = batches_of(
            data,
            schema_with_kinds(self._schema, kinds),
            self._schema.fields,
            apart=rows_apart(self._missing, kinds),
            defaults=self._defaults,
        )
        # Columns with 64-bit offsets may hold more than the table's types can in one piece.
        for batch in (piece for whole in incoming for piece in pieces(whole, _MOST_BATCH_BYTES, _MOST_BATCH_ROWS)):
            rows, row_kinds = given.take(batch, self._rows, self._arrow)
            carried = None if self._carried is None else rows.column(self._carried)
            rows = rows if self._carried is None else rows.drop_columns([self._carried])
            rows = self._without_gaps(self._with_fixed(rows), row_kinds)
            cast = self._caster.cast(rows, first_row=self._rows)
            if row_kinds is None and self._kind_column is not None:
                row_kinds = self._kind_column.kinds(cast, first_row=self._rows)
            if carried is not None:
                cast = cast.append_column(pa.field(str(self._carried), carried.type), carried)
            self._writer.write(cast, row_kinds)
            self._rows += batch.num_rows
        given.check_all_taken()
        self._failed = False

    def _tell_time(self) -> None:
        """Read the clock: each call has a time of its own, unless one was given for all."""
        if self._now_ms is None and self._defaults.expressions:
            self._defaults = ColumnDefaults.now(self._schema, self._home.clock)
            self._caster = RowCaster(self._schema.fields, self._defaults)

    def announce(self, data: Any) -> None:
        """Announce the primary keys of all rows that `write` will be given, for a table in which keys are looked up over all
        partitions: known together, they are looked up once."""
        fields = [self._schema.field(name) for name in self._schema.primary_keys]
        self._writer.announce(self._cast_columns(data, fields))

    def partitions(self, data: Any) -> frozenset[bytes]:
        """The partitions (BinaryRow bytes) that rows belong to."""
        types = self._schema.partition_types
        found: set[bytes] = set()
        for batch in self._cast_columns(data, self._schema.partition_fields):
            found.update(encode_rows(batch.columns, types).unique().to_pylist())
        return frozenset(found)

    def _cast_columns(self, data: Any, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        caster, rows = RowCaster(fields, self._defaults), 0
        names = {field.name for field in fields}
        for batch in batches_of(data, self._arrow, self._schema.fields, defaults=self._defaults):
            filled = self._with_fixed(batch)
            yield caster.cast(filled.select([name for name in filled.schema.names if name in names]), first_row=rows)
            rows += batch.num_rows

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Close the files and return messages about them; once. The files are durable before anybody else knows of them."""
        self._check_usable()
        with noticing_drop(self._home):
            messages = self._writer.prepare_commit()
            if self._hands_out:
                self._home.store.sync(new_paths(self._home, self._schema, messages))
        kept_from = None if self._kept is None else _version(self._base)
        self._messages = tuple(
            replace(message, table_uuid=self._table_uuid, kept_from=kept_from) for message in messages
        )
        return self._messages

    def runs(self, place: Place) -> int:
        """How many sorted runs a bucket had before, for buckets that rows were written to."""
        return self._writer.runs(place)

    def abort(self) -> None:
        """Remove the files, except committed ones."""
        with noticing_drop(self._home):
            if self._messages is None or is_dropped(self._home):
                self._writer.abort()
            else:
                remove_uncommitted(self._home, self._messages)

    def discard(self) -> None:
        """Remove the files without a check, for a caller who knows that they are not committed."""
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

    def _without_gaps(self, rows: pa.RecordBatch, kinds: Kinds | None) -> pa.RecordBatch:
        """The rows with missing columns filled by the policy; defaults are filled in when the rows are cast."""
        if self._missing == DEFAULT or not rows.num_rows:
            return rows
        self._caster.check_names(rows.schema)
        lacking = missing_columns(rows.schema, self._schema.fields)
        adds = kinds is None or bool((kinds & 1 == 0).any())
        if self._missing == ERROR:
            if lacking and adds:
                raise missing_error(lacking, first_row=self._rows)
            return rows
        self._deletes |= kinds is not None and bool((kinds == RowKind.DELETE).any())
        if adds:
            self._lacking.add(lacking)
        # Of two rows of one key, one would keep a value that the other changes.
        if len(self._lacking) > 1 or (self._deletes and self._lacking - {()}):
            self._writer.refuse_unlike_rows()
        if not lacking:
            return rows
        if self._kept is None:
            snapshot = None if self._base is None else self._base.snapshot
            self._kept = KeptValues(self._home, self._schema, snapshot)
        return self._kept.filled(rows, kinds, self._defaults, first_row=self._rows)

    def _with_fixed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the columns of a static partition, where the data leaves them out."""
        for name, value in self._fixed.items():
            if name not in batch.schema.names:
                column = pa.repeat(pa.scalar(value, to_arrow(self._schema.field(name).type)), batch.num_rows)
                batch = batch.append_column(pa.field(name, column.type), column)
        return batch


def _version(base: PinnedVersion | None) -> tuple[int, str]:
    snapshot = None if base is None else base.snapshot
    return (0, "") if snapshot is None else (snapshot.id, snapshot.delta_manifest_list)


def schema_with_kinds(schema: TableSchema, kinds: Any) -> pa.Schema:
    """The columns that data may have: the table's, and the one with row kinds."""
    arrow = arrow_schema(schema.fields)
    if isinstance(kinds, str) and kinds not in arrow.names:
        return arrow.append(pa.field(kinds, pa.string()))
    return arrow


class _GivenKinds:
    """The row kinds given by the caller: none, an array over all rows of one call, or a column."""

    def __init__(self, kinds: Any, kind_column: RowKindGenerator | None) -> None:
        if kinds is not None and kind_column is not None:
            raise InvalidError(
                f"kinds= was given, but the table takes them from its column {kind_column.field!r} (option 'rowkind.field')"
            )
        self._column = kinds if isinstance(kinds, str) else None
        self._kinds = None if kinds is None or self._column is not None else kinds_of(kinds)
        self._taken = 0

    def take(self, batch: pa.RecordBatch, first_row: int, table: pa.Schema) -> tuple[pa.RecordBatch, Kinds | None]:
        """A batch without the column that only holds kinds, and the kinds of its rows."""
        if self._column is not None:
            if self._column not in batch.schema.names:
                raise InvalidError(
                    f"kinds: the data has no column {self._column!r}; there are {', '.join(batch.schema.names)}"
                )
            kinds = kinds_of(batch.column(self._column), first_row=first_row)
            keeps = self._column in table.names
            return batch if keeps else batch.drop_columns([self._column]), kinds
        if self._kinds is None:
            return batch, None
        part = self._kinds[self._taken : self._taken + batch.num_rows]
        self._taken += batch.num_rows
        if len(part) < batch.num_rows:
            raise self._wrong_number()
        return batch, part

    def check_all_taken(self) -> None:
        """InvalidError where there were more kinds than rows."""
        if self._kinds is not None and self._taken != len(self._kinds):
            raise self._wrong_number()

    def _wrong_number(self) -> InvalidError:
        count = 0 if self._kinds is None else len(self._kinds)
        rows = f"at least {self._taken}" if self._taken > count else str(self._taken)
        return InvalidError(f"kinds: expected one for each row, found {count} kinds and {rows} rows")
