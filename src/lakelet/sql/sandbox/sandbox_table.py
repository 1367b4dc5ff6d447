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
class SandboxTable:
    """One version of a table, opened once for all its uses in a query, so that all of them see the same rows.

    `buffered` has the rows that are not in the snapshot of `scan`. The columns `hidden` are left out of `SELECT *`. With
    `lacks_payload`, a column `payload` without a value stands for the one that the first field will add.
    """

    name: str
    scan: TableScan
    buffered: WriterScan | None = None
    hidden: tuple[str, ...] = ()
    lacks_payload: bool = False

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

    def count(self) -> int | None:
        """The number of rows, if it is known without reading any."""
        if self.scan.schema.primary_keys or self.scan.fallback is not None:
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
        rows = self._rows_sql(space, view, part)
        names = [
            quoted(field.name) for field in self.scan.schema.fields if with_hidden or field.name not in self.hidden
        ]
        if self.lacks_payload:
            columns = [(name, "") for name in names]
            names = [name for name, _ in _with_payload(columns, (f"CAST(NULL AS INTEGER) AS {quoted(PAYLOAD)}", ""))]
        if len(names) == len(self.scan.schema.fields) and not self.lacks_payload:
            return rows
        return f"SELECT {', '.join(names)} FROM ({rows})"

    def committed(self, plans: Plans, texts: Sequence[str], limit: int | None) -> TableView:
        """The view of the committed part, pruned by conditions of which every needed row satisfies one."""
        if self.scan.fallback is not None:
            return table_view(self.scan, (), _location(self.scan), None)
        scan = self.scan if limit is None or self.has_buffered_rows else replace(self.scan, limit=limit)
        return plans.view(scan, texts, _location(scan))

    def _rows_sql(self, space: Space, view: TableView, part: Field | None) -> str:
        buffered = self.buffered
        if buffered is None or not buffered.memory:
            return view.sql(space, part)
        schema = self.scan.schema
        if not _is_joined_by_key(schema.primary_keys, schema.fields) or keeps_first(schema):
            source = space.add_rows(Rows(self.scan.arrow_schema, self._merged))
            return f"SELECT {cast_columns(self.scan, part)} FROM {source}"
        rows, replaced = buffered.overlay()
        recent = f"SELECT {cast_columns(self.scan, part)} FROM {space.add_frame(rows)}"
        stored = view.sql(space, part)
        if schema.primary_keys:
            keys = space.add_frame(replaced)
            same = " AND ".join(
                f"stored.{quoted(name)} = CAST(replaced.{quoted(name)} AS {duck_type(schema.field(name).type)})"
                for name in schema.primary_keys
            )
            stored = f"SELECT stored.* FROM ({stored}) AS stored ANTI JOIN {keys} AS replaced ON {same}"
        return f"{stored} UNION ALL {recent}"

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
