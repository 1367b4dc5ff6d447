"""A table of a sandboxed query: one version of it, with the rows that its writer has buffered.

plain files ── read by DuckDB ──┐
merged files ── read by us ─────┼── UNION ALL ── the view under the table's name
rows in memtables ── Arrow ─────┘
                      └── their keys hide the committed rows of a table with a primary key
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.model.types import FLOATS, Atomic, Field, Row
from lakelet.realtime.memtable import keeps_first
from lakelet.realtime.read.writer_scan import WriterScan
from lakelet.sql.engine.duck_types import duck_type, has_floats
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.query.plans import Plans
from lakelet.sql.query.relation import Rows
from lakelet.sql.query.table_view import TableView, cast_columns, table_view
from lakelet.table.read.table_scan import TableScan

PAYLOAD = "payload"
# Where the payload of a table stands that has no field yet.
_BEHIND = "timestamp"


@dataclass(frozen=True, slots=True)
class Overlay:
    """What memory has of a table: the rows that win, and the primary keys whose committed rows are superseded."""

    rows: pa.Table | None
    replaced: pa.Table | None


@dataclass(frozen=True, slots=True)
class TableShare:
    """The rows of a table that one node of several reads: the committed ones of some splits, by their names, or of all, of the
    plan that is pruned by the conditions `texts`; and what memory has."""

    texts: tuple[str, ...]
    splits: frozenset[str] | None
    overlay: Overlay


@dataclass(frozen=True, slots=True)
class SandboxTable:
    """One version of a table, opened once for all its uses in a query, so that all of them see the same rows.

    `buffered` has the rows that are not in the snapshot of `scan`. The columns `hidden` are left out of `SELECT *`. With
    `lacks_payload`, a column `payload` without a value stands for the one that the first field will add. With a `share` only the
    rows of it are read.
    """

    name: str
    scan: TableScan
    buffered: WriterScan | None = None
    hidden: tuple[str, ...] = ()
    lacks_payload: bool = False
    share: TableShare | None = None

    @property
    def has_buffered_rows(self) -> bool:
        """Whether rows are in memory alone."""
        return self.buffered is not None and bool(self.buffered.memory)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns that `SELECT *` gives, with DuckDB's names of their types."""
        shown = [
            (field.name, duck_type(field.type)) for field in self.scan.schema.fields if field.name not in self.hidden
        ]
        return _with_payload(shown, (PAYLOAD, "INTEGER")) if self.lacks_payload else shown

    def payload_fields(self) -> tuple[Field, ...] | None:
        """The fields of the payload, none where it has no field yet; None where the table has no payload."""
        if self.lacks_payload:
            return ()
        payload = self.payload
        return payload.type.fields if payload is not None and isinstance(payload.type, Row) else None

    @property
    def payload(self) -> Field | None:
        """The column of the payload; None where the table has none yet."""
        fields = self.scan.schema.fields
        return next((one for one in fields if one.name.lower() == PAYLOAD and isinstance(one.type, Row)), None)

    @property
    def is_overlaid(self) -> bool:
        """Whether rows in memory are put beside the committed ones by their keys alone."""
        schema = self.scan.schema
        return _is_joined_by_key(schema.primary_keys, schema.fields) and not keeps_first(schema)

    def overlay(self) -> Overlay:
        """What memory has, where the table is overlaid."""
        if self.buffered is None or not self.buffered.memory:
            return Overlay(None, None)
        return Overlay(*self.buffered.overlay())

    def count(self) -> int | None:
        """The number of rows, if it is known without reading any."""
        if self.scan.schema.primary_keys or self.scan.fallback is not None or self.share is not None:
            return None
        memory = () if self.buffered is None else self.buffered.memory
        return self.scan.count() + sum(len(part.values) for part in memory)

    def is_converted(self, view: TableView) -> bool:
        """Whether payloads of files are made anew field by field: for floating-point numbers, or for fields that came later."""
        payload = self.payload
        return payload is not None and (has_floats(payload.type) or set(view.assigned.native) != {self.scan.schema.id})

    def view_sql(self, space: Space, view: TableView, part: Field | None = None, *, with_hidden: bool) -> str:
        """The query that gives the rows: those of the view of the committed part, and the buffered ones; with `part`, these
        fields of the payload alone."""
        return self._shown_sql(self._rows_sql(space, view, part), with_hidden=with_hidden)

    def empty_sql(self, *, with_hidden: bool) -> str:
        """The query that gives no rows, with the columns of `view_sql`."""
        nulls = [f"CAST(NULL AS {duck_type(one.type)}) AS {quoted(one.name)}" for one in self.scan.schema.fields]
        return self._shown_sql(f"SELECT {', '.join(nulls)} WHERE false", with_hidden=with_hidden)

    def shown(self, *, with_hidden: bool) -> list[str]:
        """The names of the columns of `view_sql`."""
        names = [(field.name, "") for field in self.scan.schema.fields if with_hidden or field.name not in self.hidden]
        return [name for name, _ in (_with_payload(names, (PAYLOAD, "")) if self.lacks_payload else names)]

    def _shown_sql(self, rows: str, *, with_hidden: bool) -> str:
        names = [quoted(name) for name in self.shown(with_hidden=with_hidden)]
        if len(names) == len(self.scan.schema.fields) and not self.lacks_payload:
            return rows
        if self.lacks_payload:
            names = [f"CAST(NULL AS INTEGER) AS {name}" if name == quoted(PAYLOAD) else name for name in names]
        return f"SELECT {', '.join(names)} FROM ({rows})"

    def committed(self, plans: Plans, texts: Sequence[str], limit: int | None) -> TableView:
        """The view of the committed part, pruned by conditions of which every needed row satisfies one."""
        if self.share is not None:
            return plans.view(self.scan, self.share.texts, _location(self.scan), self.share.splits)
        if self.scan.fallback is not None:
            return table_view(self.scan, (), _location(self.scan), None)
        scan = self.scan if limit is None or self.has_buffered_rows else replace(self.scan, limit=limit)
        return plans.view(scan, texts, _location(scan))

    def _rows_sql(self, space: Space, view: TableView, part: Field | None) -> str:
        schema = self.scan.schema
        if self.share is None and self.has_buffered_rows and not self.is_overlaid:
            source = space.add_rows(Rows(self.scan.arrow_schema, self._merged))
            return f"SELECT {cast_columns(self.scan, part)} FROM {source}"
        memory = self.overlay() if self.share is None else self.share.overlay
        stored = view.sql(space, part)
        if memory.replaced is not None and schema.primary_keys:
            keys = space.add_frame(memory.replaced)
            same = " AND ".join(
                f"stored.{quoted(name)} = CAST(replaced.{quoted(name)} AS {duck_type(schema.field(name).type)})"
                for name in schema.primary_keys
            )
            stored = f"SELECT stored.* FROM ({stored}) AS stored ANTI JOIN {keys} AS replaced ON {same}"
        if memory.rows is None:
            return stored
        return f"{stored} UNION ALL SELECT {cast_columns(self.scan, part)} FROM {space.add_frame(memory.rows)}"

    def _merged(self, wanted: Sequence[str] | None, _condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        """The rows as the writer merges them."""
        assert self.buffered is not None
        names = self.scan.columns if wanted is None else tuple(name for name in self.scan.columns if name in wanted)
        return replace(self.buffered, scan=replace(self.scan, columns=names)).to_batches()


class SandboxTables(Protocol):
    """The tables that a query may read."""

    def names(self) -> list[str]:
        """Their names."""

    def open(self, name: str) -> SandboxTable:
        """The newest version of one."""


def _is_joined_by_key(keys: Sequence[str], fields: Sequence[Field]) -> bool:
    """Whether DuckDB takes the same keys for equal as a merge does: of floating-point numbers it does not."""
    return all(
        isinstance(field.type, Atomic) and field.type.kind not in FLOATS for field in fields if field.name in keys
    )


def _with_payload(columns: list[tuple[str, str]], payload: tuple[str, str]) -> list[tuple[str, str]]:
    names = [name.strip('"').lower() for name, _ in columns]
    place = names.index(_BEHIND) + 1 if _BEHIND in names else len(columns)
    return [*columns[:place], payload, *columns[place:]]


def _location(scan: TableScan) -> str | None:
    """The path of the store for DuckDB; None where DuckDB cannot reach it."""
    location = scan.home.store.location.rstrip("/")
    return location if location.startswith("/") else None
