"""The parser of SQL types, whose errors point at the offending word.

    BIGINT  DECIMAL(10, 2)  TIMESTAMP(3) WITH LOCAL TIME ZONE     as Paimon's engines write them
    ARRAY<INT NOT NULL>  MAP<STRING, INT>  ROW<a INT COMMENT 'x', b STRING>  STRUCT<a: INT>  MULTISET<STRING>
    INTEGER[]  MAP(VARCHAR, INTEGER)  STRUCT(a INTEGER)  BLOB  TIMESTAMPTZ   as DuckDB does

DECIMAL alone is DuckDB's DECIMAL(18, 3), as it is in every CAST of a query; BINARY alone is Paimon's BINARY(1). Types that a
table cannot store are refused by name, never replaced by similar ones.
"""

from __future__ import annotations

from lakelet.model.type_parser import atomic_type, kind_of, wrong_parameters
from lakelet.model.types import (
    MAX_LENGTH,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
    with_nullable,
)
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word

_WHOLE = {
    "STRING": Atomic(Kind.VARCHAR, MAX_LENGTH),
    "TEXT": Atomic(Kind.VARCHAR, MAX_LENGTH),
    "BYTES": Atomic(Kind.VARBINARY, MAX_LENGTH),
    "BLOB": Atomic(Kind.VARBINARY, MAX_LENGTH),
    "BYTEA": Atomic(Kind.VARBINARY, MAX_LENGTH),
    "TIMESTAMP_S": Atomic(Kind.TIMESTAMP, 0),
    "TIMESTAMP_MS": Atomic(Kind.TIMESTAMP, 3),
    "TIMESTAMP_US": Atomic(Kind.TIMESTAMP, 6),
    "TIMESTAMP_NS": Atomic(Kind.TIMESTAMP, 9),
    "BYTE": Atomic(Kind.TINYINT),
    "SHORT": Atomic(Kind.SMALLINT),
    "INT1": Atomic(Kind.TINYINT),
    "INT2": Atomic(Kind.SMALLINT),
    "INT4": Atomic(Kind.INT),
    "INT8": Atomic(Kind.BIGINT),
    # DuckDB counts bytes in the names above and bits in these: INT8 is a BIGINT.
    "INT16": Atomic(Kind.SMALLINT),
    "INT32": Atomic(Kind.INT),
    "INT64": Atomic(Kind.BIGINT),
    "SIGNED": Atomic(Kind.INT),
    "INTEGRAL": Atomic(Kind.INT),
    "OID": Atomic(Kind.BIGINT),
    "LOGICAL": Atomic(Kind.BOOLEAN),
    "FLOAT4": Atomic(Kind.FLOAT),
    "FLOAT8": Atomic(Kind.DOUBLE),
}
_KINDS = {
    "TIMESTAMPTZ": Kind.TIMESTAMP_LTZ,
    "DATETIME": Kind.TIMESTAMP,
    "NVARCHAR": Kind.VARCHAR,
    "BPCHAR": Kind.VARCHAR,
}
# The type of CAST(… AS DECIMAL) in a query: a column of another scale would round its values on insert.
_DECIMAL = (18, 3)
_NESTED = ("ARRAY", "MULTISET", "MAP", "ROW", "STRUCT")
_INSTEAD = {
    "UTINYINT": "SMALLINT",
    "UINT8": "SMALLINT",
    "USMALLINT": "INT",
    "UINT16": "INT",
    "UINTEGER": "BIGINT",
    "UINT32": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "UINT64": "DECIMAL(20, 0)",
    "HUGEINT": "DECIMAL(38, 0)",
    "INT128": "DECIMAL(38, 0)",
    "UHUGEINT": "DECIMAL(38, 0)",
    "UINT128": "DECIMAL(38, 0)",
    "BIGNUM": "DECIMAL(38, 0)",
    "VARINT": "DECIMAL(38, 0)",
    "SERIAL": "STRING DEFAULT uuid()",
    "BIGSERIAL": "STRING DEFAULT uuid()",
    "UUID": "STRING",
    "GUID": "STRING",
    "JSON": "STRING",
    "ENUM": "STRING",
    "VARIANT": "STRING",
    "TIMETZ": "TIME",
    "TIME_NS": "TIME",
    "TIMESTAMPTZ_NS": "TIMESTAMP_LTZ(9)",
    "INTERVAL": "BIGINT",
    "UNION": "ROW",
    "BIT": "BYTES",
    "BITSTRING": "BYTES",
    "GEOMETRY": "BYTES",
}
_KNOWN = sorted({*_WHOLE, *_KINDS, *_NESTED, *Kind.__members__, "INTEGER", "NUMERIC", "BOOL", "REAL"})


def read_type(reader: WordReader) -> DataType:
    """Reads a type with its NOT NULL, if there is one; inner fields carry the id -1."""
    data_type = _body(reader)
    while reader.at("["):
        opening = reader.take()
        if not reader.accept("]"):
            raise SqlError(
                "an array of a fixed length has no counterpart among table types", reader.text, opening.start
            )
        data_type = Array(data_type)
    if reader.accept("NOT", "NULL"):
        return with_nullable(data_type, False)
    reader.accept("NULL")
    return data_type


def _body(reader: WordReader) -> DataType:
    word = reader.peek()
    if word.kind != "word":
        raise reader.error("a type")
    name = reader.take().keyword
    match name:
        case "ARRAY" | "MULTISET":
            reader.expect("<")
            element = read_type(reader)
            reader.expect(">")
            return Array(element) if name == "ARRAY" else Multiset(element)
        case "MAP":
            closing = _opened(reader)
            key = read_type(reader)
            reader.expect(",")
            value = read_type(reader)
            reader.expect(closing)
            return Map(key, value)
        case "ROW" | "STRUCT":
            return _row(reader)
        case "DOUBLE":
            reader.accept("PRECISION")
    if name in _WHOLE:
        return _WHOLE[name]
    kind = _KINDS.get(name) or kind_of(name)
    if kind is None:
        hint = f"; {_INSTEAD[name]} may do" if name in _INSTEAD else nearest(name, _KNOWN)
        raise SqlError(f"no type of a table is called {word.text}{hint}", reader.text, word.start)
    return _atomic(reader, kind, word)


def _atomic(reader: WordReader, kind: Kind, word: Word) -> Atomic:
    numbers = reader.listed(reader.integer) if reader.at("(") else []
    if kind is Kind.TIMESTAMP:
        if reader.accept("WITH", "LOCAL", "TIME", "ZONE") or reader.accept("WITH", "TIME", "ZONE"):
            kind = Kind.TIMESTAMP_LTZ
        else:
            reader.accept("WITHOUT", "TIME", "ZONE")
    elif kind is Kind.TIME:
        reader.accept("WITHOUT", "TIME", "ZONE")
    if kind is Kind.DECIMAL and not numbers:
        numbers = list(_DECIMAL)
    wrong = wrong_parameters(kind, numbers)
    if wrong is not None:
        given = f"{word.text}({', '.join(map(str, numbers))})"
        raise SqlError(f"expected {wrong}, found {given}", reader.text, word.start)
    return atomic_type(kind, numbers)


def _opened(reader: WordReader) -> str:
    """Reads `<` or `(` and returns its closing bracket."""
    return {"<": ">", "(": ")"}[reader.one_of("<", "(")]


def _row(reader: WordReader) -> Row:
    closing = _opened(reader)
    fields: list[Field] = []
    while not fields or reader.accept(","):
        word = reader.peek()
        name = reader.name("a field name")
        if any(field.name.lower() == name.lower() for field in fields):
            raise SqlError(f"field {name!r} is given twice", reader.text, word.start)
        reader.accept(":")
        data_type = read_type(reader)
        described = reader.accept("COMMENT") or reader.peek().kind == "string"
        fields.append(Field(-1, name, data_type, reader.string() if described else None))
    reader.expect(closing)
    return Row(tuple(fields))
