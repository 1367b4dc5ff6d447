"""Hashes of rows: equal for equal rows, different for different ones, the same however batches are cut."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.spark.jobs.row_checksums import row_numbers
from tests.tiers.examples import examples

pytest.importorskip("pyspark")


def field(type_text: str, name: str = "a") -> Field:
    return Field(0, name, parse_type(type_text))


def numbers(type_text: str, values: list[object], name: str = "a") -> list[int]:
    fields = [field(type_text, name)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, arrow_schema(fields).field(0).type)], schema=arrow_schema(fields)
    )
    return [int(number) for number in row_numbers(batch, fields)]


DIFFERENT = [
    ("INT", [None, 0, 1, -1, 2**31 - 1]),
    ("STRING", [None, "", "\0", "\0\0", "a", "b", "ab", "ba", "a" * 8, "a" * 9, "12345678x", "x12345678", "é"]),
    ("BYTES", [None, b"", b"\0", b"\0" * 8, b"\0" * 9]),
    ("DOUBLE", [None, 0.0, -0.0, 1.0, float("nan"), float("inf")]),
    ("FLOAT", [None, 0.0, 1.5, float("nan")]),
    ("BOOLEAN", [None, False, True]),
    ("DECIMAL(38, 2)", [None, Decimal("0.00"), Decimal("1.00"), Decimal("-1.00"), Decimal(2) ** 70, Decimal(2) ** 64]),
    ("ARRAY<INT>", [None, [], [None], [0], [0, 0], [1, 2], [2, 1], [None, None]]),
    ("ARRAY<STRING>", [None, [], [""], ["", ""], ["ab"], ["a", "b"], [None]]),
    (
        "MAP<STRING, INT>",
        [None, [], [("a", 1)], [("a", 2)], [("b", 1)], [("a", None)], [("a", 1), ("b", 2)], [("a", 2), ("b", 1)]],
    ),
    ("MULTISET<STRING>", [None, [], [("a", 1)], [("a", 2)]]),
    ("ROW<x INT, y INT>", [None, {"x": None, "y": None}, {"x": 1, "y": 2}, {"x": 2, "y": 1}, {"x": None, "y": 1}]),
    ("ROW<x ROW<z INT>>", [None, {"x": None}, {"x": {"z": None}}, {"x": {"z": 1}}]),
]


@pytest.mark.parametrize(("type_text", "values"), DIFFERENT, ids=[text for text, _ in DIFFERENT])
def test_different_values_have_different_numbers(type_text: str, values: list[object]) -> None:
    found = numbers(type_text, values)
    assert len(set(found)) == len(values)
    assert found == numbers(type_text, values)


@pytest.mark.parametrize(("type_text", "values"), DIFFERENT, ids=[text for text, _ in DIFFERENT])
def test_a_slice_of_a_batch_has_the_same_numbers(type_text: str, values: list[object]) -> None:
    fields = [field(type_text)]
    schema = arrow_schema(fields)
    batch = pa.RecordBatch.from_arrays([pa.array(values, schema.field(0).type)], schema=schema)
    whole = row_numbers(batch, fields)
    assert (row_numbers(batch.slice(1, len(values) - 2), fields) == whole[1:-1]).all()
    assert not len(row_numbers(batch.slice(0, 0), fields))


def test_type_and_name_of_a_column_count() -> None:
    assert numbers("INT", [1]) != numbers("DOUBLE", [1.0])
    assert numbers("INT", [1]) != numbers("BIGINT", [1])
    assert numbers("INT", [1]) != numbers("INT", [1], name="b")
    assert numbers("INT NOT NULL", [1]) == numbers("INT", [1])
    assert numbers("ROW<x INT>", [{"x": 1}]) != numbers("ROW<y INT>", [{"y": 1}])


def test_every_nan_is_the_same() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    fields = [field("DOUBLE")]
    batch = pa.RecordBatch.from_arrays([pa.array(bits)], schema=arrow_schema(fields))
    first, second = row_numbers(batch, fields)
    assert first == second


def test_the_order_of_the_entries_of_a_map_does_not_count() -> None:
    first, second = numbers("MAP<STRING, INT>", [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]])
    assert first == second


def test_values_that_change_rows_or_columns_are_noticed() -> None:
    fields = [field("INT", "a"), field("INT", "b")]

    def total(a: list[int], b: list[int]) -> int:
        batch = pa.RecordBatch.from_arrays(
            [pa.array(a, pa.int32()), pa.array(b, pa.int32())], schema=arrow_schema(fields)
        )
        return int(row_numbers(batch, fields).sum())

    assert total([1, 2], [3, 4]) == total([2, 1], [4, 3])
    assert total([1, 2], [3, 4]) != total([2, 1], [3, 4])
    assert total([1, 2], [3, 4]) != total([3, 2], [1, 4])
    assert total([1, 1], [3, 3]) != total([1, 2], [3, 4])


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=30))
def test_bytes_have_the_numbers_that_they_have_alone(values: list[bytes | None]) -> None:
    together = numbers("BYTES", list(values))
    assert together == [numbers("BYTES", [value])[0] for value in values]
    assert len(set(together)) == len(set(values))
