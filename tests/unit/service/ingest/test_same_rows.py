"""Lines and Arrow tables that are taken as columns are the rows that records become one by one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.service.ingest.arrow_records import records_of_arrow
from lakelet.service.ingest.fitting_rows import fitting_rows, parsed_lines
from lakelet.service.ingest.record import record_of
from lakelet.service.ingest.record_columns import RecordColumns
from lakelet.service.values import Record

PAYLOAD = "ROW<i BIGINT, big BIGINT, d DOUBLE, s STRING, b BOOLEAN, l ARRAY<BIGINT>, n ROW<x DOUBLE, y ARRAY<STRING>>>"
COLUMNS = {
    "id": "STRING NOT NULL",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "payload": PAYLOAD,
    "payload_rest": "STRING",
    "dt": "DATE",
}
EDGES = st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 0, -1, 2**31, 128])
INTEGERS = EDGES | st.integers(-(2**64), 2**64)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 25.0, 2.0**53, 1e300])
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**53), 2**53),
    "big": st.integers(-(2**63), 2**63 - 1),
    "d": st.floats(-1e15, 1e15) | st.integers(-1000, 1000),
    "s": st.text(),
    "b": st.booleans(),
    "l": st.lists(st.none() | st.integers(-5, 5), max_size=3),
    "n": st.fixed_dictionaries({}, optional={"x": st.none() | st.floats(0.5, 9), "y": st.lists(st.text(), max_size=2)}),
}
ANY = st.none() | st.booleans() | INTEGERS | DOUBLES | st.text() | st.lists(INTEGERS | st.none(), max_size=2)
ODD = st.dictionaries(st.sampled_from([*PLAIN, "I", "new", ""]), ANY | st.dictionaries(st.text(), ANY, max_size=2))
PAYLOADS = st.fixed_dictionaries({}, optional={name: st.none() | one for name, one in PLAIN.items()})
MOMENTS = st.sampled_from(
    [
        "2026-01-31T10:00:00Z",
        "2026-01-31t10:00:00.123456z",
        "1969-12-31 23:59:59.5+05:45",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        "2026-01-31T10:00:00.1234567Z",
        "2026-01-31T10:00:00",
        "2026-02-30T10:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:59:60Z",
        "yesterday",
    ]
)
IDS = st.text(min_size=1, max_size=5) | st.sampled_from(["/", "a:%*..\n", "x" * 1024, "x" * 1025, ""])


@pytest.fixture(scope="module")
def schema() -> TableSchema:
    fields = tuple(Field(number, name, parse_type(text)) for number, (name, text) in enumerate(COLUMNS.items()))
    options = {"service.exact-integers": '["big"]'}
    return TableSchema(0, fields, 20, ("dt",), (), options, None, 0)


def one_by_one(lines: list[str], schema: TableSchema) -> pa.Table | None:
    """The rows of lines that are read one by one; None where one is refused or does not fit."""
    try:
        records = [record_of(msgspec.json.decode(line)) for line in lines]
        return converted(records, schema)
    except (InvalidError, msgspec.MsgspecError, UnicodeEncodeError):
        return None


def converted(records: list[Record], schema: TableSchema) -> pa.Table | None:
    """The rows of records; None where a value does not fit."""
    rows, misfits = RecordColumns(schema).convert(records)
    if misfits:
        return None
    return pa.Table.from_pylist(rows, arrow_schema(schema.fields)) if isinstance(rows, list) else rows


def check(lines: list[str], schema: TableSchema) -> bool:
    found = parsed_lines("\n".join(lines).encode(), schema)
    rows = None if found is None else fitting_rows(found, RecordColumns(schema))
    if rows is None:
        return False
    expected = one_by_one(lines, schema)
    assert expected is not None, lines
    assert rows.schema.types == expected.schema.types
    # As texts: -0.0 equals 0.0.
    assert str(rows.to_pylist()) == str(expected.to_pylist())
    return True


def line(key: str, moment: str, payload: Any) -> str:
    return json.dumps({"id": key, "timestamp": moment, "payload": payload}, ensure_ascii=False)


@given(st.lists(st.tuples(IDS, MOMENTS, PAYLOADS | ODD), min_size=1, max_size=4))
def test_lines_are_the_rows_that_records_become(schema: TableSchema, records: list[tuple[str, str, Any]]) -> None:
    check([line(*record) for record in records], schema)


@given(st.lists(PAYLOADS, min_size=1, max_size=6))
def test_plain_lines_are_taken_as_columns(schema: TableSchema, payloads: list[Any]) -> None:
    lines = [line(str(place), "2026-01-31T10:00:00Z", one) for place, one in enumerate(payloads)]
    zeros = any(str(one.get("d")) == "-0.0" for one in payloads)
    assert check(lines, schema) or zeros


@pytest.mark.parametrize(
    "payload",
    [
        '{"d": 9007199254740993}',
        '{"d": 1e400}',
        '{"d": -0}',
        '{"d": -0.0}',
        '{"d": NaN}',
        '{"i": 25.0}',
        '{"i": 1, "i": 2}',
        '{"s": "\\ud800"}',
        '{"i": 01}',
        '{"i": 1,}',
        '{"s": 5}',
        '{"n": {"x": 1, "z": 2}}',
        '{"l": {}}',
        "[]",
        "null",
        '{"i": 1}} {"id": "b", "timestamp": "2026-01-31T10:00:00Z", "payload": {"i": 2}',
    ],
)
def test_odd_texts_are_no_other_values(schema: TableSchema, payload: str) -> None:
    head = '{"id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": '
    check([line("x", "2026-01-31T10:00:00Z", {"i": 1}), f"{head}{payload}}}"], schema)


ARROW_TYPES: dict[str, list[pa.DataType]] = {
    "i": [pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.null()],
    "big": [pa.int64(), pa.uint8()],
    "d": [pa.float64(), pa.float32(), pa.int64()],
    "s": [pa.string(), pa.large_string(), pa.int64()],
    "l": [pa.list_(pa.int64()), pa.list_(pa.int16()), pa.large_list(pa.int64()), pa.list_(pa.float64())],
    "n": [pa.struct([("y", pa.list_(pa.string())), ("x", pa.int64())]), pa.struct([("x", pa.float64())])],
    "new": [pa.int64(), pa.null()],
}
SMALL = st.none() | st.integers(-3, 3)
ARROW_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": SMALL,
    "big": st.none() | st.integers(0, 200),
    "d": SMALL,
    "s": st.none() | st.sampled_from(["", "é", "x"]),
    "l": st.none() | st.lists(SMALL, max_size=3),
    "n": st.none() | st.fixed_dictionaries({"x": SMALL}),
    "new": st.none(),
}


@given(st.data())
def test_arrow_tables_are_the_rows_that_records_become(schema: TableSchema, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(ARROW_TYPES)), unique=True, min_size=1))
    count = data.draw(st.integers(1, 5))
    fields = []
    for name in names:
        arrow_type = data.draw(st.sampled_from(ARROW_TYPES[name]))
        values = [data.draw(ARROW_VALUES[name]) for _ in range(count)]
        try:
            fields.append((name, pa.array(values, arrow_type)))
        except (pa.ArrowException, OverflowError, TypeError):
            fields.append((name, pa.nulls(count, arrow_type)))
    payload = pa.StructArray.from_arrays([one for _, one in fields], names=[name for name, _ in fields])
    start = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)
    moments = [start + timedelta(seconds=40 * place) for place in range(count)]
    rows = pa.table(
        {"timestamp": pa.array(moments, pa.timestamp("ms", "Asia/Kathmandu")), "payload": payload, "id": ["k"] * count}
    )
    sliced = rows.slice(data.draw(st.integers(0, count - 1)))
    found = fitting_rows(sliced, RecordColumns(schema))
    if found is not None:
        expected = converted(records_of_arrow(sliced), schema)
        assert expected is not None
        assert found.to_pylist() == expected.to_pylist()
        assert found.schema.types == expected.schema.types
        found.validate(full=True)


@pytest.mark.parametrize("arrow_type", [pa.int64(), pa.float64(), pa.uint64()])
@pytest.mark.parametrize("value", [2**53 + 2, 2**62])
def test_large_integers_need_a_field_that_holds_them(schema: TableSchema, arrow_type: pa.DataType, value: int) -> None:
    def rows(name: str) -> pa.Table:
        moments = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
        payload = pa.StructArray.from_arrays(
            [pa.array([float(value) if pa.types.is_floating(arrow_type) else value], arrow_type)], names=[name]
        )
        return pa.table({"id": ["a"], "timestamp": moments, "payload": payload})

    columns = RecordColumns(schema)
    assert fitting_rows(rows("i"), columns) is None
    taken = fitting_rows(rows("big"), columns)
    assert (taken is None) == (arrow_type != pa.int64())
