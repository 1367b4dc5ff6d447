"""Hash, bucket and channel of a row as Spark column expressions, computed in the JVM and equal to those of `sink/`.

    binary_row      the bytes of a BinaryRow's body (layout in format/rows/binary_row.py) as a BINARY expression
    row_hash        Paimon's hash of it: Spark's hash() of BINARY is the same Murmur3 wherever the length divides by 4
    bucket, channel the arithmetic of sink/bucket/extractors.py and sink/bucket/channels.py over row_hash

Hashing a single column of fixed width needs no bytes. Spark's hash(c, v) hashes the BIGINT v with the hash of c as the seed.
With the c whose hash is the state that Murmur has after the header, this is the state after the slot, finished for a
length of 8. Finishing can be undone, and done again for the true length of 16: four products in all. A product of an unsigned and
a signed 32-bit number never leaves BIGINT, so that ANSI mode has nothing to complain about.

No SQL function returns the bits of FLOAT and DOUBLE or the bytes of a DECIMAL over 18 digits: rows with such a column are
hashed by an Arrow UDF over the numpy hash (`needs_python`). Columns must have the types of `spark_type`. Times finer than a
column allows are truncated here and refused by the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import (
    INLINE_BYTES,
    PREFIX,
    encode_row,
    header_bytes,
    is_tailed_decimal,
    is_tailed_timestamp,
)
from lakelet.format.rows.binary_row_columns import encode_rows, hash_rows
from lakelet.format.rows.murmur import murmur3_32
from lakelet.model.arrow.arrow_types import timestamp_unit, to_arrow
from lakelet.model.bucket_mode import POSTPONE_BUCKET, UNAWARE_BUCKET, BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import BINARIES, FLOATS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind
from lakelet.options import BUCKET, TableOptions
from lakelet.spark.column_names import column_named
from lakelet.spark.route.fixed_hash import hash_of_slot

Typed = tuple[Column, DataType]
ColumnOf = Callable[[str], Column]
_GREATEST = 2**31 - 1
_SLOT = 8
_WORD_BITS = 64
_KIND_BITS = 8
_INLINE_MARK = 0x80
_HALF = 4
_DAY_MINUTES, _HOUR_MINUTES = 1_440, 60
_MINUTE_MILLIS = 60_000
_MILLIS, _MICROS = 1_000, 1_000_000
_NANOS_OF_MICRO = 1_000
_SLOT_BYTES = {Kind.BOOLEAN: 1, Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.DATE: 4, Kind.TIME: 4}


def needs_python(types: Sequence[DataType]) -> bool:
    """Whether the hash of rows of these types passes through Python."""
    return any(_hidden(data_type) for data_type in types)


def _hidden(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and (data_type.kind in FLOATS or is_tailed_decimal(data_type))


def row_hash(columns: Sequence[Typed]) -> Column:
    """Paimon's hash of the rows that these columns make, an INT that is never NULL."""
    types = [_atomic(data_type) for _, data_type in columns]
    if not columns:
        return F.lit(murmur3_32(bytes(header_bytes(0))))
    if needs_python(types):
        return _hash_udf(types)(*(column for column, _ in columns))
    if len(columns) == 1 and not _is_tailed(types[0]):
        slot = _slot(columns[0][0], types[0])
        null_row = encode_row([None], types)[PREFIX:]
        # NULL passes through the arithmetic; a condition around it would keep Spark from sharing its parts.
        return F.coalesce(hash_of_slot(slot), F.lit(murmur3_32(null_row)))
    return F.hash(binary_row(columns))


def binary_row(columns: Sequence[Typed]) -> Column:
    """The body of the BinaryRow that these columns make, as BINARY."""
    types = [_atomic(data_type) for _, data_type in columns]
    if needs_python(types):
        return F.substring(_row_udf(types)(*(column for column, _ in columns)), PREFIX + 1, _GREATEST)
    arity = len(columns)
    parts = [_header([column for column, _ in columns])]
    tails: list[Column] = []
    offset = _long(header_bytes(arity) + _SLOT * arity)
    for (column, _), data_type in zip(columns, types, strict=True):
        if data_type.kind in STRINGS or data_type.kind in BINARIES:
            slot, tail, room = _text_parts(column, offset)
        elif is_tailed_timestamp(data_type):
            nanos = _or_zero(_nanos_of_milli(column, data_type))
            slot = joined_bytes(_little_endian(nanos, _HALF), _little_endian(offset, _HALF))
            tail, room = _little_endian(_or_zero(_millis(column, data_type))), _long(_SLOT)
        else:
            width = _SLOT_BYTES.get(data_type.kind, _SLOT)
            parts += [_little_endian(_or_zero(_slot(column, data_type)), width), F.lit(bytes(_SLOT - width))]
            continue
        parts.append(slot)
        tails.append(tail)
        offset = offset + room
    return joined_bytes(*parts, *tails)


def joined_bytes(*parts: Column) -> Column:
    """Concatenated bytes; a session setting may make the type text, which holds the same bytes."""
    return F.concat(*parts).cast("binary")


def bucket_expression(schema: TableSchema, column_of: ColumnOf = column_named) -> Column:
    """The bucket of each row; InvalidError for a table whose buckets are assigned dynamically."""
    mode = bucket_mode(schema)
    if mode is BucketMode.POSTPONE_MODE:
        return F.lit(POSTPONE_BUCKET)
    if mode is BucketMode.BUCKET_UNAWARE:
        return F.lit(UNAWARE_BUCKET)
    if mode is not BucketMode.HASH_FIXED:
        raise InvalidError(f"the rows alone do not tell their buckets: in this table, {mode.value}")
    buckets = TableOptions(schema.options).get(BUCKET)
    return F.abs(row_hash(_typed(schema, schema.bucket_keys, column_of)) % F.lit(buckets))


def partition_hash(schema: TableSchema, column_of: ColumnOf = column_named) -> Column:
    """The hash of each row's partition."""
    return row_hash(_typed(schema, schema.partition_keys, column_of))


def key_hash(schema: TableSchema, column_of: ColumnOf = column_named) -> Column:
    """The hash of each row's primary key as dynamic buckets index it: without the partition, except across partitions."""
    names = schema.primary_keys if schema.crosses_partitions else schema.trimmed_primary_keys
    return row_hash(_typed(schema, names, column_of))


def channel_expression(schema: TableSchema, channels: int, column_of: ColumnOf = column_named) -> Column:
    """The writer of each row among `channels`."""
    return channel_of(schema, channels, bucket_expression(schema, column_of), column_of)


def channel_of(schema: TableSchema, channels: int, bucket: Column, column_of: ColumnOf = column_named) -> Column:
    """The writer of each row whose bucket is given by an expression, such as a column of assigned buckets."""
    _check(channels, "channels")
    # |-2^31| does not exist; that hash counts as 2^31 - 1, which is also what the one above it amounts to.
    start = F.abs(F.greatest(partition_hash(schema, column_of), F.lit(-_GREATEST))) % F.lit(channels)
    return ((start.cast("bigint") + bucket) % F.lit(channels)).cast("int")


def _check(number: int, what: str) -> None:
    if not 1 <= number <= _GREATEST:
        raise InvalidError(f"{what}: expected a number from 1 to 2^31 - 1, found {number}")


def _typed(schema: TableSchema, names: Sequence[str], column_of: ColumnOf) -> list[Typed]:
    return [(column_of(name), schema.field(name).type) for name in names]


def _atomic(data_type: DataType) -> Atomic:
    if not isinstance(data_type, Atomic):
        raise InvalidError(f"{data_type} has no place in keys")
    return data_type


def _is_tailed(data_type: Atomic) -> bool:
    return data_type.kind in STRINGS or data_type.kind in BINARIES or is_tailed_timestamp(data_type)


def _slot(column: Column, data_type: Atomic) -> Column:
    """The 8 bytes of a slot as a BIGINT, NULL for NULL."""
    kind = data_type.kind
    if kind in _SLOT_BYTES:
        number = F.unix_date(column) if kind is Kind.DATE else column
        # A slot is padded with zeros, not sign-extended.
        mask = (1 << 8 * _SLOT_BYTES[kind]) - 1
        return _as_long(number, kind).bitwiseAND(_long(mask))
    if kind is Kind.DECIMAL:
        if not data_type.scale:
            return column.cast("bigint")
        # Typed so narrowly that the product is exact for all digits that a compact decimal can have.
        factor = F.lit(10**data_type.scale).cast(T.DecimalType(data_type.scale + 1, 0))
        return (column * factor).cast("bigint")
    if kind in TIMESTAMPS:
        return _millis(column, data_type)
    return column.cast("bigint")


def _as_long(number: Column, kind: Kind) -> Column:
    return number.cast("int").cast("bigint") if kind is Kind.BOOLEAN else number.cast("bigint")


def _millis(column: Column, data_type: Atomic) -> Column:
    """Milliseconds since 1970, rounded towards the past, whatever the time zone of the session."""
    if data_type.kind is Kind.TIMESTAMP_LTZ:
        return F.unix_millis(column)
    # From calendar fields, for Spark may take a TIMESTAMP_NTZ as a time in the session's zone. Only days can be negative.
    days = F.unix_date(column.cast("date")).cast("bigint")
    minutes = days * _DAY_MINUTES + F.hour(column) * _HOUR_MINUTES + F.minute(column)
    return minutes * _MINUTE_MILLIS + (_seconds(column) * F.lit(_MILLIS)).cast("bigint")


def _nanos_of_milli(column: Column, data_type: Atomic) -> Column:
    """The part of a timestamp below milliseconds, in nanoseconds."""
    if data_type.kind is Kind.TIMESTAMP_LTZ:
        micros = F.unix_micros(column)
    else:
        micros = (_seconds(column) * F.lit(_MICROS)).cast("bigint")
    return F.pmod(micros, _long(_MILLIS)) * _NANOS_OF_MICRO


def _seconds(column: Column) -> Column:
    """The seconds of the minute with their fraction, DECIMAL(8, 6)."""
    return F.extract(F.lit("SECOND"), column)


def _long(number: int) -> Column:
    return F.lit(number).cast("bigint")


def _or_zero(value: Column) -> Column:
    return F.coalesce(value, _long(0))


def _header(columns: Sequence[Column]) -> Column:
    """The header, with the bits of the columns that are NULL; most rows have none."""
    size = header_bytes(len(columns))
    some_null = reduce(or_, (column.isNull() for column in columns))
    words = [_header_word(columns, word) for word in range(size // _SLOT)]
    return F.when(some_null, joined_bytes(*words)).otherwise(F.lit(bytes(size)))


def _header_word(columns: Sequence[Column], word: int) -> Column:
    bits = _long(0)
    for index, column in enumerate(columns):
        own, bit = divmod(index + _KIND_BITS, _WORD_BITS)
        if own == word:
            signed = (1 << bit) - (1 << _WORD_BITS if bit == _WORD_BITS - 1 else 0)
            bits = bits.bitwiseOR(F.when(column.isNull(), _long(signed)).otherwise(_long(0)))
    return _little_endian(bits)


def _text_parts(column: Column, offset: Column) -> tuple[Column, Column, Column]:
    """The slot of a text or of bytes, its variable-length part, and the number of bytes of that."""
    nothing, zero = F.lit(b""), F.lit(bytes(1))
    raw = F.coalesce(column.cast("binary"), nothing)
    size = F.octet_length(raw).cast("bigint")
    room = (size + (_SLOT - 1)).bitwiseAND(_long(-_SLOT))
    mark = F.when(column.isNull(), zero).otherwise(F.unhex(F.hex(size + _INLINE_MARK)))
    short = size <= INLINE_BYTES
    inline = joined_bytes(raw, zero_bytes(INLINE_BYTES - size), mark)
    pointer = joined_bytes(_little_endian(size, _HALF), _little_endian(offset, _HALF))
    tail = F.when(short, nothing).otherwise(joined_bytes(raw, zero_bytes(room - size)))
    return (
        F.when(short, inline).otherwise(pointer),
        tail,
        F.when(short, _long(0)).otherwise(room),
    )


def zero_bytes(count: Column) -> Column:
    """The given number of zero bytes, up to seven. (`rpad` counts characters where a setting of the session says so.)"""
    return F.substring(F.lit(bytes(_SLOT - 1)), F.lit(1), count.cast("int"))


def _little_endian(value: Column, width: int = _SLOT) -> Column:
    """The low bytes of a BIGINT, lowest first."""
    if width == _SLOT:
        # Two parts, for each needs a digit more than it has bytes for.
        return joined_bytes(_little_endian(value, _SLOT - 1), _little_endian(F.shiftrightunsigned(value, 56), 1))
    # A one in front keeps the leading zeros; to pad them is half of the cost.
    digits = _long(1 << 8 * width)
    for index in range(width):
        byte = F.shiftrightunsigned(value, 8 * index).bitwiseAND(_long(0xFF))
        digits = digits.bitwiseOR(F.shiftleft(byte, 8 * (width - 1 - index)))
    return F.substring(F.unhex(F.hex(digits)), 2, width)


def _hash_udf(types: Sequence[Atomic]) -> Callable[..., Column]:
    def hashes(*columns: pa.Array) -> pa.Array:
        return pa.array(hash_rows(_as_stored(columns, types), types), pa.int32())

    return _arrow_udf(hashes, "int")


def _row_udf(types: Sequence[Atomic]) -> Callable[..., Column]:
    def rows(*columns: pa.Array) -> pa.Array:
        return encode_rows(_as_stored(columns, types), types)

    return _arrow_udf(rows, "binary")


def _arrow_udf(function: Any, returns: str) -> Callable[..., Column]:
    # Spark infers the kind of a UDF from its annotations, which are strings in this module.
    function.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    made: Any = arrow_udf
    udf: Callable[..., Column] = made(function, returns)
    return udf


def _as_stored(columns: Sequence[pa.Array], types: Sequence[Atomic]) -> list[pa.Array]:
    """Columns as Spark sends them, in the table's Arrow types; never an error, for the writer reports it with its row."""
    return [_stored(column, data_type) for column, data_type in zip(columns, types, strict=True)]


def _stored(column: pa.Array, data_type: Atomic) -> pa.Array:
    target = to_arrow(data_type)
    if data_type.kind is Kind.TIME:
        return column.view(target)
    if data_type.kind not in TIMESTAMPS:
        return column
    numbers = column.view(pa.int64())
    unit = timestamp_unit(data_type.precision)
    if unit == "ns":
        numbers = pc.multiply(numbers, _NANOS_OF_MICRO)
    elif unit == "ms":
        below = pc.less(numbers, 0)
        towards_past = pc.if_else(below, pc.subtract(numbers, _MILLIS - 1), numbers)
        numbers = pc.divide(towards_past, _MILLIS)
    return numbers.view(target)
