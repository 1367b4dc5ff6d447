"""Values of `google.protobuf` as the operation layer takes them: payloads, points in time, parameters.

A Struct has one kind of number, a double: an integral one is an integer, as in JSON, so that the same record by REST and by gRPC
is the same row. Beyond 2^53 a double no longer says which integer was meant, and stays one.
"""

from __future__ import annotations

import math
from typing import Any

from lakelet.errors import InvalidError
from lakelet.service.timestamps import check_timestamp_us

_EXACT = float(1 << 53)
_MICROS, _NANOS = 1_000_000, 1000


def payload_of(struct: Any) -> dict[str, Any]:
    """The values of a Struct; InvalidError for a number that JSON has none for."""
    return {name: _value(value, name) for name, value in struct.fields.items()}


def timestamp_us_of(message: Any, field: str) -> int:
    """The microseconds of a field that is a Timestamp; InvalidError where it is missing, or finer than a microsecond."""
    if not message.HasField(field):
        raise InvalidError(f"{field}: missing; a record has id, timestamp and payload")
    moment = getattr(message, field)
    if not 0 <= moment.nanos < _MICROS * _NANOS:
        raise InvalidError(f"{field}: expected 0 to 999999999 nanoseconds, found {moment.nanos}")
    if moment.nanos % _NANOS:
        raise InvalidError(f"{field}: expected microseconds at the finest, found {moment.nanos} nanoseconds")
    return check_timestamp_us(moment.seconds * _MICROS + moment.nanos // _NANOS)


def params_of(value: Any) -> list[Any] | dict[str, Any] | None:
    """Parameters of a query: a list, a struct, or none."""
    found = _value(value, "params")
    if found is None or isinstance(found, (list, dict)):
        return found
    raise InvalidError(f"params: expected a list or a struct, found {type(found).__name__}")


def _value(value: Any, where: str) -> Any:
    kind = value.WhichOneof("kind")
    match kind:
        case "number_value":
            return _number(value.number_value, where)
        case "string_value":
            return str(value.string_value)
        case "bool_value":
            return bool(value.bool_value)
        case "struct_value":
            return {name: _value(one, f"{where}.{name}") for name, one in value.struct_value.fields.items()}
        case "list_value":
            return [_value(one, where) for one in value.list_value.values]
        case _:
            return None


def _number(number: float, where: str) -> int | float:
    if not math.isfinite(number):
        raise InvalidError(f"{where}: expected a finite number, found {number}")
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number
