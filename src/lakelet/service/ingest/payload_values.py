"""Values of records to values of a payload's types: converted without loss, or a misfit.

Records come from JSON, whose numbers are integers or doubles, from protobuf, whose numbers are doubles, and from Arrow, which has
decimals, dates, moments and bytes as well.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np

from lakelet.errors import InvalidError
from lakelet.model.types import BINARIES, MAX_LENGTH, STRINGS, Array, Atomic, DataType, Kind, Map, Row
from lakelet.service.ingest.payload_growth import BEYOND, EXACT, LEAST, MisfitError
from lakelet.service.timestamps import moment_us, parse_timestamp

Converter = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Decimals of up to 15 digits are apart as doubles.
_DIGITS = 10**15
# More digits than a DECIMAL has.
_WIDE = Context(prec=76)
# Python leaves out what is finer than microseconds.
_FINER = re.compile(r"[.,]\d{6}0*[1-9]")
_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32}


def converter_of(data_type: DataType, *, takes_large: bool) -> Converter:
    """A function from a value of JSON to one of the type; it raises MisfitError. Without `takes_large` a BIGINT takes no integer
    beyond 2^53: that it holds one has to be noted first."""
    match data_type:
        case Atomic(kind=Kind.BIGINT):
            return _to_large_integer if takes_large else _to_integer
        case Atomic(kind=kind) if kind in _BITS:
            half = 1 << _BITS[kind] - 1
            return lambda value: _in_range(_to_large_integer(value), -half, half)
        case Atomic(kind=Kind.DOUBLE):
            return _to_double
        case Atomic(kind=Kind.BOOLEAN):
            return _to_boolean
        case Atomic(kind=Kind.VARCHAR, precision=length) if length == MAX_LENGTH:
            return _to_text
        case Atomic():
            return _declared(data_type)
        case Array(element):
            inner = converter_of(element, takes_large=takes_large)
            return lambda value: _to_list(value, inner)
        case Row(fields):
            converters = {field.name: converter_of(field.type, takes_large=takes_large) for field in fields}
            return lambda value: _to_row(value, converters)
        case Map(Atomic(kind=Kind.VARCHAR), value_type):
            of_value = converter_of(value_type, takes_large=takes_large)
            return lambda value: _to_map(value, of_value)
    return _misfit


def _misfit(_: Any) -> Any:
    raise MisfitError


def _to_integer(value: Any) -> int:
    kind = type(value)
    if kind is int and -EXACT <= value <= EXACT:
        return int(value)
    if kind is float and value.is_integer() and -EXACT <= value <= EXACT:
        return int(value)
    raise MisfitError


def _to_large_integer(value: Any) -> int:
    if type(value) is int and LEAST <= value < BEYOND:
        return value
    return _to_integer(value)


def _in_range(value: int, least: int, beyond: int) -> int:
    if not least <= value < beyond:
        raise MisfitError
    return value


def _to_double(value: Any) -> float:
    kind = type(value)
    if kind is float:
        return float(value)
    if kind is int and -EXACT <= value <= EXACT:
        return float(value)
    raise MisfitError


def _to_boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise MisfitError
    return value


def _to_text(value: Any) -> str:
    if type(value) is not str:
        raise MisfitError
    return value


def _to_list(value: Any, inner: Converter) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise MisfitError
    return [None if one is None else inner(one) for one in value]


def _to_row(value: Any, converters: Mapping[str, Converter]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise MisfitError
    made: dict[str, Any] = dict.fromkeys(converters)
    for name, inner in value.items():
        if inner is None:
            continue
        convert = converters.get(name)
        if convert is None:
            raise MisfitError
        made[name] = convert(inner)
    return made


def _to_map(value: Any, of_value: Converter) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise MisfitError
    return [(name, None if one is None else of_value(one)) for name, one in value.items()]


def _declared(data_type: Atomic) -> Converter:
    """The converter of a type that only a declared column has; texts are read as what the type is."""
    kind = data_type.kind
    if kind is Kind.DECIMAL:
        return lambda value: _to_decimal(value, data_type)
    if kind is Kind.FLOAT:
        return _to_single
    if kind in STRINGS:
        return lambda value: _no_longer(_to_text(value), data_type.precision)
    if kind is Kind.DATE:
        return _to_date
    if kind is Kind.TIME:
        return lambda value: _to_time(value, data_type.precision)
    if kind is Kind.TIMESTAMP:
        return lambda value: _no_finer(_to_local(value), data_type.precision)
    if kind is Kind.TIMESTAMP_LTZ:
        return lambda value: _no_finer(_to_moment(value), data_type.precision)
    if kind in BINARIES:
        return _to_bytes
    return _misfit


def _to_decimal(value: Any, data_type: Atomic) -> Decimal:
    if type(value) not in (int, float, str, Decimal):
        raise MisfitError
    is_double = type(value) is float
    if is_double and value.is_integer() and -EXACT <= value <= EXACT:
        value, is_double = int(value), False
    try:
        number = Decimal(str(value))
        exact = number.quantize(Decimal(1).scaleb(-data_type.scale), context=_WIDE)
    except InvalidOperation:
        raise MisfitError from None
    if not number.is_finite() or exact != number or exact.adjusted() >= data_type.precision - data_type.scale:
        raise MisfitError
    if is_double and not abs(exact.scaleb(data_type.scale)) < _DIGITS:
        # Other decimals of this scale are the same double: which of them was meant is not known.
        raise MisfitError
    return exact


def _to_single(value: Any) -> float:
    """A number that FLOAT holds, or whose decimal digits are those of one."""
    number = _to_double(value)
    with np.errstate(over="ignore"):
        single = np.float32(number)
    if not (math.isnan(number) or number in (float(single), float(str(single)))):
        raise MisfitError
    return float(single)


def _no_longer(value: str, length: int) -> str:
    if len(value) > length:
        raise MisfitError
    return value


def _to_date(value: Any) -> date:
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(_to_text(value))
    except ValueError:
        raise MisfitError from None


def _to_time(value: Any, precision: int) -> time:
    try:
        found = value if isinstance(value, time) else time.fromisoformat(_no_nanoseconds(value))
    except ValueError:
        raise MisfitError from None
    # Milliseconds are the finest that is stored.
    if found.tzinfo is not None or found.microsecond % 10 ** (6 - min(precision, 3)):
        raise MisfitError
    return found


def _to_local(value: Any) -> datetime:
    try:
        found = _whole(value) if isinstance(value, datetime) else datetime.fromisoformat(_no_nanoseconds(value))
    except ValueError:
        raise MisfitError from None
    if found.tzinfo is not None:
        raise MisfitError
    return found


def _no_nanoseconds(value: Any) -> str:
    text = _to_text(value)
    if _FINER.search(text):
        raise MisfitError
    return text


def _no_finer(value: datetime, precision: int) -> datetime:
    if value.microsecond % 10 ** max(0, 6 - precision):
        raise MisfitError
    return value


def _whole(value: datetime) -> datetime:
    """A datetime as it is, unless it has the nanoseconds that pandas' may have."""
    if getattr(value, "nanosecond", 0):
        raise MisfitError
    return value


def _to_moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise MisfitError
        return _EPOCH + timedelta(microseconds=moment_us(_whole(value)))
    try:
        return _EPOCH + timedelta(microseconds=parse_timestamp(value))
    except InvalidError:
        raise MisfitError from None


def _to_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    try:
        return base64.b64decode(_to_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise MisfitError from None
