"""Projections of stored columns as SQL text.

A `Column` that Python builds costs five calls into the JVM and more, and a frame of nine columns two hundred of them; a text is
parsed there by one. Types whose name in SQL depends on settings, and ROWs, whose fields are shielded one by one, have no text:
they are projected as columns (`parquet_frame`).
"""

from __future__ import annotations

from pyspark.sql import types as T

from lakelet.model.types import FLOATS, Atomic, DataType, Kind, Row
from lakelet.spark.column_names import quoted
from lakelet.spark.read.parquet_frame import in_millis, needs_shield

# TIMESTAMP is one type or another in SQL by a setting.
_NAMED = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampNTZType,
)


def column_text(alias: str, name: str, stored: T.DataType | None, target: T.DataType, pushed: DataType) -> str | None:
    """The stored column of this name as `target`, shielded for predicates on type `pushed`, under an alias; NULL where the
    files have none. None where only columns say that."""
    text = _cast(name, stored, target)
    if text is None or (isinstance(pushed, Row) and needs_shield(pushed)):
        return None
    if isinstance(pushed, Atomic) and pushed.kind in FLOATS:
        kind = "FLOAT" if pushed.kind is Kind.FLOAT else "DOUBLE"
        text = f"nanvl({text}, CAST('NaN' AS {kind}))"
    elif in_millis(pushed):
        text = f"timestamp_micros(unix_micros({text}))"
    return f"{text} AS {quoted(alias)}"


def _cast(name: str, stored: T.DataType | None, target: T.DataType) -> str | None:
    if stored == target:
        return quoted(name)
    if not isinstance(target, _NAMED):
        return None
    return f"CAST({'NULL' if stored is None else quoted(name)} AS {target.simpleString()})"
