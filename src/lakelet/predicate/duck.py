"""Expression evaluation by DuckDB: folds constants, casts literals, evaluates opaque conditions over Arrow data.

One in-memory database per process and one cursor per thread; it cannot reach the file system, the network
or Python variables, and its time zone is UTC. It owns no data: a batch is visible only during the call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.predicate.instance import open_instance

if TYPE_CHECKING:
    import duckdb

_BATCH = "lakelet_batch"
_CHUNK = 256
_SETTINGS = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "true",
}
_NOTHING = pa.schema([pa.field("", pa.bool_())])
_lock = threading.Lock()
_databases: dict[int, duckdb.DuckDBPyConnection] = {}
_local = threading.local()


def fold(constants: Sequence[str]) -> list[pa.Scalar]:
    """The values of column-free SQL expressions, in the Arrow types that DuckDB gives them."""
    found: list[pa.Scalar] = []
    for start in range(0, len(constants), _CHUNK):
        chunk = constants[start : start + _CHUNK]
        named = ", ".join(f"({sql}) AS c{index}" for index, sql in enumerate(chunk))
        row = _arrow(f"SELECT {named}")
        found.extend(row.column(index)[0] for index in range(len(chunk)))
    return found


def cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The values as DuckDB casts them to the type in which it sees columns of the Arrow type `target`."""
    table = pa.table({"value": values})
    result = _arrow(f"SELECT CAST(value AS {type_name(target)}) AS value FROM {_BATCH}", table)
    return result.column("value").combine_chunks()


def decide(condition: str, rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray:
    """TRUE, FALSE or NULL for each row, in the order of the rows."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    if not table.num_columns:
        # DuckDB takes no table without columns, and `random() < 0.5` needs only the number of rows.
        table = pa.table({"": pa.nulls(table.num_rows, pa.bool_())})
    return _arrow(f"SELECT CAST(({condition}) AS BOOLEAN) AS kept FROM {_BATCH}", table).column("kept")


def calculate(query: str, params: Sequence[object] = ()) -> pa.Table:
    """The rows of a query that reads nothing."""
    return _arrow(query, params=params)


def check(condition: str, schema: pa.Schema) -> None:
    """InvalidError unless this is a condition, TRUE, FALSE or NULL, over columns of this schema.

    DuckDB itself takes a number for a condition, too, and any but 0 for TRUE. It is tried on one row of NULLs: some
    casts that DuckDB does not have fail only once there is a row.
    """
    nulls = [pa.nulls(1, field.type) for field in schema or _NOTHING]
    row = pa.table(nulls, names=schema.names or _NOTHING.names)
    found = _arrow(f"SELECT ({condition}) AS kept FROM {_BATCH} WHERE ({condition})", row).schema.field("kept").type
    check_condition(found, condition)


def check_condition(found: pa.DataType, condition: str) -> None:
    """InvalidError unless an expression of this type is a condition."""
    if not pa.types.is_boolean(found) and not pa.types.is_null(found):
        raise InvalidError(f"expected a condition, found an expression of type {found}: {condition}")


def type_name(arrow: pa.DataType) -> str:
    """DuckDB's name for the type in which it reads an atomic Arrow type."""
    types = pa.types
    if types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision}, {arrow.scale})"
    if types.is_timestamp(arrow):
        if arrow.tz is not None:
            return "TIMESTAMPTZ_NS" if arrow.unit == "ns" else "TIMESTAMPTZ"
        return {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}[arrow.unit]
    if types.is_time(arrow):
        return "TIME"
    return _NAMES[arrow]


_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
}


def _arrow(query: str, batch: pa.Table | None = None, params: Sequence[object] = ()) -> pa.Table:
    import duckdb  # noqa: PLC0415 - most predicates do without, and every process would wait for it to load.

    cursor = _cursor()
    try:
        if batch is not None:
            cursor.register(_BATCH, batch)
        try:
            found = cursor.sql(query, params=list(params)) if params else cursor.sql(query)
            return found.to_arrow_table()
        finally:
            if batch is not None:
                cursor.unregister(_BATCH)
    except duckdb.Error as error:
        message = str(error).split("\n", maxsplit=1)[0]
        raise InvalidError(message.removesuffix(" when casting from source column value")) from error


def _cursor() -> duckdb.DuckDBPyConnection:
    """This thread's cursor. Keyed by process too: a forked child must not share its parent's database."""
    process = os.getpid()
    if getattr(_local, "process", None) != process:
        with _lock:
            if process not in _databases:
                database = open_instance(settings=_SETTINGS)
                database.execute("SET lock_configuration = true")
                _databases[process] = database
            _local.cursor = _databases[process].cursor()
            _local.process = process
    cursor: duckdb.DuckDBPyConnection = _local.cursor
    return cursor
