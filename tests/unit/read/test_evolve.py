"""Schema evolution on read: columns of old files in the current types."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.schema_change import evolution
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.read.evolve import deleted_mask, evolve_array, evolve_batch, same_layout


def schema(*columns: tuple[str, str]) -> TableSchema:
    fields = [Field(-1, name, parse_type(text)) for name, text in columns]
    return new_schema(fields, partition_keys=[], primary_keys=[], options={}, comment=None, time_ms=0)


def evolve(old: TableSchema, new: TableSchema, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(old.fields))
    found = evolve_batch(batch, old.fields, new.fields)
    found.validate(full=True)
    assert [field.type for field in found.schema] == [to_arrow(field.type) for field in new.fields]
    # The same, of a slice in the middle of a longer batch.
    longer = pa.RecordBatch.from_pylist([*rows, *rows, *rows], schema=arrow_schema(old.fields)).slice(
        len(rows), len(rows)
    )
    assert evolve_batch(longer, old.fields, new.fields).to_pylist() == found.to_pylist()
    result: list[dict[str, Any]] = found.to_pylist()
    return result


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        ("INT", "BIGINT", [1, None, -(2**31)], [1, None, -(2**31)]),
        ("TINYINT", "DOUBLE", [1, None], [1.0, None]),
        ("BIGINT", "DECIMAL(20, 1)", [2**63 - 1, None], [Decimal(2**63 - 1), None]),
        ("FLOAT", "DOUBLE", [1.5, float("inf")], [1.5, float("inf")]),
        ("DECIMAL(6, 2)", "DECIMAL(20, 4)", [Decimal("1.25"), None], [Decimal("1.2500"), None]),
        ("CHAR(3)", "STRING", ["abc", None], ["abc", None]),
        ("BINARY(2)", "BYTES", [b"ab"], [b"ab"]),
        (
            "TIMESTAMP(3)",
            "TIMESTAMP(6)",
            [dt.datetime(1969, 1, 1, 0, 0, 0, 1000)],
            [dt.datetime(1969, 1, 1, 0, 0, 0, 1000)],
        ),
    ],
)
def test_widened_values(old: str, new: str, values: list[Any], expected: list[Any]) -> None:
    before = schema(("c", old))
    after = evolution.change_type(before, "c", parse_type(new))
    assert evolve(before, after, [{"c": value} for value in values]) == [{"c": value} for value in expected]
    nested = schema(("r", f"ROW<c {old}>"), ("l", f"ARRAY<ROW<c {old}>>"), ("m", f"MAP<STRING, ROW<c {old}>>"))
    wider = nested
    for path in ("r.c", "l.element.c", "m.value.c"):
        wider = evolution.change_type(wider, path, parse_type(new))
    rows = [{"r": {"c": value}, "l": [{"c": value}, None], "m": [("k", {"c": value}), ("l", None)]} for value in values]
    wanted = [
        {"r": {"c": value}, "l": [{"c": value}, None], "m": [("k", {"c": value}), ("l", None)]} for value in expected
    ]
    nothing: dict[str, Any] = {"r": None, "l": None, "m": None}
    assert evolve(nested, wider, [*rows, nothing]) == [*wanted, nothing]


def test_renamed_dropped_added_and_moved_columns() -> None:
    before = schema(("a", "INT"), ("b", "STRING"), ("c", "INT"))
    after = evolution.rename_column(before, "a", "x")
    after = evolution.drop_column(after, "b")
    after = evolution.add_column(after, "b", parse_type("DOUBLE"))
    after = evolution.move_column(after, "c", first=True)
    assert evolve(before, after, [{"a": 1, "b": "old", "c": 3}]) == [{"c": 3, "x": 1, "b": None}]


def test_the_same_inside_other_columns() -> None:
    before = schema(("l", "ARRAY<ROW<a INT, b STRING, r ROW<d INT>>>"))
    after = evolution.rename_column(before, "l.element.a", "x")
    after = evolution.drop_column(after, "l.element.b")
    after = evolution.add_column(after, "l.element.b", parse_type("STRING"))
    after = evolution.add_column(after, "l.element.r.e", parse_type("MAP<STRING, INT>"), first=True)
    rows = [
        {"l": [{"a": 1, "b": "old", "r": {"d": 2}}, None, {"a": None, "b": None, "r": None}]},
        {"l": None},
        {"l": []},
    ]
    wanted = [
        {"l": [{"x": 1, "r": {"e": None, "d": 2}, "b": None}, None, {"x": None, "r": None, "b": None}]},
        {"l": None},
        {"l": []},
    ]
    assert evolve(before, after, rows) == wanted


def test_two_columns_that_changed_names_are_not_mixed_up() -> None:
    before = schema(("a", "INT"), ("b", "INT"))
    after = evolution.rename_column(
        evolution.rename_column(evolution.rename_column(before, "a", "t"), "b", "a"), "t", "b"
    )
    assert evolve(before, after, [{"a": 1, "b": 2}]) == [{"b": 1, "a": 2}]


def test_required_fields_of_a_row_survive() -> None:
    before = schema(("r", "ROW<a INT NOT NULL, b INT>"))
    after = evolution.change_type(before, "r.b", parse_type("BIGINT"))
    assert evolve(before, after, [{"r": {"a": 1, "b": 2}}, {"r": None}]) == [{"r": {"a": 1, "b": 2}}, {"r": None}]


def test_what_cannot_be_converted_is_named() -> None:
    with pytest.raises(InvalidError, match="column 'x'"):
        evolve_array(pa.array(["no number"]), parse_type("STRING"), parse_type("INT"), "x")
    with pytest.raises(InvalidError, match="column 'x' is INT, but an older file holds ARRAY<INT>"):
        evolve_array(pa.array([[1]]), parse_type("ARRAY<INT>"), parse_type("INT"), "x")


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("INT", "INT NOT NULL", True),
        ("CHAR(3)", "STRING", True),
        ("INT", "BIGINT", False),
        ("ARRAY<INT>", "ARRAY<INT>", True),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False),
        ("ROW<a INT>", "ROW<a INT>", True),
        ("ROW<a INT>", "ROW<b INT>", False),
        ("ROW<a INT>", "ROW<a INT, b INT>", False),
        ("MAP<STRING, INT>", "MAP<STRING, DOUBLE>", False),
        ("INT", "ARRAY<INT>", False),
    ],
)
def test_same_layout(old: str, new: str, same: bool) -> None:
    assert same_layout(parse_type(old), parse_type(new)) is same


def test_deleted_positions_of_a_batch() -> None:
    positions = np.array([0, 3, 4, 10, 11], np.int64)
    assert deleted_mask(positions, 0, 5).to_pylist() == [False, True, True, False, False]
    assert deleted_mask(positions, 5, 5).to_pylist() == [True] * 5
    assert deleted_mask(positions, 10, 3).to_pylist() == [False, False, True]
    assert deleted_mask(np.array([], np.int64), 0, 2).to_pylist() == [True, True]


@pytest.mark.parametrize(
    ("column", "added", "value", "expected"),
    [
        ("ROW<x INT NOT NULL>", "c.z", {"x": 1}, {"x": 1, "z": None}),
        ("ARRAY<ROW<x INT NOT NULL>>", "c.element.z", [{"x": 1}], [{"x": 1, "z": None}]),
        ("MAP<STRING, ROW<x INT NOT NULL>>", "c.value.z", [("k", {"x": 1})], [("k", {"x": 1, "z": None})]),
    ],
)
def test_fields_can_be_added_beside_members_that_are_not_null(
    column: str, added: str, value: Any, expected: Any
) -> None:
    old = schema(("c", column))
    new = evolution.add_column(old, added, parse_type("INT"))
    assert evolve(old, new, [{"c": value}, {"c": None}]) == [{"c": expected}, {"c": None}]


def test_a_timestamp_that_nanoseconds_cannot_hold_is_refused_not_wrapped() -> None:
    array = pa.array([dt.datetime(3000, 1, 1)], pa.timestamp("us"))
    with pytest.raises(InvalidError, match="'c'"):
        evolve_array(array, parse_type("TIMESTAMP(6)"), parse_type("TIMESTAMP(9)"), "c")
