"""The growth of a payload's type: which fields new values add, and which types they widen. Pure functions of types and values.

    None, {"age": 25}                    ROW<age BIGINT>
    ROW<age BIGINT>, {"age": 25.5}       ROW<age DOUBLE>, unless age has held an integer beyond 2^53
    ROW<age BIGINT>, {"age": "old"}      unchanged: the value goes to payload_rest

An integral number is BIGINT however it came (protobuf's Struct has doubles alone). Values that no type here holds, fields beyond
the limits on number and depth, and names that differ from another in case alone leave the type as it is. What Arrow has and JSON
has not is a field of its own kind: decimals DECIMAL(38, their scale), dates, times, timestamps with and without a zone, bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Field, Kind, Row

MOST_FIELDS = 1000
DEEPEST = 8
EXACT = 1 << 53
LEAST, BEYOND = -(1 << 63), 1 << 63
_LONGEST_NAME = 255
_DECIMAL_DIGITS, _MICROSECONDS, _MILLISECONDS = 38, 6, 3
_TEXT = Atomic(Kind.VARCHAR, MAX_LENGTH)
_BIGINT, _DOUBLE, _BOOLEAN = Atomic(Kind.BIGINT), Atomic(Kind.DOUBLE), Atomic(Kind.BOOLEAN)
# A field that is not in the table yet; `schema_change` gives it an id.
_NO_ID = -1


class MisfitError(Exception):
    """A value that a type does not hold, and cannot be made to hold."""


class PayloadGrowth:
    """A payload's type that grows with the values it is shown. `exact` names the fields that have held integers beyond 2^53."""

    def __init__(self, row: Row | None, exact: frozenset[str]) -> None:
        self._row = Row(()) if row is None else row
        self._count = count_fields(self._row)
        self._top = ""
        self.exact = set(exact)

    @property
    def row(self) -> Row | None:
        """The type as it is now, None as long as it has no field."""
        return self._row if self._row.fields else None

    def show(self, name: str, value: object) -> None:
        """Take a field's value into the type where that can be done."""
        count, exact, self._top = self._count, set(self.exact), name
        try:
            self._row = self._row_with(self._row, {name: value}, 1)
        except MisfitError:
            self._count, self.exact = count, exact

    def _row_with(self, row: Row, value: Mapping[str, Any], depth: int) -> Row:
        fields = {field.name: field for field in row.fields}
        folded = {name.lower() for name in fields}
        changed = False
        for name, inner in value.items():
            if inner is None:
                continue
            known = fields.get(name)
            if known is None:
                self._check_new(name, folded)
                # Counted first, so that the fields inside of it count with it.
                self._count += 1
                made = self._type_with(None, inner, depth + 1)
                fields[name] = Field(_NO_ID, name, made)
                folded.add(name.lower())
                changed = True
                continue
            wider = self._type_with(known.type, inner, depth + 1)
            if wider is not known.type:
                fields[name] = replace(known, type=wider)
                changed = True
        return replace(row, fields=tuple(fields.values())) if changed else row

    def _check_new(self, name: str, folded: set[str]) -> None:
        if self._count >= MOST_FIELDS or not is_field_name(name) or name.lower() in folded:
            raise MisfitError

    def _type_with(self, known: DataType | None, value: Any, depth: int) -> DataType:
        """A type that holds the value: the known one, or a wider one."""
        if depth > DEEPEST + 1:
            raise MisfitError
        kind = type(value)
        if kind is dict or isinstance(value, Mapping):
            if known is None:
                known = Row(())
            if not isinstance(known, Row):
                raise MisfitError
            grown = self._row_with(known, value, depth)
            if not grown.fields:
                raise MisfitError
            return grown
        if kind is list or isinstance(value, (list, tuple)):
            return self._array_with(known, value, depth)
        if known is not None and not isinstance(known, Atomic):
            raise MisfitError
        if kind is bool:
            return _only(known, _BOOLEAN)
        if kind is str:
            return _only(known, _TEXT)
        if kind is int or (kind is float and value.is_integer() and -EXACT <= value <= EXACT):
            return self._integer(known, int(value))
        if kind is float:
            return self._fraction(known)
        return _arrow_type(known, value)

    def _array_with(self, known: DataType | None, value: Sequence[Any], depth: int) -> DataType:
        if known is not None and not isinstance(known, Array):
            raise MisfitError
        element = None if known is None else known.element
        for one in value:
            if one is not None:
                element = self._type_with(element, one, depth + 1)
        if element is None:
            raise MisfitError
        if known is not None and element is known.element:
            return known
        return Array(element) if known is None else replace(known, element=element)

    def _integer(self, known: Atomic | None, value: int) -> DataType:
        if not LEAST <= value < BEYOND:
            raise MisfitError
        large = not -EXACT <= value <= EXACT
        if known is not None and known.kind is Kind.DOUBLE and not large:
            return known
        found = _only(known, _BIGINT)
        if large:
            self.exact.add(self._top)
        return found

    def _fraction(self, known: Atomic | None) -> DataType:
        if known is None or known.kind is Kind.DOUBLE:
            return known or _DOUBLE
        if known.kind is not Kind.BIGINT or self._top in self.exact:
            raise MisfitError
        return replace(known, kind=Kind.DOUBLE)


def is_field_name(name: object) -> bool:
    """Whether a name can be one of a payload's fields: text of 1 to 255 characters that can be printed."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or name != name.strip():
        return False
    return name.isprintable()


def count_fields(data_type: DataType) -> int:
    """The fields of all ROWs inside of a type."""
    if isinstance(data_type, Row):
        return sum(1 + count_fields(field.type) for field in data_type.fields)
    if isinstance(data_type, Array):
        return count_fields(data_type.element)
    return 0


def _arrow_type(known: Atomic | None, value: object) -> Atomic:
    """The type of a value that Arrow alone has; a known type of its kind stays, whether it holds the value or not."""
    match value:
        case Decimal() if value.is_finite():
            scale = max(0, -int(value.as_tuple().exponent))
            if scale > _DECIMAL_DIGITS or value.adjusted() >= _DECIMAL_DIGITS - scale:
                raise MisfitError
            return _only(known, Atomic(Kind.DECIMAL, _DECIMAL_DIGITS, scale))
        case datetime():
            return _only(known, Atomic(Kind.TIMESTAMP if value.tzinfo is None else Kind.TIMESTAMP_LTZ, _MICROSECONDS))
        case date():
            return _only(known, Atomic(Kind.DATE))
        case time():
            return _only(known, Atomic(Kind.TIME, _MILLISECONDS))
        case bytes():
            return _only(known, Atomic(Kind.VARBINARY, MAX_LENGTH))
    raise MisfitError


def _only(known: Atomic | None, wanted: Atomic) -> Atomic:
    if known is not None and known.kind is not wanted.kind:
        raise MisfitError
    return wanted if known is None else known
