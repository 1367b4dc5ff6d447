"""The DuckDB types of Iceberg columns in queries, and which of them DuckDB's Parquet reader reads as ours does.

A uuid is a UUID, fixed and binary are BLOB, times and timestamps have microseconds, or nanoseconds where Iceberg's have.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.sql.lexer.quotes import quoted

_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
    pa.timestamp("ns"): "TIMESTAMP_NS",
    pa.timestamp("ns", "UTC"): "TIMESTAMPTZ_NS",
    pa.uuid(): "UUID",
    # A column of the type unknown holds nothing but NULL.
    pa.null(): "INTEGER",
}
_FINER = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.null())


def duck_column(kind: pa.DataType) -> str:
    """The name of a type in DuckDB's SQL."""
    if pa.types.is_struct(kind):
        inner = ", ".join(f"{quoted(field.name)} {duck_column(field.type)}" for field in kind)
        return f"STRUCT({inner})"
    if pa.types.is_map(kind):
        return f"MAP({duck_column(kind.key_type)}, {duck_column(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"{duck_column(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "BLOB"
    return _NAMES[kind]


def reads_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether DuckDB's reader returns the same values of a stored column as ours, in the type that is read."""
    types = pa.types
    if types.is_struct(wanted):
        names = {field.name.lower() for field in wanted}
        return len(names) == wanted.num_fields and all(
            not types.is_floating(field.type) and reads_alike(stored.field(place).type, field.type)
            for place, field in enumerate(wanted)
        )
    if types.is_map(wanted):
        return reads_alike(stored.key_type, wanted.key_type) and reads_alike(stored.item_type, wanted.item_type)
    if types.is_list(wanted):
        # Floating-point numbers must not be pruned by footers, which ignore NaN.
        return not types.is_floating(wanted.value_type) and reads_alike(stored.value_type, wanted.value_type)
    if wanted in _FINER:
        return False
    if types.is_decimal(wanted):
        same = types.is_decimal(stored) and stored.scale == wanted.scale
        return bool(same and stored.precision <= wanted.precision)
    return stored == wanted or (stored, wanted) in _WIDENED


_WIDENED = (
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
    (pa.large_string(), pa.string()),
    (pa.large_binary(), pa.binary()),
)
