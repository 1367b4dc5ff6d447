"""A lake whose tables are served to queries, with writers that buffer rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from lakelet.realtime.row_writer import RowWriter
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.service.query.query_limits import QueryLimits
from lakelet.table import Table

USERS = (
    "CREATE TABLE users (id STRING NOT NULL, timestamp TIMESTAMP(6) WITH LOCAL TIME ZONE, "
    "payload ROW<name STRING, age BIGINT, city STRING>, payload_rest STRING, dt DATE) PARTITIONED BY (dt)"
)
ORDERS = (
    "CREATE TABLE orders (id STRING NOT NULL, timestamp TIMESTAMP(6) WITH LOCAL TIME ZONE, "
    "payload ROW<user_id STRING, amount DOUBLE>, payload_rest STRING, dt DATE) PARTITIONED BY (dt)"
)


@dataclass
class Served:
    """A served table."""

    name: str
    table: Table
    writer: RowWriter | None = None
    hides_day: bool = True


@dataclass
class ServedLake:
    """Served tables by their names."""

    lake: Lake
    wal_folder: Path
    tables: dict[str, Served] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Their names."""
        return list(self.tables)

    def open(self, name: str) -> Served:
        """One of them."""
        if name not in self.tables:
            raise NotFoundError(name)
        return self.tables[name]

    def add(self, statement: str, name: str, *, hides_day: bool = True, writes: bool = True, **options: str) -> Served:
        """Create a table and serve it."""
        self.lake.sql(statement)
        table = self.lake.table(f"default.{name}")
        writer = table.writer(wal_folder=self.wal_folder, options=options or None) if writes else None
        self.tables[name] = Served(name, table, writer, hides_day)
        return self.tables[name]

    def close(self) -> None:
        """Close the writers."""
        for served in self.tables.values():
            if served.writer is not None:
                served.writer.close()


@contextmanager
def served_lake(folder: Path) -> Iterator[ServedLake]:
    """A lake without tables."""
    made = ServedLake(connect(str(folder / "lake")), folder / "wal")
    try:
        yield made
    finally:
        made.close()


@contextmanager
def engine_of(served: ServedLake, limits: QueryLimits | None = None) -> Iterator[QueryEngine]:
    """A query engine over a lake."""
    engine = QueryEngine(served.lake, served, limits)
    try:
        yield engine
    finally:
        engine.close()


def row(id: str, moment: str = "2023-10-27T10:00:00Z", **payload: Any) -> dict[str, Any]:
    """A row of a service table."""
    moment_at = datetime.fromisoformat(moment)
    return {"id": id, "timestamp": moment_at, "payload": payload, "payload_rest": None, "dt": moment_at.date()}


def rows(engine: QueryEngine, sql: str, params: Mapping[str, object] | list[object] | None = None, **more: Any) -> Any:
    """The rows of a query by its JSON."""
    return json.loads(engine.run(QueryRequest(sql, params, **more)).json())
