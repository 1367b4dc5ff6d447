"""Statistics of columns gathered batch by batch."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelet.format.metadata.statistics_json import decode_statistics, encode_statistics, has_bounds
from lakelet.format.stats import distinct_count
from lakelet.format.stats.column_statistics import ColumnCollector
from lakelet.format.stats.distinct_count import EXACT_VALUES
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.table_statistics import ColumnStatistics, TableStatistics
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Array, Field
from lakelet.model.types import Atomic as AtomicType
from tests.unit.format.every_type import ATOMIC


def collected(columns: dict[str, str | Array], *batches: list[dict[str, object]]) -> dict[str, ColumnStatistics]:
    fields = [
        Field(index + 3, name, parse_type(text) if isinstance(text, str) else text)
        for index, (name, text) in enumerate(columns.items())
    ]
    collector = ColumnCollector(fields)
    for rows in batches:
        collector.update(pa.RecordBatch.from_pylist(rows, arrow_schema(fields)))
    return collector.finish()


def test_text_has_lengths_and_no_bounds() -> None:
    found = collected({"s": "STRING"}, [{"s": "é"}, {"s": None}], [{"s": "abc"}, {"s": "abcdef"}, {"s": "abc"}])
    assert found == {"s": ColumnStatistics(3, 3, None, None, 1, 4, 6)}
    found = collected({"b": "BYTES"}, [{"b": "é".encode()}, {"b": b""}])
    assert found == {"b": ColumnStatistics(3, 2, None, None, 0, 1, 2)}
    assert collected({"s": "STRING"}, [{"s": None}])["s"] == ColumnStatistics(3, 0, None, None, 1, 0, 0)


def test_numbers_have_bounds_and_their_size() -> None:
    columns: dict[str, str | Array] = {
        "i": "INT",
        "b": "BOOLEAN",
        "small": "DECIMAL(5, 2)",
        "large": "DECIMAL(30, 2)",
        "d": "DATE",
        "t": "TIMESTAMP(6)",
    }
    moment = dt.datetime(2026, 1, 1, 2, 3, 4, 5)
    found = collected(
        columns,
        [{"i": 5, "b": True, "small": Decimal("1.50"), "large": Decimal(7), "d": dt.date(2026, 1, 1), "t": moment}],
        [{"i": -5, "b": None, "small": Decimal("-1.50"), "large": Decimal(7), "d": dt.date(2025, 1, 1), "t": None}],
    )
    assert found["i"] == ColumnStatistics(3, 2, -5, 5, 0, 4, 4)
    assert found["b"] == ColumnStatistics(4, 1, True, True, 1, 1, 1)
    assert found["small"] == ColumnStatistics(5, 2, Decimal("-1.50"), Decimal("1.50"), 0, 8, 8)
    assert found["large"] == ColumnStatistics(6, 1, Decimal("7.00"), Decimal("7.00"), 0, 16, 16)
    assert found["d"] == ColumnStatistics(7, 2, dt.date(2025, 1, 1), dt.date(2026, 1, 1), 0, 4, 4)
    assert found["t"] == ColumnStatistics(8, 1, moment, moment, 1, 8, 8)


def test_nan_is_the_greatest() -> None:
    (found,) = collected({"f": "DOUBLE"}, [{"f": math.nan}, {"f": 1.0}, {"f": -2.0}]).values()
    assert found.minimum == -2.0
    assert isinstance(found.maximum, float)
    assert math.isnan(found.maximum)
    assert found.distinct_count == 3


def test_nested_columns_have_their_nulls_counted() -> None:
    element = parse_type("INT")
    assert isinstance(element, AtomicType)
    found = collected({"a": Array(element)}, [{"a": [1, 2]}, {"a": None}])
    assert found == {"a": ColumnStatistics(3, None, None, None, 1, None, None)}


def test_days_that_python_does_not_know_are_unknown() -> None:
    collector = ColumnCollector([Field(0, "d", parse_type("DATE")), Field(1, "i", parse_type("INT"))])
    days = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    collector.update(pa.RecordBatch.from_arrays([days, pa.array([1, 2], pa.int32())], ["d", "i"]))
    found = collector.finish()
    assert found["d"] == ColumnStatistics(0, 2, dt.date(1970, 1, 1), None, 0, 4, 4)
    assert found["i"] == ColumnStatistics(1, 2, 1, 2, 0, 4, 4)


def test_no_columns_and_no_rows() -> None:
    assert collected({}) == {}
    assert collected({"i": "INT"}) == {"i": ColumnStatistics(3, 0, None, None, 0, 4, 4)}


@pytest.mark.parametrize("type_text", ATOMIC)
@pytest.mark.parametrize("exact", [EXACT_VALUES, 0])
def test_every_type(type_text: str, exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly and by hashes, and into a statistics file and back."""
    monkeypatch.setattr(distinct_count, "EXACT_VALUES", exact)
    fields = [Field(0, "c", parse_type(type_text))]
    values = pa.array(ATOMIC[type_text], arrow_schema(fields).field("c").type)
    collector = ColumnCollector(fields)
    for part in (values, values.slice(1), values.slice(0, 0)):
        collector.update(pa.RecordBatch.from_arrays([part], schema=arrow_schema(fields)))
    found = collector.finish()
    assert found["c"].distinct_count == len(set(values.drop_null().to_pylist()))
    assert found["c"].null_count == values.null_count + values.slice(1).null_count
    assert (found["c"].minimum is not None) == has_bounds(fields[0].type)
    statistics = TableStatistics(1, 0, 2, 3, found)
    data = encode_statistics(statistics, fields)
    assert decode_statistics(data, lambda _: fields, path="p") == statistics
