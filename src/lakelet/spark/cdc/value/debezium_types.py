"""Columns of Debezium events: the `schema` part of an event to table types.

A field has a Connect type (`int64`, `bytes` …) and may have a semantic name, which says what the number or the bytes are:

    org.apache.kafka.connect.data.Decimal   base64 → DECIMAL(p, s)     io.debezium.time.Date             DATE
    io.debezium.data.VariableScaleDecimal   → STRING, exact            io.debezium.time.Timestamp        TIMESTAMP(3)
    io.debezium.data.Bits                   → BYTES                    io.debezium.time.MicroTimestamp   TIMESTAMP(6)
    io.debezium.time.MicroTime              → TIME(6)                  io.debezium.time.ZonedTimestamp   TIMESTAMP_LTZ(6)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelet.model.types import Atomic, Kind, string
from lakelet.spark.cdc.value.mysql_types import decimal_type
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import Codec, WireField, as_text, byte_string

_MOST_DIGITS = 38
_CONNECT = "org.apache.kafka.connect.data."
_PLAIN = {
    "boolean": (Codec.BOOLEAN, Atomic(Kind.BOOLEAN)),
    "int8": (Codec.INTEGER, Atomic(Kind.TINYINT)),
    "int16": (Codec.INTEGER, Atomic(Kind.SMALLINT)),
    "int32": (Codec.INTEGER, Atomic(Kind.INT)),
    "int64": (Codec.INTEGER, Atomic(Kind.BIGINT)),
    "float": (Codec.FLOATING, Atomic(Kind.FLOAT)),
    "float32": (Codec.FLOATING, Atomic(Kind.FLOAT)),
    "float64": (Codec.FLOATING, Atomic(Kind.DOUBLE)),
    "double": (Codec.FLOATING, Atomic(Kind.DOUBLE)),
    "bytes": (Codec.BASE64, byte_string()),
}
_NAMED = {
    "io.debezium.time.Date": (Codec.DAYS, Atomic(Kind.DATE)),
    f"{_CONNECT}Date": (Codec.DAYS, Atomic(Kind.DATE)),
    "io.debezium.time.Timestamp": (Codec.EPOCH_MILLIS, Atomic(Kind.TIMESTAMP, 3)),
    f"{_CONNECT}Timestamp": (Codec.EPOCH_MILLIS, Atomic(Kind.TIMESTAMP, 3)),
    "io.debezium.time.MicroTimestamp": (Codec.EPOCH_MICROS, Atomic(Kind.TIMESTAMP, 6)),
    "io.debezium.time.NanoTimestamp": (Codec.EPOCH_NANOS, Atomic(Kind.TIMESTAMP, 6)),
    "io.debezium.time.ZonedTimestamp": (Codec.ZONED_TEXT, Atomic(Kind.TIMESTAMP_LTZ, 6)),
    "io.debezium.time.Time": (Codec.TIME_MILLIS, Atomic(Kind.TIME, 3)),
    f"{_CONNECT}Time": (Codec.TIME_MILLIS, Atomic(Kind.TIME, 3)),
    "io.debezium.time.MicroTime": (Codec.TIME_MICROS, Atomic(Kind.TIME, 6)),
    "io.debezium.time.NanoTime": (Codec.TIME_NANOS, Atomic(Kind.TIME, 6)),
    "io.debezium.data.VariableScaleDecimal": (Codec.VARIABLE_DECIMAL, string()),
    "io.debezium.data.Bits": (Codec.BASE64, byte_string()),
}


def debezium_field(found: Mapping[str, Any], mapping: TypeRules) -> WireField:
    """The column of one field of a schema; structs, arrays and maps are STRING, the text of their JSON."""
    field = _field(found)
    return as_text(field) if mapping.to_string else field


def _field(found: Mapping[str, Any]) -> WireField:
    name, optional = str(found["field"]), bool(found.get("optional", False))
    semantic = found.get("name")
    if semantic == f"{_CONNECT}Decimal":
        return _decimal(name, found.get("parameters") or {}, optional)
    codec, data_type = _NAMED.get(str(semantic)) or _PLAIN.get(str(found.get("type"))) or (Codec.TEXT, string())
    return WireField(name, codec, data_type, optional=optional)


def _decimal(name: str, parameters: Mapping[str, Any], optional: bool) -> WireField:
    scale, precision = int(parameters.get("scale", 0)), parameters.get("connect.decimal.precision")
    if precision is None:
        # A scale alone is the case of NUMERIC without digits: DECIMAL(20, 0) would round.
        numbers = (_MOST_DIGITS, scale) if scale else ()
    else:
        numbers = (int(precision), scale)
    data_type = decimal_type(numbers) if 0 <= scale <= _MOST_DIGITS else string()
    return WireField(name, Codec.DECIMAL_BYTES, data_type, scale, optional)
