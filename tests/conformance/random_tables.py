"""Random schemas and rows from a seeded generator, for the differential tests."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

from lakelet.model.types import Array, Atomic, DataType, Field, Kind, Map, Multiset, Row

_EPOCH = datetime.datetime(1970, 1, 1)
_ALPHABET = "abcxyz 0189/%=_'\"数🦆é\t"
_ATOMIC = [
    *(
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "STRING",
        "BYTES",
        "DATE",
        "TIME(3)",
        "VARCHAR(12)",
    ),
    *(
        "DECIMAL(5, 2)",
        "DECIMAL(18, 6)",
        "DECIMAL(19, 0)",
        "DECIMAL(38, 18)",
        "TIMESTAMP(3)",
        "TIMESTAMP(6)",
        "BINARY(6)",
    ),
    *("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]
_KEYS = ["STRING", "INT", "BIGINT", "DATE"]
PARTITIONS = ["STRING", "INT", "DATE", "BOOLEAN", "DECIMAL(9, 2)", "TIMESTAMP(3)", "BIGINT"]
BUCKET_KEYS = ["STRING", "INT", "BIGINT", "DATE", "DECIMAL(9, 2)", "DECIMAL(30, 2)", "TIMESTAMP(6)"]
WIDER = {
    "TINYINT": ["SMALLINT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)"],
    "SMALLINT": ["INT", "FLOAT"],
    "INT": ["BIGINT", "DOUBLE", "DECIMAL(12, 1)"],
    "BIGINT": ["DECIMAL(19, 0)"],
    "FLOAT": ["DOUBLE"],
    "DECIMAL(5, 2)": ["DECIMAL(20, 2)", "DECIMAL(8, 4)"],
    "VARCHAR(12)": ["STRING"],
    "TIMESTAMP(3)": ["TIMESTAMP(6)"],
}


def random_type(source: random.Random, depth: int = 2) -> str:
    """The text of a type, nested at most `depth` deep."""
    kind = source.random()
    if depth == 0 or kind < 0.6:
        return source.choice(_ATOMIC)
    if kind < 0.75:
        return f"ARRAY<{random_type(source, depth - 1)}>"
    if kind < 0.87:
        return f"MAP<{source.choice(_KEYS)}, {random_type(source, depth - 1)}>"
    members = ", ".join(f"f{number} {random_type(source, depth - 1)}" for number in range(source.randint(1, 3)))
    return f"ROW<{members}>"


def random_row(source: random.Random, fields: tuple[Field, ...], id_: int) -> dict[str, Any]:
    """A row whose `id` is given."""
    return {field.name: id_ if field.name == "id" else random_value(source, field.type) for field in fields}


def random_value(source: random.Random, data_type: DataType) -> Any:
    if data_type.nullable and source.random() < 0.15:
        return None
    match data_type:
        case Array(element):
            return [random_value(source, element) for _ in range(source.choice([0, 1, 1, 2, 4]))]
        case Map(key, value):
            keys = {_atomic(source, key) for _ in range(source.choice([0, 1, 2, 3]))}
            return [(one, random_value(source, value)) for one in keys]
        case Multiset(element):
            return [(one, source.randint(1, 9)) for one in {_atomic(source, element) for _ in range(2)}]
        case Row(fields):
            return {field.name: random_value(source, field.type) for field in fields}
        case _:
            return _atomic(source, data_type)


def _text(source: random.Random, longest: int) -> str:
    return "".join(source.choices(_ALPHABET, k=min(longest, source.choice([0, 1, 3, 7, 8, 16, 17, 40]))))


def _moment(source: random.Random, step: int) -> datetime.datetime:
    """After 1970: ORC files cannot hold all earlier ones."""
    return _EPOCH + datetime.timedelta(microseconds=source.randrange(0, 2**52) // step * step)


def _atomic(source: random.Random, data_type: DataType) -> Any:
    assert isinstance(data_type, Atomic)
    kind, precision = data_type.kind, data_type.precision
    bits = {Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}
    if kind in bits:
        edge = 2 ** bits[kind]
        return source.choice([-edge, edge - 1, 0, source.randrange(-edge, edge), source.randrange(-9, 9)])
    match kind:
        case Kind.BOOLEAN:
            return source.random() < 0.5
        case Kind.FLOAT | Kind.DOUBLE:
            # Without -0.0: Java's ORC reader takes a run of zeros of both signs for a run of the first.
            return source.choice([float("nan"), float("inf"), 0.0, source.randrange(-(2**20), 2**20) / 64])
        case Kind.DECIMAL:
            unscaled = source.choice(
                [0, 10**precision - 1, 1 - 10**precision, source.randrange(-(10**precision) + 1, 10**precision)]
            )
            return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -data_type.scale))
        case Kind.CHAR | Kind.VARCHAR:
            return _text(source, precision)
        case Kind.BINARY:
            return source.randbytes(precision)
        case Kind.VARBINARY:
            return source.randbytes(min(precision, source.choice([0, 1, 7, 8, 30])))
        case Kind.DATE:
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=source.randrange(-100_000, 100_000))
        case Kind.TIME:
            return (_EPOCH + datetime.timedelta(milliseconds=source.randrange(86_400_000))).time()
        case _:
            return _moment(source, 1000 if precision <= 3 else 1)
