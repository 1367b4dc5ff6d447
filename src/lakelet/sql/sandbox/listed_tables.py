"""`information_schema` of a sandboxed query: the tables that it may read, and nothing about where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lakelet.catalog.names import DEFAULT_DATABASE
from lakelet.errors import UnavailableError
from lakelet.sql.sandbox.sandbox_table import SandboxTables

SCHEMA = "information_schema"
_CATALOG = "lakelet"
_TEXT = pa.string()


def _schemata(_: SandboxTables) -> pa.Table:
    names = {"catalog_name": _CATALOG, "schema_name": DEFAULT_DATABASE}
    return pa.table({name: pa.array([value], _TEXT) for name, value in names.items()})


def _tables(tables: SandboxTables) -> pa.Table:
    names = sorted(tables.names())
    same = {"table_catalog": _CATALOG, "table_schema": DEFAULT_DATABASE}
    columns = {name: pa.array([value] * len(names), _TEXT) for name, value in same.items()}
    columns["table_name"] = pa.array(names, _TEXT)
    columns["table_type"] = pa.array(["BASE TABLE"] * len(names), _TEXT)
    return pa.table(columns)


def _columns_of(tables: SandboxTables, name: str) -> Sequence[tuple[str, str]]:
    """The columns of a table; none of one that cannot be opened now."""
    try:
        return tables.open(name).columns
    except UnavailableError:
        return ()


def _columns(tables: SandboxTables) -> pa.Table:
    rows = [
        (name, column, place, kind)
        for name in sorted(tables.names())
        for place, (column, kind) in enumerate(_columns_of(tables, name), 1)
    ]
    same = {"table_catalog": _CATALOG, "table_schema": DEFAULT_DATABASE}
    columns = {name: pa.array([value] * len(rows), _TEXT) for name, value in same.items()}
    columns["table_name"] = pa.array([row[0] for row in rows], _TEXT)
    columns["column_name"] = pa.array([row[1] for row in rows], _TEXT)
    columns["ordinal_position"] = pa.array([row[2] for row in rows], pa.int32())
    columns["data_type"] = pa.array([row[3] for row in rows], _TEXT)
    return pa.table(columns)


LISTINGS: dict[str, Callable[[SandboxTables], pa.Table]] = {
    "schemata": _schemata,
    "tables": _tables,
    "columns": _columns,
}
