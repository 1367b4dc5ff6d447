"""Type widening: the type changes that keep every stored value."""

from __future__ import annotations

from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.model.types import BINARIES, FLOATS, INTEGERS, MAX_LENGTH, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}
# The largest integers that FLOAT and DOUBLE represent one by one are 2^24 and 2^53.
_MICRO = 6
_EXACT_IN_FLOAT = (Kind.TINYINT, Kind.SMALLINT)
_EXACT_IN_DOUBLE = (*_EXACT_IN_FLOAT, Kind.INT, Kind.FLOAT)


def check_widening(old: DataType, new: DataType, where: str) -> None:
    """InvalidError unless every value of `old` is a value of `new`."""
    if isinstance(old, Atomic) and isinstance(new, Atomic) and _widens(old, new) and not _reaches_nanos(old, new):
        return
    if str(old).removesuffix(" NOT NULL") == str(new).removesuffix(" NOT NULL"):
        return
    raise InvalidError(
        f"column {where!r} cannot change from {old} to {new}: only a type that holds every {old} value is accepted"
    )


def _reaches_nanos(old: Atomic, new: Atomic) -> bool:
    """Nanoseconds are held in 64 bits and end in 2262, so that they do not hold what coarser timestamps may."""
    return new.kind in TIMESTAMPS and old.precision <= _MICRO < new.precision


def casts_as_paimon(old: Atomic, new: Atomic) -> bool:
    """Whether Arrow's cast gives what Paimon reads from older files after such a change.

    Paimon lets a column change to types that do not hold all its values, and then wraps, cuts, pads or rounds in ways of
    its own; Arrow does the same for some pairs, and others must be refused rather than read as other values.
    """
    if replace(old, nullable=new.nullable) == new or _widens(old, new):
        return True
    texts = new.kind is Kind.VARCHAR and new.precision == MAX_LENGTH
    match old.kind:
        case Kind.BOOLEAN | Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return texts or new.kind in (*INTEGERS, *FLOATS, Kind.BOOLEAN)
        case Kind.DOUBLE:
            return new.kind is Kind.FLOAT
        case Kind.DECIMAL:
            return texts
        case Kind.CHAR | Kind.VARCHAR:
            return new.kind in (*INTEGERS, *FLOATS) or (new.kind is Kind.VARBINARY and new.precision == MAX_LENGTH)
        case Kind.DATE:
            return texts or new.kind in TIMESTAMPS
        case Kind.TIMESTAMP:
            return texts or new.kind is Kind.TIMESTAMP_LTZ
        case Kind.TIMESTAMP_LTZ:
            return new.kind is Kind.TIMESTAMP and new.precision >= old.precision
        case _:
            return False


def _widens(old: Atomic, new: Atomic) -> bool:
    if old.kind in INTEGERS:
        return _integer_widens(old, new)
    if old.kind is Kind.FLOAT:
        return new.kind in (Kind.FLOAT, Kind.DOUBLE)
    if old.kind is Kind.DECIMAL:
        grows = new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        return new.kind is Kind.DECIMAL and grows
    if old.kind in STRINGS:
        return new.kind is Kind.VARCHAR and new.precision >= old.precision
    if old.kind in BINARIES:
        return new.kind is Kind.VARBINARY and new.precision >= old.precision
    if old.kind in TIMESTAMPS:
        return new.kind is old.kind and new.precision >= old.precision
    # TIME too: Paimon has no cast between its precisions, so Java could not read the older files.
    return new.kind is old.kind and new.precision == old.precision


def _integer_widens(old: Atomic, new: Atomic) -> bool:
    if new.kind in INTEGERS:
        return INTEGERS.index(new.kind) >= INTEGERS.index(old.kind)
    if new.kind is Kind.DECIMAL:
        return new.precision - new.scale >= _DIGITS[old.kind]
    if new.kind is Kind.DOUBLE:
        return old.kind in _EXACT_IN_DOUBLE
    return new.kind is Kind.FLOAT and old.kind in _EXACT_IN_FLOAT
