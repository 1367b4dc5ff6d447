"""Generate SQL that converts a query's values to the types of a table's columns: nothing is rounded, truncated or guessed.

    1.0 into INT      1          1.5 into INT                        refused
    '7' into INT      7          '7.5', 'x' into INT                 refused
    '2026-01-01'      a DATE     '2026-01-01 10:00:00' into DATE     refused
    0.1 into DOUBLE   the nearest number, as everywhere; an integer that DOUBLE cannot represent is refused

Pure functions from types to SQL. An expression that cannot give the value raises an error that names the column. What is left
to check, NULL in a NOT NULL column and texts that are too long, is found when rows are written.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import (
    BINARIES,
    FLOATS,
    INTEGERS,
    STRINGS,
    TIMESTAMPS,
    Array,
    Atomic,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
)
from lakelet.model.types import DataType as TableType
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.statements.rows.positional_rows import with_names

_TYPES = pa.types
_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.time64("ns"): "TIME_NS",
}
_UNITS = {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}
_SHOWN_CHARACTERS = 100
_MICRO = 6
# Up to here the type represents every integer exactly.
_WHOLE_NUMBERS = {Kind.FLOAT: 2**24, Kind.DOUBLE: 2**53}
_WHOLE = r"\s*[+-]?[0-9]+(\.0*)?\s*"
# After the time of day: a zone, which a TIMESTAMP cannot store, and digits beyond those that DuckDB keeps.
_ZONE = r":.*[A-Za-z+-]"
_MORE_DIGITS = r"\.[0-9]{6}[0-9]*[1-9]"


def converted(expression: str, given: pa.DataType, field: Field) -> str:
    """SQL that converts an expression of an Arrow type to a column; InvalidError if there is no conversion.

    The expression is repeated in the SQL, and therefore must be a name.
    """
    wanted = duck_type(field.type)
    expression, given = with_names(expression, given, field.type)
    if _is_null(given):
        return f"CAST({expression} AS {wanted})"
    if duck_name(given) == wanted or _widens(given, field.type):
        return expression if duck_name(given) == wanted else f"CAST({expression} AS {wanted})"
    if not _may_convert(given, field.type):
        shown = duck_name(given) or str(given)
        raise InvalidError(f"column {field.name!r} is {field.type}; a value of type {shown} does not convert to it")
    cast = f"TRY_CAST({expression} AS {wanted})"
    check = _exact(expression, cast, given, field.type)
    value = cast if check is None else f"CASE WHEN {check} THEN {cast} END"
    shown = f"left(CAST({expression} AS VARCHAR), {_SHOWN_CHARACTERS})"
    if _is_text(given):
        shown = f"'''' || {shown} || ''''"
    message = f"{literal(f'column {field.name!r} is {field.type}; ')} || {shown} || ' does not convert to it'"
    return f"COALESCE({value}, CASE WHEN {expression} IS NULL THEN NULL ELSE error({message}) END)"


def fits_as_is(given: pa.DataType, field: Field) -> bool:
    """Whether a value needs no more than a wider integer to be one of the column."""
    if _TYPES.is_signed_integer(given):
        return isinstance(field.type, Atomic) and field.type.kind in INTEGERS and _widens(given, field.type)
    return given == to_arrow(field.type) and duck_name(given) == duck_type(field.type)


def duck_name(given: pa.DataType) -> str | None:
    """The DuckDB type that corresponds to an Arrow type; None if there is none."""
    if given in _NAMES:
        return _NAMES[given]
    if _is_text(given):
        return "VARCHAR"
    if _is_bytes(given):
        return "BLOB"
    if _TYPES.is_decimal(given):
        return f"DECIMAL({given.precision}, {given.scale})"
    if _TYPES.is_timestamp(given):
        if given.tz is None:
            return _UNITS[given.unit]
        return "TIMESTAMPTZ_NS" if given.unit == "ns" else "TIMESTAMPTZ"
    if _TYPES.is_map(given):
        key, value = duck_name(given.key_type), duck_name(given.item_type)
        return f"MAP({key}, {value})" if key and value else None
    if _TYPES.is_struct(given):
        names = [(inner.name, duck_name(inner.type)) for inner in given]
        inner = ", ".join(f"{quoted(name)} {kind}" for name, kind in names)
        return f"STRUCT({inner})" if all(kind for _, kind in names) else None
    if _is_list(given):
        element = duck_name(given.value_type)
        return f"{element}[]" if element else None
    return None


def _widens(given: pa.DataType, wanted: TableType) -> bool:
    """Whether every value of one type is a value of the other."""
    if not isinstance(wanted, Atomic):
        return False
    if _TYPES.is_signed_integer(given) and wanted.kind in INTEGERS:
        return bool(given.bit_width <= 8 << INTEGERS.index(wanted.kind))
    if _TYPES.is_float32(given):
        return wanted.kind is Kind.DOUBLE
    if _TYPES.is_decimal(given) and wanted.kind is Kind.DECIMAL:
        scale = wanted.scale - given.scale
        return bool(scale >= 0 and wanted.precision - given.precision >= scale)
    if _TYPES.is_timestamp(given) and wanted.kind in TIMESTAMPS:
        # Too many digits are detected when the row is written; zones are those of the session.
        return bool(given.unit != "ns" or wanted.precision > _MICRO)
    return bool(_TYPES.is_date32(given) and wanted.kind in TIMESTAMPS)


def _may_convert(given: pa.DataType, wanted: TableType) -> bool:
    if not isinstance(wanted, Atomic):
        return _same_shape(given, wanted)
    if wanted.kind in STRINGS:
        return not (_is_bytes(given) or _TYPES.is_nested(given))
    if _is_text(given):
        return True
    if wanted.kind in BINARIES:
        return _is_bytes(given)
    if wanted.kind is Kind.BOOLEAN:
        return bool(_TYPES.is_boolean(given))
    if wanted.kind in (*INTEGERS, *FLOATS, Kind.DECIMAL):
        return bool(_TYPES.is_integer(given) or _TYPES.is_floating(given) or _TYPES.is_decimal(given))
    if wanted.kind is Kind.TIME:
        return bool(_TYPES.is_time(given))
    return bool(_TYPES.is_timestamp(given) or _TYPES.is_date32(given))


def _same_shape(given: pa.DataType, wanted: TableType) -> bool:
    """Whether a nested value has the parts that another type needs."""
    if _is_null(given):
        return True
    match wanted:
        case Array(element):
            return _is_list(given) and _same_shape(given.value_type, element)
        case Map(key, value):
            return (
                bool(_TYPES.is_map(given)) and _same_shape(given.key_type, key) and _same_shape(given.item_type, value)
            )
        case Multiset(element):
            return bool(_TYPES.is_map(given)) and _same_shape(given.key_type, element)
        case Row(fields):
            if not _TYPES.is_struct(given):
                return False
            known = {field.name.lower(): field.type for field in fields}
            return all(
                inner.name.lower() in known and _same_shape(inner.type, known[inner.name.lower()]) for inner in given
            )
        case _:
            return _may_convert(given, wanted)


def _exact(expression: str, cast: str, given: pa.DataType, wanted: TableType) -> str | None:
    """SQL that is true where a cast preserves the value; None where it always does, or fails."""
    if not isinstance(wanted, Atomic):
        return _exact_inside(expression, cast, given, wanted)
    kind = wanted.kind
    if _is_text(given):
        return _exact_text(expression, cast, wanted)
    if kind in STRINGS or (kind in FLOATS and _TYPES.is_floating(given)):
        return None
    if kind in FLOATS and _TYPES.is_integer(given):
        return f"TRY_CAST({cast} AS HUGEINT) = {expression}"
    if kind in FLOATS:
        # From here on not every integer is representable.
        held = f"TRY_CAST({cast} AS HUGEINT) = TRY_CAST({expression} AS HUGEINT) AND trunc({expression}) = {expression}"
        return f"(abs({cast}) < {_WHOLE_NUMBERS[kind]} OR {held})"
    if kind in INTEGERS and _TYPES.is_floating(given):
        limit = _WHOLE_NUMBERS[Kind.FLOAT if given.bit_width == 32 else Kind.DOUBLE]
        return f"abs({expression}) <= {limit} AND {cast} = {expression}"
    back = duck_name(given)
    return None if back is None else f"CAST({cast} AS {back}) = {expression}"


def _exact_text(expression: str, cast: str, wanted: Atomic) -> str | None:
    kind = wanted.kind
    if kind in INTEGERS:
        return f"regexp_full_match({expression}, {literal(_WHOLE)})"
    if kind is Kind.DECIMAL:
        digits = rf"\s*[+-]?([0-9]+(\.[0-9]{{0,{wanted.scale}}}0*)?|\.[0-9]{{1,{max(wanted.scale, 1)}}}0*)\s*"
        return f"regexp_full_match({expression}, {literal(digits)})"
    if kind is Kind.DATE:
        return f"TRY_CAST({expression} AS TIMESTAMP) = {cast}"
    if kind is Kind.TIME:
        return f"NOT regexp_matches({expression}, {literal(_ZONE)}) AND NOT regexp_matches({expression}, {literal(_MORE_DIGITS)})"
    if kind in TIMESTAMPS:
        checks = [] if kind is Kind.TIMESTAMP_LTZ else [f"NOT regexp_matches({expression}, {literal(_ZONE)})"]
        if wanted.precision <= _MICRO:
            checks.append(f"NOT regexp_matches({expression}, {literal(_MORE_DIGITS)})")
        return " AND ".join(checks) or None
    return None


def _exact_inside(expression: str, cast: str, given: pa.DataType, wanted: TableType) -> str | None:
    back = _name_inside(given, wanted)
    return None if back is None else f"CAST({cast} AS {back}) IS NOT DISTINCT FROM {expression}"


def _name_inside(given: pa.DataType, wanted: TableType) -> str | None:
    """The DuckDB type to compare a nested value in; untyped NULL parts take the target type."""
    if _is_null(given):
        return duck_type(wanted)
    match wanted:
        case Array(element) if _is_list(given):
            inside = _name_inside(given.value_type, element)
            return f"{inside}[]" if inside else None
        case Map(key, value) if _TYPES.is_map(given):
            names = _name_inside(given.key_type, key), _name_inside(given.item_type, value)
            return f"MAP({names[0]}, {names[1]})" if all(names) else None
        case Row(fields) if _TYPES.is_struct(given):
            known = {one.name.lower(): one.type for one in fields}
            inner = [(one.name, _name_inside(one.type, known[one.name.lower()])) for one in given]
            listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in inner)
            return f"STRUCT({listed})" if all(kind for _, kind in inner) else None
        case _:
            return duck_name(given)


def _is_null(given: pa.DataType) -> bool:
    return bool(_TYPES.is_null(given))


def _is_text(given: pa.DataType) -> bool:
    if _TYPES.is_dictionary(given):
        given = given.value_type
    return bool(_TYPES.is_string(given) or _TYPES.is_large_string(given) or _TYPES.is_string_view(given))


def _is_bytes(given: pa.DataType) -> bool:
    return bool(_TYPES.is_binary(given) or _TYPES.is_large_binary(given) or _TYPES.is_binary_view(given))


def _is_list(given: pa.DataType) -> bool:
    return bool(_TYPES.is_list(given) or _TYPES.is_large_list(given) or _TYPES.is_fixed_size_list(given))
