"""The text of an event's value as a Spark expression of the table's type; NULL where the text is no value of it.

Nothing is rounded, cut or wrapped: text that has more digits than the type, or that is none of its values, gives NULL, and the
caller, which sees a text that is not NULL, puts the event into quarantine. The same in every session: no expression here
depends on the session's zone or on `spark.sql.ansi.enabled`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.model.types import BINARIES, FLOATS, INTEGERS, MAX_LENGTH, STRINGS, Atomic, DataType, Kind
from lakelet.spark.cdc.value.wire_field import Codec, WireField, implied_codec
from lakelet.spark.types import spark_type

_DAY_MILLIS = 86_400_000
_MICRO = 6
# The years 1 to 9999, which every reader of a table has.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_WORD = 16
_WHOLE = r"^[+-]?\d+$"
_ISO_DAY = r"\d{4}-\d{2}-\d{2}"
_ISO_CLOCK = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d"


def value_expression(text: Column, field: WireField, target: DataType, style: str) -> Column:
    """The value of `target`, a column's type in the table, that the text means. `style` is that of events without types."""
    if not isinstance(target, Atomic):
        raise InvalidError(f"column {field.name!r} is {target}: change events have plain columns only")
    codec = field.codec if field.type is not None else implied_codec(target, style)
    scale = field.scale if field.type is not None else target.scale
    if target.kind in STRINGS:
        return _bounded(_as_text(text, codec, scale), target)
    made = _MAKERS.get(codec)
    value = made(text, target, scale) if made else None
    if value is None:
        raise InvalidError(
            f"column {field.name!r}: {field.type or 'text'} of change events, spelt as {codec.name}, cannot become {target}"
        )
    if field.type is None and codec in _SPELT:
        # Events without types may also spell days and times, as Debezium's time.precision.mode = isostring does.
        value = F.coalesce(value, _local_or_date(text, target))
    return value


def _as_text(text: Column, codec: Codec, scale: int) -> Column:
    """The text of a value for a STRING: that of the event, and of what is encoded there its meaning."""
    match codec:
        case Codec.DECIMAL_BYTES:
            return _plain_decimal(_unscaled(text), F.lit(scale))
        case Codec.VARIABLE_DECIMAL:
            return _variable_decimal(text)
        case Codec.DAYS:
            return _text_of(_days(text, Atomic(Kind.DATE), 0))
        case Codec.EPOCH_MILLIS | Codec.EPOCH_MICROS | Codec.EPOCH_NANOS:
            return _text_of(_epoch(codec)(text, Atomic(Kind.TIMESTAMP, _MICRO), 0))
        case Codec.TIME_MILLIS | Codec.TIME_MICROS | Codec.TIME_NANOS:
            return _clock_text(text, {Codec.TIME_MILLIS: 3, Codec.TIME_MICROS: 6}.get(codec, 9))
        case _:
            return text


def _clock_text(text: Column, digits: int) -> Column:
    """Parts of a second, 10^-digits each, as a time of day; those of MySQL may be negative or beyond a day."""
    bare = F.when(text.rlike(_WHOLE), F.ltrim(F.ltrim(text, F.lit("+-")), F.lit("0")))
    padded = F.lpad(bare, F.greatest(F.char_length(bare), F.lit(digits + 1)), "0")
    seconds = F.substring(padded, F.lit(1), F.char_length(padded) - digits).try_cast("bigint")
    parts = F.rtrim(F.right(padded, F.lit(digits)), F.lit("0"))
    places = (_divided(seconds, 3600), _divided(seconds, 60) % 60, seconds % 60)
    clock = F.concat_ws(
        ":", *(F.lpad(one.cast("string"), F.greatest(F.lit(2), F.length(one.cast("string"))), "0") for one in places)
    )
    sign = F.when(text.startswith("-") & (bare != ""), F.lit("-")).otherwise(F.lit(""))
    shown = F.concat(sign, clock, F.when(parts == "", F.lit("")).otherwise(F.concat(F.lit("."), parts)))
    return F.when(seconds.isNotNull(), shown)


def _text_of(value: Column | None) -> Column:
    return F.lit(None).cast("string") if value is None else value.cast("string")


def _bounded(text: Column, target: Atomic) -> Column:
    return text if target.precision >= MAX_LENGTH else F.when(F.char_length(text) <= target.precision, text)


def _integer(text: Column, target: Atomic, scale: int) -> Column | None:
    if target.kind in INTEGERS:
        return F.when(text.rlike(_WHOLE), text.try_cast(spark_type(target)))
    if target.kind is Kind.DECIMAL:
        return _decimal_text(text, target, scale)
    if target.kind in FLOATS:
        value = text.try_cast(spark_type(target))
        return F.when(value.try_cast("decimal(38,0)") == text.try_cast("decimal(38,0)"), value)
    return _boolean(text, target, scale)


def _floating(text: Column, target: Atomic, _scale: int) -> Column | None:
    if target.kind is Kind.DOUBLE:
        return text.try_cast("double")
    if target.kind is Kind.FLOAT:
        value = text.try_cast("float")
        # Shortest text of a float differs from that of the double, so that the text of the float itself is compared.
        double = text.try_cast("double")
        return F.when((value.cast("double") == double) | (value.cast("string").try_cast("double") == double), value)
    return None


def _boolean(text: Column, target: Atomic, _scale: int) -> Column | None:
    if target.kind is not Kind.BOOLEAN:
        return None
    return F.when(text.isin("true", "1"), F.lit(True)).when(text.isin("false", "0"), F.lit(False))


def _decimal_text(text: Column, target: Atomic, _scale: int) -> Column | None:
    if target.kind in FLOATS:
        return _floating(text, target, 0)
    if target.kind is not Kind.DECIMAL:
        return None
    exact = text.rlike(rf"^[+-]?\d+(\.\d{{0,{target.scale}}}0*)?$")
    return F.when(exact, text.try_cast(spark_type(target)))


def _decimal_bytes(text: Column, target: Atomic, scale: int) -> Column | None:
    return _decimal_text(_plain_decimal(_unscaled(text), F.lit(scale)), target, 0)


def _variable_bytes(text: Column, target: Atomic, _scale: int) -> Column | None:
    return _decimal_text(_variable_decimal(text), target, 0)


def _variable_decimal(text: Column) -> Column:
    parts = F.from_json(text, "scale int, value string")
    return _plain_decimal(_unscaled(parts["value"]), parts["scale"])


def _unscaled(text: Column) -> Column:
    """The digits of base64 of a big-endian two's complement number of up to sixteen bytes, as text."""
    digits = F.hex(F.try_to_binary(text, F.lit("base64")))
    size = F.length(digits)
    negative = F.substring(digits, 1, 1) >= F.lit("8")
    small = F.conv(F.when(negative, F.lpad(digits, _WORD, "F")).otherwise(F.lpad(digits, _WORD, "0")), 16, -10)
    wide = F.when(negative, F.lpad(digits, 2 * _WORD, "F")).otherwise(F.lpad(digits, 2 * _WORD, "0"))
    high = F.conv(F.substring(wide, 1, _WORD), 16, -10).cast("decimal(20,0)")
    low = F.conv(F.substring(wide, _WORD + 1, _WORD), 16, 10).cast("decimal(20,0)")
    large = F.try_add(F.try_multiply(high, F.lit(Decimal(2**64)).cast("decimal(20,0)")), low).cast("string")
    return F.when(size.between(1, _WORD), small).when(size.between(1, 2 * _WORD), large)


def _plain_decimal(digits: Column, scale: Column) -> Column:
    """Digits with a decimal point before the last `scale` of them; zeros behind them for a negative scale."""
    bare = F.ltrim(digits, F.lit("-"))
    sign = F.when(digits.startswith("-"), F.lit("-")).otherwise(F.lit(""))
    padded = F.lpad(bare, F.greatest(F.length(bare), scale + 1), "0")
    whole = F.substring(padded, F.lit(1), F.length(padded) - scale)
    broken = F.concat(sign, whole, F.lit("."), F.right(padded, scale))
    longer = F.when(bare == "0", bare).otherwise(F.concat(sign, F.rpad(bare, F.length(bare) - scale, "0")))
    return F.when(scale > 0, broken).when(scale == 0, digits).otherwise(longer)


def _days(text: Column, target: Atomic, _scale: int) -> Column | None:
    number = F.when(text.rlike(_WHOLE), text.try_cast("int"))
    return _as_date(F.date_from_unix_date(F.when(number.between(_FIRST_DAY, _LAST_DAY), number)), target)


def _date_text(text: Column, target: Atomic, _scale: int) -> Column | None:
    return _as_date(F.when(text.rlike(f"^{_ISO_DAY}$"), text.try_cast("date")), target)


def _as_date(value: Column, target: Atomic) -> Column | None:
    if target.kind is Kind.DATE:
        return value
    return value.cast("timestamp_ntz") if target.kind is Kind.TIMESTAMP else None


def _epoch(codec: Codec) -> Callable[[Column, Atomic, int], Column | None]:
    def made(text: Column, target: Atomic, _scale: int) -> Column | None:
        number = F.when(text.rlike(_WHOLE), text.try_cast("bigint"))
        match codec:
            case Codec.EPOCH_MILLIS:
                micros = F.try_multiply(number, F.lit(1000).cast("bigint"))
            case Codec.EPOCH_NANOS:
                micros = F.when(number % 1000 == 0, _divided(number, 1000))
            case _:
                micros = number
        day = 86_400_000_000
        inside = micros.between(F.lit(_FIRST_DAY * day), F.lit((_LAST_DAY + 1) * day - 1))
        exact = micros % (10 ** (_MICRO - min(target.precision, _MICRO))) == 0
        bounded = F.when(inside & exact, micros)
        if target.kind is Kind.TIMESTAMP:
            return F.timestamp_add("MICROSECOND", bounded, F.lit("1970-01-01").cast("timestamp_ntz"))
        return F.timestamp_micros(bounded) if target.kind is Kind.TIMESTAMP_LTZ else None

    return made


def _divided(number: Column, by: int) -> Column:
    """Whole-number division, which loses no digit of a BIGINT."""
    return F.call_function("div", number, F.lit(by))


def _local_text(text: Column, target: Atomic, _scale: int) -> Column | None:
    if target.kind is not Kind.TIMESTAMP:
        return None
    return F.when(text.rlike(_iso(target.precision) + "$"), text.try_cast("timestamp_ntz"))


def _zoned_text(text: Column, target: Atomic, _scale: int) -> Column | None:
    if target.kind is not Kind.TIMESTAMP_LTZ:
        return None
    return F.when(text.rlike(_iso(target.precision) + r"(Z|[+-]\d{2}:\d{2})$"), text.try_cast("timestamp"))


def _local_or_date(text: Column, target: Atomic) -> Column:
    value = _date_text(text, target, 0) if target.kind is Kind.DATE else _local_text(text, target, 0)
    return F.lit(None) if value is None else value


def _iso(precision: int) -> str:
    return rf"^{_ISO_DAY}[ T]{_ISO_CLOCK}(\.\d{{1,{min(max(precision, 1), _MICRO)}}}0*)?"


def _clock(per_milli: int) -> Callable[[Column, Atomic, int], Column | None]:
    def made(text: Column, target: Atomic, _scale: int) -> Column | None:
        if target.kind is not Kind.TIME:
            return None
        number = F.when(text.rlike(_WHOLE), text.try_cast("bigint"))
        inside = number.between(0, _DAY_MILLIS * per_milli - 1) & (number % per_milli == 0)
        return F.when(inside, _divided(number, per_milli)).cast("int")

    return made


def _time_text(text: Column, target: Atomic, _scale: int) -> Column | None:
    if target.kind is not Kind.TIME:
        return None
    exact = text.rlike(rf"^{_ISO_CLOCK}(\.\d{{1,3}}0*)?$")
    clock = F.substring(text, 1, 2).try_cast("int") * 3_600_000 + F.substring(text, 4, 2).try_cast("int") * 60_000
    seconds = F.substring(text, 7, 6).try_cast("decimal(5,3)") * 1000
    return F.when(exact, clock + seconds.cast("int"))


def _base64(text: Column, target: Atomic, _scale: int) -> Column | None:
    return _sized(F.try_to_binary(text, F.lit("base64")), target)


def _latin1(text: Column, target: Atomic, _scale: int) -> Column | None:
    return _sized(F.when(text.rlike(r"^[\x{0}-\x{FF}]*$"), F.encode(text, "ISO-8859-1")), target)


def _utf8(text: Column, target: Atomic, _scale: int) -> Column | None:
    return _sized(F.encode(text, "UTF-8"), target)


def _sized(value: Column, target: Atomic) -> Column | None:
    if target.kind not in BINARIES:
        return None
    return value if target.precision >= MAX_LENGTH else F.when(F.octet_length(value) <= target.precision, value)


_MAKERS: dict[Codec, Callable[[Column, Atomic, int], Column | None]] = {
    Codec.TEXT: _utf8,
    Codec.INTEGER: _integer,
    Codec.FLOATING: _floating,
    Codec.BOOLEAN: _boolean,
    Codec.DECIMAL_TEXT: _decimal_text,
    Codec.DECIMAL_BYTES: _decimal_bytes,
    Codec.VARIABLE_DECIMAL: _variable_bytes,
    Codec.DAYS: _days,
    Codec.DATE_TEXT: _date_text,
    Codec.EPOCH_MILLIS: _epoch(Codec.EPOCH_MILLIS),
    Codec.EPOCH_MICROS: _epoch(Codec.EPOCH_MICROS),
    Codec.EPOCH_NANOS: _epoch(Codec.EPOCH_NANOS),
    Codec.LOCAL_TEXT: _local_text,
    Codec.ZONED_TEXT: _zoned_text,
    Codec.TIME_MILLIS: _clock(1),
    Codec.TIME_MICROS: _clock(1_000),
    Codec.TIME_NANOS: _clock(1_000_000),
    Codec.TIME_TEXT: _time_text,
    Codec.BASE64: _base64,
    Codec.LATIN1: _latin1,
}
_SPELT = (Codec.DAYS, Codec.EPOCH_MILLIS, Codec.EPOCH_MICROS)
