"""Parse literals: a column's default, a partition value in a spec."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import precision_step, to_arrow
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Kind

_BOOLEANS = {
    "true": True,
    "t": True,
    "yes": True,
    "y": True,
    "1": True,
    "false": False,
    "f": False,
    "no": False,
    "n": False,
    "0": False,
}


def parse_literal(text: str, data_type: DataType, where: str) -> pa.Scalar:
    """The value of the literal `text`, of the type's Arrow type; InvalidError where it is no value of the type."""
    if not isinstance(data_type, Atomic):
        raise InvalidError(f"{where}: a value of type {data_type} cannot be written as text")
    target = to_arrow(data_type)
    length = len(text) if data_type.kind in STRINGS else len(text.encode()) if data_type.kind in BINARIES else 0
    if length > data_type.precision > 0:
        raise InvalidError(f"{where}: expected a value of type {data_type}, found {text!r} of length {length}")
    try:
        if data_type.kind is Kind.BOOLEAN:
            return pa.scalar(_BOOLEANS[text.strip().lower()])
        if data_type.kind in BINARIES:
            return pa.scalar(text.encode(), target)
        if data_type.kind is Kind.TIMESTAMP_LTZ:
            return _checked(_instant(text.strip(), target), data_type, where)
        if data_type.kind is Kind.TIME:
            moment = dt.time.fromisoformat(text.strip())
            # Three digits of a second at most are stored.
            if moment.tzinfo is None and moment.microsecond % 10 ** (6 - min(data_type.precision, 3)) == 0:
                return pa.scalar(moment, target)
            raise InvalidError(f"{where}: expected a value of type {data_type}, found {text!r}")
        return _checked(
            pc.cast(pa.scalar(text if pa.types.is_string(target) else text.strip()), target), data_type, where
        )
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise InvalidError(f"{where}: expected a value of type {data_type}, found {text!r}") from error


def _checked(value: pa.Scalar, data_type: DataType, where: str) -> pa.Scalar:
    """The value; InvalidError for a time with more digits than its type has."""
    if pa.types.is_timestamp(value.type) and value.is_valid and value.value % precision_step(data_type):
        raise InvalidError(f"{where}: expected a value of type {data_type}, found {value}, with more digits")
    return value


def _instant(text: str, target: pa.DataType) -> pa.Scalar:
    """A timestamp with a zone; without one it is in UTC."""
    try:
        return pc.cast(pa.scalar(text), target)
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(pa.scalar(text), pa.timestamp(target.unit)), target)
