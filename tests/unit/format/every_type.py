"""Rows of every type with the values at which formats break, for the tests of the data file formats."""

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelet.format.data.data_file_format import DataFileFormat, WriteSettings
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Array, DataType, Field, Map, Multiset, Row, with_nullable
from lakelet.storage.memory import MemoryStore

PATH = "t/bucket-0/data-0"

_DECIMAL = decimal.Decimal
_DATE, _TIME = datetime.date, datetime.time
_TEXT = ["a", "", None, "日本語🙂", "trail"]

ATOMIC: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, 127, None, 0],
    "SMALLINT": [-(2**15), 2**15 - 1, None],
    "INT": [-(2**31), 2**31 - 1, None],
    "BIGINT": [-(2**63), 2**63 - 1, None],
    "FLOAT": [1.5, -0.0, None, float("inf"), float("-inf")],
    "DOUBLE": [5e-324, -2.25e300, None],
    "DECIMAL(5, 2)": [_DECIMAL("-999.99"), _DECIMAL("999.99"), None, _DECIMAL("0.00")],
    "DECIMAL(18, 0)": [_DECIMAL("9" * 18), _DECIMAL("-" + "9" * 18), None],
    "DECIMAL(38, 10)": [_DECIMAL("9" * 28 + "." + "9" * 10), _DECIMAL("-0.0000000001"), None],
    "CHAR(5)": ["ab", "abcde", None],
    "VARCHAR(7)": ["héllo", "", None],
    "STRING": _TEXT,
    "BINARY(3)": [b"\x00\x01\x02", b"\xff\xff\xff", None],
    "VARBINARY(4)": [b"\xff", b"", None],
    "BYTES": [b"", b"\x00\xff\x10", None],
    "DATE": [_DATE(1, 1, 1), _DATE(9999, 12, 31), None, _DATE(1969, 12, 31), _DATE(1582, 10, 10)],
    "TIME(0)": [_TIME(0, 0, 0), _TIME(23, 59, 59), None],
    "TIME(3)": [_TIME(23, 59, 59, 999000), _TIME(0, 0, 0, 1000), None],
}
"""Values of each type that every format keeps."""


def field(number: int, name: str, data_type: DataType | str) -> Field:
    """A column; the type may be its SQL text."""
    return Field(number, name, parse_type(data_type) if isinstance(data_type, str) else data_type)


def nested() -> list[tuple[DataType, list[Any]]]:
    """Nested types with their values; times are absent, since formats differ in them."""
    string, number = parse_type("STRING"), parse_type("INT")
    inner = Row((field(101, "q", "DECIMAL(20, 3)"), field(102, "tm", "TIME(3)"), field(103, "c", "CHAR(4)")))
    outer = Row(
        (
            field(104, "x", "INT NOT NULL"),
            field(105, "z", Array(inner)),
            field(106, "m", Map(string, Map(string, number))),
        )
    )
    values = {"q": _DECIMAL("-1.234"), "tm": _TIME(1, 2, 3, 4000), "c": "ab"}
    return [
        (Array(number), [[1, None, -3], [], None, [7]]),
        (Array(with_nullable(string, False)), [["a", ""], None, []]),
        (Array(parse_type("TIME(3)")), [[_TIME(0, 0, 0, 1000), None], None]),
        (Map(string, number), [[("k", 1), ("z", None)], [], None]),
        (Map(number, string), [[(1, "a"), (2, None)], None, []]),
        (Multiset(string), [[("a", 2), ("b", 1)], None, []]),
        (
            outer,
            [
                {
                    "x": 1,
                    "z": [values, None, {"q": None, "tm": None, "c": None}],
                    "m": [("a", [("i", 1), ("j", None)]), ("b", None)],
                },
                None,
                {"x": -1, "z": None, "m": []},
                {"x": 2, "z": [], "m": None},
            ],
        ),
    ]


def every_type(rows: int, *, extra: dict[str, list[Any]] | None = None) -> tuple[list[Field], pa.Table]:
    """A table with a column of every type, each repeating its values; `extra` are columns of further types."""
    columns = [(parse_type(text), values) for text, values in {**ATOMIC, **(extra or {})}.items()] + nested()
    fields = [field(0, "id", "BIGINT NOT NULL")]
    fields += [Field(number, f"c{number}", data_type) for number, (data_type, _) in enumerate(columns, 1)]
    schema = arrow_schema(fields)
    arrays = [pa.array(range(rows), pa.int64())]
    for number, (_, values) in enumerate(columns, 1):
        repeated = [values[row % len(values)] for row in range(rows)]
        arrays.append(pa.array(repeated, schema.field(number).type))
    return fields, pa.Table.from_arrays(arrays, schema=schema)


def write(
    data_format: DataFileFormat,
    fields: Sequence[Field],
    tables: Sequence[pa.Table],
    *,
    settings: WriteSettings | None = None,
    without_ranges: frozenset[str] = frozenset(),
) -> MemoryStore:
    """A store with a file of these tables under PATH."""
    store = MemoryStore()
    with store.open_output(PATH) as output:
        writer = data_format.open_writer(output, fields, settings or WriteSettings(), without_ranges=without_ranges)
        for table in tables:
            writer.write(table)
        writer.close()
        # The size may be a guess while rows wait; of the finished file it is exact.
        assert writer.size() == output.tell()
    return store


def read(
    data_format: DataFileFormat,
    store: MemoryStore,
    fields: Sequence[Field],
    columns: Sequence[str] | None = None,
    *,
    batch_rows: int = 1000,
) -> pa.Table:
    """The columns of the file under PATH, batches checked."""
    names = [column.name for column in fields] if columns is None else list(columns)
    batches = list(data_format.read(store, PATH, fields, names, batch_rows=batch_rows))
    for batch in batches:
        batch.validate(full=True)
        assert 0 < batch.num_rows <= batch_rows
    return pa.Table.from_batches(batches) if batches else pa.table({})
